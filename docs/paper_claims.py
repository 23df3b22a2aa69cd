"""What the paper says of its figures, in our words, and what the kept runs say of the same."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from kept import TASKS, Cell, Row, numbers, rows, table1

from steingate.report.report_tables import task

POINT_GOAL, POINT_CIRCLE, CAR_GOAL, CAR_CIRCLE = TASKS
AUGMENTED = ("trpo-saute", "trpo-simmer")


@dataclass(frozen=True)
class Finding:
    """A claim, whether the runs bear it out (None: they cannot tell), and the numbers that say so."""

    where: str
    claim: str
    holds: bool | None
    numbers: str


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
    feasible = [each.epochs.value for each in stein.values()]
    ratio = [
        stein[env].epoch_return.value / of("evo", env).epoch_return.value for env in (POINT_GOAL, CAR_GOAL)
    ]
    circle, cpo = stein[POINT_CIRCLE], of("cpo", POINT_CIRCLE)
    beaten = [
        f"{task(env)} {algo}"
        for env in TASKS
        for algo in AUGMENTED
        if stein[env].epoch_return.value <= of(algo, env).epoch_return.value
    ]
    costs = {env: of("cpo", env).cost.value for env in TASKS}
    over = [f"{task(env)} {of('cpo', env).over.value:.0%}" for env in TASKS]
    return [
        Finding(
            where,
            "SteinGate's tail feasibility is above 0.98 on all tasks",
            min(feasible) > 0.98,
            "by epoch "
            + listed(feasible, 3)
            + "; by episode "
            + listed([each.episodes.value for each in stein.values()], 3),
        ),
        Finding(
            where,
            "SteinGate earns nearly three times EVO's return on PointGoal1, four times on CarGoal1",
            ratio[0] > 2.0 and ratio[1] > 3.0,
            listed(ratio, 1) + " times",
        ),
        Finding(
            where,
            "on PointCircle1 SteinGate earns what CPO does, with more feasible epochs",
            circle.epoch_return.value > 0.95 * cpo.epoch_return.value
            and circle.epochs.value > cpo.epochs.value,
            f"{circle.epoch_return.value:.1f} and {cpo.epoch_return.value:.1f}; "
            f"{circle.epochs.value:.2f} and {cpo.epochs.value:.2f}",
        ),
        Finding(
            where,
            "SteinGate earns more than Sauté and Simmer",
            not beaten,
            "less than " + ", ".join(beaten) + " (by the paper's own table less on both Goal tasks)"
            if beaten
            else "on all tasks",
        ),
        Finding(
            where,
            "CPO violates the limit often and for long, most on CarGoal1",
            max(costs, key=costs.__getitem__) == CAR_GOAL,
            "episodes over the limit: " + ", ".join(over),
        ),
    ]


def limits() -> list[Finding]:
    """Return what is said of other cost limits."""
    by = {
        "10": rows(grid="limits", kind="limit-10"),
        "25": stein_rows(POINT_GOAL),
        "40": rows(grid="limits", kind="limit-40"),
    }
    if not all(by.values()):
        return []
    cost = {limit: mean(group, "cost") for limit, group in by.items()}
    ret = [mean(group, "return") for group in by.values()]
    where = "figure on cost limits"
    return [
        Finding(
            where,
            "with limits of 25 and 40 the cost settles below them",
            cost["25"] < 25.0 and cost["40"] < 40.0,
            f"mean costs {cost['25']:.1f} and {cost['40']:.1f}",
        ),
        Finding(
            where,
            "with a limit of 10 the cost stays around it",
            5.0 < cost["10"] < 15.0,
            f"mean cost {cost['10']:.1f}",
        ),
        Finding(where, "return rises with the limit", ret[0] < ret[1] < ret[2], listed(ret, 1)),
    ]


def references() -> list[Finding]:
    """Return what is said of other references."""
    by = {
        "Beta(2, 5)": stein_rows(POINT_GOAL),
        "Beta(1, 10)": rows(grid="references", kind="beta-1-10"),
        "logit-normal": rows(grid="references", kind="logit-normal"),
    }
    if not all(by.values()):
        return []
    cost = {name: mean(group, "cost") for name, group in by.items()}
    ret = {name: mean(group, "return") for name, group in by.items()}
    where = "figure on references"
    return [
        Finding(where, "costs are much the same", max(cost.values()) - min(cost.values()) < 5.0, named(cost)),
        Finding(
            where,
            "Beta(1, 10) earns less than the two others",
            ret["Beta(1, 10)"] < min(ret["Beta(2, 5)"], ret["logit-normal"]),
            named(ret),
        ),
    ]


def samples() -> list[Finding]:
    """Return what is said of more and fewer episodes per epoch."""
    by = {
        "8": rows(grid="samples", kind="episodes-8"),
        "16": stein_rows(CAR_GOAL),
        "32": rows(grid="samples", kind="episodes-32"),
    }
    if not all(by.values()):
        return []
    cost = {name: mean(group, "cost") for name, group in by.items()}
    ret = {name: mean(group, "return") for name, group in by.items()}
    over = {name: 100.0 * (1.0 - mean(group, "feasible_by_episode")) for name, group in by.items()}
    where = "figure on episodes per epoch"
    return [
        Finding(
            where,
            "all three stay safe",
            max(cost.values()) < 25.0,
            f"mean costs {named(cost)}; episodes over the limit in % {named(over)}",
        ),
        Finding(
            where,
            "32 episodes make it slightly more conservative",
            ret["32"] < ret["16"] and cost["32"] < cost["16"],
            f"returns {named(ret)}",
        ),
    ]


def velocity() -> list[Finding]:
    """Return what is said of the velocity tasks."""
    found = rows(grid="velocity")
    if not found:
        return []
    where = "figure on velocity tasks"

    def by_task(algo: str, name: str) -> dict[str, float]:
        return {
            task(row["env"]).removesuffix("Velocity"): float(row[name])
            for row in found
            if row["algo"] == algo and row[name]
        }

    stein, cpo, evo = (by_task(algo, "feasible_by_epoch") for algo in ("steingate", "cpo", "evo"))
    returns = {algo: by_task(algo, "return") for algo in ("steingate", "evo")}
    over = {algo: by_task(algo, "cost") for algo in AUGMENTED}
    safer = [name for name in stein if name in cpo and stein[name] >= cpo[name]]
    lower = [name for name in returns["evo"] if returns["evo"][name] < returns["steingate"].get(name, -1e9)]
    return [
        Finding(
            where,
            "SteinGate becomes feasible quickly, CPO violates often",
            len(safer) == len(stein),
            f"feasible epochs of the last fifth: SteinGate {named(stein, 2)}; CPO {named(cpo, 2)}",
        ),
        Finding(
            where,
            "EVO is safe and earns less, most on Humanoid",
            min(evo.values()) > 0.9 and "Humanoid" in lower,
            f"feasible epochs {named(evo, 2)}; returns {named(returns['evo'], 0)} against SteinGate's "
            f"{named(returns['steingate'], 0)}",
        ),
        Finding(
            where,
            "Sauté and Simmer stay close to the limit",
            None,
            f"mean costs: Sauté {named(over['trpo-saute'], 0)}; Simmer {named(over['trpo-simmer'], 0)}",
        ),
    ]


def baselines() -> list[Finding]:
    """Return what is said of further baselines."""
    found = rows(grid="baselines")
    if not found:
        return []
    where = "figure on further baselines"
    lag = {
        f"{row['algo']} {task(row['env'])}": float(row["cost"])
        for row in found
        if row["algo"].endswith("-lag")
    }
    rest = {
        f"{row['algo']} {task(row['env'])}": float(row["cost"])
        for row in found
        if not row["algo"].endswith("-lag")
    }
    return [
        Finding(
            where,
            "PPO-Lag and TRPO-Lag stay above the limit",
            min(lag.values()) > 25.0,
            f"mean costs: {named(lag, 0)}",
        ),
        Finding(
            where,
            "PPO-Sauté and PPO-Simmer exceed it by less, but often",
            mean_of(rest) < mean_of(lag),
            f"mean costs: {named(rest, 0)}",
        ),
    ]


def variants() -> list[Finding]:
    """Return what is said of variants of CPO."""
    found = rows(grid="cpo-variants")
    if not found:
        return []
    where = "figure on variants of CPO"
    cost = {f"{row['algo']} {task(row['env'])}": float(row["cost"]) for row in found}
    high = [name for name, value in cost.items() if value > 20.0]
    return [
        Finding(
            where,
            "CPO, RCPO and PCPO stay close to the limit or above it",
            len(high) == len(cost),
            f"mean costs: {named(cost, 0)}",
        ),
    ]


def stein_rows(env: str) -> list[Row]:
    """Return the first seed of SteinGate in table1, which these figures share."""
    return rows(grid="table1", algo="steingate", env=env, seed="0")


def mean(group: Sequence[Row], name: str) -> float:
    """Return the mean of a number over some runs."""
    return float(numbers(group, name).mean())


def mean_of(values: dict[str, float]) -> float:
    """Return the mean."""
    return sum(values.values()) / len(values)


def listed(values: Sequence[float], digits: int) -> str:
    """Return some numbers in words."""
    return ", ".join(f"{value:.{digits}f}" for value in values)


def named(values: dict[str, float], digits: int = 1) -> str:
    """Return some numbers with their names."""
    return ", ".join(f"{name} {value:.{digits}f}" for name, value in values.items())
