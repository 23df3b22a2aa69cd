"""Names and notes of others in our output: no control characters, markup, LaTeX commands or formulas."""

import re
from typing import Any

_MAX_LINE = 2000  # characters


def printable(name: Any, width: int | None = None) -> str:
    r"""Return a name as text of at most ``width`` characters, with a question mark for each unprintable one.

    These are control characters, escape sequences, line breaks and marks that change the direction of text.

    >>> printable("a\x1b]52;c;\x07\nb"), printable("abcdef", 4)
    ('a?]52;c;??b', 'abc…')
    """
    text = str(name) if width is None or len(str(name)) <= width else f"{str(name)[: width - 1]}…"
    return "".join(letter if letter.isprintable() or letter == "\xa0" else "?" for letter in text)


def for_terminal(text: str) -> str:
    """Return a text whose only control characters are line breaks; the middle of a very long line is left out."""
    return "\n".join(printable(_short(line)) for line in str(text).split("\n"))


def _short(line: str) -> str:
    return line if len(line) <= _MAX_LINE else f"{line[: _MAX_LINE // 2]} ... {line[-_MAX_LINE // 4 :]}"


def for_markdown(text: str) -> str:
    """Return a text without HTML, links and cell borders for GitHub's Markdown."""
    return printable(text).replace("|", "\\|").replace("<", "&lt;").replace("](", "]\\(")


def for_csv(cell: str) -> str:
    """Return a cell that spreadsheets do not take for a formula; numbers stay as they are."""
    formula = cell[:1] in ("=", "+", "-", "@") and not re.fullmatch(r"[-+]?[\d.]+(e[-+]?\d+)?", cell)
    return f"'{cell}" if formula else cell


_LATEX = {
    "\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}",
    "≤": r"$\leq$", "–": "--", "—": "---", "±": r"$\pm$", "−": "$-$",
    **{mark: "\\" + mark for mark in "&%$#_{}"},
}  # fmt: skip


def for_latex(text: str) -> str:
    """Return a text with the special characters of LaTeX escaped."""
    return re.sub("|".join(map(re.escape, _LATEX)), lambda mark: _LATEX[mark.group()], printable(text))
