"""Colours that mean the same in every figure and on every page."""

from collections.abc import Sequence

INK, SOFT, FAINT = "#22303c", "#7b8794", "#d9e0e6"
LIMIT = "#d1495b"
STYLE = {
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
