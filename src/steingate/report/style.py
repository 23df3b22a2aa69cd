"""Colors that mean the same in every figure and on every page, and how figures become files."""

from collections.abc import Callable, Collection, Iterator, Sequence
from colorsys import hls_to_rgb
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from steingate.errors import InputError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

DASHES = (0, (5, 3))
FORMATS = (".png", ".svg", ".pdf")

INK, SOFT, FAINT = "#22303c", "#7b8794", "#d9e0e6"
LIMIT = "#000000"  # and dashed; no method is black, and none may ask for it
ALARM = "#d1495b"  # what went wrong: episodes over the limit, an unsafe verdict
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

_PALETTE = (
    "#1f8a7d", "#2f6f9f", "#e0a030", "#8a63a6", "#c7683c", "#4fa3d1", "#7a9a3a", "#b5477d", "#6d7a86",
    "#9a7b4f", "#3f5fa8", "#5fae5f",
)  # fmt: skip
_GOLDEN = 0.6180339887  # of a turn: hues that follow each other lie far apart


def free_colors(count: int, taken: Collection[str] = ()) -> list[str]:
    """Return so many colors, all different and none of those that are taken.

    Examples
    --------
    >>> free_colors(2, ["#1f8a7d"])
    ['#2f6f9f', '#e0a030']
    """
    return list(islice((color for color in _endless() if color not in taken), count))


def _endless() -> Iterator[str]:
    """Yield the palette, then colors of other hues and shades that have not been there."""
    seen = set(_PALETTE)
    yield from _PALETTE
    for turn in range(1 << 20):
        light = (0.42, 0.56, 0.34)[turn % 3]
        parts = hls_to_rgb(_GOLDEN * turn % 1.0, light, 0.5)
        color = "#" + "".join(f"{round(255 * part):02x}" for part in parts)
        if color not in seen:
            seen.add(color)
            yield color


def cost_scale(panel: "Axes", limit: float, top: float) -> None:
    """Scale an axis of costs: linear up to twice the limit, where it matters, logarithmic above."""
    bend = 2.0 * limit
    panel.set_yscale("symlog", linthresh=bend, linscale=1.6)
    top = max(top, bend)
    panel.set_ylim(-0.06 * limit, 1.15 * top if top <= bend else 1.3 * top)
    steps = 4.0 if top > 12.0 * bend else 2.0
    ticks = [0.0, limit, bend]
    while ticks[-1] * steps <= top:
        ticks.append(ticks[-1] * steps)
    panel.set_yticks(ticks, [f"{tick:g}" for tick in ticks])
    panel.minorticks_off()


def task_panels(
    rows: int, columns: int, panel_height: float, keys: Sequence[tuple[str, str, Any]]
) -> "tuple[Figure, Any]":
    """Return a figure with a column of panels per task, and the legend below them.

    ``keys`` are label, color and dashes of each line of the legend, which has as many columns as fit.
    """
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

    key = 0.75 + 0.079 * max(len(label) for label, _, _ in keys)
    wide = max(0.7 + 3.3 * columns, key)
    across = min(len(keys), max(int(wide / key), 1))
    legend = 0.25 * -(-len(keys) // across)
    tall = rows * panel_height + 0.47 * (rows - 1) + 0.63 + legend
    figure = Figure(figsize=(wide, tall))
    figure.subplots_adjust(
        left=0.75 / wide, right=1 - 0.28 / wide, top=1 - 0.38 / tall, bottom=(0.72 + legend) / tall,
        hspace=0.13, wspace=0.24,
    )  # fmt: skip
    lines = [
        Line2D([], [], color=color, linewidth=2.0 if dashes == "-" else 1.2, linestyle=dashes, label=label)
        for label, color, dashes in keys
    ]
    figure.legend(handles=lines, loc="lower center", ncols=across, frameon=False, fontsize=9.5)
    return figure, figure.subplots(rows, columns, sharex="col", squeeze=False)


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
