"""Test episodes as a table, and the statistics of a bundle that follow from them. Needs NumPy alone."""

from dataclasses import dataclass
from math import lgamma, log, log1p
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from steingate.certificates.shift import shift_radius
from steingate.errors import InputError
from steingate.evidence.plan import MAX_EPISODES, Plan
from steingate.monitoring.monitor import Monitor

HEADER = "seed,cost,return,length,end"
_ENDS = ("terminated", "truncated")
_QUANTILES = (0.5, 0.9, 0.95, 0.99)


@dataclass(frozen=True, eq=False)
class EpisodeTable:
    """The test episodes, in the order of the test; all arrays have the shape (n,)."""

    seed: npt.NDArray[np.int64]  # of the reset
    cost: npt.NDArray[np.float64]  # undiscounted sum, 0 if negative
    ret: npt.NDArray[np.float64]  # undiscounted sum of rewards
    length: npt.NDArray[np.int64]  # steps
    truncated: npt.NDArray[np.bool_]  # whether a time limit ended the episode

    def lines(self) -> list[str]:
        """Return the lines of ``episodes.csv``; numbers are written so that reading gives the same bits."""
        columns = (self.seed.tolist(), self.cost.tolist(), self.ret.tolist(), self.length.tolist())
        ends = (_ENDS[cut] for cut in self.truncated.tolist())
        return [HEADER, *(f"{s},{c!r},{r!r},{n},{end}" for s, c, r, n, end in zip(*columns, ends, strict=True))]

    @classmethod
    def from_csv(cls, content: bytes) -> Self:
        """Return the table in an ``episodes.csv``; InputError if it is none."""
        lines = content.decode("ascii", "replace").splitlines()
        if not 2 <= len(lines) <= MAX_EPISODES + 1 or lines[0] != HEADER:
            raise InputError(f"episodes.csv must have the header {HEADER} and 1 to {MAX_EPISODES:,} rows.")
        rows = []
        for number, line in enumerate(lines[1:], 2):
            try:
                seed, cost, ret, length, end = line.split(",")
                row = (int(seed), float(cost), float(ret), int(length), _ENDS.index(end))
                valid = 0 <= row[0] < 2**63 and 0.0 <= row[1] < np.inf and abs(row[2]) < np.inf and 1 <= row[3] < 2**53
            except ValueError:
                valid = False
            if not valid:
                raise InputError(f"Line {number} of episodes.csv is no episode.")
            rows.append(row)
        seeds, costs, rets, lengths, cut = zip(*rows, strict=True)
        whole = (np.array(values, np.int64) for values in (seeds, lengths))
        return cls(next(whole), np.array(costs), np.array(rets), next(whole), np.array(cut, bool))


def exact_upper(violations: int, episodes: int, delta: float) -> float:
    """Return the Clopper-Pearson bound: the p for which ``violations`` or fewer have probability ``delta``.

    >>> round(exact_upper(4, 100, 0.05), 4)
    0.0892
    """
    k, n = violations, episodes
    if k == n:
        return 1.0
    i = np.arange(k + 1)
    ways = np.array([lgamma(n + 1) - lgamma(j + 1) - lgamma(n - j + 1) for j in range(k + 1)])
    low, high = 0.0, 1.0
    while low < (p := 0.5 * (low + high)) < high:
        terms = ways + i * log(p) + (n - i) * log1p(-p)
        top = float(terms.max())
        too_small = top + log(float(np.exp(terms - top).sum())) > log(delta)
        low, high = (p, high) if too_small else (low, p)
    return high


def summarize(table: EpisodeTable, plan: Plan, delta: float, failure: str = "") -> dict[str, Any]:
    """Return the result of a test: violations, bound, decision, shift radius, and statistics of the episodes.

    ``delta`` is the error probability of this test; ``failure`` says why the episodes are no sample, if they are none.
    """
    n, over = len(table.cost), int(np.count_nonzero(table.cost > plan.limit))
    if plan.until_certified:
        monitor = Monitor(plan.limit, plan.budget, delta)
        monitor.update_many(table.cost)
        bound, certified = monitor.bound, monitor.certified and not monitor.unsafe
        decided = min((at for at in (monitor.certified_at, monitor.unsafe_at) if at is not None), default=plan.episodes)
    else:
        bound = exact_upper(over, n, delta)
        certified, decided = bound <= plan.budget, plan.episodes
    certified = certified and bound <= plan.budget and not failure
    return {
        "episodes": n,
        "violations": over,
        "violation_rate": over / n,
        "bound": bound,
        "error_probability": delta,
        "certified": certified,
        "failure": failure,
        "planned_end": decided == n,
        "shift_radius": shift_radius(bound, plan.budget)._asdict() if certified else None,
        "return": _describe(table.ret),
        "cost": _describe(table.cost),
        "length": _describe(table.length.astype(np.float64)),
        "ends": {name: int(np.count_nonzero(table.truncated == i)) for i, name in enumerate(_ENDS)},
    }


def _describe(values: npt.NDArray[np.float64]) -> dict[str, float]:
    quantiles = np.quantile(values, _QUANTILES, method="inverted_cdf").tolist()
    return {
        "mean": float(values.mean()),
        "std": float(values.std()),
        "min": float(values.min()),
        **{f"q{100 * level:g}": value for level, value in zip(_QUANTILES, quantiles, strict=True)},
        "max": float(values.max()),
    }
