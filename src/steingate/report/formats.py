"""One table, many formats: terminal, Markdown, CSV, LaTeX and HTML."""

import csv
import io
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from html import escape
from pathlib import Path

from rich.markup import escape as mark
from rich.table import Table as RichTable

from steingate.errors import InputError
from steingate.storage.files import replace_file


@dataclass(frozen=True)
class Table:
    """Cells as text with a heading for each column.

    Attributes
    ----------
    headings
        One per column.
    rows
        Cells, as many per row as there are headings.
    text_columns
        How many columns from the left are words; the others are numbers and stand to the right.
    caption, notes
        A sentence above the table, and sentences below it.
    """

    headings: Sequence[str]
    rows: Sequence[Sequence[str]]
    text_columns: int = 1
    caption: str = ""
    notes: Sequence[str] = field(default=())


def to_rich(table: Table) -> RichTable:
    """Return the table for a terminal."""
    result = RichTable(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for index, heading in enumerate(table.headings):
        result.add_column(
            mark(heading), justify="left" if index < table.text_columns else "right", no_wrap=True
        )
    for row, cells in zip(_without_repeats(table), table.rows, strict=True):
        result.add_row(mark(row), *map(mark, cells[1:]))
    return result


def to_markdown(table: Table) -> str:
    """Return the table in GitHub's Markdown."""
    rule = ["---" if index < table.text_columns else "---:" for index in range(len(table.headings))]
    lines = [table.headings, rule, *table.rows]
    body = "\n".join("| " + " | ".join(_markdown(cell) for cell in line) + " |" for line in lines)
    parts = [table.caption, body, *(f"{note}" for note in table.notes)]
    return "\n\n".join(part for part in parts if part) + "\n"


def to_csv(table: Table) -> str:
    """Return the table as CSV, without caption and notes."""
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows([table.headings, *table.rows])
    return out.getvalue()


def to_latex(table: Table) -> str:
    """Return the table as a LaTeX ``tabular`` with the rules of the booktabs package."""
    columns = "l" * table.text_columns + "r" * (len(table.headings) - table.text_columns)
    lines = []
    for index, (row, cells) in enumerate(zip(_without_repeats(table), table.rows, strict=True)):
        if row and index:
            lines.append("\\midrule")
        lines.append(" & ".join(map(_latex, [row, *cells[1:]])) + " \\\\")
    comments = [f"% {line}" for line in (table.caption, *table.notes) if line]
    return "\n".join(
        [
            *comments,
            f"\\begin{{tabular}}{{{columns}}}",
            "\\toprule",
            " & ".join(map(_latex, table.headings)) + " \\\\",
            "\\midrule",
            *lines,
            "\\bottomrule",
            "\\end{tabular}",
            "",
        ]
    )


def to_html(table: Table) -> str:
    """Return the table as HTML that wide tables can scroll in."""
    head = "".join(_cell("th", text, index, table) for index, text in enumerate(table.headings))
    body = []
    for row, cells in zip(_without_repeats(table), table.rows, strict=True):
        line = "".join(_cell("td", text, index, table) for index, text in enumerate([row, *cells[1:]]))
        body.append(f'<tr class="first">{line}</tr>' if row else f"<tr>{line}</tr>")
    caption = f"<h3>{escape(table.caption)}</h3>" if table.caption else ""
    notes = "".join(f'<p class="note">{escape(note)}</p>' for note in table.notes)
    return (
        f'<div class="card">{caption}<div class="scroll" tabindex="0">'
        f'<table aria-label="{escape(table.caption)}">'
        f"<thead><tr>{head}</tr></thead><tbody>{''.join(body)}</tbody></table></div>{notes}</div>"
    )


def write_text(path: Path, text: str) -> None:
    """Write a file whole or not at all; an ``InputError`` names a folder that is not there."""
    if not path.parent.is_dir():
        raise InputError(f"{path} cannot be written: there is no folder {path.parent}.")
    if path.is_dir():
        raise InputError(f"{path} is a folder; name a file.")
    replace_file(path, text.encode())


def _without_repeats(table: Table) -> list[str]:
    """Return the first column with a cell left empty where it repeats the one above."""
    first = [row[0] for row in table.rows]
    return [cell if index == 0 or cell != first[index - 1] else "" for index, cell in enumerate(first)]


def _cell(tag: str, text: str, index: int, table: Table) -> str:
    kind = "" if index < table.text_columns else ' class="number"'
    scope = ' scope="col"' if tag == "th" else ""
    return f"<{tag}{kind}{scope}>{escape(text)}</{tag}>"


def _markdown(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


_LATEX = {
    "\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}",
    "≤": r"$\leq$", "–": "--", "—": "---", "±": r"$\pm$", "−": "$-$",
    **{mark: "\\" + mark for mark in "&%$#_{}"},
}  # fmt: skip


def _latex(text: str) -> str:
    return re.sub("|".join(map(re.escape, _LATEX)), lambda mark: _LATEX[mark.group()], text)
