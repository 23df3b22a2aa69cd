"""The tables of a report as files."""

from collections.abc import Sequence
from pathlib import Path

from steingate.errors import InputError
from steingate.report.summary import Comparison, Summary
from steingate.report.summary_table import full_table, report_tables
from steingate.report.tables import to_csv, to_latex, to_markdown, write_text


def write_tables(summaries: Sequence[Summary], comparisons: Sequence[Comparison], path: str | Path) -> None:
    """Write a report's tables: all of them as .md or .tex, or every number as one .csv."""
    target = Path(path)
    suffix = target.suffix.lower()
    if suffix not in (".md", ".csv", ".tex"):
        raise InputError(f"A table cannot be written to {str(path)!r}; end the name with .md, .csv or .tex.")
    if suffix == ".csv":
        write_text(target, to_csv(full_table(summaries)))
        return
    write = to_markdown if suffix == ".md" else to_latex
    write_text(target, "\n".join(write(table) for table in report_tables(summaries, comparisons)))
