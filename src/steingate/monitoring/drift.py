"""Drift after deployment: a rise of the violation rate, or of the whole distribution of costs.

Both detectors are means of Shiryaev-Roberts statistics. While nothing has changed, mean(R) minus the number of
episodes does not increase in expectation, so the mean number of episodes until a false alarm is at least
``run_length``.
"""

from bisect import bisect_left
from collections.abc import Mapping
from hashlib import blake2b
from math import frexp, ldexp
from typing import Any

from steingate.monitoring.state import as_count, as_counts, as_reals, require
from steingate.monitoring.wealth import THETA, BetsAbove

_LARGEST = 1e300


class _Detector:
    """The statistics R_k of a detector, and its alarms. Abstract."""

    size: int  # number of statistics

    def __init__(self, run_length: float) -> None:
        self.run_length = run_length
        self.alarms: list[int] = []
        self.rearm()

    def rearm(self) -> None:
        """Restart after an alarm."""
        self.alarm = False
        self.statistics = [0.0] * self.size

    @property
    def evidence(self) -> float:
        """mean(R); an alarm is raised at ``run_length``."""
        return min(sum(self.statistics) / self.size, _LARGEST)

    def restore_alarms(self, alarm: Any, alarms: Any, statistics: Any) -> None:
        """Continue from these values; ``ValueError`` if they are damaged."""
        self.alarm, self.alarms, self.statistics = alarm, as_counts(alarms), as_reals(statistics)
        require(alarm in (True, False) and len(statistics) == self.size and bool(alarms) >= alarm, "drift")

    def _raise_alarm(self, episode: int) -> None:
        if self.evidence >= self.run_length:
            self.alarm = True
            self.alarms.append(episode)


class DriftDetector(_Detector):
    """Detection of a rise of the violation rate above a baseline m0.

    With x = 1 for a violation and 0 otherwise (in a cluster of episodes: the fraction of violations),

        R_k <- (1 + R_k) (1 + theta_k (x - m0) / m0)        alarm when mean(R) >= run_length

    False alarms are rare while the violation rate is at most m0. Alarms are raised at violations only.

    Attributes
    ----------
    baseline, run_length : accepted violation rate m0, and mean number of episodes between false alarms
    alarm : whether there is an alarm; it stays until ``rearm``, and no episodes are counted meanwhile
    alarms : episodes, counted from 1, at which alarms were raised
    statistics : R_k, at most 1e300
    """

    size = len(THETA)

    def __init__(self, baseline: float, run_length: float) -> None:
        super().__init__(run_length)
        self.baseline = baseline
        self._bets = BetsAbove(baseline)

    def update(self, x: float, episode: int) -> None:
        """Count one episode or cluster; ``episode`` is the number of episodes so far."""
        if self.alarm:
            return
        self.statistics = self._bets.step(self.statistics, 1.0, x)
        if x:
            self._raise_alarm(episode)


class CostDriftDetector(_Detector):
    """Detection of a shift of the episode costs to higher values, below or above the limit.

    The conformal p-value of an episode is its rank among the costs of the calibration and of the episodes before,
    from the highest, with random ranks for equal costs. If all episodes come from one distribution, the p-values are
    independent and uniform on (0, 1), whatever the distribution (Vovk, Nouretdinov & Gammerman 2003). Bets on small
    p-values, the highest costs, give

        R_k <- (1 + R_k) k p^(k - 1)        k in {0.1, 0.25, 0.5, 0.75},  alarm when mean(R) >= run_length

    Costs are compared after rounding down to seven significant bits (1.6 % at most), so the state does not grow with
    the number of episodes. The random ranks of episode t depend on (``seed``, t).

    Attributes
    ----------
    calibration : number of calibration costs by rounded cost; without any, costs are stored and not tested
    alarm, alarms, statistics, evidence : as for ``DriftDetector``
    """

    EXPONENTS = (0.1, 0.25, 0.5, 0.75)
    size = len(EXPONENTS)

    def __init__(self, run_length: float, seed: int = 0) -> None:
        self.seed, self.counted = seed, 0
        self.calibration: dict[float, int] = {}
        super().__init__(run_length)

    def calibrate(self, counts: Mapping[float, int]) -> None:
        """Compare with these costs: number by cost."""
        self.calibration = {}
        for cost, number in counts.items():
            rounded = round_down(cost)
            self.calibration[rounded] = self.calibration.get(rounded, 0) + number
        self.rearm()

    def rearm(self) -> None:
        """Restart after an alarm; episodes are then compared with the calibration and those that follow."""
        super().rearm()
        self._set_counts(self.calibration)

    def _set_counts(self, counts: Mapping[float, int]) -> None:
        self._costs = sorted(counts)
        self._numbers = [counts[cost] for cost in self._costs]

    @property
    def counts(self) -> dict[float, int]:
        """Costs of the calibration and of the episodes since the start or ``rearm``: number by rounded cost."""
        return dict(zip(self._costs, self._numbers, strict=True))

    def update(self, cost: float, episode: int) -> None:
        """Count one episode; ``episode`` is the number of episodes so far."""
        if self.alarm:
            return
        rounded = round_down(cost)
        place = bisect_left(self._costs, rounded)
        if place == len(self._costs) or self._costs[place] != rounded:
            self._costs.insert(place, rounded)
            self._numbers.insert(place, 0)
        self._numbers[place] += 1
        self.counted += 1
        if not self.calibration:
            return
        higher, equal = sum(self._numbers[place + 1 :]), self._numbers[place]
        p = (higher + equal * self._uniform()) / (higher + sum(self._numbers[: place + 1]))
        bets = zip(self.statistics, self.EXPONENTS, strict=True)
        self.statistics = [min((1.0 + r) * k * p ** (k - 1.0), _LARGEST) for r, k in bets]
        self._raise_alarm(episode)

    def state_dict(self) -> dict[str, Any]:
        """Return the complete state as JSON types."""
        return {
            "calibration": [list(self.calibration), list(self.calibration.values())],
            "seen": [list(self._costs), list(self._numbers)],
            "counted": self.counted,
            "alarm": self.alarm,
            "alarms": list(self.alarms),
            "statistics": list(self.statistics),
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Continue from a state; ``ValueError`` and the like if it is damaged."""
        self.calibration, seen = (
            dict(zip(as_reals(costs), as_counts(numbers), strict=True))
            for costs, numbers in (state["calibration"], state["seen"])
        )
        self._set_counts(seen)
        self.counted = as_count(state["counted"])
        self.restore_alarms(state["alarm"], state["alarms"], state["statistics"])

    def _uniform(self) -> float:
        """Return a number in (0, 1] that depends on the seed and the number of counted episodes."""
        digest = blake2b(b"%d %d" % (self.seed, self.counted), digest_size=8).digest()
        return (int.from_bytes(digest, "big") + 1) / 2.0**64


def round_down(cost: float) -> float:
    """Return the largest number with seven significant bits that is not above the cost."""
    mantissa, exponent = frexp(cost)
    return ldexp(int(mantissa * 128.0), exponent - 7)
