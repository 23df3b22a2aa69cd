"""Statements of the paper about its figures of ten million steps, judged by the stored runs.

A statement may have several parts ("often, and most on CarGoal1"); each part is judged by itself. Words that
occur in several statements have one numeric meaning, given by the constants below.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from summary import METHODS, TASKS, Row, column, rows, table1_cells

from steingate.report.tables import task

POINT_GOAL, POINT_CIRCLE, CAR_GOAL, CAR_CIRCLE = TASKS
LIMIT = 25.0
FEASIBLE = 0.98  # "feasible": fraction of epochs, the paper's own number
SAFE = 0.1  # "safe", "violates": fraction of episodes or epochs over the limit
NEAR = 0.25  # "near", "about": relative difference
SAME = 0.1  # "the same": relative difference


class Claim(NamedTuple):
    """A statement, which of its parts hold, the numbers that decide, and why a part may fail."""

    figure: str
    statement: str
    parts: tuple[bool, ...]
    numbers: str
    reason: str = ""

    @property
    def verdict(self) -> str:
        """``yes``, ``no``, or ``k of n parts``."""
        if all(self.parts):
            return "yes"
        return f"{sum(self.parts)} of {len(self.parts)} parts" if any(self.parts) else "no"


def close(value: float, other: float, tolerance: float) -> bool:
    """Return whether two numbers differ by at most a fraction of the second."""
    return abs(value - other) <= tolerance * abs(other)


def text(values: Mapping[str, float], digits: int = 1) -> str:
    """Return ``name value`` pairs."""
    return ", ".join(f"{name} {value:.{digits}f}" for name, value in values.items())


def averages(groups: Mapping[str, Sequence[Row]], name: str) -> dict[str, float]:
    """Return the mean of a column for each group of runs."""
    return {group: float(column(own, name).mean()) for group, own in groups.items()}


def single_runs(grid: str, env: str, kinds: Mapping[str, str]) -> dict[str, list[Row]]:
    """Return the runs of a grid by title; the kind "" is SteinGate's run of Table 1 with seed 0."""
    table1 = rows(grid="table1", algo="steingate", env=env, seed="0")
    return {title: rows(grid=grid, kind=kind, seed="0") if kind else table1 for title, kind in kinds.items()}


def table1_claims() -> list[Claim]:
    """Return the claims about Table 1 and the main figure."""
    cells = table1_cells()
    goal, evo = ([cells[env, algo] for env in (POINT_GOAL, CAR_GOAL)] for algo in ("steingate", "evo"))
    by_epoch, by_episode = [cell.epochs.value for cell in goal], [cell.episodes.value for cell in goal]
    ratio = [one.epoch_return.value / other.epoch_return.value for one, other in zip(goal, evo, strict=True)]
    paper_ratio = [one.paper.ret / other.paper.ret for one, other in zip(goal, evo, strict=True)]
    circle, cpo = cells[POINT_CIRCLE, "steingate"], cells[POINT_CIRCLE, "cpo"]
    higher = [
        cells[env, "steingate"].epoch_return.value > cells[env, algo].epoch_return.value
        for env in TASKS
        for algo in ("trpo-saute", "trpo-simmer")
    ]
    over = [cells[env, "cpo"].over.value for env in TASKS]
    infeasible = {task(env): 100.0 * (1.0 - cells[env, "cpo"].epochs.value) for env in TASKS}
    often = min(over) > SAFE and min(infeasible.values()) > 100.0 * SAFE
    return [
        Claim(
            "Table 1",
            "on the Goal tasks SteinGate is as tail-feasible as EVO, above 0.98",
            (min(by_epoch) > FEASIBLE, min(by_episode) > FEASIBLE),
            f"by epoch {by_epoch[0]:.3f}, {by_epoch[1]:.3f}; by episode {by_episode[0]:.3f}, {by_episode[1]:.3f}",
            "the gate tolerates one of 16 episodes over the limit",
        ),
        Claim(
            "Table 1",
            "there it earns nearly three and four times as much as EVO",
            (min(ratio) > 2.0, all(close(*pair, NEAR) for pair in zip(ratio, paper_ratio, strict=True))),
            f"{ratio[0]:.1f} and {ratio[1]:.1f} times",
            "EVO's return is close to 0, so the ratio varies",
        ),
        Claim(
            "Table 1",
            "on PointCircle1 it earns what CPO does, with fewer violations",
            (
                close(circle.epoch_return.value, cpo.epoch_return.value, SAME),
                circle.epochs.value > cpo.epochs.value,
                circle.over.value < SAFE,
            ),
            f"returns {circle.epoch_return.value:.1f}, {cpo.epoch_return.value:.1f}; "
            f"violations {circle.over.value:.0%}, {cpo.over.value:.0%}",
        ),
        Claim(
            "Table 1",
            "it earns more than Sauté and Simmer on all tasks",
            tuple(higher),
            f"on {sum(higher)} of {len(higher)} pairs",
            "less on the Goal tasks, as in the paper's own table",
        ),
        Claim(
            "Table 1",
            "CPO violates the limit often, most on CarGoal1",
            (often, max(infeasible, key=infeasible.__getitem__) == task(CAR_GOAL)),
            f"infeasible epochs in %: {text(infeasible, 0)}",
            "the paper's values for the two Goal tasks are equal",
        ),
    ]


def ablation_claims() -> list[Claim]:
    """Return the claims about cost limits, reference distributions and episodes per epoch."""
    limits = single_runs("limits", POINT_GOAL, {"10": "limit-10", "25": "", "40": "limit-40"})
    cost, ret = averages(limits, "cost"), averages(limits, "return")
    infeasible = 1.0 - averages(limits, "feasible_by_epoch")["10"]
    found = [
        Claim(
            "cost limits",
            "with limits of 25 and 40 the cost settles below them",
            (cost["25"] < 25.0, cost["40"] < 40.0),
            f"mean costs {cost['25']:.1f}, {cost['40']:.1f}",
        ),
        Claim(
            "cost limits",
            "with a limit of 10 it is close to it, at times above",
            (close(cost["10"], 10.0, NEAR), 0.0 < infeasible < 0.5),
            f"mean cost {cost['10']:.1f}; {infeasible:.0%} of the epochs above",
            "the cost is about half of every limit",
        ),
        Claim(
            "cost limits",
            "return rises with the limit",
            (ret["10"] < ret["25"], ret["25"] < ret["40"]),
            f"{ret['10']:.2f}, {ret['25']:.2f}, {ret['40']:.2f}",
            "seeds differ by more",
        ),
    ]
    kinds = {"Beta(2, 5)": "", "Beta(1, 10)": "beta-1-10", "logit-normal": "logit-normal"}
    references = single_runs("references", POINT_GOAL, kinds)
    cost, ret = averages(references, "cost"), averages(references, "return")
    found += [
        Claim(
            "references",
            "costs are much the same",
            tuple(close(value, cost["Beta(2, 5)"], SAME) for name, value in cost.items() if name != "Beta(2, 5)"),
            text(cost),
            "with Beta(1, 10) the gate opens less often",
        ),
        Claim(
            "references",
            "Beta(1, 10) earns least",
            (min(ret, key=ret.__getitem__) == "Beta(1, 10)",),
            text(ret),
        ),
    ]
    samples = single_runs("samples", CAR_GOAL, {"8": "episodes-8", "16": "", "32": "episodes-32"})
    cost, ret, deviation = (averages(samples, name) for name in ("cost", "return", "cost_sd"))
    over = {count: 100.0 * (1.0 - share) for count, share in averages(samples, "feasible_by_episode").items()}
    return [
        *found,
        Claim(
            "episodes per epoch",
            "8, 16 and 32 episodes are all safe",
            (max(cost.values()) < LIMIT, max(over.values()) < 100.0 * SAFE),
            f"violations in %: {text(over, 0)}",
            "safe by the mean, not by the episode",
        ),
        Claim(
            "episodes per epoch",
            "32 are slightly more conservative",
            (ret["32"] < ret["16"], cost["32"] < cost["16"]),
            f"returns {text(ret)}; mean costs {text(cost)}",
        ),
        Claim(
            "episodes per epoch",
            "8 vary more",
            (max(deviation, key=deviation.__getitem__) == "8",),
            f"standard deviation of an epoch's mean cost {text(deviation)}",
        ),
    ]


def all_claims() -> list[Claim]:
    """Return every claim in the order of the paper."""
    return table1_claims() + ablation_claims()


def differences() -> str:
    """Return where our numbers and the paper's have disjoint intervals, as a list."""
    cells = [cell for cell in table1_cells().values() if cell.algo in METHODS and cell.paper]
    by_epoch = [f"{task(cell.env)} {cell.algo}" for cell in cells if cell.differences]
    same = [f"{task(cell.env)} {cell.algo}" for cell in cells if not cell.differs_by_episode]
    return (
        f"- **Counted by epoch**, as the paper's table seems to be: {len(by_epoch)} of {len(cells)} rows differ"
        + (f" ({', '.join(by_epoch)})" if by_epoch else "")
        + f".\n- **Counted by episode**, as the paper's text defines tail feasibility: {len(cells) - len(same)} of "
        f"{len(cells)} rows differ, all but {', '.join(same)}."
    )
