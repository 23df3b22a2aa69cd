"""Statistics of recent episodes that several methods use: moving averages, CVaR, bias-free selection."""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from steingate.algorithms.base import Array, Episodes, GateOutput, Metrics, Mode, Objective, RunContext
from steingate.errors import InputError


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

    def per_step(self, slack: float) -> float:
        """Return a slack per episode divided by the mean episode length; before any episode at most 0.

        The policy update compares the slack with the change of a mean over steps.
        """
        return slack / float(self.lengths.mean()) if len(self.lengths) else min(slack, 0.0)


def gate_metrics(mode: Mode, episodes: Episodes, **numbers: float) -> Metrics:
    """Return the columns that all gates share, and ``Gate/NAME`` for each further number.

    ``Gate/Fallback`` is 1 if the epoch completed no episode, so that earlier ones were used.
    """
    count = float(len(episodes.cost))
    shared = {"Gate/Episodes": count, "Gate/Fallback": float(count == 0.0)}
    return {"Gate/Mode": float(mode), **{f"Gate/{name}": value for name, value in numbers.items()}, **shared}


def maximize_reward(episodes: Episodes) -> GateOutput:
    """Return the output of a gate without a constraint."""
    metrics = {**gate_metrics(Mode.IMPROVE, episodes), "Gate/Fallback": 0.0}
    return GateOutput(Objective(Mode.IMPROVE), metrics)


def constrain_mean_cost(
    context: RunContext, recent: RecentEpisodes, episodes: Episodes, published: bool
) -> tuple[RecentEpisodes, GateOutput]:
    """Constrain the mean cost of the last ``window`` episodes: the gate of CPO.

    The slack is in cost per step, in published variants in cost per episode. An epoch without a finished episode
    uses the average of earlier epochs; before the first finished episode the mode is RECOVER.
    """
    recent = recent.extend(episodes, context.window)
    known = len(recent.costs) > 0
    mean = float(recent.costs.mean()) if known else context.cost_limit
    mode = Mode.BALANCE if known else Mode.RECOVER
    slack = context.cost_limit - mean
    objective = Objective(mode, slack if published else recent.per_step(slack))
    return recent, GateOutput(objective, gate_metrics(mode, episodes, MeanCost=mean))


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

    All episodes are returned, with False, if this is impossible: starts or ``longest`` are unknown, ``longest``
    exceeds ``steps``, or no episode remains.

    Parameters
    ----------
    episodes : those that finished in the epoch
    steps : steps of every environment in the epoch
    longest : time limit of the task; None if there is none

    Examples
    --------
    >>> import numpy as np
    >>> cost, length, start = np.array([3.0, 9.0, 1.0]), np.array([40, 100, 10]), np.array([0, 0, 140])
    >>> complete_episodes(Episodes(cost, cost, length, start), steps=150, longest=100)[0].cost
    array([3., 9.])
    """
    if steps < 1:
        raise InputError(f"steps is {steps!r}; give the steps of each environment in an epoch, at least 1.")
    if longest is not None and longest < 1:
        raise InputError(f"longest is {longest!r}; give the longest possible episode, at least 1 step.")
    start = episodes.start
    if start is None or longest is None or longest > steps:
        return episodes, False
    if len(start) != len(episodes.cost):
        raise InputError(f"There are {len(start)} starts for {len(episodes.cost)} episodes; give one for each.")
    early = (start >= 0) & (start <= steps - longest)
    if early.all() or not early.any():
        return episodes, bool(early.all())
    return Episodes(episodes.cost[early], episodes.ret[early], episodes.length[early], start[early]), True
