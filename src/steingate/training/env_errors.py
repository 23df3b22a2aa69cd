"""Errors of environments during a rollout, in one sentence with environment, index and step."""

from types import TracebackType

from steingate.envs.worker_pool import describe_error
from steingate.errors import RunError, SteingateError
from steingate.training import rollout_kernels as kernels
from steingate.training.environment import TrainerEnv


class RolloutStoppedError(Exception):
    """The rollout was abandoned because the user asked the run to stop."""


class EnvErrors:
    """Context that turns exceptions of an environment into a RunError with environment, index and step."""

    def __init__(self, envs: TrainerEnv, name: str, steps_before: int, hint: str) -> None:
        self.t = 0  # vector steps begun
        self._envs, self._name, self._steps_before, self._hint = envs, name, steps_before, hint

    def __enter__(self) -> "EnvErrors":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if not isinstance(error, Exception) or isinstance(error, SteingateError | RolloutStoppedError):
            return
        message, location = describe_error(error)
        raise RunError(
            f"{self._where(self._envs.current_env)} failed at {self._step()} with {message}{location}; "
            f"{self._hint}fix the environment."
        ) from error

    def check(self, bad: int) -> None:
        """Raise the error for a nonzero result of ``kernels.advance``: a number that is not finite."""
        if bad:
            quantity, row = divmod(bad - 1, self._envs.num_envs)
            raise RunError(
                f"{self._where(row)} gave {kernels.QUANTITIES[quantity]} that is not finite at "
                f"{self._step()}; {self._hint}fix the environment."
            )

    def _where(self, row: int | None) -> str:
        return self._name if row is None else f"{self._name} (number {row} of {self._envs.num_envs})"

    def _step(self) -> str:
        return f"step {self._steps_before + self.t * self._envs.num_envs}"
