"""The bookkeeping of a vector step in one compiled call: array operations would take longer than a Point."""

from __future__ import annotations

from steingate.compiled import compiled


@compiled
def count_step(limit, goal_met, terminated, elapsed, goals, truncated, finished):
    """Count a step and its goals in every environment; return whether some episode is over.

    Parameters
    ----------
    limit : int
        Steps of an episode.
    goal_met, terminated : (N,) bool arrays
        What the step brought.
    elapsed, goals : (N,) int arrays
        Steps and goals of the running episodes, changed in place.
    truncated, finished : (N,) bool arrays
        Receive whose episode has reached the limit, and whose is over.
    """
    some = False
    for i in range(elapsed.size):
        elapsed[i] += 1
        goals[i] += goal_met[i]
        truncated[i] = elapsed[i] >= limit
        finished[i] = truncated[i] or terminated[i]
        some = some or finished[i]
    return some
