"""Anytime-valid monitoring of the episode costs of one policy."""

import json
from bisect import bisect_left
from collections import deque
from collections.abc import Mapping
from math import inf, isclose, log
from operator import lt
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from steingate.certificates.io import check_costs
from steingate.certificates.shift import ShiftRadius, shift_radius
from steingate.errors import InputError, check_interval, is_real
from steingate.monitoring import text
from steingate.monitoring.drift import CostDriftDetector, DriftDetector
from steingate.monitoring.state import as_count, as_counts, as_real, as_reals, read_state, require, write_state
from steingate.monitoring.tail import Array, Tail
from steingate.monitoring.wealth import (
    BLOCK,
    MaxWealth,
    RestartingWealth,
    add_clusters,
    bets_below,
    cluster_bound,
    upper_bound,
)

FORMAT = "steingate-monitor-3"
METRICS = ("episodes", "violations", "bound", "p_value", "certified", "certified_now", "unsafe", "drift")
_PROBABILITY = (1e-15, 1.0 - 1e-15, "[]")
_RANGES = {
    "limit": (1e-300, 1e300, "()"),
    "budget": _PROBABILITY,
    "delta": _PROBABILITY,
    "baseline": _PROBABILITY,
    "run_length": (1.0, 1e300, "[)"),
    "cap": (1e-300, 1e300, "()"),
}
_SETTINGS = (*_RANGES, "seed")
_TRACE_DENSITY = 12  # the trace has every episode up to this one, then about 12 per factor e
_RECENT_BLOCKS = 128  # of 8 episodes, for ``bound_now``


class Monitor:
    """Bounds on episode costs that are valid at all times at once and may be read after every episode.

    For independent episodes of one policy, each bound is wrong at any time ever with probability at most
    ``delta``; so are ``certified`` and ``unsafe``, which also hold for the mean violation probability when it changes
    with time. Bounds on tail, mean and CVaR hold together. Count episodes in the order in which they began, and
    episodes that depend on each other with ``update_cluster``.

    Parameters
    ----------
    limit : episode-cost limit; an episode with cost > limit is a violation
    budget : accepted violation rate
    delta : error probability
    baseline : violation rate above which ``drift`` is raised; by default the budget. See ``watch``.
    run_length : mean number of episodes between false alarms of each drift detector, at least
    cap : mean and CVaR are those of min(cost, cap); by default four times the limit
    seed : seed of the random ranks of equal costs in ``cost_detector``

    Attributes
    ----------
    episodes, violations : numbers of episodes, and of those with cost > limit
    max_cost : largest episode cost
    trace : (episodes, violations, bound) at some episodes, increasingly sparse; the bound is stored after clusters
    detector : detector of a rise of the violation rate, with its ``alarms`` and ``evidence``
    cost_detector : detector of a shift of all costs; active after ``watch``
    policy, history : name of the policy, and the numbers of those before it; see ``new_policy``

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
        seed: int = 0,
    ) -> None:
        self.limit = 0.0 if is_real(limit) and limit == 0.0 else _checked("limit", limit)
        self.budget, self.delta = _checked("budget", budget), _checked("delta", delta)
        self.baseline = _checked("baseline", self.budget if baseline is None else baseline)
        self.run_length = _checked("run_length", run_length)
        self.cap = _checked("cap", (4.0 * self.limit or 2.0) if cap is None else cap)
        if type(seed) is not int or not 0 <= seed < 1 << 63:
            raise InputError(f"seed is {seed!r}: give a nonnegative integer.")
        self.seed = seed
        self.policy = ""
        self.history: list[dict[str, Any]] = []
        self._start()

    def _start(self) -> None:
        self.episodes = 0
        self.violations = 0
        self.max_cost = 0.0
        self.trace: list[tuple[int, int, float | None]] = []
        self._next_trace = 1
        self._single: tuple[int, int] = (0, 0)  # violations and other episodes that were counted one by one
        self._clusters: dict[float, int] = {}  # number of clusters by fraction of violations
        self._safe = MaxWealth(bets_below(self.budget), self.delta)
        self._unsafe = RestartingWealth(self.budget, self.delta)
        self._blocks: deque[float] = deque(maxlen=_RECENT_BLOCKS)  # violations in the last blocks of episodes
        self._tail = Tail(self.limit, self.cap)
        self.detector = DriftDetector(self.baseline, self.run_length)
        self.cost_detector = CostDriftDetector(self.run_length, self.seed)

    def new_policy(self, name: str = "") -> None:
        """Start anew for another policy; ``history`` keeps the numbers of the one before.

        All statements are then about the new policy, each with error probability ``delta``. The baseline stays; the
        costs of a calibration belong to the policy before and are deleted.
        """
        names = ("policy", "episodes", "violations", "bound", "certified_at", "unsafe_at")
        self.history.append({name: getattr(self, name) for name in names})
        self._start()
        self.policy = str(name)

    def rearm(self) -> None:
        """Restart the drift detectors after an alarm; everything else stays."""
        self.detector.rearm()
        self.cost_detector.rearm()

    def update(self, cost: float) -> None:
        """Count one finished episode; an invalid cost raises ``InputError`` and changes nothing."""
        cost = check_cost(cost)
        violation = cost > self.limit
        self.episodes += 1
        self.violations += violation
        self._tail.update(cost)
        self.max_cost = max(self.max_cost, cost)
        self.cost_detector.update(cost, self.episodes)
        self._count(float(violation))

    def update_cluster(self, costs: npt.ArrayLike) -> None:
        """Count episodes that depend on each other: those of one day, storm, robot or seed.

        A cluster counts once, with the fraction y of its episodes that are violations. The statements then hold if
        clusters, rather than episodes, are independent, whatever the dependence within a cluster. They are about the
        mean of y, which is P(cost > limit) if the size of a cluster does not depend on its risk. ``cost_detector``
        needs independent episodes and does not count them. If one cost is invalid, none is counted.
        """
        values = check_costs(costs)
        over = int(np.count_nonzero(values > self.limit))
        self.episodes += len(values)
        self.violations += over
        for cost in values.tolist():
            self._tail.update(cost, 1.0 / len(values))
        self.max_cost = max(self.max_cost, float(values.max()))
        self._count(over / len(values))

    def _count(self, x: float) -> None:
        """Count an episode (x is 0 or 1) or a cluster (x is the fraction of violations)."""
        if x in (0.0, 1.0):
            violations, safe = self._single
            self._single = (violations + 1, safe) if x else (violations, safe + 1)
        else:
            self._clusters[x] = self._clusters.get(x, 0) + 1
            self._safe.mixture = add_clusters(bets_below(self.budget), self.budget, self._clusters)
        if x < 1.0:  # a violation lowers the wealth
            self._safe.update(*self._single, self.episodes)
        if self._unsafe.counted % BLOCK == 0:
            self._blocks.append(0)
        self._blocks[-1] += x if 0.0 < x < 1.0 else int(x)
        self._unsafe.update(x, self.episodes)
        self.detector.update(x, self.episodes)
        if self.episodes >= self._next_trace:
            self.trace.append((self.episodes, self.violations, self.bound if self._clusters else None))
            self._next_trace = _next_trace(self.episodes)

    def update_many(self, costs: npt.ArrayLike) -> None:
        """Count many finished episodes, in order; if one cost is invalid, none is counted. No costs are valid."""
        if (isinstance(costs, list | tuple) and not costs) or getattr(costs, "shape", None) == (0,):
            return
        for cost in check_costs(costs).tolist():
            self.update(cost)

    @property
    def counted(self) -> int:
        """Number of clusters and of episodes that were counted one by one."""
        return self._unsafe.counted

    @property
    def certified(self) -> bool:
        """Whether P(cost > limit) <= budget has been shown; once true it stays true."""
        return self._safe.reached_at is not None

    @property
    def certified_at(self) -> int | None:
        """Number of episodes when it was shown."""
        return self._safe.reached_at

    @property
    def certified_now(self) -> bool:
        """Whether the policy is certified and has since been shown neither unsafe nor drifting."""
        return self.certified and not (self.unsafe or self.drift)

    @property
    def unsafe(self) -> bool:
        """Whether P(cost > limit) > budget has been shown since some block of 8 episodes; once true it stays true."""
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
        """Upper bound on P(cost > limit), from all episodes."""
        return cluster_bound(*self._single, self._clusters, self.delta)

    @property
    def shift(self) -> ShiftRadius | None:
        """How much the distribution of the episodes may change with the risk still certified; None unless certified."""
        bound = self.bound
        return shift_radius(bound, self.budget) if self.certified_now and 0.0 < bound <= self.budget else None

    def bound_now(self, window: int = 200) -> float:
        """Return an upper bound on P(cost > limit) from the last ``window`` episodes only.

        It holds if the violation probability did not change within the window, whatever happened before. The bounds of
        all windows hold together, at all times: a window that began with block j has the error probability
        delta / (j (j + 1)). A window begins at the start of a block of 8 episodes, at most 128 blocks ago, or at the
        first episode. A cluster counts as one episode.
        """
        if type(window) is not int or window < 1:
            raise InputError(f"window is {window!r}: give a positive number of episodes.")
        counted = self.counted
        first = max(counted - window, 0) // BLOCK  # blocks before the window
        missing = -(-counted // BLOCK) - len(self._blocks)  # blocks that are no longer stored
        if 0 < first < missing:
            first = missing
        recent = list(self._blocks)[first - missing :] if first else [self._single[0] + self._cluster_violations]
        n, over = counted - first * BLOCK, sum(recent)
        return upper_bound(over, n - over, self.delta / ((first + 1) * (first + 2)))

    @property
    def _cluster_violations(self) -> float:
        return sum(share * number for share, number in sorted(self._clusters.items()))

    @property
    def drift(self) -> bool:
        """Whether a detector has raised an alarm: more violations, or higher costs; true until ``rearm``."""
        return self.detector.alarm or self.cost_detector.alarm

    @property
    def drift_alarms(self) -> list[int]:
        """Episodes, counted from 1, at which the detectors raised alarms."""
        return sorted({*self.detector.alarms, *self.cost_detector.alarms})

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
        return self._tail.exceedances() / max(self.counted, 1)

    @property
    def mean_bound(self) -> float:
        """Upper bound on the mean of min(cost, cap)."""
        return self._tail.cvar_bound(self.delta)

    def cvar_bound(self, fraction: float = 0.1) -> float:
        """Return an upper bound on the mean of min(cost, cap) over the worst ``fraction`` of the episodes."""
        check_interval("fraction", fraction, 1e-15, 1.0, "[]")
        return self._tail.cvar_bound(self.delta, fraction)

    @property
    def more_episodes(self) -> int:
        """Number of further episodes (or clusters) that certify the policy without a violation; 0 once certified."""
        violations, safe = self._single

        def certifies(episodes: int) -> bool:
            return self._safe.mixture.log_wealth(violations, episodes) >= -log(self.delta)

        if self.certified:
            return 0
        enough = max(2 * safe, 16)
        while not certifies(enough):
            enough *= 2
        return bisect_left(range(enough), True, lo=safe + 1, key=certifies) - safe

    @property
    def summary(self) -> str:
        """What is known about the policy, and what to do."""
        return text.summary(self)

    def __str__(self) -> str:
        return self.summary

    def metrics(self) -> dict[str, Any]:
        """Return the main numbers, for a log."""
        return {name: getattr(self, name) for name in METRICS}

    def to_dict(self) -> dict[str, Any]:
        """Return all numbers as JSON types."""
        thresholds, bounds = self.tail()
        names = (
            *METRICS, *_SETTINGS, "policy", "counted", "mean_bound", "max_cost", "certified_at", "unsafe_at",
            "p_value_unsafe", "drift_alarms", "summary",
        )  # fmt: skip
        return {
            **{name: getattr(self, name) for name in names},
            "history": list(self.history),
            "bound_now": self.bound_now(),
            "shift": None if self.shift is None else self.shift._asdict(),
            "cvar_bound": self.cvar_bound(),
            "drift_evidence": self.detector.evidence,
            "cost_drift": self.cost_detector.alarm,
            "cost_drift_evidence": self.cost_detector.evidence,
            "tail": [thresholds.tolist(), bounds.tolist()],
        }

    @classmethod
    def watch(cls, calibration: "npt.ArrayLike | Monitor", **settings: Any) -> "Monitor":
        """Return a new monitor that compares episodes with those of a calibration.

        ``drift`` is raised when the violation rate rises above the bound of the calibration episodes, or when costs of
        any size become higher than theirs. ``calibration`` has their costs, or is the monitor that counted them, whose
        settings are then the default.
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
        monitor = cls(**{**same, **settings, "baseline": known.bound})
        monitor.cost_detector.calibrate(known.cost_detector.counts)
        return monitor

    def state_dict(self) -> dict[str, Any]:
        """Return the complete state as JSON types, for ``from_state``."""
        return {
            "format": FORMAT,
            "settings": {name: getattr(self, name) for name in _SETTINGS},
            "policy": self.policy,
            "history": list(self.history),
            "episodes": self.episodes,
            "violations": self.violations,
            "single": list(self._single),
            "clusters": [list(item) for item in sorted(self._clusters.items())],
            "max_cost": self.max_cost,
            "trace": [list(column) for column in zip(*self.trace, strict=True)][: 3 if self._clusters else 2],
            "tail": list(self._tail.counts),
            "safe": [self._safe.maximum, self._safe.reached_at],
            "unsafe": [self._unsafe.maximum, self._unsafe.reached_at, self._unsafe.wealth],
            "blocks": list(self._blocks),
            "drift": [self.detector.alarm, list(self.detector.alarms), list(self.detector.statistics)],
            "costs": self.cost_detector.state_dict(),
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
        self.max_cost, self.policy, self.history = as_real(state["max_cost"]), state["policy"], state["history"]
        json.dumps(self.history, allow_nan=False)  # raises ValueError
        episodes, over, *more = state["trace"] or ([], [])
        bounds = more[0] if more else [None] * len(episodes)
        for bound in bounds:
            require(bound is None or as_real(bound) <= 1.0, "trace")
        self.trace = list(zip(as_counts(episodes), as_counts(over), bounds, strict=True))
        self._next_trace = _next_trace(episodes[-1]) if episodes else 1
        violations, safe = as_counts(state["single"])
        self._single = (violations, safe)
        self._clusters = {as_real(share): as_count(number) for share, number in state["clusters"]}
        require(all(0.0 < share < 1.0 for share in self._clusters), "clusters")
        if self._clusters:
            self._safe.mixture = add_clusters(bets_below(self.budget), self.budget, self._clusters)
        counted = violations + safe + sum(self._clusters.values())
        self._unsafe.counted, self._unsafe.wealth = counted, as_reals(state["unsafe"][2])
        for wealth, name in ((self._safe, "safe"), (self._unsafe, "unsafe")):
            wealth.maximum, wealth.reached_at = as_real(state[name][0]), state[name][1]
            require(wealth.reached_at is None or 1 <= as_count(wealth.reached_at) <= self.episodes, name)
        self._tail.counts = as_reals(state["tail"])
        self._blocks.extend(as_reals(state["blocks"]))
        self.detector.restore_alarms(*state["drift"])
        self.cost_detector.restore(state["costs"])
        valid = {
            "history": isinstance(self.policy, str)
            and isinstance(self.history, list)
            and all(isinstance(entry, dict) for entry in self.history),
            "trace": bool(episodes) == bool(self.episodes)
            and all(map(lt, episodes, [*episodes[1:], self.episodes + 1])),
            "single": bool(self._clusters) or (self.violations, self.episodes - self.violations) == self._single,
            "unsafe": len(self._unsafe.wealth) == len(self.detector.statistics),
            "tail": len(self._tail.counts) == len(self._tail.thresholds) + 1
            and _close(sum(self._tail.counts), counted)
            and _close(self._tail.over_limit(), violations + self._cluster_violations),
            "blocks": len(self._blocks) == min(-(-counted // BLOCK), _RECENT_BLOCKS),
        }
        for name, holds in valid.items():
            require(holds, name)

    def save(self, path: str | Path) -> None:
        """Write the state to a file with a checksum, atomically."""
        write_state(path, self.state_dict())

    @classmethod
    def load(cls, path: str | Path) -> "Monitor":
        """Return the monitor stored in a file."""
        return cls.from_state(read_state(path))


def status(monitor: Any) -> str:
    """Return the first of unsafe, drift and certified that is true, or undecided."""
    return next((name for name in ("unsafe", "drift", "certified") if getattr(monitor, name)), "undecided")


def check_cost(cost: object) -> float:
    """Return the cost of an episode as a float; anything but a finite number from 0 on raises ``InputError``."""
    if type(cost) is float:
        number = cost
    else:
        value = cost[()] if isinstance(cost, np.ndarray) and cost.ndim == 0 else cost
        if not is_real(value):
            raise InputError(f"The cost {cost!r} is not a number: pass one real number per episode.")
        number = float(value)
    if not 0.0 <= number < inf:
        raise InputError(f"The cost {number} is not usable: costs are finite and not negative.")
    return number


def _checked(name: str, value: Any) -> float:
    check_interval(name, value, *_RANGES[name])
    return float(value)


def _next_trace(episodes: int) -> int:
    return episodes + max(1, episodes // _TRACE_DENSITY)


def _close(a: float, b: float) -> bool:
    return isclose(a, b, rel_tol=1e-9, abs_tol=1e-9)
