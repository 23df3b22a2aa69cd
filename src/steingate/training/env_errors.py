"""Errors of environments in one sentence with environment, index and step; checks for finite numbers."""

from typing import Any

import numpy as np

from steingate.envs.worker_pool import describe_error
from steingate.errors import RunError, SteingateError
from steingate.training import rollout_kernels as kernels
from steingate.training.config import RunConfig
from steingate.training.environment import TrainerEnv
from steingate.training.stop import RolloutStoppedError, Stopped


class EnvErrors:
    """Context that turns exceptions of an environment into a RunError with environment, index and step."""

    def __init__(self, envs: TrainerEnv, name: str, steps_before: int, hint: str) -> None:
        self.t = 0  # vector steps begun
        self._envs, self._name, self._steps_before, self._hint = envs, name, steps_before, hint

    def __enter__(self) -> "EnvErrors":
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        handled = SteingateError | RolloutStoppedError | Stopped
        if not isinstance(error, Exception | SystemExit) or isinstance(error, handled):
            return
        raise self._error(self._envs.current_env, "failed", f" with {describe_error(error)}") from error

    def check(self, bad: int, cost: Any = ()) -> None:
        """Raise the error for a nonzero result of ``kernels.advance``: a number that is not finite.

        An algorithm's reward and observation may contain the cost, which is then the cause.
        """
        if bad:
            quantity, row = divmod(bad - 1, self._envs.num_envs)
            bad_cost = len(cost) > row and not np.isfinite(cost[row])
            name = f"a cost ({float(cost[row]):g})" if bad_cost else kernels.QUANTITIES[quantity]
            raise self._error(row, f"gave {name} that is not finite")

    def _error(self, row: int | None, what: str, cause: str = "") -> RunError:
        number = "" if row is None else f" (number {row} of {self._envs.num_envs})"
        step = self._steps_before + self.t * self._envs.num_envs
        return RunError(f"{self._name}{number} {what} at step {step}{cause}; {self._hint}fix the environment.")


def require_finite(cfg: RunConfig, epoch: int, quantities: dict[str, Any]) -> None:
    """Raise an error that names the first quantity with a NaN or an infinity."""
    import jax  # only training needs it

    for name, tree in quantities.items():
        for path, value in jax.tree_util.tree_leaves_with_path(tree):
            if not np.isfinite(np.asarray(value)).all():
                bad = "/".join(filter(None, (name, jax.tree_util.keystr(path, simple=True, separator="/"))))
                raise RunError(
                    f"Training on {cfg.env} stopped in epoch {epoch} (step {(epoch + 1) * cfg.steps_per_epoch}): "
                    f"{bad} is not finite; the state before this epoch is saved."
                )
