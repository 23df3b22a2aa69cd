"""Generate every table of the documentation: ``python docs/build_tables.py [PAGE...]``.

A generated block of a page stands between ``<!-- NAME -->`` and ``<!-- end -->``. docs/algorithms.md and
docs/reference/commands.md are generated as a whole.
"""

import argparse
import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from statistics import mean, stdev

import numpy as np
import numpy.typing as npt
from claims import all_claims, differences
from scipy.special import expit
from scipy.stats import beta as beta_distribution
from summary import (
    METHODS,
    TASKS,
    Row,
    column,
    markdown_table,
    over_limit,
    rows,
    table1_cells,
)

from steingate import SteinCertificate
from steingate.algorithms import ALGORITHMS
from steingate.certificates.formatting import upper
from steingate.certificates.kernels import Kernel, stein_kernel
from steingate.certificates.reference import Beta
from steingate.certificates.violation import episodes_needed
from steingate.cli import COMMANDS, load_command
from steingate.experiments.grid import plan_runs
from steingate.experiments.grids import GRIDS
from steingate.policies.zoo import zoo_entries
from steingate.report.tables import task
from steingate.settings import list_options
from steingate.tasks.catalog import TASKS as NATIVE_TASKS

ROOT = Path(__file__).parents[1]
END = "<!-- end -->"
Array = npt.NDArray[np.float64]


def fill_blocks(page: str, blocks: Mapping[str, str]) -> str:
    """Return a page with its named blocks replaced; each name must occur exactly once."""
    for name, text in blocks.items():
        start = f"<!-- {name} -->\n"
        if page.count(start) != 1:
            raise ValueError(f"The page has {page.count(start)} blocks named {name!r}, not one.")
        before, _, rest = page.partition(start)
        page = f"{before}{start}{text}\n{rest[rest.index(END) :]}"
    return page


# Training results: README.md, docs/reproduction.md, docs/allowance.md, docs/learning.md, docs/published.md


def results_table() -> str:
    """Return the README's table: mean return and violation rate by method and task."""
    cells = table1_cells()
    lines = []
    for algo in METHODS:
        own = [cells[env, algo] for env in TASKS]
        shown = [f"{cell.ret.value:.1f} · {100 * cell.over.value:.1f}\N{NO-BREAK SPACE}%" for cell in own]
        lines.append([f"**{algo}**" if algo == "allowance" else algo, str(own[0].seeds), *shown])
    paper = [f"{cells[env, 'steingate'].paper.ret:.2f} · –" for env in TASKS]  # type: ignore[union-attr]
    lines.append(["*SteinGate in the paper (feasible return)*", "6", *paper])
    return markdown_table(("return · violation rate", "seeds", *map(task, TASKS)), lines)


def equal_table() -> str:
    """Return the runs with equal inputs: return, violation rate, mean cost and seeds by method and task."""
    stored = rows(grid="equal")
    envs = [env for env in TASKS if any(row["env"] == env for row in stored)]
    groups: dict[tuple[str, str], list[Row]] = {}
    for row in (*stored, *rows(grid="allowance")):
        groups.setdefault((row["algo"], row["kind"].removeprefix("limit-")), []).append(row)
    lines = []
    for (algo, trained), group in groups.items():
        cells = [[row for row in group if row["env"] == env] for env in envs]
        name = f"**{algo}**" if algo == "allowance" else algo
        lines.append([f"{name}, trained for a limit of {trained}" if trained else name, *map(equal_cell, cells)])
    violations = {line[0]: mean(map(over_limit, group)) for line, group in zip(lines, groups.values(), strict=True)}
    lines.sort(key=lambda line: violations[line[0]], reverse=True)
    return markdown_table(("return · violation rate · mean cost (seeds)", *map(task, envs)), lines)


def equal_cell(group: Sequence[Row]) -> str:
    """Return the means over the seeds of one method on one task."""
    if not group:
        return "–"
    ret, cost = column(group, "return").mean(), column(group, "cost").mean()
    rate = f"{100.0 * mean(column(group, 'over_count') / column(group, 'episodes')):.1f}\N{NO-BREAK SPACE}%"
    return f"{ret:.1f} · {rate} · {cost:.1f} ({len(group)})"


def speed_table() -> str:
    """Return training speeds by task, for docs/results.md."""
    lines = [
        [task(row["task"]), f"{int(row['steps_per_s']):,}", f"{float(row['ratio']):.2f}"]
        for row in rows("bench_train.csv")
    ]
    return markdown_table(("task", "steps/s in training", "epoch time / time of bare MuJoCo steps"), lines)


def speed_range() -> str:
    """Return the README's sentence about training speeds."""
    table = sorted(rows("bench_train.csv"), key=lambda row: int(row["steps_per_s"]))
    low, high = (f"{int(row['steps_per_s']):,} ({task(row['task'])})" for row in (table[0], table[-1]))
    return f"Training takes {low} to {high} steps per second on two virtual cores ([all tasks](docs/results.md))."


def table1() -> str:
    """Return Table 1 counted by epoch and by episode beside the paper's numbers; disjoint intervals are bold."""
    headings = (
        "method", "feasible epochs", "paper", "feasible return", "paper", "feasible episodes",
    )  # fmt: skip
    cells, lines = table1_cells(), []
    for env in TASKS:
        lines.append([f"**{task(env)}**", *[""] * (len(headings) - 1)])
        for cell in (cells[env, algo] for algo in METHODS if algo != "allowance"):
            epochs, ret = (
                f"**{shown}**" if name in cell.differences else shown
                for name, shown in (("epochs", cell.epochs.text(3)), ("return", cell.epoch_return.text(1)))
            )
            paper = (f"{cell.paper.feasibility:.3f}", f"{cell.paper.ret:.2f}")
            lines.append([cell.algo, epochs, paper[0], ret, paper[1], cell.episodes.text(3)])
    return markdown_table(headings, lines)


def claims_table() -> str:
    """Return the paper's statements beside the stored runs."""
    lines = []
    for claim in all_claims():
        comment = f" ({claim.reason})" if claim.verdict != "yes" else ""
        lines.append((claim.figure, claim.statement, claim.verdict, claim.numbers + comment))
    return markdown_table(("figure", "the paper", "agrees", "our numbers"), lines, left=4)


def single_runs(*grids: str) -> str:
    """Return a line per run of some grids: return, cost, violation rate, feasible epochs."""
    lines = []
    for row in (row for grid in grids for row in rows(grid=grid)):
        lines.append([
            row["kind"] or row["grid"], task(row["env"]), f"{float(row['return']):.1f}",
            f"{float(row['cost']):.1f}", f"{100.0 * over_limit(row):.1f} %",
            f"{float(row['feasible_by_epoch']):.2f}",
        ])  # fmt: skip
    return markdown_table(("run", "task", "return", "cost", "violations", "feasible epochs"), lines, left=2)


def methods_by_task(*grids: str) -> str:
    """Return return, cost and violation rate of the methods of some grids on each task."""
    return methods_table([row | {"over_limit": over_limit(row)} for grid in grids for row in rows(grid=grid)])


def methods_table(group: Sequence[Mapping[str, str | float]]) -> str:
    """Return a line per method: return, cost and violation rate on each task."""
    found = {
        (row["algo"], row["env"]): (
            f"{float(row['return']):.1f} · {float(row['cost']):.0f} · {100.0 * float(row['over_limit']):.0f} %"
        )
        for row in group
    }
    algos, envs = (list(dict.fromkeys(str(row[name]) for row in group)) for name in ("algo", "env"))
    lines = [[f"`{algo}`", *(found[algo, env] for env in envs)] for algo in algos]
    return markdown_table(("return · cost · violations", *(task(env).removesuffix("Velocity") for env in envs)), lines)


def allowance_table() -> str:
    """Return the runs of the allowance by task: median and range over seeds."""
    headings = (
        "task", "return", "mean cost", "violation rate", "highest mean cost", "noise-free return",
        "noise-free violation rate", "upper bound",
    )  # fmt: skip
    lines = []
    for env in TASKS:
        runs, ends = rows(grid="allowance", env=env), rows("endpoints.csv", grid="allowance", env=env)
        over = 100.0 * (1.0 - column(runs, "feasible_by_episode"))
        end_over = 100.0 * column(ends, "over") / column(ends, "episodes")
        lines.append([
            task(env), median_and_range(column(runs, "return")), median_and_range(column(runs, "cost")),
            f"{median_and_range(over)} %", f"{column(runs, 'highest_mean_cost').max():.0f}",
            median_and_range(column(ends, "return")), f"{median_and_range(end_over)} %",
            f"{100.0 * column(ends, 'at_most').max():.1f} %",
        ])  # fmt: skip
    return markdown_table(headings, lines)


def controller_blocks() -> dict[str, str]:
    """Return the simulated errors of the schedule of m, and where it settles."""
    found = {(row["claim"], row["setting"]): float(row["value"]) for row in rows("controller_simulations.csv")}
    titles = {
        "wrong growth": "wrong growth, violation rate",
        "growth at the risk": "growth, violation rate always at the risk,",
    }
    errors = [
        [f"{titles[claim]} {setting}", f"{100.0 * value:.1f} %"]
        for (claim, setting), value in found.items()
        if claim in titles
    ]
    errors += [
        [f"episodes to a false alarm, updates every {n}", f"{found['episodes to a false alarm', n]:,.0f}"]
        for n in ("1", "128")
    ]
    rest = []
    for rate in dict.fromkeys(setting.split(";")[0] for claim, setting in found if claim == "m at rest"):
        settings = (f"{rate}; 128", f"{rate}; 128; spend")
        names = ("rate at rest", "m at rest", "time above the risk")
        values = [[found[name, setting] for name in names] for setting in settings]
        rest.append([rate, *(f"{level:.2f} ({m:.2f}; {100.0 * above:.1f} %)" for level, m, above in values)])
    return {
        "errors": markdown_table(("simulation", "result"), errors),
        "rest": markdown_table(("violation rate", "default (mean m; time above B)", "with `spend`"), rest),
    }


def median_and_range(values: Array) -> str:
    """Return ``median (lowest-highest)``."""
    return f"{np.median(values):.1f} ({values.min():.1f}–{values.max():.1f})"


def unseen_table() -> str:
    """Return the allowance on tasks that were not used to choose its settings."""
    lines = [
        [
            task(run["env"]), f"{float(run['return']):.1f}", f"{float(run['cost']):.1f}",
            f"{100.0 * over_limit(run):.1f} %", f"{float(run['highest_mean_cost']):.0f}",
        ]
        for run in rows(grid="unseen")
    ]  # fmt: skip
    return markdown_table(("task", "return", "mean cost", "violation rate", "highest mean cost"), lines)


def on_policy_table() -> str:
    """Return noise-free last policies beside OmniSafe's on-policy table."""
    ends = [row for row in rows("endpoints.csv") if row["kind"] != "corrected"]
    lines = []
    for env in (TASKS[0], TASKS[2]):
        for theirs in rows("omnisafe_endpoints.csv", table="on-policy", env=env):
            own = [row for row in ends if (row["env"], row["algo"]) == (env, theirs["algo"])]
            if own:
                ours = [mean_and_sd(column(own, name)) for name in ("return", "cost")]
                known = [f"{theirs[name]} ± {theirs[f'{name}_sd']}" for name in ("return", "cost")]
                lines.append([task(env), f"`{theirs['algo']}`", str(len(own)), ours[0], known[0], ours[1], known[1]])
    headings = ("task", "method", "seeds", "return", "OmniSafe", "cost", "OmniSafe")
    return markdown_table(headings, lines, left=2)


def off_policy_table() -> str:
    """Return OmniSafe's off-policy table and our noise-free last policies on the four navigation tasks."""
    lines = []
    for algo in dict.fromkeys(row["algo"] for row in rows("omnisafe_endpoints.csv", table="off-policy")):
        known = [rows("omnisafe_endpoints.csv", table="off-policy", algo=algo, env=env)[0] for env in TASKS]
        steps = float(known[0]["steps"]) / 1e6
        lines.append([algo, "OmniSafe", f"{steps:g}M", *[f"{row['return']} · {row['cost']}" for row in known]])
    for algo, grid in (("cpo", "table1"), ("steingate", "table1"), ("allowance", "allowance")):
        groups = [rows("endpoints.csv", grid=grid, algo=algo, env=env) for env in TASKS]
        cells = [f"{mean(column(group, 'return')):.2f} · {mean(column(group, 'cost')):.2f}" for group in groups]
        lines.append([algo, "here", "10M", *cells])
    return markdown_table(("return · cost", "from", "steps", *map(task, TASKS)), lines, left=3)


def mean_and_sd(values: Array) -> str:
    """Return the mean, and the standard deviation if there are several values."""
    return f"{mean(values):.2f}" + (f" ± {stdev(values):.2f}" if len(values) > 1 else "")


# docs/certificate.md and docs/stein_certificate.md

LIMIT = 25.0
PRESETS = ("paper", "released", "corrected")


@cache
def preset(name: str) -> SteinCertificate:
    """Return a certificate with the page's limit."""
    return SteinCertificate.from_name(name, LIMIT)


def example_costs() -> Array:
    """Return 200 episode costs: one in ten is zero, three are far over the limit."""
    rng = np.random.default_rng(7)
    costs = 50.0 * rng.beta(2.0, 6.8, 200)
    costs[:20], costs[20:23] = 0.0, rng.uniform(52.0, 80.0, 3)
    return rng.permutation(costs)


@cache
def interior_noise(name: str, n: int, repeats: int = 500) -> tuple[float, ...]:
    """Return the 5, 50 and 95 % quantiles of the interior term for costs drawn from the reference."""
    certificate, rng = preset(name), np.random.default_rng(n)
    costs = (certificate.scale * rng.beta(certificate.interior.a, certificate.interior.b, n) for _ in range(repeats))
    terms = [certificate.evaluate(sample).interior_term for sample in costs]
    return tuple(np.quantile(terms, [0.05, 0.5, 0.95]))


@cache
def mixtures(count: int = 400) -> tuple[Array, Array]:
    """Return quadrature nodes on (0, 1) and the weighted densities of random mixtures of three Betas."""
    t, weight = np.polynomial.legendre.leggauss(500)
    x = expit(17.0 * t)
    rng = np.random.default_rng(11)
    shapes = rng.uniform(1.2, 12.0, (2, 3, count))
    weights = rng.dirichlet(np.ones(3), count).T
    q = (weights * beta_distribution.pdf(x[:, None, None], *shapes)).sum(axis=1)
    q *= (17.0 * weight * x * (1.0 - x))[:, None]
    return x, q / q.sum(axis=0)


@cache
def mixture_bounds(name: str) -> tuple[Array, Array]:
    """Return, for each mixture, its risk above the reference's and the interior term that should bound it."""
    certificate, (x, q) = preset(name), mixtures()
    kernel = certificate.base_kernel or Kernel("rbf", 0.05)
    u = stein_kernel(x, x, certificate.interior, kernel, certificate.operator)
    discrepancy = np.sqrt(np.maximum((q * (u @ q)).sum(axis=0), 0.0))
    return certificate.risk_function(x) @ q - certificate.reference_risk, certificate.factor * discrepancy


def certificate_blocks() -> dict[str, str]:
    """Return the blocks of docs/certificate.md."""
    needed = [
        [f"{risk:g}", *(str(episodes_needed(risk, confidence)) for confidence in (0.9, 0.95, 0.99))]
        for risk in (0.1, 0.05, 0.01)
    ]
    simulated = {(row["bound"], row["setting"]): row for row in rows("bound_coverage.csv")}
    coverage = []
    for bound in dict.fromkeys(bound for bound, setting in simulated if setting.endswith("episodes")):
        own = [simulated[bound, f"{n} episodes"] for n in (100, 500)]
        cells = [f"{float(row['typical']):.1f} ({100.0 * float(row['wrong']):.1f} %)" for row in own]
        coverage.append([bound, f"{float(own[1]['truth']):.1f}", *cells])
    alone, clustered = (
        100.0 * float(simulated[f"{name}, risk 0.1", "50 clusters of 10, correlation 0.33"]["wrong"])
        for name in ("certify", "certify_clusters")
    )
    return {
        "coverage": markdown_table(("bound", "truth", "median bound (wrong), 100 episodes", "500 episodes"), coverage),
        "clusters": (
            "With 50 clusters of 10 and correlation 0.33 at a true rate of 10 %, `certify` is wrong in "
            f"{alone:.1f} % without and in {clustered:.1f} % with `clusters`."
        ),
        "episodes": markdown_table(("risk", "90 %", "95 %", "99 %"), needed),
    }


def stein_certificate_blocks() -> dict[str, str]:
    """Return the blocks of docs/stein_certificate.md."""
    decisions = []
    for name in PRESETS:
        result = preset(name).evaluate(example_costs())
        values = (
            result.reference_risk, result.discrete_term, result.interior_term, result.bound,
            result.decision_value,
        )  # fmt: skip
        decisions.append([f"`{name}`", *(f"{value:.3f}" for value in values), "yes" if result.is_open else "no"])
    lengths = (0.05, 0.1, 0.2)
    factors = [SteinCertificate(LIMIT, reference=Beta(2, 5), kernel_length=length).factor for length in lengths]
    wrong = {name: np.sum(np.less(bound, excess - 1e-9)) for name in ("released", "corrected")
             for excess, bound in [mixture_bounds(name)]}  # fmt: skip
    valid = preset("corrected")
    return {
        "verdicts": markdown_table(
            ("", "reference risk", "+ discrete", "+ interior", "U", "compared with 0.1", "accepted"),
            decisions,
        ),
        "corrected": (
            f"At a budget of 0.1 this gives {valid.reference_name}, whose risk is "
            f"{valid.reference_risk:.3f}, and the factor {valid.factor:.4f}."
        ),
        "factor": (
            "For the boundary-weighted Matérn-5/2 kernel and Beta(2, 5) the smallest valid factor is "
            f"{min(factors):.2f} to {max(factors):.2f} for lengths of {lengths[0]} to "
            f"{lengths[-1]}. Of {mixtures()[1].shape[1]} random "
            "mixtures of three Beta densities, the interior term is below the true difference in risk for "
            f"{wrong['released']} with the published factor 0.1, and for {wrong['corrected']} with the valid factor "
            "(right panel)."
        ),
    }


# docs/monitoring.md, docs/guarantees.md


def monitoring_blocks() -> dict[str, str]:
    """Return the block of docs/monitoring.md."""
    prices = [
        [row["budget"], row["risk"]]
        + [f"{row[f'{rule}_median']} / {row[f'{rule}_q90']}" for rule in ("monitor", "fixed")]
        for row in rows("monitor_price.csv")
    ]
    headings = ("budget", "true rate", "`Monitor`, median / 90 %", "fixed sample, power 50 / 90 %")
    return {"price": markdown_table(headings, prices)}


def guarantees_blocks() -> dict[str, str]:
    """Return the block of docs/guarantees.md, from the stored numbers."""
    stored = rows("monitor_simulations.csv", claim="wrong certificate")
    lines = [[row["setting"], f"{100.0 * float(row['value']):.1f} %"] for row in stored]
    return {"dependence": markdown_table(("episodes", "wrong certificates"), lines)}


# docs/zoo.md


def zoo_blocks() -> dict[str, str]:
    """Return the blocks of docs/zoo.md: numbers and training settings of the policies, and a film of each task."""
    entries = [entry for name in NATIVE_TASKS for entry in zoo_entries() if entry.task == name]
    lines = [
        [
            f"`{entry.task}/{entry.algo}`", f"{entry.violations} of {entry.episodes}", upper(entry.bound),
            f"{entry.cost_limit:g}", entry.return_text,
            f"`{entry.command.partition(f'--algo {entry.algo} ')[2]}`",
        ]
        for entry in entries
    ]  # fmt: skip
    return {
        "zoo": markdown_table(("`zoo:`", "violations", "bound", "limit", "return", "trained with"), lines),
        "films": "\n\n".join(
            f"*{name}*\n\n![{name}](zoo/{name}.gif)" for name in dict.fromkeys(e.task for e in entries)
        ),
    }


# docs/install.md, docs/grids.md


def install_commands() -> str:
    """Return the commands that install the package, from docs/install.md."""
    page = (ROOT / "docs" / "install.md").read_text(encoding="utf-8")
    return page.partition("<!-- install -->\n")[2].partition(f"\n{END}")[0]


def install_table() -> str:
    """Return installed sizes by extra and Python version."""
    table = rows("install_sizes.csv")
    pythons = list(dict.fromkeys(row["python"] for row in table))
    lines = []
    for extra in dict.fromkeys(row["extra"] for row in table):
        own = {row["python"]: row for row in table if row["extra"] == extra}
        sizes = [f"{own[python]['mb']} MB" if python in own else "–" for python in pythons]
        name = f"`steingate{f'[{extra}]' if extra else ''}`"
        lines.append([name, next(iter(own.values()))["packages"], *sizes])
    return markdown_table(("installed", "packages", *(f"Python {python}" for python in pythons)), lines)


def grids_table() -> str:
    """Return the built-in grids with their number of runs."""
    lines = []
    for name, grid in GRIDS.items():
        lines.append([f"`{name}`", grid.summary, str(len(plan_runs(grid, grid.sizes)))])
    return markdown_table(("grid", "compares", "runs"), lines, left=2)


# docs/algorithms.md

ALGORITHMS_PAGE = """# Algorithms

`steingate train --algo NAME` selects an algorithm ([which one?](choose.md)). `steingate algos NAME` lists its settings,
which are options of `steingate train`, keys of a TOML file and keyword arguments of `steingate.train`. Each algorithm
is one file in `steingate.algorithms`; [add your own](howto/own_method.md).

`--variant corrected` (the default) fixes known errors of published code; `--variant published` reproduces published
behavior. Where neither is described, both are the same. Settings published for single tasks are used automatically.
"""


def algorithms_page() -> str:
    """Return docs/algorithms.md; algorithms of one paper and with the same variants link to the first."""
    parts, known = [ALGORITHMS_PAGE], dict[tuple[str, str, str], str]()
    for name, info in ((name, kind.info) for name, kind in ALGORITHMS.items()):
        first = known.setdefault((info.paper, info.published, info.corrected), name)
        same = info.corrected.startswith("nothing: both variants are the same")
        parts.append(f"## {name}\n\n{sentence(info.summary)}")
        if info.inputs:
            parts[-1] += f" Extra policy inputs: {info.inputs.strip('()')}."
        if first == name:
            parts[-1] += f" {sentence(info.paper)}"
        elif not same:
            parts[-1] += f" Paper and variants: as for [`{first}`](#{first})."
        if first == name and not same:
            parts[-1] += f"\n\n- `published`: {info.published}.\n- `corrected`: {info.corrected}."
        parts[-1] += "\n"
    parts += ["## Shared settings\n", shared_settings(), "\n## Settings for single tasks\n", task_settings()]
    return re.sub(r"docs/(\w+)\.md", r"[\1](\1.md)", "\n".join(parts)) + "\n"


def sentence(text: str) -> str:
    """Return a text with a capital letter and a full stop."""
    return f"{text[0].upper()}{text[1:].rstrip('.')}."


def shared_settings() -> str:
    """Return the settings that several algorithms have, with defaults."""
    settings = {name: {item.name: item.value for item in list_options(kind())} for name, kind in ALGORITHMS.items()}
    common = {name for name in settings["trpo"] if all(name in own for own in settings.values())}
    rows = {
        "all": common,
        "with a trust region": settings["trpo"].keys() - common,
        "with PPO's update": settings["ppo"].keys() - common,
        "with a cost critic": settings["cpo"].keys() - settings["trpo"].keys(),
    }
    known = settings["ppo"] | settings["cpo"]
    lines = []
    for title, names in rows.items():
        values = {name: "none" if value is None else value for name, value in known.items() if name in names}
        lines.append([title, ", ".join(f"`{name}={value}`" for name, value in values.items())])
    return markdown_table(("algorithms", "settings"), lines, left=2)


def task_settings() -> str:
    """Return settings that algorithms use on single tasks, one line for equal settings."""
    found = dict[str, dict[str, list[str]]]()
    for name, kind in ALGORITHMS.items():
        for env in TASKS:
            if values := kind.published_options(env, "corrected"):
                text = ", ".join(f"`{key}={value}`" for key, value in values.items())
                found.setdefault(text, {}).setdefault(f"`{name}`", []).append(task(env))
    lines = [[", ".join(own), ", ".join(next(iter(own.values()))), text] for text, own in found.items()]
    return markdown_table(("algorithms", "tasks", "settings"), lines, left=3)


# docs/reference/commands.md


def commands_page() -> str:
    """Return the reference of the command line, from the argument parsers."""
    head = "# Commands\n\n`steingate COMMAND --help` prints the same. Errors print one line, status 2.\n"
    parts = [(name,) for name in COMMANDS]
    at = parts.index(("evidence",)) + 1
    parts[at:at] = [("evidence", "plan"), ("evidence", "verify")]
    return head + "".join(command_section(*words) for words in parts)


def command_section(name: str, *words: str) -> str:
    """Return the options of one command by group; ``words`` is the rest of its name."""
    _, parser = load_command(name, words)
    lines = [f"\n## {parser.prog}\n", f"{parser.description}\n"]
    for group in parser._action_groups:
        options = [option_line(action) for action in group._group_actions if action.dest != "help"]
        if options:
            title = {"positional arguments": "", "options": ""}.get(group.title or "", group.title)
            lines += [*([f"**{title}**\n"] if title else []), *options, ""]
    if parser.epilog:
        lines.append(f"```text\n{parser.epilog.strip()}\n```\n")
    return "\n".join(lines)


def option_line(action: argparse.Action) -> str:
    """Return an option with its help as an item of a list."""
    names = ", ".join(action.option_strings)
    if isinstance(action, argparse.BooleanOptionalAction):
        names = f"--[no-]{action.option_strings[0].removeprefix('--')}"
    choices = f"{{{','.join(map(str, action.choices))}}}" if action.choices else action.dest
    takes = "" if action.nargs == 0 else f" {action.metavar or choices}"
    text = (action.help or "").replace("%%", "%").replace("%(default)s", str(action.default))
    return f"- `{(names + takes).strip()}`: {text}"


# All pages

Writer = Callable[[], Mapping[str, str]]
BLOCKS: dict[str, Writer] = {
    "README.md": lambda: {
        "install": install_commands(),
        "equal": equal_table(),
        "results": results_table(),
        "speed": speed_range(),
    },
    "docs/reproduction.md": lambda: {
        "differences": differences(),
        "table1": table1(),
        "claims": claims_table(),
        "ablations": single_runs("limits", "references", "samples", "circle2"),
        "velocity": methods_by_task("velocity"),
        "baselines": methods_by_task("baselines", "cpo-variants", "first-million"),
        "gates": single_runs("gates"),
    },
    "docs/allowance.md": lambda: {
        "allowance": allowance_table(),
        "unseen": unseen_table(),
        **controller_blocks(),
    },
    "docs/learning.md": lambda: {
        variant: methods_table(rows("learning.csv", variant=variant)) for variant in ("corrected", "published")
    },
    "docs/published.md": lambda: {"on-policy": on_policy_table(), "off-policy": off_policy_table()},
    "docs/results.md": lambda: {"speed": speed_table()},
    "docs/install.md": lambda: {"sizes": install_table()},
    "docs/grids.md": lambda: {"grids": grids_table()},
    "docs/zoo.md": zoo_blocks,
    "docs/monitoring.md": monitoring_blocks,
    "docs/guarantees.md": guarantees_blocks,
    "docs/certificate.md": certificate_blocks,
    "docs/stein_certificate.md": stein_certificate_blocks,
}
PAGES: dict[str, Callable[[], str]] = {
    "docs/algorithms.md": algorithms_page,
    "docs/reference/commands.md": commands_page,
}


def generate(name: str) -> str:
    """Return the current text of a page."""
    if name in PAGES:
        return PAGES[name]()
    return fill_blocks((ROOT / name).read_text(encoding="utf-8"), BLOCKS[name]())


def main() -> None:
    """Write the pages."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("pages", nargs="*", metavar="PAGE", help=f"one of {', '.join([*BLOCKS, *PAGES])}")
    for name in options.parse_args().pages or [*BLOCKS, *PAGES]:
        text = generate(name)
        if text != (ROOT / name).read_text(encoding="utf-8"):
            (ROOT / name).write_text(text, encoding="utf-8")
            print(f"wrote {name}")


if __name__ == "__main__":
    main()
