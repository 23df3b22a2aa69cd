"""Which episodes of an epoch count, so that those which end early do not count too often."""

from typing import NamedTuple

import numpy as np

from steingate.errors import InputError
from steingate.gates.base import Episodes


class Counted(NamedTuple):
    """The episodes that count, and whether their selection keeps early ends from being counted too often."""

    episodes: Episodes
    unbiased: bool


def count_episodes(episodes: Episodes, steps: int, longest: int | None) -> Counted:
    """Return the episodes that began in the epoch, early enough to finish in it however long they might be.

    An episode that is still running at the end of an epoch is not finished and so not seen. Near the end only
    short episodes finish: counting all that did counts those which end early too often. One that began at
    step ``steps - longest`` or before is seen whatever its length. Those that were carried over from the
    epoch before (negative starts) are left out: only long ones are still running when an epoch ends, and
    they began under another policy.

    What stays random is how many count: whether a further episode begins in time depends on the lengths
    before it, though not on its own, so Wald's identity holds and the mean is right to first order.

    All episodes are returned, with ``unbiased`` false, where this cannot be done: when the longest possible
    length or the starts are not known, when ``longest > steps``, so that no episode is certain to finish, and
    when none is left.

    Parameters
    ----------
    episodes
        Finished in the epoch; ``start`` is the step of the epoch, from 0, at which each began in its own
        environment, negative when it was carried over.
    steps
        Steps of every environment in the epoch.
    longest
        The most steps an episode can have (its time limit), or ``None`` when there is no known limit; the
        longest length seen so far is no limit, but the nearest thing to one.

    Examples
    --------
    >>> import numpy as np
    >>> cost, length, start = np.array([3.0, 9.0, 1.0]), np.array([40, 100, 10]), np.array([0, 0, 140])
    >>> seen = Episodes(cost, cost, length, start=start)
    >>> count_episodes(seen, steps=150, longest=100).episodes.cost
    array([3., 9.])
    """
    if steps < 1:
        raise InputError(f"steps is {steps!r}; give the steps of each environment in an epoch, at least 1.")
    if longest is not None and longest < 1:
        raise InputError(f"longest is {longest!r}; give the longest possible episode, at least 1 step.")
    start = episodes.start
    if start is None or longest is None or longest > steps:
        return Counted(episodes, False)
    if len(start) != len(episodes.cost):
        raise InputError(
            f"There are {len(start)} starts for {len(episodes.cost)} episodes; give one for each."
        )
    early = (start >= 0) & (start <= steps - longest)
    if early.all() or not early.any():
        return Counted(episodes, bool(early.all()))
    ratio = episodes.log_ratio
    if ratio is not None:  # remembered episodes come first, those of this epoch last
        ratio = np.concatenate([ratio[: len(ratio) - len(early)], ratio[len(ratio) - len(early) :][early]])
    return Counted(
        Episodes(episodes.cost[early], episodes.ret[early], episodes.length[early], ratio, start[early]), True
    )
