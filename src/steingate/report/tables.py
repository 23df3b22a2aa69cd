"""Tables of a report: their contents, and text formats for terminal, Markdown, CSV, LaTeX and HTML."""

import csv
import io
import re
from collections.abc import Callable, Sequence
from dataclasses import fields
from html import escape
from math import isfinite
from pathlib import Path
from typing import NamedTuple

from steingate.certificates.formatting import align
from steingate.errors import InputError
from steingate.escaping import for_csv, for_latex, for_markdown, printable
from steingate.report.statistics import Estimate
from steingate.report.summary import LEVEL, Comparison, Overall, Report, Summary, select_certified
from steingate.storage.files import replace_file

NO_VALUE = "–"
MOST_NAMES = 8  # of runs in a note
ONE_SEED = (
    "Every method has one seed, so there are no intervals and no comparisons, and differences may be chance: train "
    "more (--seed, or steingate bench --seeds 0-4)."
)
Column = tuple[str, Callable[[Summary], str]]


class Table(NamedTuple):
    """Cells as text."""

    headings: Sequence[str]
    rows: Sequence[Sequence[str]]
    text_columns: int = 1  # columns from the left that hold words; the others hold numbers, aligned right
    caption: str = ""
    notes: Sequence[str] = ()  # sentences below the table

    def grouped_rows(self) -> list[list[str]]:
        """Return the rows with the first cell left empty where it repeats the cell above."""
        above = [None, *(row[0] for row in self.rows)]
        return [["" if row[0] == last else row[0], *row[1:]] for row, last in zip(self.rows, above, strict=False)]


def write_tables(report: Report, path: str | Path) -> None:
    """Write the tables of a report: all of them as .md or .tex, or every number as one .csv."""
    target, suffix = Path(path), table_kind(path)
    if suffix == ".csv":
        write_text(target, to_csv(full_table(report.summaries)))
    else:
        write = to_markdown if suffix == ".md" else to_latex
        write_text(target, "\n".join(write(table) for table in report_tables(report)))


def table_kind(path: str | Path) -> str:
    """Return the suffix of a file for tables; an ``InputError`` if it is not known."""
    suffix = Path(path).suffix.lower()
    if suffix not in (".csv", ".md", ".tex"):
        raise InputError(f"A table cannot be written to {str(path)!r}; end the name with .md, .csv or .tex.")
    return suffix


def report_tables(report: Report) -> list[Table]:
    """Return the tables of a report; none without runs."""
    tables = [feasibility_table(report.summaries), tail_table(report.summaries)] if report.summaries else []
    if report.overall.methods:
        tables.append(overall_table(report.overall))
    if report.comparisons:
        tables.append(comparison_table(report.comparisons))
    return tables


def feasibility_table(summaries: Sequence[Summary]) -> Table:
    """Return tail feasibility and feasible return, by episodes and by epochs."""
    columns: list[Column] = [
        ("seeds", _seeds),
        ("steps", lambda item: f"{item.steps / 1e6:g}M" if item.steps >= 1_000_000 else f"{item.steps / 1e3:g}k"),
        ("episodes within limit", lambda item: number(item.episode_feasibility, 3)),
        ("their return", lambda item: number(item.episode_return)),
        ("epochs within limit", lambda item: number(item.epoch_feasibility, 3)),
        ("their mean return", lambda item: number(item.epoch_return)),
    ]
    if any(item.tested for item in summaries):
        columns.insert(2, ("certified", lambda item: f"{item.certified} of {item.tested}" if item.tested else NO_VALUE))
    caption = "Tail feasibility and feasible return, last fifth of training"
    notes = [
        "Episodes within limit: their fraction. Epochs within limit: fraction of epochs at whose end the mean cost of "
        "the last 100 episodes is within the limit; many episodes may exceed the limit although their mean does not.",
        *_selection_notes(summaries),
    ]
    return _table(summaries, columns, caption, notes)


def tail_table(summaries: Sequence[Summary]) -> Table:
    """Return returns, costs and violations, in the last fifth and in all of training."""
    several = any(item.seeds > 1 for item in summaries)
    columns: list[Column] = [
        ("return [95 %]" if several else "return", lambda item: estimate(item.ret)),
        ("cost [95 %]" if several else "cost", lambda item: estimate(item.cost)),
        ("violation rate", lambda item: percent(item.violation_rate)),
        ("CVaR 0.9", lambda item: number(item.cvar90, 1)),
        ("CVaR 0.95", lambda item: number(item.cvar95, 1)),
        ("max cost", lambda item: number(item.max_cost, 0)),
        ("violations", lambda item: number(item.training_violations, 0)),
        ("rate", lambda item: percent(item.training_violation_rate)),
        ("mean excess", lambda item: number(item.mean_excess, 1)),
        ("max cost ever", lambda item: number(item.training_max_cost, 0)),
    ]
    means = "interquartile means over seeds of the last fifth, with bootstrap intervals. "
    notes = [
        f"Return and cost: {means if several else 'means of the last fifth. '}"
        "Violation rate to max cost: episodes of the last fifth. Violations to max cost ever: all of "
        "training; violations are per seed."
    ]
    if not several:
        notes.append(ONE_SEED)
    elif any(1 < item.seeds < 5 for item in summaries):
        notes.append("With fewer than five seeds, bootstrap intervals cover less than 95 %.")
    return _table(summaries, columns, "Returns, costs and the tail of the costs", notes)


def overall_table(found: Overall) -> Table:
    """Return the scores over all tasks."""
    rows = [
        [method.label] + [estimate(value) for score in method[1:] for value in (score.iqm, score.median, score.gap)]
        for method in found.methods
    ]
    names = ("IQM", "median", "gap")
    intervals = ", with 95 % intervals" * any(isfinite(method.ret.iqm.low) for method in found.methods)
    headings = ["algorithm", *(f"{score} {name}" for score in ("return", "safety") for name in names)]
    return Table(headings, rows, 1, f"Over all tasks{intervals}", overall_notes(found))


def overall_notes(found: Overall) -> tuple[str, ...]:
    """Return sentences that define the scores over all tasks and name what is left out."""
    scales = ", ".join(f"{task(env)} {scale:.4g}" for env, scale in found.scales.items())
    notes = [
        "Scores of single runs over their last fifth. Safety: fraction of episodes within the limit. Return: "
        f"divided by the best method's mean on the task, so that 1 is {scales}. IQM: mean of the middle half "
        "of all runs; median: over tasks, of means over seeds; gap: mean distance of runs below 1 (lower is "
        "better).",
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
        [item.better, item.than, str(item.tasks), estimate(item.safety), estimate(item.ret)] for item in comparisons
    ]
    headings = ["algorithm", "against", "tasks", "episodes within limit [95 %]", "return [95 %]"]
    notes = (
        "Probability that a seed of the algorithm scores above a seed of the other on the same task, in the "
        "last fifth of training; ties count one half.",
    )
    return Table(headings, rows, 2, "Probability of improvement", notes)


def full_table(summaries: Sequence[Summary]) -> Table:
    """Return every number of the summaries at full precision, for CSV."""
    rows = []
    for item in summaries:
        group = item.group
        row = {"env": group.env, "label": group.label, "algo": group.algo, "limit": _exact(group.limit)}
        for name in (entry.name for entry in fields(item)[1:]):
            value = getattr(item, name)
            if isinstance(value, Estimate):
                ends = zip(("", "_low", "_high"), map(_exact, value), strict=True)
                row |= {f"{name}{end}": cell for end, cell in ends}
            else:
                row[name] = _exact(value) if isinstance(value, float) else str(value)
        rows.append(row)
    return Table(list(rows[0]) if rows else [], [list(row.values()) for row in rows], 3)


def task(env: str) -> str:
    """Return the short name of a task.

    >>> task("SafetyPointGoal1-v0")
    'PointGoal1'
    """
    return re.sub(r"-v[01]$", "", env.removeprefix("Safety"))


def number(value: float, digits: int = 2) -> str:
    """Return a number with ``digits`` decimals, or a dash for NaN."""
    return f"{value:.{digits}f}".replace("-", "−") if isfinite(value) else NO_VALUE


def percent(value: float) -> str:
    """Return a fraction in percent, or a dash for NaN."""
    return f"{100 * value:.1f} %" if isfinite(value) else NO_VALUE


def estimate(value: Estimate) -> str:
    """Return a number with its interval, if it has one."""
    if not isfinite(value.low):
        return number(value.value)
    return f"{number(value.value)} [{number(value.low)}, {number(value.high)}]"


def to_text(table: Table) -> str:
    """Return the table for a terminal."""
    rows = [[printable(cell) for cell in row] for row in (table.headings, *table.grouped_rows())]
    return align(rows, numbers=range(table.text_columns, len(table.headings)))


def to_markdown(table: Table) -> str:
    """Return the table in GitHub's Markdown."""
    rule = ["---" if index < table.text_columns else "---:" for index in range(len(table.headings))]
    lines = ["| " + " | ".join(map(for_markdown, line)) + " |" for line in (table.headings, rule, *table.rows)]
    parts = (for_markdown(table.caption), "\n".join(lines), *map(for_markdown, table.notes))
    return "\n\n".join(filter(None, parts)) + "\n"


def to_csv(table: Table) -> str:
    """Return the table as CSV, without caption and notes."""
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows([list(map(for_csv, line)) for line in (table.headings, *table.rows)])
    return out.getvalue()


def to_latex(table: Table) -> str:
    """Return the table as a LaTeX ``tabular`` with the rules of the booktabs package."""
    columns = "l" * table.text_columns + "r" * (len(table.headings) - table.text_columns)
    lines = [f"% {printable(line)}" for line in (table.caption, *table.notes) if line]
    lines += [f"\\begin{{tabular}}{{{columns}}}", "\\toprule"]
    lines += [" & ".join(map(for_latex, table.headings)) + " \\\\", "\\midrule"]
    for index, row in enumerate(table.grouped_rows()):
        if row[0] and index:
            lines.append("\\midrule")
        lines.append(" & ".join(map(for_latex, row)) + " \\\\")
    return "\n".join([*lines, "\\bottomrule", "\\end{tabular}", ""])


def to_html(table: Table) -> str:
    """Return the table as HTML; a wide table scrolls."""

    def line(tag: str, cells: Sequence[str], attributes: str = "") -> str:
        kinds = [""] * table.text_columns + [' class="number"'] * (len(cells) - table.text_columns)
        parts = zip(cells, kinds, strict=True)
        return "".join(f"<{tag}{kind}{attributes}>{escape(text)}</{tag}>" for text, kind in parts)

    head = line("th", table.headings, ' scope="col"')
    rows = [(' class="first"' if row[0] else "", row) for row in table.grouped_rows()]
    body = "".join(f"<tr{kind}>{line('td', row)}</tr>" for kind, row in rows)
    caption = f"<h3>{escape(table.caption)}</h3>" if table.caption else ""
    notes = "".join(f'<p class="note">{escape(note)}</p>' for note in table.notes)
    return (
        f'<div class="card">{caption}<div class="scroll" tabindex="0">'
        f'<table aria-label="{escape(table.caption)}">'
        f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>{notes}</div>"
    )


def write_text(path: Path, text: str) -> None:
    """Write a text file through a temporary file."""
    if not path.parent.is_dir():
        raise InputError(f"{path} cannot be written: there is no folder {path.parent}.")
    if path.is_dir():
        raise InputError(f"{path} is a folder; name a file.")
    replace_file(path, text.encode())


def _table(summaries: Sequence[Summary], columns: Sequence[Column], caption: str, notes: Sequence[str] = ()) -> Table:
    """Return a table with a row per configuration."""
    rows = [[task(item.group.env), item.group.label, *(write(item) for _, write in columns)] for item in summaries]
    return Table(["task", "algorithm", *(heading for heading, _ in columns)], rows, 2, caption, notes)


def _seeds(item: Summary) -> str:
    unfinished = item.seeds - item.complete
    return f"{item.seeds} ({unfinished} unfinished)" if unfinished else str(item.seeds)


def _selection_notes(summaries: Sequence[Summary]) -> tuple[str, ...]:
    """Return which certified policies e-BH selects, if several runs were tested."""
    found = select_certified([run for item in summaries for run in item.group.runs])
    if found.tested < 2 or not found.certified:
        return ()
    names = [f"{task(run.env)} {run.algo} seed {run.seed}" for run in found.left_out]
    more = [f"{len(names) - MOST_NAMES} more"] if len(names) > MOST_NAMES else []
    which = f"all but {', '.join(names[:MOST_NAMES] + more)}" if names else "all of them"
    claim = f"{which}: at most this fraction of the selected policies is expected to be wrongly certified"
    return (
        f"Certified: {found.certified} of {found.tested} tested runs. Each run has its own error probability, so up to "
        f"{number(found.expected_wrong, 1)} wrong certificates are to be expected. e-BH at {percent(LEVEL)} over all "
        f"tested runs selects {claim if found.selected else 'none'}.",
    )


def _exact(value: float) -> str:
    return repr(float(value)) if isfinite(value) else ""
