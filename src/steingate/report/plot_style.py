"""Colors and axes shared by all figures and pages; writing figures to files."""

import io
from collections.abc import Callable, Collection
from colorsys import hls_to_rgb
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec

from steingate.errors import InputError, needs
from steingate.storage.files import replace_file

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

P = ParamSpec("P")

DASHES = (0, (5, 3))

INK, SOFT, FAINT = "#22303c", "#7b8794", "#d9e0e6"
LIMIT = "#000000"  # never the color of a method
SAFE, CAUTION, UNSAFE = "#2a9d8f", "#edae49", "#d1495b"
TERM_COLORS = {"reference": "#5b7f9c", "atoms": UNSAFE, "interior": CAUTION}  # of the Stein bound
STYLE: dict[Any, Any] = {
    "font.size": 10.0,
    "axes.edgecolor": SOFT,
    "axes.labelcolor": INK,
    "text.color": INK,
    "text.parse_math": False,  # names with dollar signs are no formulas
    "xtick.color": INK,
    "ytick.color": INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "svg.hashsalt": "steingate",  # equal figures give equal files
}

SCHEDULES = {  # columns of a gate that acts by a number instead of modes
    "Gate/BudgetFraction": "budget, fraction of limit",
    "Gate/CostBudget": "cost budget",
    "Gate/LagrangeMultiplier": "multiplier",
}

_PALETTE = (
    "#1f8a7d", "#2f6f9f", "#e0a030", "#8a63a6", "#c7683c", "#4fa3d1", "#7a9a3a", "#b5477d", "#6d7a86",
    "#9a7b4f", "#3f5fa8", "#5fae5f",
)  # fmt: skip
_GOLDEN_RATIO = 0.6180339887  # successive hues lie far apart


def styled(draw: "Callable[P, Figure]") -> "Callable[P, Figure]":
    """Wrap a function that draws a figure so that it uses ``STYLE``."""

    @wraps(draw)
    def wrapper(*args: P.args, **kwargs: P.kwargs) -> "Figure":
        with needs("Plotting", "plot"):
            from matplotlib import rc_context
        with rc_context(STYLE):
            return draw(*args, **kwargs)

    return wrapper


def free_colors(count: int, taken: Collection[str] = ()) -> list[str]:
    """Return ``count`` different colors that are not in ``taken``: a palette, then further hues.

    >>> free_colors(2, ["#1f8a7d"])
    ['#2f6f9f', '#e0a030']
    """
    found = {color: None for color in _PALETTE if color not in taken}
    turn = 0
    while len(found) < count:
        channels = hls_to_rgb(_GOLDEN_RATIO * turn % 1.0, (0.42, 0.56, 0.34)[turn % 3], 0.5)
        color = "#" + "".join(f"{round(255 * channel):02x}" for channel in channels)
        if color not in taken:
            found[color] = None
        turn += 1
    return list(found)[:count]


def cost_scale(panel: "Axes", limit: float, top: float) -> None:
    """Scale an axis of costs: linear up to twice the limit, logarithmic above, which a note says if it shows."""
    limit = limit or 0.5  # a limit of 0 has the axis of costs that are whole numbers
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
    if top > bend:
        panel.set_title(f"logarithmic above {bend:g}", loc="right", fontsize=8, color=SOFT)


_DATES: dict[str, dict[str, None] | None] = {".svg": {"Date": None}, ".pdf": {"CreationDate": None}, ".png": None}


def figure_kind(path: str | Path) -> str:
    """Return the suffix of a file for a figure; an ``InputError`` if it is not known."""
    kind = Path(path).suffix.lower()
    if kind not in _DATES:
        raise InputError(f"A figure cannot be written to {str(path)!r}; end the name with .png, .svg or .pdf.")
    return kind


def save_figure(figure: "Figure", path: str | Path) -> None:
    """Write a figure as PNG, SVG or PDF, by the suffix of ``path``."""
    from matplotlib import rc_context

    target, content, kind = Path(path), io.BytesIO(), figure_kind(path)
    if not target.parent.is_dir():
        raise InputError(f"The figure cannot be written to {target}: there is no folder {target.parent}.")
    with rc_context(STYLE):
        figure.savefig(content, format=kind[1:], dpi=160, facecolor="white", metadata=_DATES[kind])
    replace_file(target, content.getvalue())
