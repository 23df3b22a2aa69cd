"""The monitor: episode costs in, and at any time what is known about the policy that caused them."""

from bisect import bisect_left
from collections.abc import Mapping
from math import inf, log
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from steingate.certificates.checks import is_real
from steingate.certificates.costs import check_costs
from steingate.certificates.risk import Risk, Sigmoid, check_risk
from steingate.errors import InputError
from steingate.monitoring.arguments import number, positive, share
from steingate.monitoring.bets import above, below
from steingate.monitoring.drift import Detector, Drift
from steingate.monitoring.tail import Grid, capped_mean, cost_scale
from steingate.monitoring.upper import count_upper, mean_upper
from steingate.monitoring.wealth import Evidence

Array = npt.NDArray[np.float64]

_CHUNK = 1 << 16
_DENSE = 32  # episodes from which on the trace gets sparser


class Monitor:
    """Guarantees on episode costs that hold for all times at once, so that one may look after every episode.

    For independent episodes of one policy, each bound is wrong at any time, ever, with probability at most
    ``delta``; so are ``certified`` and ``unsafe``. (Mean, CVaR and tail hold together.) Feed episodes in the
    order in which they began.

    Parameters
    ----------
    limit
        Episode-cost limit.
    budget
        Largest accepted share of episodes over the limit.
    delta
        Probability that a statement is wrong.
    baseline
        Share of episodes over the limit that is in order, for ``drift``; the budget by default (``watch``).
    run_length
        Episodes between false alarms of ``drift``, on average at least.
    cap
        Mean and CVaR are those of min(cost, cap); four times the limit by default.
    risk
        The soft risk: a nondecreasing function of min(cost / (2 limit), 1) with values in [0, 1].

    Examples
    --------
    >>> monitor = Monitor(limit=25, budget=0.1)
    >>> for cost in [3.0] * 36:
    ...     monitor.update(cost)
    >>> monitor.certified, round(monitor.bound, 3)
    (True, 0.099)
    """

    def __init__(
        self,
        limit: float = 25.0,
        budget: float = 0.1,
        delta: float = 0.05,
        *,
        baseline: float | None = None,
        run_length: float = 10_000.0,
        cap: float | None = None,
        risk: Risk | None = None,
    ) -> None:
        self.limit = 0.0 if is_real(limit) and limit == 0.0 else positive("limit", limit)
        self.budget = share("budget", budget)
        self.delta = share("delta", delta)
        self.baseline = share("baseline", self.budget if baseline is None else baseline)
        self.run_length = positive("run_length", run_length)
        if self.run_length < 1.0:
            raise InputError(f"run_length is {run_length!r}: an alarm per episode is the most there can be.")
        self.cap = positive("cap", 2.0 * cost_scale(self.limit) if cap is None else cap)
        self.risk = Sigmoid() if risk is None else check_risk(risk)
        self.grid = Grid.of(self.limit, self.cap)
        self._edges = self.grid.edges.tolist()
        self._below, self._above = below(self.budget), above(self.budget)
        self.reset()

    def reset(self) -> None:
        """Forget every episode: for a new policy, or a new place."""
        threshold = -log(self.delta)
        self.episodes = 0
        self.over = 0
        self.worst = 0.0
        self.cells = [0] * (len(self._edges) + 1)
        self.trace: list[tuple[int, int]] = []  # (episodes, of these over the limit), ever sparser
        self._traced_at = 1
        self._last_over: bool | None = None
        self.safe_evidence = Evidence(self._below, threshold, on_over=False)
        self.unsafe_evidence = Evidence(self._above, threshold, on_over=True)
        self.detector = Detector(self.baseline, self.run_length)

    def rearm(self) -> None:
        """Start the drift detector again after an alarm; everything else stays."""
        self.detector.rearm()

    def update(self, cost: float) -> None:
        """Count one finished episode; a cost that cannot be one is refused and changes nothing."""
        if cost.__class__ is not float:
            cost = number(cost)
        if not 0.0 <= cost < inf:
            raise InputError(f"The cost {cost} is not usable: costs are finite and not negative.")
        over, last = cost > self.limit, self._last_over
        under = self.episodes - self.over
        if over:
            if last is False:
                self.safe_evidence.end(self.over, under)
            self.over += 1
            self.unsafe_evidence.rise(self.over, under)
        else:
            if last:
                self.unsafe_evidence.end(self.over, under)
            self.safe_evidence.rise(self.over, under + 1)
        self.episodes += 1
        self._last_over = over
        self.cells[bisect_left(self._edges, cost)] += 1
        if cost > self.worst:
            self.worst = cost
        self.detector.episode(over, self.episodes)
        if self.episodes >= self._traced_at:
            self._trace(self.episodes, self.over)

    def update_many(self, costs: npt.ArrayLike) -> None:
        """Count many finished episodes; the state is, bit for bit, that of ``update`` for one after another.

        If one cost is refused, none is counted. No costs at all are fine.
        """
        if (isinstance(costs, list | tuple) and not costs) or getattr(costs, "shape", None) == (0,):
            return
        values = check_costs(costs)
        for first in range(0, len(values), _CHUNK):
            self._update_chunk(values[first : first + _CHUNK])

    def _update_chunk(self, values: Array) -> None:
        flags = values > self.limit
        start = self.episodes
        over = self.over + np.concatenate([[0], np.cumsum(flags)])
        under = np.arange(start, start + len(values) + 1) - over
        last = self._last_over
        self.safe_evidence.advance(flags, over, under, last is False)
        self.unsafe_evidence.advance(flags, over, under, last is True)
        self.detector.advance(flags, start + 1)
        cells = np.bincount(np.searchsorted(self.grid.edges, values), minlength=len(self.cells))
        self.cells = [old + new for old, new in zip(self.cells, cells.tolist(), strict=True)]
        self.worst = max(self.worst, float(values.max()))
        self.episodes, self.over = start + len(values), int(over[-1])
        self._last_over = bool(flags[-1])
        while self._traced_at <= self.episodes:
            self._trace(self._traced_at, int(over[self._traced_at - start]))

    def _trace(self, episodes: int, over: int) -> None:
        self.trace.append((episodes, over))
        self._traced_at = episodes + max(1, episodes // _DENSE)

    @property
    def under(self) -> int:
        """Number of episodes within the limit."""
        return self.episodes - self.over

    @property
    def certified(self) -> bool:
        """Whether P(cost > limit) <= budget has been shown; once true it stays."""
        return self.safe_evidence.first is not None

    @property
    def certified_at(self) -> int | None:
        """The episode that completed the certificate, counted from 1."""
        return self.safe_evidence.first

    @property
    def unsafe(self) -> bool:
        """Whether P(cost > limit) > budget has been shown; once true it stays."""
        return self.unsafe_evidence.first is not None

    @property
    def unsafe_at(self) -> int | None:
        """The episode that showed it, counted from 1."""
        return self.unsafe_evidence.first

    @property
    def p_value(self) -> float:
        """Anytime-valid p-value of "P(cost > limit) is over the budget": certified is p <= delta."""
        return self.safe_evidence.p_value(self.over, self.under)

    @property
    def p_value_unsafe(self) -> float:
        """Anytime-valid p-value of "P(cost > limit) is within the budget": unsafe is p <= delta."""
        return self.unsafe_evidence.p_value(self.over, self.under)

    @property
    def bound(self) -> float:
        """Upper bound on P(cost > limit)."""
        return count_upper(self.over, self.under, self.delta)

    @property
    def soft_bound(self) -> float:
        """Upper bound on the mean of the soft risk."""
        counts = np.array(self.cells, dtype=np.float64)
        return mean_upper(self.grid.risks(self.risk), counts, self.delta) if self.episodes else 1.0

    def tail(self) -> tuple[Array, Array]:
        """Return thresholds c and bounds on P(cost > c), which hold for all of them together."""
        above_each = self.grid.above(np.array(self.cells, dtype=np.int64)).tolist()
        delta = self.delta / len(above_each)
        bounds = [count_upper(over, self.episodes - over, delta) for over in above_each]
        return self.grid.edges[self.grid.thresholds], np.minimum.accumulate(bounds)

    def tail_bound(self, cost: float) -> float:
        """Return a bound on P(cost > c) for any c; it holds for all c together."""
        thresholds, bounds = self.tail()
        place = int(np.searchsorted(thresholds, cost, side="right"))
        return float(bounds[place - 1]) if place else 1.0

    @property
    def mean_bound(self) -> float:
        """Upper bound on the mean of min(cost, cap)."""
        return capped_mean(*self.tail(), self.cap)

    def cvar_bound(self, tail: float = 0.1) -> float:
        """Return an upper bound on the mean of min(cost, cap) over the worst share ``tail`` of episodes."""
        return capped_mean(*self.tail(), self.cap, share("tail", tail))

    @property
    def drift(self) -> Drift:
        """Whether the chance of going over the limit has risen above the baseline."""
        found = self.detector
        return Drift(found.alarm, tuple(found.alarms), self.baseline, self.run_length, found.evidence())

    @property
    def clean_episodes_needed(self) -> int:
        """Number of further episodes within the limit that would certify; 0 once certified."""
        if self.certified:
            return 0
        threshold, low, high = -log(self.delta), self.under, max(2 * self.under, 16)
        while self._below.level(self.over, high) < threshold:
            low, high = high, 2 * high
        while high - low > 1:
            middle = (low + high) // 2
            enough = self._below.level(self.over, middle) >= threshold
            low, high = (low, middle) if enough else (middle, high)
        return high - self.under

    @property
    def sentence(self) -> str:
        """What is known, and what to do."""
        from steingate.monitoring.sentence import sentence

        return sentence(self)

    def numbers(self) -> dict[str, Any]:
        """Return the few numbers to log after an episode."""
        return {
            "episodes": self.episodes,
            "over": self.over,
            "bound": self.bound,
            "p_value": self.p_value,
            "certified": self.certified,
            "unsafe": self.unsafe,
            "drift": self.detector.alarm,
        }

    def summary(self) -> dict[str, Any]:
        """Return every number as JSON types."""
        from steingate.monitoring.sentence import summary

        return summary(self)

    @classmethod
    def watch(cls, baseline: "npt.ArrayLike | Monitor", **settings: Any) -> "Monitor":
        """Return a fresh monitor whose drift alarm is set at what calibration has shown.

        Parameters
        ----------
        baseline
            Costs of calibration episodes, or the monitor that counted them, whose settings are then taken
            over. The bound they give on P(cost > limit) becomes the drift detector's baseline.
        **settings
            Those of the new monitor.
        """
        if not isinstance(baseline, Monitor):
            known = cls(**settings)
            known.update_many(baseline)
        else:
            known = baseline
        bound = known.bound
        if bound >= 1.0:
            raise InputError(
                f"{known.episodes} calibration episodes, {known.over} over the limit, show nothing: run more."
            )
        own = {
            name: getattr(known, name) for name in ("limit", "budget", "delta", "run_length", "cap", "risk")
        }
        return cls(**{**own, **settings, "baseline": bound})

    def to_dict(self) -> dict[str, Any]:
        """Return the whole state as JSON types; ``from_dict`` gives it back bit for bit."""
        from steingate.monitoring.state import to_dict

        return to_dict(self)

    @classmethod
    def from_dict(cls, state: Mapping[str, Any]) -> "Monitor":
        """Return the monitor that ``to_dict`` described."""
        from steingate.monitoring.state import from_dict

        return from_dict(state)

    def save(self, path: str | Path) -> None:
        """Write the state to a file with a checksum; a crash leaves the old file or the new one."""
        from steingate.monitoring.state import write_state

        write_state(path, self.to_dict())

    @classmethod
    def load(cls, path: str | Path) -> "Monitor":
        """Return the monitor stored in a file."""
        from steingate.monitoring.state import read_state

        return cls.from_dict(read_state(path))

    def __repr__(self) -> str:
        return (
            f"Monitor(limit={self.limit:g}, budget={self.budget:g}, delta={self.delta:g}; "
            f"{self.episodes} episodes, {self.over} over, bound {self.bound:.4g})"
        )
