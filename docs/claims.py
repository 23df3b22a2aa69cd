"""What a claim of the paper is beside our runs: its parts, which of them hold, and numbers in words.

A claim often has several parts ("often, and most on CarGoal1"). Each part is held against the numbers by
itself, so that one that holds does not carry another that does not. Words that occur in several claims
mean the same number everywhere: they are the constants below, and the page states them.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import mean

from kept import Row

from steingate.report.report_tables import task

AUGMENTED = ("trpo-saute", "trpo-simmer")
LIMIT = 25.0
FEASIBLE = 0.98  # feasible by the mean: more than this share of the epochs, the paper's own number
SAFE = 0.1  # safe by the episode: at most this share of the episodes over the limit, the certificate's budget
NEAR = 0.25  # near, about, competitive: within a quarter
SAME = 0.1  # the same: within a tenth


@dataclass(frozen=True)
class Finding:
    """A claim, which of its parts the runs bear out, the numbers that say so, and why a part may fail."""

    where: str
    claim: str
    parts: tuple[bool, ...]
    numbers: str
    why: str = ""

    @property
    def holds(self) -> str:
        """``yes`` if all parts do, ``no`` if none does."""
        return "yes" if all(self.parts) else "in part" if any(self.parts) else "no"


def within(value: float, other: float, share: float) -> bool:
    """Return whether a number is another one, give or take a share of it."""
    return abs(value - other) <= share * abs(other)


def by_task(group: Iterable[Row], algo: str, name: str) -> dict[str, float]:
    """Return a number of a method on each task, the mean over its seeds."""
    found: dict[str, list[float]] = {}
    for row in group:
        if row["algo"] == algo:
            found.setdefault(short(row["env"]), []).append(float(row[name]))
    return {env: mean(values) for env, values in found.items()}


def over(group: Iterable[Row], algo: str) -> dict[str, float]:
    """Return the share of episodes over the limit on each task, in per cent."""
    return {env: 100.0 * (1.0 - value) for env, value in by_task(group, algo, "feasible_by_episode").items()}


def short(env: str) -> str:
    """Return the name of a task without what all of its kind share."""
    return task(env).removesuffix("Velocity")


def listed(values: Sequence[float], digits: int) -> str:
    """Return some numbers in words."""
    return ", ".join(f"{value:.{digits}f}" for value in values)


def named(values: Mapping[str, float], digits: int = 1) -> str:
    """Return some numbers with their names."""
    return ", ".join(f"{name} {value:.{digits}f}" for name, value in values.items())


def methods(values: Mapping[str, Mapping[str, float]], digits: int = 0) -> str:
    """Return numbers of methods on tasks, method by method."""
    return "; ".join(f"{algo} {named(own, digits)}" for algo, own in values.items())
