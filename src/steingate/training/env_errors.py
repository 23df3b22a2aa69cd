"""Whatever an environment raises, as one sentence that names the environment, its number and the step."""

from types import TracebackType

from steingate.envs.foreign import said_and_place
from steingate.errors import RunError, SteingateError
from steingate.training.environment import TrainerEnv


class RolloutStoppedError(Exception):
    """The rollout was abandoned because the user asked the run to stop."""


class NamedErrors:
    """A context in which environments work; what they raise leaves it as a RunError from the original.

    Parameters
    ----------
    envs
        The vector environment.
    name
        How messages call it.
    steps_before
        Steps taken before this rollout.
    kept
        What the message says about the state of the run.
    """

    def __init__(self, envs: TrainerEnv, name: str, steps_before: int, kept: str) -> None:
        self.t = 0  # vector steps begun
        self._envs, self._name, self._steps_before, self._kept = envs, name, steps_before, kept

    def __enter__(self) -> "NamedErrors":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Let the package's own errors and requests to stop pass, and translate the rest."""
        if not isinstance(error, Exception) or isinstance(error, SteingateError | RolloutStoppedError):
            return
        said, place = said_and_place(error)
        raise RunError(
            f"{self._where()} failed at {self._step()} with {said}{place}; {self._kept}fix the environment."
        ) from error

    def not_finite(self, row: int, quantity: str) -> RunError:
        """Return the error about a number of environment ``row`` that is not finite."""
        return RunError(
            f"{self._where(row)} gave {quantity} that is not finite at {self._step()}; "
            f"{self._kept}fix the environment."
        )

    def _where(self, row: int | None = None) -> str:
        number = self._envs.at_work if row is None else row
        return self._name if number is None else f"{self._name} (number {number} of {self._envs.num_envs})"

    def _step(self) -> str:
        return f"step {self._steps_before + self.t * self._envs.num_envs}"
