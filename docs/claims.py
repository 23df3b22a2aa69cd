"""Statements of the paper about its figures, judged by the stored runs, and its tables of settings.

A statement may have several parts ("often, and most on CarGoal1"); each part is judged by itself. Words that
occur in several statements have one numeric meaning, given by the constants below.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import mean
from typing import NamedTuple

from summary import METHODS, TASKS, Cell, Row, column, over_limit, rows, table1_cells

from steingate.algorithms import make_algorithm
from steingate.certificates.stein import SteinCertificate
from steingate.report.tables import task

POINT_GOAL, POINT_CIRCLE, CAR_GOAL, CAR_CIRCLE = TASKS
SAUTE = ("trpo-saute", "trpo-simmer")
LIMIT = 25.0
FEASIBLE = 0.98  # "feasible": fraction of epochs, the paper's own number
SAFE = 0.1  # "safe", "violates": fraction of episodes or epochs over the limit
NEAR = 0.25  # "near", "about", "competitive": relative difference
SAME = 0.1  # "the same": relative difference


@dataclass(frozen=True)
class Claim:
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


def all_claims() -> list[Claim]:
    """Return every claim in the order of the paper."""
    return [*main_figure(), *limits(), *references(), *samples(), *velocity(), *baselines(), *variants()]


def close(value: float, other: float, tolerance: float) -> bool:
    """Return whether two numbers differ by at most a fraction of the second."""
    return abs(value - other) <= tolerance * abs(other)


def by_task(group: Iterable[Row], algo: str, name: str) -> dict[str, float]:
    """Return a number of a method on each task, averaged over seeds; ``over`` is in percent."""
    found: dict[str, list[float]] = {}
    for row in group:
        if row["algo"] == algo:
            value = 100.0 * over_limit(row) if name == "over" else float(row[name])
            found.setdefault(task(row["env"]).removesuffix("Velocity"), []).append(value)
    return {env: mean(values) for env, values in found.items()}


def average(group: Sequence[Row], name: str) -> float:
    """Return the mean of a column."""
    return float(column(group, name).mean())


def text(values: Mapping[str, float], digits: int = 1) -> str:
    """Return ``name value`` pairs."""
    return ", ".join(f"{name} {value:.{digits}f}" for name, value in values.items())


def steingate_rows(env: str) -> list[Row]:
    """Return the Table 1 run of SteinGate with seed 0, which several figures share."""
    return rows(grid="table1", algo="steingate", env=env, seed="0")


def main_figure() -> list[Claim]:
    """Return the claims about Table 1 and the main figure."""
    cells = table1_cells()
    stein = {env: cells[env, "steingate"] for env in TASKS}
    goal, evo = ([cells[env, algo] for env in (POINT_GOAL, CAR_GOAL)] for algo in ("steingate", "evo"))
    by_epoch, by_episode = [cell.epochs.value for cell in goal], [cell.episodes.value for cell in goal]
    ratio = [one.epoch_return.value / other.epoch_return.value for one, other in zip(goal, evo, strict=True)]
    paper_ratio = [paper_return(one) / paper_return(other) for one, other in zip(goal, evo, strict=True)]
    circle, cpo = stein[POINT_CIRCLE], cells[POINT_CIRCLE, "cpo"]
    pairs = [(env, algo) for env in TASKS for algo in SAUTE]
    higher = [stein[env].epoch_return.value > cells[env, algo].epoch_return.value for env, algo in pairs]
    over = {task(env): 100.0 * cells[env, "cpo"].over.value for env in TASKS}
    infeasible = {task(env): 100.0 * (1.0 - cells[env, "cpo"].epochs.value) for env in TASKS}
    figure = "Table 1"
    return [
        Claim(
            figure,
            "on the Goal tasks SteinGate is as tail-feasible as EVO, above 0.98",
            (min(by_epoch) > FEASIBLE, min(by_episode) > FEASIBLE),
            f"by epoch {by_epoch[0]:.3f}, {by_epoch[1]:.3f}; by episode {by_episode[0]:.3f}, {by_episode[1]:.3f}",
            "the gate tolerates one of 16 episodes over the limit",
        ),
        Claim(
            figure,
            "there it earns nearly three and four times as much as EVO",
            (
                min(ratio) > 2.0,
                all(close(one, other, NEAR) for one, other in zip(ratio, paper_ratio, strict=True)),
            ),
            f"{ratio[0]:.1f} and {ratio[1]:.1f} times",
            "EVO's return is close to 0, so the ratio varies",
        ),
        Claim(
            figure,
            "on PointCircle1 it earns what CPO does, with fewer violations",
            (
                close(circle.epoch_return.value, cpo.epoch_return.value, SAME),
                circle.epochs.value > cpo.epochs.value,
                circle.over.value < SAFE,
            ),
            f"returns {circle.epoch_return.value:.1f}, {cpo.epoch_return.value:.1f}; violations "
            f"{circle.over.value:.0%}, {cpo.over.value:.0%}",
        ),
        Claim(
            figure,
            "it earns more than Sauté and Simmer on all tasks",
            tuple(higher),
            f"on {sum(higher)} of {len(higher)} pairs",
            "less on the Goal tasks, as in the paper's own table",
        ),
        Claim(
            figure,
            "CPO violates the limit often, most on CarGoal1",
            (
                min(over.values()) > 100.0 * SAFE and min(infeasible.values()) > 100.0 * SAFE,
                max(infeasible, key=infeasible.__getitem__) == task(CAR_GOAL),
            ),
            f"infeasible epochs in %: {text(infeasible, 0)}",
            "the paper's values for the two Goal tasks are equal",
        ),
    ]


def limits() -> list[Claim]:
    """Return the claims about cost limits."""
    group = {
        10: rows(grid="limits", kind="limit-10", seed="0"),
        25: steingate_rows(POINT_GOAL),
        40: rows(grid="limits", kind="limit-40", seed="0"),
    }
    cost = {limit: average(own, "cost") for limit, own in group.items()}
    ret = [average(own, "return") for own in group.values()]
    infeasible = 1.0 - average(group[10], "feasible_by_epoch")
    figure = "cost limits"
    return [
        Claim(
            figure,
            "with limits of 25 and 40 the cost settles below them",
            (cost[25] < 25.0, cost[40] < 40.0),
            f"mean costs {cost[25]:.1f}, {cost[40]:.1f}",
        ),
        Claim(
            figure,
            "with a limit of 10 it is close to it, at times above",
            (close(cost[10], 10.0, NEAR), 0.0 < infeasible < 0.5),
            f"mean cost {cost[10]:.1f}; {infeasible:.0%} of the epochs above",
            "one seed; the cost is about half of every limit",
        ),
        Claim(
            figure,
            "return rises with the limit",
            (ret[0] < ret[1], ret[1] < ret[2]),
            ", ".join(f"{value:.2f}" for value in ret),
            "one seed each; seeds differ by more",
        ),
    ]


def references() -> list[Claim]:
    """Return the claims about other reference distributions."""
    group = {
        "Beta(2, 5)": steingate_rows(POINT_GOAL),
        "Beta(1, 10)": rows(grid="references", kind="beta-1-10", seed="0"),
        "logit-normal": rows(grid="references", kind="logit-normal", seed="0"),
    }
    cost = {name: average(own, "cost") for name, own in group.items()}
    ret = {name: average(own, "return") for name, own in group.items()}
    first, *others = cost.values()
    return [
        Claim(
            "references",
            "costs are much the same",
            tuple(close(value, first, SAME) for value in others),
            text(cost),
            "one seed; with Beta(1, 10) the gate opens less often",
        ),
        Claim(
            "references",
            "Beta(1, 10) earns least",
            (ret["Beta(1, 10)"] < min(ret["Beta(2, 5)"], ret["logit-normal"]),),
            text(ret),
        ),
    ]


def samples() -> list[Claim]:
    """Return the claims about episodes per epoch."""
    group = {
        "8": rows(grid="samples", kind="episodes-8", seed="0"),
        "16": steingate_rows(CAR_GOAL),
        "32": rows(grid="samples", kind="episodes-32", seed="0"),
    }
    numbers = {
        name: {count: average(own, name) for count, own in group.items()} for name in ("cost", "return", "cost_sd")
    }
    over = {count: 100.0 * (1.0 - average(own, "feasible_by_episode")) for count, own in group.items()}
    cost, ret, sd = numbers.values()
    figure = "episodes per epoch"
    return [
        Claim(
            figure,
            "8, 16 and 32 episodes are all safe",
            (max(cost.values()) < LIMIT, max(over.values()) < 100.0 * SAFE),
            f"mean costs {text(cost)}; violations in % {text(over, 0)}",
            "safe by the mean, not by the episode",
        ),
        Claim(
            figure,
            "32 are slightly more conservative",
            (ret["32"] < ret["16"], cost["32"] < cost["16"]),
            f"returns {text(ret)}",
        ),
        Claim(
            figure,
            "8 vary more",
            (sd["8"] > max(sd["16"], sd["32"]),),
            f"standard deviation of an epoch's mean cost {text(sd)}",
        ),
    ]


def velocity() -> list[Claim]:
    """Return the claims about velocity tasks."""
    group = rows(grid="velocity", seed="0")
    algos = ("cpo", "evo", *SAUTE, "steingate")
    feasible, early, ret, cost, over = (
        {algo: by_task(group, algo, name) for algo in algos}
        for name in ("feasible_by_epoch", "feasible_in_training", "return", "cost", "over")
    )
    stein, cpo, evo = feasible["steingate"], feasible["cpo"], feasible["evo"]
    best = {env: max(ret[algo][env] for algo in algos) for env in stein}
    relative = {env: ret["evo"][env] / value for env, value in ret["steingate"].items()}
    figure = "velocity tasks"
    return [
        Claim(
            figure,
            "SteinGate becomes feasible quickly and stays so",
            (
                min(early["steingate"].values()) > 1.0 - SAFE,
                min(stein.values()) > FEASIBLE,
                max(over["steingate"].values()) < 100.0 * SAFE,
            ),
            f"feasible epochs of all training {text(early['steingate'], 2)}; violations in % "
            f"{text(over['steingate'], 0)}",
            "Swimmer starts at ten times the limit with every method",
        ),
        Claim(
            figure,
            "CPO oscillates and violates often, most on Ant and HalfCheetah",
            (
                max(cpo["Ant"], cpo["HalfCheetah"]) < FEASIBLE,
                set(sorted(cpo, key=cpo.__getitem__)[:2]) == {"Ant", "HalfCheetah"},
            ),
            f"feasible epochs {text(cpo, 2)}",
        ),
        Claim(
            figure,
            "EVO is safe and earns less than SteinGate, most clearly on Humanoid",
            (
                min(evo.values()) > FEASIBLE and max(over["evo"].values()) < 100.0 * SAFE,
                max(relative.values()) < 1.0,
                relative["Humanoid"] == min(relative.values()),
            ),
            "returns below",
            "a million steps are only the beginning on Humanoid",
        ),
        Claim(
            figure,
            "Sauté and Simmer are safer than CPO, but near the limit with some violations",
            (
                all(mean(feasible[algo].values()) > mean(cpo.values()) for algo in SAUTE),
                all(close(value, LIMIT, NEAR) for algo in SAUTE for value in cost[algo].values()),
                all(max(over[algo].values()) > 0.0 for algo in SAUTE),
            ),
            "mean costs below",
            "one seed of a million steps",
        ),
        Claim(
            figure,
            "SteinGate's return is competitive",
            tuple(ret["steingate"][env] >= (1.0 - NEAR) * value for env, value in best.items()),
            "returns below",
            "on Swimmer it recovers in half of the epochs",
        ),
    ]


def baselines() -> list[Claim]:
    """Return the claims about further baselines."""
    group = rows(grid="baselines", seed="0")
    lagrangian, saute = ("ppo-lag", "trpo-lag"), ("ppo-saute", "ppo-simmer")
    cost = {algo: by_task(group, algo, "cost") for algo in (*lagrangian, *saute)}
    feasible = {algo: by_task(group, algo, "feasible_in_training") for algo in saute}
    envs = list(cost["ppo-lag"])
    figure = "further baselines"
    return [
        Claim(
            figure,
            "PPO-Lag and TRPO-Lag stay above the limit",
            tuple(cost[algo][env] > LIMIT for algo in lagrangian for env in envs),
            "mean costs below",
            "the multiplier needs millions of steps on the Goal tasks and is already large on Circle",
        ),
        Claim(
            figure,
            "PPO-Sauté and PPO-Simmer exceed it by less",
            tuple(
                mean(cost[algo][env] for algo in saute) < mean(cost[algo][env] for algo in lagrangian) for env in envs
            ),
            "mean costs below",
            "not on PointCircle1, where the multipliers have risen by then",
        ),
        Claim(
            figure,
            "PPO-Sauté and PPO-Simmer exceed it often",
            tuple(value < 1.0 - SAFE for own in feasible.values() for value in own.values()),
            f"feasible epochs of PPO-Simmer {text(feasible['ppo-simmer'], 2)}",
            "not Simmer on CarCircle1, which learns slowly there",
        ),
        compare_with_steingate(figure, group, "SteinGate's cost follows the limit closely", near_limit=True),
    ]


def variants() -> list[Claim]:
    """Return the claims about variants of CPO."""
    group = rows(grid="cpo-variants", seed="0")
    cost = {algo: by_task(group, algo, "cost") for algo in ("cpo", "rcpo", "pcpo")}
    figure = "variants of CPO"
    return [
        Claim(
            figure,
            "CPO, RCPO and PCPO stay near the limit or above it",
            tuple(value > (1.0 - NEAR) * LIMIT for own in cost.values() for value in own.values()),
            "mean costs below",
            "RCPO equals TRPO-Lag here, whose multiplier is already too large on the Circle tasks",
        ),
        compare_with_steingate(figure, group, "SteinGate's cost is lower on every task", near_limit=False),
    ]


def compare_with_steingate(figure: str, group: Sequence[Row], statement: str, near_limit: bool) -> Claim:
    """Return a claim about SteinGate's cost and return in its first million steps."""
    stein = rows(grid="first-million")
    algos = sorted({row["algo"] for row in group})
    cost, ret = (by_task(stein, "steingate", name) for name in ("cost", "return"))
    others = {algo: by_task(group, algo, "cost") for algo in algos}
    best = {env: max(by_task(group, algo, "return")[env] for algo in algos) for env in ret}
    held = [
        close(cost[env], LIMIT, NEAR) if near_limit else all(cost[env] < others[algo][env] for algo in algos)
        for env in ret
    ]
    return Claim(
        figure,
        f"{statement}, and its return is competitive",
        (*held, *(ret[env] >= (1.0 - NEAR) * value for env, value in best.items())),
        "costs and returns below",
        "after a million steps SteinGate has hardly begun on the Goal tasks",
    )


def paper_return(cell: Cell) -> float:
    """Return the paper's feasible return."""
    assert cell.paper is not None
    return cell.paper.ret


def differences() -> str:
    """Return where our numbers and the paper's have disjoint intervals, as a list."""
    cells = [cell for cell in table1_cells().values() if cell.paper is not None and cell.algo in METHODS]
    by_epoch = [f"{task(cell.env)} {cell.algo}" for cell in cells if cell.differences]
    by_episode = [f"{task(cell.env)} {cell.algo}" for cell in cells if cell.differs_by_episode]
    same = [f"{task(cell.env)} {cell.algo}" for cell in cells if not cell.differs_by_episode]
    return "\n".join(
        [
            "- **Counted by epoch**, as the paper's table seems to be: "
            f"{len(by_epoch)} of {len(cells)} rows differ" + (f" ({', '.join(by_epoch)})." if by_epoch else "."),
            f"- **Counted by episode**, as the paper's text defines tail feasibility: {len(by_episode)} of "
            f"{len(cells)} rows differ, all but {', '.join(same)}.",
        ]
    )


class Setting(NamedTuple):
    """A setting in the paper's appendix and its counterpart here."""

    method: str
    paper_name: str
    paper_value: float
    name: str
    value: float


def paper_settings() -> list[Setting]:
    """Return the paper's settings of the certificate and of EVO beside those of ``--variant published``."""
    published = {"variant": "published"}
    gate = SteinCertificate.from_name(make_algorithm("steingate", TASKS[0], published).preset, LIMIT)
    evo = make_algorithm("evo", TASKS[0], published)
    return [
        Setting("steingate", "alpha", 2.0, "reference.a", gate.reference.a),
        Setting("steingate", "beta", 5.0, "reference.b", gate.reference.b),
        Setting("steingate", "u_norm", 0.5, "risk_threshold", gate.risk_function.threshold),
        Setting("steingate", "eta", 0.02, "risk_width", gate.risk_function.width),
        Setting("steingate", "eps_target", 0.1, "budget", gate.budget),
        Setting("steingate", "discrete_weight", 1.0, "discrete_weight", gate.discrete_weight),
        Setting("steingate", "stein_factor", 0.1, "stein_factor", gate.stein_factor),
        Setting("steingate", "min_bandwidth", 0.05, "min_bandwidth", gate.min_bandwidth),
        Setting("steingate", "interior_clip", 1e-5, "interior_clip", gate.interior_clip),
        Setting("evo", "use_cost_buffer", True, "extreme.capacity > 0", evo.extreme.capacity > 0),
        Setting("evo", "use_reward_buffer", True, "variant = published", evo.is_published),
        Setting("evo", "cost_buffer_size", 50, "extreme.capacity", evo.extreme.capacity),
        Setting("evo", "cost_buffer_percentile", 95, "extreme.percentile", evo.extreme.percentile),
        Setting("evo", "initial_distribution_percentile", 0.5, "extreme.quantile", evo.extreme.quantile),
        Setting("evo", "reward_buffer_size", 100, "replay.buffer", evo.replay.buffer),
        Setting("evo", "reward_buffer_percentile", 90, "replay.percentile", evo.replay.percentile),
        Setting("evo", "initial_distribution_reward_percentile", 0.5, "replay.quantile", evo.replay.quantile),
        Setting("evo", "oversample_factor", 4, "replay.copies", evo.replay.copies),
    ]
