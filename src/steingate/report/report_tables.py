"""The tables of a report: which numbers they show, how those are written, and the tables as files."""

from collections.abc import Callable, Sequence
from dataclasses import fields
from math import isfinite
from pathlib import Path

from steingate.errors import InputError
from steingate.report.aggregates import Aggregate, Overall
from steingate.report.evidence import Comparison, Evidence
from steingate.report.formats import Table, to_csv, to_latex, to_markdown, write_text
from steingate.report.published import SEEDS, STEPS, in_table
from steingate.report.seeds import Estimate
from steingate.report.summary import Summary

NONE = "–"


def write_tables(evidence: Evidence, path: str | Path) -> None:
    """Write a report's tables: all of them as .md or .tex, or every number as one .csv."""
    target = Path(path)
    suffix = target.suffix.lower()
    if suffix not in (".md", ".csv", ".tex"):
        raise InputError(f"A table cannot be written to {str(path)!r}; end the name with .md, .csv or .tex.")
    if suffix == ".csv":
        write_text(target, to_csv(full_table(evidence.summaries)))
        return
    write = to_markdown if suffix == ".md" else to_latex
    write_text(target, "\n".join(write(table) for table in report_tables(evidence)))


def report_tables(evidence: Evidence) -> list[Table]:
    """Return the tables of a report, the paper's first; none without runs."""
    summaries = evidence.summaries
    if not summaries:
        return []
    tables = [feasibility_table(summaries), tail_table(summaries), gate_table(summaries)]
    if evidence.overall.standings:
        tables.append(overall_table(evidence.overall))
    if evidence.comparisons:
        tables.append(comparison_table(evidence.comparisons))
    return tables


def feasibility_table(summaries: Sequence[Summary]) -> Table:
    """Return the paper's table: tail feasibility and feasible return, both readings.

    The paper's own numbers stand beside where any of the rows has them.
    """
    paper = any(item.paper for item in summaries)
    columns: list[tuple[str, Callable[[Summary], str], bool]] = [
        ("task", lambda item: task(item.env), True),
        ("algorithm", lambda item: item.label, True),
        ("seeds", _seeds, True),
        ("steps", lambda item: steps(item.steps), True),
        ("feasible episodes", lambda item: number(item.episode_feasibility, 3), True),
        ("their return", lambda item: number(item.episode_return), True),
        ("feasible epochs", lambda item: number(item.epoch_feasibility, 3), True),
        ("paper's epochs", lambda item: number(item.paper.feasibility, 3) if item.paper else NONE, paper),
        ("return in these epochs", lambda item: number(item.epoch_return), True),
        ("paper's return", lambda item: number(item.paper.ret) if item.paper else NONE, paper),
    ]
    shown = [(heading, write) for heading, write, wanted in columns if wanted]
    rows = [[write(item) for _, write in shown] for item in summaries]
    caption = "Tail feasibility and feasible return, last fifth of training"
    return Table([heading for heading, _ in shown], rows, 2, caption, _notes(summaries))


def tail_table(summaries: Sequence[Summary]) -> Table:
    """Return how bad the bad episodes are: the tail of training, and all of it."""
    rows = [
        [
            task(item.env),
            item.label,
            estimate(item.ret),
            estimate(item.cost),
            percent(item.exceedance),
            number(item.cvar90, 1),
            number(item.cvar95, 1),
            number(item.worst, 0),
            number(item.violations, 0),
            percent(item.violation_share),
            number(item.mean_excess, 1),
            number(item.worst_ever, 0),
        ]
        for item in summaries
    ]
    headings = [
        "task", "algorithm", "return [95 %]", "cost [95 %]", "over limit", "CVaR 0.9", "CVaR 0.95", "worst",
        "violations", "share", "mean excess", "worst ever",
    ]  # fmt: skip
    notes = (
        "Return and cost: interquartile means over seeds of the last fifth, with bootstrap intervals. "
        "Over limit to worst: episodes of the last fifth. Violations to worst ever: all of training; "
        "the count is per seed.",
        *_few_seeds(summaries),
    )
    return Table(headings, rows, 2, "Returns, costs and the tail of the costs", notes)


def gate_table(summaries: Sequence[Summary]) -> Table:
    """Return how the gates behaved."""
    rows = [
        [
            task(item.env),
            item.label,
            number(item.switches, 1),
            percent(item.recover_share),
            number(item.recover_dwell, 1),
        ]
        for item in summaries
    ]
    headings = ["task", "algorithm", "switches", "recovery epochs", "epochs per recovery"]
    return Table(headings, rows, 2, "The gate: changes of mode per seed, and time spent in recovery")


def overall_table(found: Overall) -> Table:
    """Return the aggregates over all tasks."""
    rows = [
        [item.group.label, *(estimate(value) for score in (item.ret, item.safety) for value in _three(score))]
        for item in found.standings
    ]
    names = ("IQM", "median", "gap")
    headings = ["algorithm", *(f"{score} {name}" for score in ("return", "safety") for name in names)]
    return Table(headings, rows, 1, "Over all tasks, with 95 % intervals", overall_notes(found))


def overall_notes(found: Overall) -> tuple[str, ...]:
    """Return what the scores over all tasks are, and who is not among them."""
    scales = ", ".join(f"{task(env)} {scale:.4g}" for env, scale in found.scales.items())
    notes = [
        "Scores of single runs over their last fifth. Safety: share of episodes within the limit. Return: "
        f"divided by the best method's mean on the task, so that 1 is {scales}. IQM: mean of the middle half "
        "of all runs; median: over tasks, of means over seeds; gap: how far runs stay below 1 on average "
        "(less is better).",
    ]
    if found.missing:
        notes.append(f"Left out, because not run on all of these tasks: {', '.join(found.missing)}.")
    if found.unscaled:
        names = ", ".join(map(task, found.unscaled))
        notes.append(f"Left out, because no method has a positive return there: {names}.")
    return tuple(notes)


def comparison_table(comparisons: Sequence[Comparison]) -> Table:
    """Return the probabilities of improvement."""
    rows = [
        [item.better.label, item.than.label, str(item.tasks), estimate(item.safety), estimate(item.ret)]
        for item in comparisons
    ]
    headings = ["algorithm", "against", "tasks", "episodes within limit [95 %]", "return [95 %]"]
    notes = (
        "Probability that a seed of the one scores above a seed of the other on the same task, in the last "
        "fifth of training; ties count one half.",
    )
    return Table(headings, rows, 2, "Probability of improvement", notes)


def full_table(summaries: Sequence[Summary]) -> Table:
    """Return every number of the summaries at full precision, for CSV."""
    headings: list[str] = []
    rows = []
    for item in summaries:
        row: dict[str, str] = {}
        for name in (entry.name for entry in fields(item)):
            value = getattr(item, name)
            if name == "paper":
                row["paper_feasibility"] = repr(value.feasibility) if value else ""
                row["paper_return"] = repr(value.ret) if value else ""
            elif isinstance(value, Estimate):
                row |= {
                    name: _plain(value.value),
                    f"{name}_low": _plain(value.low),
                    f"{name}_high": _plain(value.high),
                }
            else:
                row[name] = _plain(value) if isinstance(value, float) else str(value)
        headings = list(row)
        rows.append(list(row.values()))
    return Table(headings, rows, 3)


def task(env: str) -> str:
    """Return a task's name without what all native tasks share."""
    name = env.removeprefix("Safety")
    return name[:-3] if name[-3:] in ("-v0", "-v1") else name


def steps(count: int) -> str:
    """Return a number of steps in millions or thousands."""
    return f"{count / 1e6:g}M" if count >= 1_000_000 else f"{count / 1e3:g}k"


def number(value: float, digits: int = 2) -> str:
    """Return a number with so many decimals, or a dash."""
    return f"{value:.{digits}f}".replace("-", "−") if isfinite(value) else NONE


def percent(value: float) -> str:
    """Return a share in percent, or a dash."""
    return f"{100 * value:.1f} %" if isfinite(value) else NONE


def estimate(value: Estimate) -> str:
    """Return a number with its interval, if it has one."""
    if not isfinite(value.low):
        return number(value.value)
    return f"{number(value.value)} [{number(value.low)}, {number(value.high)}]"


def _three(score: Aggregate) -> tuple[Estimate, Estimate, Estimate]:
    return score.iqm, score.median, score.gap


def _seeds(item: Summary) -> str:
    return (
        str(item.seeds)
        if item.complete == item.seeds
        else f"{item.seeds} ({item.seeds - item.complete} unfinished)"
    )


def _few_seeds(summaries: Sequence[Summary]) -> tuple[str, ...]:
    if any(1 < item.seeds < 5 for item in summaries):
        return ("With fewer than five seeds bootstrap intervals are narrower than they claim to be.",)
    return ()


def _notes(summaries: Sequence[Summary]) -> tuple[str, ...]:
    notes = [
        "Feasible episodes: share of episodes within the limit, as in the paper's text. Feasible epochs: "
        "those by whose end the last 100 episodes cost no more than the limit on average, as in the paper's "
        "table; an average may be within the limit while many of its episodes are over it."
    ]
    beside = [item for item in summaries if item.paper]
    if any(item.steps < STEPS or item.seeds < SEEDS for item in beside):
        notes.append(
            f"The paper's numbers are from {SEEDS} seeds of {STEPS // 1_000_000}M steps; "
            "rows with fewer of either are not yet comparable."
        )
    if any(item.paper is None and in_table(item.env, item.algo) for item in summaries):
        notes.append(
            "The paper's numbers are left out beside runs whose settings are not the paper's "
            "(--variant published, all else the method's own)."
        )
    return tuple(notes)


def _plain(value: float) -> str:
    return repr(float(value)) if isfinite(value) else ""
