"""Output of the commands: aligned rows, and warnings."""

import sys
from collections.abc import Iterable
from math import floor

from steingate.certificates.formatting import align, percent
from steingate.certificates.shift import ShiftRadius
from steingate.escaping import for_terminal


def warn(text: str) -> None:
    """Print a line to stderr."""
    print(for_terminal(text), file=sys.stderr)


def print_rows(title: str, rows: Iterable[tuple[str, str, str]], footer: str = "") -> None:
    """Print a title, rows of name, value and comment, and a closing paragraph."""
    print(for_terminal(title))
    print(align([list(map(for_terminal, row)) for row in rows], numbers=(1,)))
    if footer:
        print(for_terminal(footer))


def shift_rows(shift: ShiftRadius | None, risk: float) -> list[tuple[str, str, str]]:
    """Return the row of a verdict that says how much the episodes may change; none without a certificate."""
    if shift is None:
        return []
    variation, ratio = (floor(1000.0 * value) / 1000.0 for value in shift[:2])  # rounded down
    claim = f"total variation to deployment at which {percent(risk)} still holds"
    return [("shift", f"{variation:g}", f"{claim}; or no event more than {ratio:.4g} times as likely")]
