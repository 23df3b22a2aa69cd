"""Anytime-valid monitoring of the episode costs of one policy."""

from collections.abc import Mapping
from math import inf, log
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from steingate.certificates.io import check_costs
from steingate.errors import InputError, is_real
from steingate.monitoring import text
from steingate.monitoring.drift import DriftDetector
from steingate.monitoring.state import as_count, as_real, read_state, require, write_state
from steingate.monitoring.tail import Array, Tail
from steingate.monitoring.wealth import MaxWealth, bets_above, bets_below, upper_bound

FORMAT = "steingate-monitor-2"
_SETTINGS = ("limit", "budget", "delta", "baseline", "run_length", "cap")
_NEAREST = 1e-15  # probabilities are at least this far from 0 and 1
_TRACE_DENSITY = 32  # the trace has every episode up to this one, then about 32 per factor e


class Monitor:
    """Bounds on episode costs that are valid at all times at once and may be read after every episode.

    For independent episodes of one policy, each bound is wrong at any time ever with probability at most
    ``delta``; so are ``certified`` and ``unsafe``. Bounds on tail, mean and CVaR hold together. Count
    episodes in the order in which they began.

    Parameters
    ----------
    limit
        Episode-cost limit; an episode with cost > limit is a violation.
    budget
        Accepted violation rate.
    delta
        Error probability.
    baseline
        Violation rate above which ``drift`` is raised; by default the budget. See ``watch``.
    run_length
        Mean number of episodes between false alarms of ``drift``, at least.
    cap
        Mean and CVaR are those of min(cost, cap); by default four times the limit.

    Attributes
    ----------
    episodes, violations : numbers of episodes, and of those with cost > limit
    max_cost : largest episode cost
    trace : (episodes, violations) at some episodes, increasingly sparse
    detector : the drift detector, with its ``alarms`` and ``evidence``

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
        limit: float,
        budget: float = 0.1,
        delta: float = 0.05,
        *,
        baseline: float | None = None,
        run_length: float = 10_000.0,
        cap: float | None = None,
    ) -> None:
        self.limit = 0.0 if is_real(limit) and limit == 0.0 else _positive("limit", limit)
        self.budget = _probability("budget", budget)
        self.delta = _probability("delta", delta)
        self.baseline = _probability("baseline", self.budget if baseline is None else baseline)
        self.run_length = _positive("run_length", run_length)
        if self.run_length < 1.0:
            raise InputError(f"run_length is {run_length!r}: give at least 1 episode.")
        self.cap = _positive("cap", (4.0 * self.limit or 2.0) if cap is None else cap)
        self.reset()

    def reset(self) -> None:
        """Delete all episodes, for a new policy or a new environment."""
        self.episodes = 0
        self.violations = 0
        self.max_cost = 0.0
        self.trace: list[tuple[int, int]] = []
        self._next_trace = 1
        self._safe = MaxWealth(bets_below(self.budget), self.delta)
        self._unsafe = MaxWealth(bets_above(self.budget), self.delta)
        self._tail = Tail(self.limit, self.cap)
        self.detector = DriftDetector(self.baseline, self.run_length)

    def rearm(self) -> None:
        """Restart the drift detector after an alarm; everything else stays."""
        self.detector.rearm()

    def update(self, cost: float) -> None:
        """Count one finished episode; an invalid cost raises ``InputError`` and changes nothing."""
        if cost.__class__ is not float:
            cost = _number(cost)
        if not 0.0 <= cost < inf:
            raise InputError(f"The cost {cost} is not usable: costs are finite and not negative.")
        violation = cost > self.limit
        self.episodes += 1
        self.violations += violation
        # A wealth that falls cannot reach a new maximum.
        (self._unsafe if violation else self._safe).update(self.violations, self.episodes - self.violations)
        self._tail.update(cost)
        self.max_cost = max(self.max_cost, cost)
        self.detector.update(violation, self.episodes)
        if self.episodes >= self._next_trace:
            self._extend_trace(self.episodes, self.violations)

    def update_many(self, costs: npt.ArrayLike) -> None:
        """Count many finished episodes, in order; if one cost is invalid, none is counted. No costs are valid."""
        if (isinstance(costs, list | tuple) and not costs) or getattr(costs, "shape", None) == (0,):
            return
        for cost in check_costs(costs).tolist():
            self.update(cost)

    def _extend_trace(self, episodes: int, violations: int) -> None:
        self.trace.append((episodes, violations))
        self._next_trace = episodes + max(1, episodes // _TRACE_DENSITY)

    @property
    def certified(self) -> bool:
        """Whether P(cost > limit) <= budget has been shown; once true it stays true."""
        return self._safe.reached_at is not None

    @property
    def certified_at(self) -> int | None:
        """Number of episodes when it was shown."""
        return self._safe.reached_at

    @property
    def unsafe(self) -> bool:
        """Whether P(cost > limit) > budget has been shown; once true it stays true."""
        return self._unsafe.reached_at is not None

    @property
    def unsafe_at(self) -> int | None:
        """Number of episodes when it was shown."""
        return self._unsafe.reached_at

    @property
    def p_value(self) -> float:
        """Anytime-valid p-value of the hypothesis P(cost > limit) > budget: ``certified`` is p <= delta."""
        return self._safe.p_value

    @property
    def p_value_unsafe(self) -> float:
        """Anytime-valid p-value of the hypothesis P(cost > limit) <= budget: ``unsafe`` is p <= delta."""
        return self._unsafe.p_value

    @property
    def bound(self) -> float:
        """Upper bound on P(cost > limit)."""
        return upper_bound(self.violations, self.episodes - self.violations, self.delta)

    @property
    def drift(self) -> bool:
        """Whether the violation rate has risen above the baseline; true until ``rearm``."""
        return self.detector.alarm

    @property
    def status(self) -> str:
        """``unsafe``, ``drift``, ``certified`` or ``undecided``, the first that applies."""
        return status(self)

    def tail(self) -> tuple[Array, Array]:
        """Return thresholds c and upper bounds on P(cost > c), which hold together."""
        return self._tail.thresholds, self._tail.bounds(self.delta)

    def tail_bound(self, cost: float) -> float:
        """Return an upper bound on P(cost > c) for any c; the bounds hold for all c together."""
        thresholds, bounds = self.tail()
        place = int(np.searchsorted(thresholds, cost, side="right"))
        return float(bounds[place - 1]) if place else 1.0

    def tail_rates(self) -> Array:
        """Return the observed fraction of episodes with cost > c, for the thresholds of ``tail``."""
        return self._tail.exceedances() / max(self.episodes, 1)

    @property
    def mean_bound(self) -> float:
        """Upper bound on the mean of min(cost, cap)."""
        return self._tail.cvar_bound(self.delta)

    def cvar_bound(self, fraction: float = 0.1) -> float:
        """Return an upper bound on the mean of min(cost, cap) over the worst ``fraction`` of the episodes."""
        return self._tail.cvar_bound(self.delta, _probability("fraction", fraction))

    @property
    def more_episodes(self) -> int:
        """Number of further episodes that certify the policy if none is a violation; 0 once certified."""
        if self.certified:
            return 0
        mixture, safe = self._safe.mixture, self.episodes - self.violations
        low, high = safe, max(2 * safe, 16)
        while mixture.log_wealth(self.violations, high) < -log(self.delta):
            low, high = high, 2 * high
        while high - low > 1:
            middle = (low + high) // 2
            enough = mixture.log_wealth(self.violations, middle) >= -log(self.delta)
            low, high = (low, middle) if enough else (middle, high)
        return high - safe

    @property
    def summary(self) -> str:
        """What is known about the policy, and what to do."""
        return text.summary(self)

    def metrics(self) -> dict[str, Any]:
        """Return the main numbers, for a log."""
        return {
            "episodes": self.episodes,
            "violations": self.violations,
            "bound": self.bound,
            "p_value": self.p_value,
            "certified": self.certified,
            "unsafe": self.unsafe,
            "drift": self.drift,
        }

    def to_dict(self) -> dict[str, Any]:
        """Return all numbers as JSON types."""
        thresholds, bounds = self.tail()
        return {
            **self.metrics(),
            **{name: getattr(self, name) for name in _SETTINGS},
            "mean_bound": self.mean_bound,
            "cvar_bound": self.cvar_bound(),
            "max_cost": self.max_cost,
            "certified_at": self.certified_at,
            "unsafe_at": self.unsafe_at,
            "p_value_unsafe": self.p_value_unsafe,
            "drift_alarms": list(self.detector.alarms),
            "drift_evidence": self.detector.evidence,
            "tail": [thresholds.tolist(), bounds.tolist()],
            "summary": self.summary,
        }

    @classmethod
    def watch(cls, calibration: "npt.ArrayLike | Monitor", **settings: Any) -> "Monitor":
        """Return a new monitor that raises ``drift`` above the bound of calibration episodes.

        Parameters
        ----------
        calibration
            Costs of calibration episodes, or the monitor that counted them; its settings are the default.
        **settings
            Settings of the new monitor.
        """
        if isinstance(calibration, Monitor):
            known = calibration
        else:
            known = cls(**settings)
            known.update_many(calibration)
        if known.bound >= 1.0:
            raise InputError(
                f"{known.episodes} calibration episodes with {known.violations} violations give no bound: run more."
            )
        same = {name: getattr(known, name) for name in _SETTINGS}
        return cls(**{**same, **settings, "baseline": known.bound})

    def state_dict(self) -> dict[str, Any]:
        """Return the complete state as JSON types, for ``from_state``."""
        detector = self.detector
        return {
            "format": FORMAT,
            "settings": {name: getattr(self, name) for name in _SETTINGS},
            "episodes": self.episodes,
            "violations": self.violations,
            "max_cost": self.max_cost,
            "trace": [list(point) for point in self.trace],
            "tail": list(self._tail.counts),
            "safe": [self._safe.maximum, self._safe.reached_at],
            "unsafe": [self._unsafe.maximum, self._unsafe.reached_at],
            "drift": [detector.alarm, list(detector.alarms), list(detector.statistics)],
        }

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> "Monitor":
        """Return the monitor with this state, bit for bit; an invalid state raises ``InputError``."""
        if not isinstance(state, Mapping) or state.get("format") != FORMAT:
            raise InputError("This is not the state of a monitor, or it was written by another version.")
        try:
            monitor = cls(**state["settings"])
            monitor._restore(state)
        except (KeyError, TypeError, ValueError, IndexError, OverflowError) as error:
            raise InputError(f"This state of a monitor is damaged ({error}): start a new one.") from None
        return monitor

    def _restore(self, state: Mapping[str, Any]) -> None:
        self.episodes, self.violations = as_count(state["episodes"]), as_count(state["violations"])
        self.max_cost = as_real(state["max_cost"])
        for n, violations in state["trace"]:
            require(n == self._next_trace, "trace")
            self._extend_trace(n, as_count(violations))
        require(len(self.trace) == 0 or self.trace[-1][0] <= self.episodes < self._next_trace, "trace")
        self._tail.counts = [as_count(n) for n in state["tail"]]
        over = dict(zip(self._tail.thresholds.tolist(), self._tail.exceedances().tolist(), strict=True))
        require(sum(self._tail.counts) == self.episodes and over[self.limit] == self.violations, "tail")
        for wealth, name in ((self._safe, "safe"), (self._unsafe, "unsafe")):
            wealth.maximum, reached_at = as_real(state[name][0]), state[name][1]
            wealth.reached_at = None if reached_at is None else as_count(reached_at)
            require(reached_at is None or 1 <= reached_at <= self.episodes, name)
        alarm, alarms, statistics = state["drift"]
        require(alarm in (True, False) and len(statistics) == len(self.detector.statistics), "drift")
        self.detector.alarm, self.detector.alarms = alarm, [as_count(n) for n in alarms]
        self.detector.statistics = [as_real(r) for r in statistics]

    def save(self, path: str | Path) -> None:
        """Write the state to a file with a checksum, atomically."""
        write_state(path, self.state_dict())

    @classmethod
    def load(cls, path: str | Path) -> "Monitor":
        """Return the monitor stored in a file."""
        return cls.from_state(read_state(path))

    def __repr__(self) -> str:
        return (
            f"Monitor(limit={self.limit:g}, budget={self.budget:g}, delta={self.delta:g}; "
            f"{self.episodes} episodes, {self.violations} violations, bound {self.bound:.4g})"
        )


def status(monitor: Any) -> str:
    """Return the first of unsafe, drift and certified that is true, or undecided."""
    return next((name for name in ("unsafe", "drift", "certified") if getattr(monitor, name)), "undecided")


def _number(cost: object) -> float:
    value = cost[()] if isinstance(cost, np.ndarray) and cost.ndim == 0 else cost
    if not is_real(value):
        raise InputError(f"The cost {cost!r} is not a number: pass one real number per episode.")
    return float(value)


def _positive(name: str, value: object) -> float:
    if not (is_real(value) and 1e-300 < value < 1e300):
        raise InputError(f"{name} is {value!r}: give a positive number.")
    return float(value)


def _probability(name: str, value: object) -> float:
    if not (is_real(value) and _NEAREST <= value <= 1.0 - _NEAREST):
        raise InputError(f"{name} is {value!r}: give a number between 0 and 1.")
    return float(value)
