"""How a run looks for the policy it delivers: the settings."""

from dataclasses import dataclass

from steingate.errors import InputError
from steingate.settings import setting


@dataclass(frozen=True)
class Certifying:
    """Which policy a run keeps beside the last: the best of which fresh episodes show that it is safe.

    Safe means P(cost of an episode > limit) <= ``budget``, for the mean action. With probability at least
    1 - ``delta`` no policy that a run calls certified is wrong, however many were tried.
    """

    keep: bool = setting(True, "keep the best certified policy beside the last one")
    budget: float = setting(0.1, "largest share of its episodes over the limit for a policy to be certified")
    delta: float = setting(0.05, "chance that any policy of the run is certified wrongly")
    share: float = setting(0.03, "most steps for tests while training, as a share of the training's")
    episodes: int = setting(300, "most fresh episodes of one test")

    def __post_init__(self) -> None:
        for name in ("budget", "delta"):
            value = getattr(self, name)
            if not 0.0 < value < 1.0:
                raise InputError(f"certify.{name} is {value!r}: it must lie between 0 and 1.")
        if not 0.0 <= self.share <= 1.0:
            raise InputError(f"certify.share is {self.share!r}: it must be from 0 to 1.")
        if self.episodes < 1:
            raise InputError(f"certify.episodes is {self.episodes!r}: it must be greater than zero.")
