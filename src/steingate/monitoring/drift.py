"""Detection of a rise of the violation rate above a baseline m0.

A Shiryaev-Roberts detector made of bets (``wealth.THETA``). With x = 1 for a violation and 0 otherwise,

    R_k <- (1 + R_k) (1 + theta_k (x - m0) / m0)        alarm when mean(R) >= run_length

While the violation rate is at most m0, mean(R) minus the number of episodes does not increase in expectation,
so the mean number of episodes until a false alarm is at least ``run_length``. Alarms are raised at violations
only.
"""

import numpy as np
import numpy.typing as npt

from steingate.monitoring.wealth import THETA

_LARGEST = 1e300


class DriftDetector:
    """State of the detector.

    Attributes
    ----------
    baseline, run_length : accepted violation rate m0, and mean number of episodes between false alarms
    alarm : whether there is an alarm; it stays until ``rearm``, and no episodes are counted meanwhile
    alarms : episodes, counted from 1, at which alarms were raised
    statistics : R_k after the last violation
    safe : episodes since then
    """

    def __init__(self, baseline: float, run_length: float) -> None:
        self.baseline, self.run_length = baseline, run_length
        self._factors = [1.0 + theta * (1.0 - baseline) / baseline for theta in THETA]
        self.alarms: list[int] = []
        self.rearm()

    def rearm(self) -> None:
        """Restart after an alarm."""
        self.alarm = False
        self.statistics = [0.0] * len(THETA)
        self.safe = 0

    def update(self, violation: bool, episode: int) -> None:
        """Count one episode; ``episode`` is its number, from 1."""
        if self.alarm:
            return
        if not violation:
            self.safe += 1
            return
        now = self._now()
        self.statistics = [min((1.0 + r) * f, _LARGEST) for r, f in zip(now, self._factors, strict=True)]
        self.safe = 0
        if self.evidence >= self.run_length:
            self.alarm = True
            self.alarms.append(episode)

    def update_many(self, violations: npt.NDArray[np.bool_], first: int) -> None:
        """Count many episodes, of which the first has the number ``first``."""
        before = 0
        for index in np.flatnonzero(violations).tolist():
            if self.alarm:
                return
            self.safe += index - before
            self.update(True, first + index)
            before = index + 1
        if not self.alarm:
            self.safe += len(violations) - before

    @property
    def evidence(self) -> float:
        """mean(R) now, at most 1e300; an alarm is raised at ``run_length``."""
        return min(sum(self._now()) / len(THETA), _LARGEST)

    def _now(self) -> list[float]:
        """Return R_k: n episodes without a violation give q^n R + q (1 - q^n) / (1 - q), q = 1 - theta."""
        if not self.safe:
            return self.statistics
        powers = [(1.0 - theta) ** self.safe for theta in THETA]
        terms = zip(THETA, powers, self.statistics, strict=True)
        return [power * r + (1.0 - theta) * (1.0 - power) / theta for theta, power, r in terms]
