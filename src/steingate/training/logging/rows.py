"""Rows of ``progress.csv`` and ``episodes.csv`` with OmniSafe's column names, and data warnings."""

import time
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from steingate.algorithms.base import Episodes, Objective
from steingate.tasks.catalog import TASKS
from steingate.training.config import RunConfig

Window = npt.NDArray[np.float64]  # (n, 3): return, cost, length of the last episodes, oldest first


class Stopwatch:
    """Seconds between laps, by name."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._last = time.perf_counter()

    def lap(self, name: str) -> None:
        """Add the time since the last lap to ``name``."""
        now = time.perf_counter()
        self.seconds[name] = self.seconds.get(name, 0.0) + now - self._last
        self._last = now


def append_window(window: Window, episodes: Episodes, size: int) -> Window:
    """Return the last ``size`` of the episodes in the window and the new ones."""
    new = np.stack([episodes.ret, episodes.cost, episodes.length.astype(np.float64)], axis=1)
    return np.concatenate([window, new])[-size:]


def progress_row(
    cfg: RunConfig, epoch: int, window: Window, episodes: Episodes, objective: Objective, metrics: Mapping[str, float]
) -> dict[str, Any]:
    """Return the row of one epoch, without its times.

    ``Metrics/*`` are means over the last ``window`` episodes, as OmniSafe logs them; ``Train/*`` are about the episodes
    that finished in this epoch. Undefined numbers are None, which gives an empty cell.
    """
    recent = window.mean(axis=0) if len(window) else [None] * 3
    count = len(episodes.cost)
    means: dict[str, Any] = {"EpRet": episodes.ret, "EpCost": episodes.cost, "EpLen": episodes.length}
    means["ViolationRate"] = episodes.cost > cfg.cost_limit
    gate = {
        "Gate/Mode": int(objective.mode), "Gate/Slack": float(objective.cost_slack), "Gate/Bound": None,
        "Gate/Budget": None, "Gate/Fallback": int(count == 0),
    }  # fmt: skip
    return {
        **dict(zip(("Metrics/EpRet", "Metrics/EpCost", "Metrics/EpLen"), recent, strict=True)),
        "Train/Epoch": epoch,
        "TotalEnvSteps": (epoch + 1) * cfg.steps_per_epoch,
        "Train/Episodes": count,
        **{f"Train/{name}": float(np.mean(values)) if count else None for name, values in means.items()},
        "Train/MaxCost": float(episodes.cost.max()) if count else None,
        **gate,  # metrics fill the empty ones
        **{k: float(v) if np.isfinite(v) else None for k, v in metrics.items() if gate.get(k) is None},
    }


def episode_rows(
    cfg: RunConfig, epoch: int, episodes: Episodes, finished_at: npt.NDArray[np.int64]
) -> list[dict[str, Any]]:
    """Return one row of ``episodes.csv`` per finished episode, by time of completion.

    ``step`` counts the steps of all environments; ``finished_at`` (n, 2) has vector step and environment.
    """
    steps = epoch * cfg.steps_per_epoch + (finished_at[:, 0] + 1) * cfg.num_envs
    return [
        {"epoch": epoch, "step": int(step), "return": float(ret), "cost": float(cost), "length": int(length)}
        for step, ret, cost, length in zip(steps, episodes.ret, episodes.cost, episodes.length, strict=True)
    ]


def time_columns(cfg: RunConfig, seconds: float, total: float, parts: Mapping[str, float]) -> dict[str, float]:
    """Return the columns ``Time/*``: seconds of the epoch, of the whole run so far, and of the epoch's phases."""
    speed = cfg.steps_per_epoch / max(seconds, 1e-9)
    phases = {f"Time/{name.capitalize()}": value for name, value in parts.items()}
    return {"Time/FPS": speed, "Time/Total": total, "Time/Epoch": seconds, **phases}


def episode_warnings(cfg: RunConfig, epoch: int, window: Window, costs: npt.NDArray[np.float64]) -> tuple[str, ...]:
    """Return data warnings about an epoch's episodes, each once per run.

    ``window`` has the last episodes before the epoch, and ``costs`` those of the episodes that finished in it.
    """
    found = [no_episode_warning(cfg)] if epoch == 0 and len(costs) == 0 else []
    if (costs < 0.0).any() and not (window[:, 1] < 0.0).any():
        found.append(negative_cost_warning(cfg, costs))
    return tuple(found)


def default_limit_note(cfg: RunConfig) -> tuple[str, ...]:
    """Return a note for an own environment whose limit is the default, which suits Safety-Gymnasium's costs."""
    if cfg.env.removeprefix("steingate/") in TASKS or cfg.cost_limit != RunConfig.cost_limit:
        return ()
    limit = f"{cfg.cost_limit:g}, the default"
    return (f"An episode of {cfg.env} may cost at most {limit}; --cost-limit sets what your task allows.",)


def negative_cost_warning(cfg: RunConfig, costs: npt.NDArray[np.float64]) -> str:
    """Return the warning about costs some of which are negative."""
    return (
        f"An episode of {cfg.env} cost {costs.min():g}: negative costs compensate violations within an "
        "episode, and certificates count a negative total as 0; give costs of 0 or more, and put bonuses "
        "into the reward."
    )


def no_episode_warning(cfg: RunConfig) -> str:
    """Return the warning that no episode has finished in the first epoch."""
    steps, cause = f"{cfg.horizon} steps of each environment", "No episode has finished"
    if cfg.time_limit is None:
        cause += f" within {steps}, and {cfg.env} has no time limit"
        advice = "set one, such as --env-options max_episode_steps=200"
    else:
        cause += f": its time limit is {cfg.time_limit} steps, and an epoch has {steps}"
        advice = f"use --steps-per-epoch {cfg.time_limit * cfg.num_envs} or more, or --carry-episodes"
    return f"{cause}. Without finished episodes their cost is unknown, so no algorithm can satisfy the limit: {advice}."
