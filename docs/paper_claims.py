"""What the paper says of its figures, in our words, and what the kept runs say of the same."""

from collections.abc import Callable, Sequence

from appendix_claims import baselines, variants, velocity
from claims import AUGMENTED, FEASIBLE, LIMIT, NEAR, SAFE, SAME, Finding, listed, named, within
from kept import TASKS, Cell, Row, numbers, rows, table1

from steingate.report.report_tables import task

POINT_GOAL, POINT_CIRCLE, CAR_GOAL, CAR_CIRCLE = TASKS


def found() -> list[Finding]:
    """Return all findings, in the order of the paper; nothing about grids that have no runs yet."""
    checks: Sequence[Callable[[], list[Finding]]] = (
        main_figure,
        limits,
        references,
        samples,
        velocity,
        baselines,
        variants,
    )
    return [finding for check in checks for finding in check()]


def main_figure() -> list[Finding]:
    """Return what is said of Table 1 and the main figure."""
    cells = {(each.env, each.algo): each for each in table1()}
    if any((env, algo) not in cells for env in TASKS for algo in ("cpo", "evo", *AUGMENTED, "steingate")):
        return []

    def of(algo: str, env: str) -> Cell:
        return cells[env, algo]

    where = "main figure, Table 1"
    stein = {env: of("steingate", env) for env in TASKS}
    goal, evo = ([of(algo, env) for env in (POINT_GOAL, CAR_GOAL)] for algo in ("steingate", "evo"))
    by_epoch, by_episode = ([each.epochs.value for each in goal], [each.episodes.value for each in goal])
    ratio = [one.epoch_return.value / other.epoch_return.value for one, other in zip(goal, evo, strict=True)]
    theirs = [_paper_return(one) / _paper_return(other) for one, other in zip(goal, evo, strict=True)]
    circle, cpo = stein[POINT_CIRCLE], of("cpo", POINT_CIRCLE)
    ahead = {
        (env, algo): stein[env].epoch_return.value - of(algo, env).epoch_return.value
        for env in TASKS
        for algo in AUGMENTED
    }
    beaten = [f"{task(env)} {algo}" for (env, algo), lead in ahead.items() if lead <= 0.0]
    paper_beaten = [
        f"{task(env)} {algo}"
        for env, algo in ahead
        if _paper_return(stein[env]) <= _paper_return(of(algo, env))
    ]
    over = {env: of("cpo", env).over.value for env in TASKS}
    infeasible = {env: 1.0 - of("cpo", env).epochs.value for env in TASKS}
    return [
        Finding(
            where,
            "on the Goal tasks SteinGate's tail feasibility is that of EVO, above 0.98",
            (min(by_epoch) > FEASIBLE, min(by_episode) > FEASIBLE),
            f"by epoch {listed(by_epoch, 3)} (EVO {listed([each.epochs.value for each in evo], 3)}); "
            f"by episode {listed(by_episode, 3)} (EVO {listed([each.episodes.value for each in evo], 3)})",
            "a mean within the limit leaves room for costly episodes: the gate opens with one of sixteen "
            "over the limit if it costs less than twice as much",
        ),
        Finding(
            where,
            "there it earns much more than EVO: nearly three times on PointGoal1, four times on CarGoal1",
            (
                min(ratio) > 2.0,
                all(within(one, other, NEAR) for one, other in zip(ratio, theirs, strict=True)),
            ),
            f"{listed(ratio, 1)} times (its table: {listed(theirs, 1)})",
            "a ratio to a return that is close to nothing varies a lot with the seeds",
        ),
        Finding(
            where,
            "on PointCircle1 SteinGate earns what CPO does, feasibly and without its violations",
            (
                within(circle.epoch_return.value, cpo.epoch_return.value, SAME),
                circle.epochs.value > cpo.epochs.value,
                circle.over.value < SAFE,
            ),
            f"returns {circle.epoch_return.value:.1f} and {cpo.epoch_return.value:.1f}; feasible epochs "
            f"{circle.epochs.value:.2f} and {cpo.epochs.value:.2f}; episodes over the limit "
            f"{circle.over.value:.0%} and {cpo.over.value:.0%}",
        ),
        Finding(
            where,
            "SteinGate earns more than Sauté and Simmer on all tasks",
            tuple(lead > 0.0 for lead in ahead.values()),
            f"less than {', '.join(beaten)}" if beaten else "on all tasks",
            f"the paper's own table has less than {', '.join(paper_beaten)}",
        ),
        Finding(
            where,
            "CPO violates the limit often and for long, most on CarGoal1",
            (
                min(over.values()) > SAFE and min(infeasible.values()) > SAFE,
                max(infeasible, key=infeasible.__getitem__) == CAR_GOAL,
            ),
            f"episodes over the limit in % {_short(over, 100.0)}; epochs {_short(infeasible, 100.0)}",
            "in the paper's own table the two Goal tasks are equal (0.258 and 0.257)",
        ),
    ]


def limits() -> list[Finding]:
    """Return what is said of other cost limits."""
    by = {
        "10": rows(grid="limits", kind="limit-10", seed="0"),
        "25": stein_rows(POINT_GOAL),
        "40": rows(grid="limits", kind="limit-40", seed="0"),
    }
    if not all(by.values()):
        return []
    cost = {limit: mean(group, "cost") for limit, group in by.items()}
    ret = [mean(group, "return") for group in by.values()]
    infeasible = 1.0 - mean(by["10"], "feasible_by_epoch")
    where = "figure on cost limits"
    return [
        Finding(
            where,
            "with limits of 25 and 40 the cost settles below them",
            (cost["25"] < 25.0, cost["40"] < 40.0),
            f"mean costs {cost['25']:.1f} and {cost['40']:.1f}",
        ),
        Finding(
            where,
            "with a limit of 10 the cost is close to it and at times just above",
            (within(cost["10"], 10.0, NEAR), 0.0 < infeasible < 0.5),
            f"mean cost {cost['10']:.1f}; {infeasible:.0%} of the epochs above",
            "one seed; with every limit the mean cost is at about half of it",
        ),
        Finding(
            where,
            "return rises with the limit",
            (ret[0] < ret[1], ret[1] < ret[2]),
            listed(ret, 2),
            "one seed each, and seeds differ by more than these",
        ),
    ]


def references() -> list[Finding]:
    """Return what is said of other references."""
    by = {
        "Beta(2, 5)": stein_rows(POINT_GOAL),
        "Beta(1, 10)": rows(grid="references", kind="beta-1-10", seed="0"),
        "logit-normal": rows(grid="references", kind="logit-normal", seed="0"),
    }
    if not all(by.values()):
        return []
    cost = {name: mean(group, "cost") for name, group in by.items()}
    ret = {name: mean(group, "return") for name, group in by.items()}
    where = "figure on references"
    return [
        Finding(
            where,
            "costs are much the same",
            tuple(within(value, cost["Beta(2, 5)"], SAME) for value in list(cost.values())[1:]),
            named(cost),
            "one seed; with the cautious reference the gate opens less often, so cost and return are lower",
        ),
        Finding(
            where,
            "Beta(1, 10) earns less than the two others",
            (ret["Beta(1, 10)"] < min(ret["Beta(2, 5)"], ret["logit-normal"]),),
            named(ret),
        ),
    ]


def samples() -> list[Finding]:
    """Return what is said of more and fewer episodes per epoch."""
    by = {
        "8 episodes": rows(grid="samples", kind="episodes-8", seed="0"),
        "16 episodes": stein_rows(CAR_GOAL),
        "32 episodes": rows(grid="samples", kind="episodes-32", seed="0"),
    }
    if not all(by.values()):
        return []
    cost = {name: mean(group, "cost") for name, group in by.items()}
    ret = {name: mean(group, "return") for name, group in by.items()}
    over = {name: 100.0 * (1.0 - mean(group, "feasible_by_episode")) for name, group in by.items()}
    spread = {name: mean(group, "cost_sd") for name, group in by.items()}
    where = "figure on episodes per epoch"
    return [
        Finding(
            where,
            "all three stay safe",
            (max(cost.values()) < LIMIT, max(over.values()) < 100.0 * SAFE),
            f"mean costs {named(cost)}; episodes over the limit in % {named(over)}",
            "by the mean they do, by the episode they do not",
        ),
        Finding(
            where,
            "32 episodes make it slightly more conservative",
            (ret["32 episodes"] < ret["16 episodes"], cost["32 episodes"] < cost["16 episodes"]),
            f"returns {named(ret)}",
        ),
        Finding(
            where,
            "8 episodes vary more",
            (spread["8 episodes"] > max(spread["16 episodes"], spread["32 episodes"]),),
            f"deviation of an epoch's mean cost {named(spread)}",
        ),
    ]


def stein_rows(env: str) -> list[Row]:
    """Return the first seed of SteinGate in table1, which these figures share."""
    return rows(grid="table1", algo="steingate", env=env, seed="0")


def mean(group: Sequence[Row], name: str) -> float:
    """Return the mean of a number over some runs."""
    return float(numbers(group, name).mean())


def _short(values: dict[str, float], times: float) -> str:
    return named({task(env): times * value for env, value in values.items()}, 0)


def _paper_return(each: Cell) -> float:
    assert each.paper is not None
    return each.paper.ret
