"""Statistics of recent episodes that several methods use: moving averages, CVaR, bias-free selection."""

from math import inf
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from steingate.algorithms.base import Array, Episodes, GateOutput, Mode, Objective


def append_window(recent: Array, new: npt.NDArray[Any], window: int) -> Array:
    """Return the last ``window`` values of ``recent`` followed by ``new``."""
    return np.concatenate([recent, new])[-window:]


class RecentEpisodes(NamedTuple):
    """Costs and lengths of the last episodes, oldest first."""

    costs: Array = np.zeros(0)
    lengths: Array = np.zeros(0)

    def extend(self, episodes: Episodes, window: int) -> "RecentEpisodes":
        """Return the last ``window`` episodes after an epoch."""
        return RecentEpisodes(
            append_window(self.costs, episodes.cost, window), append_window(self.lengths, episodes.length, window)
        )

    def mean_cost(self, default: float) -> float:
        """Return the mean cost; before the first episode the default."""
        return float(self.costs.mean()) if len(self.costs) else default

    def per_step(self, slack: float) -> float:
        """Return a slack per episode divided by the mean episode length; before any episode at most 0.

        The policy update compares the slack with the change of a mean over steps.
        """
        return slack / float(self.lengths.mean()) if len(self.lengths) else min(slack, 0.0)


def gate_output(
    mode: Mode, episodes: Episodes, cost_slack: float = inf, multiplier: float = 0.0, messages: tuple[str, ...] = (),
    **numbers: float,
) -> GateOutput:  # fmt: skip
    """Return the output of a gate, with ``Gate/NAME`` for each number and the columns that all gates share.

    ``Gate/Fallback`` is 1 if the epoch completed no episode, so that earlier ones were used.
    """
    count = float(len(episodes.cost))
    columns = {"Mode": float(mode), "Episodes": count, "Fallback": float(count == 0.0), **numbers}
    metrics = {f"Gate/{name}": value for name, value in columns.items()}
    return GateOutput(Objective(mode, cost_slack, multiplier), metrics, messages)


def cvar(costs: Array, tail: float) -> tuple[float, float]:
    """Return the mean of the worst fraction ``tail`` of the costs, and the cost at which this tail begins.

    CVaR = min over u of u + E[(C - u)+] / tail; the smallest (1 - tail)-quantile is a minimizer.
    """
    threshold = float(np.quantile(costs, 1.0 - tail, method="inverted_cdf"))
    return threshold + float(np.mean(np.maximum(costs - threshold, 0.0))) / tail, threshold


def complete_episodes(episodes: Episodes, steps: int, longest: int | None) -> tuple[Episodes, bool]:
    """Return the episodes that began early enough to finish in the epoch, and whether the selection is unbiased.

    Near the end of an epoch only short episodes finish, so counting all finished ones overrepresents them. An
    episode that began at step ``steps - longest`` or before finishes in the epoch whatever its length. Episodes
    carried over from an earlier epoch (negative starts) are left out: only long ones are, and they began under
    another policy. The mean over the selected episodes is then unbiased to first order (Wald's identity).

    ``longest`` is the time limit of the task. All episodes are returned, with False, if starts or ``longest`` are
    unknown (None), ``longest`` exceeds ``steps``, or no episode remains.

    >>> cost, length, start = np.array([3.0, 9.0, 1.0]), np.array([40, 100, 10]), np.array([0, 0, 140])
    >>> complete_episodes(Episodes(cost, cost, length, start), steps=150, longest=100)[0].cost
    array([3., 9.])
    """
    start = episodes.start
    if start is None or longest is None or longest > steps:
        return episodes, False
    early = (start >= 0) & (start <= steps - longest)
    if early.all() or not early.any():
        return episodes, bool(early.all())
    return Episodes(episodes.cost[early], episodes.ret[early], episodes.length[early], start[early]), True
