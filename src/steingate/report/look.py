"""Colours that mean the same in every figure and on every page, and how figures become files."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from steingate.errors import InputError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FORMATS = (".png", ".svg", ".pdf")

INK, SOFT, FAINT = "#22303c", "#7b8794", "#d9e0e6"
LIMIT = "#d1495b"
STYLE: dict[Any, Any] = {
    "font.size": 10.0,
    "axes.edgecolor": SOFT,
    "axes.labelcolor": INK,
    "text.color": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "svg.hashsalt": "steingate",  # the same figure gives the same file
}

_ALGORITHMS = {
    "steingate": "#1f8a7d",
    "cpo": "#2f6f9f",
    "evo": "#e0a030",
    "trpo-saute": "#8a63a6",
    "trpo-simmer": "#c7683c",
    "trpo": "#6d7a86",
    "pcpo": "#4fa3d1",
    "rcpo": "#9a5b73",
    "trpo-lag": "#7a9a3a",
    "ppo-lag": "#b0533f",
}
_OTHERS = (
    "#1f8a7d", "#2f6f9f", "#e0a030", "#8a63a6", "#c7683c", "#4fa3d1", "#7a9a3a", "#b5477d", "#6d7a86",
    "#9a7b4f", "#3f5fa8", "#5fae5f",
)  # fmt: skip


def label_colours(labels: Sequence[str]) -> dict[str, str]:
    """Return a colour for each label: an algorithm's own where there is one, else the next that is free."""
    chosen = {label: _ALGORITHMS[label] for label in labels if label in _ALGORITHMS}
    free = [colour for colour in _OTHERS if colour not in chosen.values()] or list(_OTHERS)
    others = [label for label in dict.fromkeys(labels) if label not in chosen]
    return chosen | {label: free[index % len(free)] for index, label in enumerate(others)}


def save_figure(draw: Callable[[], "Figure"], path: str | Path) -> None:
    """Draw a figure and write it; the format follows from the suffix (PNG, SVG or PDF), checked first."""
    target = Path(path)
    suffix = target.suffix.lower()
    if suffix not in FORMATS:
        raise InputError(
            f"A figure cannot be written to {str(path)!r}; end the name with .png, .svg or .pdf."
        )
    figure = draw()
    dates = {".svg": {"Date": None}, ".pdf": {"CreationDate": None}, ".png": {}}[suffix]
    from matplotlib import rc_context

    try:
        with rc_context(STYLE):
            figure.savefig(target, dpi=160, facecolor="white", metadata=dates or None)
    except OSError as error:
        raise InputError(f"The figure cannot be written to {target} ({error.strerror}).") from None
