"""One epoch's numbers as a row of ``progress.csv``: OmniSafe's names where the quantity is the same."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from steingate.gates.base import Decision, Episodes

Window = npt.NDArray[np.float64]  # (n, 3): return, cost, length of the last episodes, oldest first


def empty_window() -> Window:
    """Return a window of no episodes."""
    return np.zeros((0, 3))


def slide(window: Window, episodes: Episodes, size: int) -> Window:
    """Return the last ``size`` episodes of the window and these."""
    new = np.stack([episodes.ret, episodes.cost, episodes.length.astype(np.float64)], axis=1)
    return np.concatenate([window, new])[-size:]


def column(key: str) -> str:
    """Return a log key such as ``gate/reference_risk`` as a column name such as ``Gate/ReferenceRisk``."""
    return "/".join(
        "".join(word[:1].upper() + word[1:] for word in part.split("_")) for part in key.split("/")
    )


def progress_row(
    epoch: int,
    steps_per_epoch: int,
    limit: float,
    window: Window,
    episodes: Episodes,
    decision: Decision,
    log: Mapping[str, float],
) -> dict[str, Any]:
    """Return the row of one epoch, without its times.

    ``Metrics/*`` are means over the last episodes, across policies, as OmniSafe logs them; ``Epoch/*`` are of
    the episodes that finished in this epoch. Where there is none the cell is empty, never NaN.
    """
    recent = window.mean(axis=0) if len(window) else [None] * 3
    row: dict[str, Any] = {
        "Metrics/EpRet": recent[0],
        "Metrics/EpCost": recent[1],
        "Metrics/EpLen": recent[2],
        "Train/Epoch": epoch,
        "TotalEnvSteps": (epoch + 1) * steps_per_epoch,
        "Epoch/Episodes": len(episodes.cost),
        "Epoch/EpRet": _mean(episodes.ret),
        "Epoch/EpCost": _mean(episodes.cost),
        "Epoch/EpLen": _mean(episodes.length),
        "Epoch/OverLimit": _mean(episodes.cost > limit),
        "Epoch/WorstCost": float(episodes.cost.max()) if len(episodes.cost) else None,
        "Gate/Mode": int(decision.mode),
        "Gate/Slack": float(decision.slack),
        "Gate/Bound": None,
        "Gate/Budget": None,
        "Gate/Fallback": int(len(episodes.cost) == 0),
    }
    for key, value in log.items():
        name = column(key)
        if name not in ("Gate/Mode", "Gate/Slack", "Gate/Fallback"):
            row[name] = float(value) if np.isfinite(value) else None
    return row


def _mean(values: npt.NDArray[Any]) -> float | None:
    return float(np.mean(values)) if len(values) else None
