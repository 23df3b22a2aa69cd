"""Settings of the certified-checkpoint selection."""

from dataclasses import dataclass

from steingate.errors import InputError
from steingate.settings import option


@dataclass(frozen=True)
class CertifyConfig:
    """Selection of the certified checkpoint: the best policy that passed a test on fresh episodes.

    A certificate states P(cost of an episode > limit) <= ``budget`` for the mean action. With probability at
    least 1 - ``delta`` all certificates of a run are right, however many policies were tested.
    """

    enabled: bool = option(True, "test policies and save the best certified one")
    budget: float = option(0.1, "accepted violation probability P(cost > limit) of a certified policy")
    delta: float = option(0.05, "probability that any certificate of the run is wrong")
    max_step_fraction: float = option(
        0.03, "steps of certification tests during training, as a fraction of the training steps"
    )
    max_episodes: int = option(300, "maximum number of fresh episodes of one test")

    def __post_init__(self) -> None:
        for name in ("budget", "delta"):
            value = getattr(self, name)
            if not 0.0 < value < 1.0:
                raise InputError(f"certify.{name} is {value!r}: it must lie between 0 and 1.")
        if not 0.0 <= self.max_step_fraction <= 1.0:
            raise InputError(f"certify.max_step_fraction is {self.max_step_fraction!r}: it must be from 0 to 1.")
        if self.max_episodes < 1:
            raise InputError(f"certify.max_episodes is {self.max_episodes!r}: it must be greater than zero.")
