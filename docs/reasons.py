"""Why ours differs from the paper in Table 1, as far as we can tell, with the numbers of the kept runs."""

from kept import TASKS, Cell, rows, table1

POINT_GOAL, POINT_CIRCLE, CAR_GOAL, CAR_CIRCLE = TASKS


def reasons() -> str:
    """Return a list of them."""
    cells = {(each.env, each.algo): each for each in table1()}
    simmer, stein = cells[POINT_CIRCLE, "trpo-simmer"], cells[CAR_CIRCLE, "steingate"]
    evo, goal = cells[POINT_GOAL, "evo"], cells[POINT_GOAL, "steingate"]
    circle = cells[POINT_CIRCLE, "steingate"]
    low, *high = sorted(_column(stein, "feasible_by_epoch"))
    return "\n".join(
        [
            "- *By the episode* the two cannot agree: CPO would have "
            + " and ".join(f"{cells[env, 'cpo'].episodes.value:.2f}" for env in (POINT_GOAL, CAR_GOAL))
            + " on the Goal tasks where the paper prints 0.26 and 0.26, so its table was not counted "
            "so. Counted by epoch both rows agree. "
            "What follows from it for SteinGate is the largest difference between the paper's words "
            "and ours: within the limit in nearly all epochs, "
            "it is not in one of six episodes of the Goal tasks.",
            "- *Simmer on PointCircle1* comes closest to a difference by epoch: "
            f"{simmer.epochs.value:.3f}, the paper {_paper(simmer)[0]:.3f}. Its seeds have "
            f"{_seeds(simmer, 'feasible_by_epoch', 2)} feasible epochs. The paper's share is 549 of 600, "
            "which one seed of six over the limit for half of the time would give; on other rows of the task "
            "single seeds of ours are further down "
            f"(Sauté {min(_column(cells[POINT_CIRCLE, 'trpo-saute'], 'feasible_by_epoch')):.2f}, EVO "
            f"{min(_column(cells[POINT_CIRCLE, 'evo'], 'feasible_by_epoch')):.2f}). Ruled out: another "
            "budget (recorded values of the original's schedule are part of the tests).",
            f"- *SteinGate on CarCircle1* has at least {min(high):.2f} feasible epochs in all seeds "
            f"but one, which has {low:.2f}: mean cost rises above the limit several times late in "
            "training. "
            f"The paper's table has {_paper(stein)[0]:.3f}; the intervals overlap.",
            f"- *EVO on PointGoal1* earns {_seeds(evo, 'return_by_epoch', 1)}, on average "
            f"{evo.epoch_return.value:.1f}, the paper {_paper(evo)[1]:.2f}, within the intervals: "
            "seeds differ more than the two. "
            "EVO's public code does not run as it is (a factor that it reads is never set), so the "
            "authors must have changed it; what else they changed is not known. On the three other "
            "tasks returns agree.",
            f"- *SteinGate's returns* on PointGoal1 ({goal.epoch_return.value:.1f} against "
            f"{_paper(goal)[1]:.2f}) and PointCircle1 ({circle.epoch_return.value:.1f} against "
            f"{_paper(circle)[1]:.2f}) "
            "are within the intervals.",
            "- *Simmer and Sauté* are the same run on CarCircle1 in seed 0, to the bit: Simmer's "
            "budget starts at its upper bound and is lowered only when mean cost exceeds the "
            "limit at its updates.",
        ]
    )


def _column(cell: Cell, name: str) -> list[float]:
    return [float(row[name]) for row in rows(grid="table1", env=cell.env, algo=cell.algo)]


def _seeds(cell: Cell, name: str, digits: int) -> str:
    *first, last = (f"{value:.{digits}f}" for value in _column(cell, name))
    return f"{', '.join(first)} and {last}"


def _paper(cell: Cell) -> tuple[float, float]:
    assert cell.paper is not None
    return cell.paper.feasibility, cell.paper.ret
