"""Detection of a rise of the violation rate above a baseline m0.

A Shiryaev-Roberts detector made of bets (``wealth.THETA``). With x = 1 for a violation and 0 otherwise,

    R_k <- (1 + R_k) (1 + theta_k (x - m0) / m0)        alarm when mean(R) >= run_length

While the violation rate is at most m0, mean(R) minus the number of episodes does not increase in expectation,
so the mean number of episodes until a false alarm is at least ``run_length``. Alarms are raised at violations
only.
"""

from steingate.monitoring.wealth import THETA

_LARGEST = 1e300


class DriftDetector:
    """State of the detector.

    Attributes
    ----------
    baseline, run_length : accepted violation rate m0, and mean number of episodes between false alarms
    alarm : whether there is an alarm; it stays until ``rearm``, and no episodes are counted meanwhile
    alarms : episodes, counted from 1, at which alarms were raised
    statistics : R_k, at most 1e300
    """

    def __init__(self, baseline: float, run_length: float) -> None:
        self.baseline, self.run_length = baseline, run_length
        self._violation = [1.0 + theta * (1.0 - baseline) / baseline for theta in THETA]
        self._safe = [1.0 - theta for theta in THETA]
        self.alarms: list[int] = []
        self.rearm()

    def rearm(self) -> None:
        """Restart after an alarm."""
        self.alarm = False
        self.statistics = [0.0] * len(THETA)

    def update(self, violation: bool, episode: int) -> None:
        """Count one episode; ``episode`` is its number, from 1."""
        if self.alarm:
            return
        factors = self._violation if violation else self._safe
        self.statistics = [
            min((1.0 + r) * factor, _LARGEST) for r, factor in zip(self.statistics, factors, strict=True)
        ]
        if violation and self.evidence >= self.run_length:
            self.alarm = True
            self.alarms.append(episode)

    @property
    def evidence(self) -> float:
        """mean(R); an alarm is raised at ``run_length``."""
        return min(sum(self.statistics) / len(THETA), _LARGEST)
