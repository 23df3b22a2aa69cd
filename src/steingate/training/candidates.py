"""Which policies of a run are worth a test: the best returns among those whose training episodes look safe.

Training episodes are free but noisy: their actions are sampled and the policy moves on. They only choose;
what is certified is decided by fresh episodes (``trial``).
"""

from collections.abc import Callable
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from steingate.algorithms.common.base import Params
from steingate.gates.tail import cvar
from steingate.policies.normalizer import Stats

SIZE = 6  # of the shortlist
FEWEST = 8  # episodes to judge a policy by; where an epoch has fewer, older ones are taken
TAIL = 0.2  # share of worst episodes that the risk looks at
_AFTER_FAILURE, _AFTER_SUCCESS = 0.8, 1.2  # what a test does to the risk that may be tried next


class Candidate(NamedTuple):
    """A policy and what its training episodes looked like."""

    epoch: int  # policy updates before it
    risk: float  # mean cost of the worst fifth of its training episodes, in limits
    ret: float  # their mean return
    error: float  # and its standard error
    length: int  # the longest of them
    policy: Params
    stats: Stats
    budget: float


class Trial(NamedTuple):
    """What fresh noise-free episodes of one policy have shown."""

    epoch: int
    episodes: int
    over: int  # of these, over the limit
    ret: float  # mean return
    cost: float  # mean cost
    bound: float  # on P(cost > limit), wrong with probability delta
    delta: float
    certified: bool
    why: str = ""  # why it was given up, when it was not by counting


class Kept(NamedTuple):
    """What a run remembers of its candidates; part of the state that a checkpoint holds."""

    shortlist: tuple[Candidate, ...] = ()  # by risk
    ceiling: float = 1.0  # candidates of more risk are not tried
    tests: int = 0  # so far, which decides what is left of delta
    steps: int = 0  # that they took
    best: tuple[Candidate, Trial] | None = None  # the certified one with the highest return
    closest: Trial | None = None  # the least over the limit of those that were not certified


def judged(
    epoch: int,
    episodes: np.ndarray,
    policy: Params,
    stats: Stats,
    budget: float,
    limit: float,
) -> Candidate:
    """Return a candidate from rows of (return, cost, length), oldest first."""
    ret, cost, length = np.asarray(episodes, np.float64).T
    # A limit of 0 is passed by any cost.
    risk = cvar(cost, TAIL)[0] / limit if limit > 0.0 else float(np.mean(cost > 0.0)) / TAIL
    error = float(ret.std()) / len(ret) ** 0.5
    params = _ordered(policy)
    return Candidate(epoch, float(risk), float(ret.mean()), error, int(length.max()), params, stats, budget)


def added(shortlist: tuple[Candidate, ...], new: Candidate) -> tuple[Candidate, ...]:
    """Return the shortlist with a candidate: those that no other beats in both risk and return, by risk.

    Of candidates whose tail is over the limit at most one stays, the least risky, and only while there is no
    other. When there are too many, the one whose return differs least from its neighbor's goes.
    """
    front: list[Candidate] = []
    for one in sorted((*shortlist, new), key=lambda c: (c.risk, -c.ret, c.epoch)):
        if not front or one.ret > front[-1].ret:
            front.append(one)
    front = [one for one in front if one.risk <= 1.0] or front[:1]
    while len(front) > SIZE:
        gaps = [after.ret - before.ret for before, after in pairwise(front[:-1])]
        del front[1 + int(np.argmin(gaps))]
    return tuple(front)


def promising(kept: Kept) -> Candidate | None:
    """Return the candidate to test next: the best under the ceiling, if it beats the certified one."""
    allowed = [one for one in kept.shortlist if one.risk <= kept.ceiling]
    head = max(allowed, key=lambda one: one.ret, default=None)
    if head is None or (kept.best is not None and head.ret <= kept.best[0].ret + head.error):
        return None
    return head


def after_trial(kept: Kept, candidate: Candidate, trial: Trial, steps: int) -> Kept:
    """Return what is kept after a test of a candidate, which leaves the shortlist."""
    kept = kept._replace(
        shortlist=tuple(one for one in kept.shortlist if one.epoch != candidate.epoch),
        tests=kept.tests + 1,
        steps=kept.steps + steps,
    )
    if trial.certified:
        better = kept.best is None or trial.ret > kept.best[1].ret
        ceiling = max(kept.ceiling, min(1.0, _AFTER_SUCCESS * candidate.risk))
        return kept._replace(best=(candidate, trial) if better else kept.best, ceiling=ceiling)
    nearer = kept.closest is None or trial.bound < kept.closest.bound
    ceiling = min(kept.ceiling, _AFTER_FAILURE * candidate.risk)
    return kept._replace(closest=trial if nearer else kept.closest, ceiling=ceiling)


def kept_from(tree: Any, params: Callable[[Any], Params]) -> Kept:
    """Return what a checkpoint's tree holds; one from before there were candidates holds nothing.

    ``params`` gives the parameters of a policy their types.
    """
    if tree is None:
        return Kept()

    def candidate(values: list[Any]) -> Candidate:
        epoch, risk, ret, error, length, policy, stats, budget = values
        return Candidate(epoch, risk, ret, error, length, _ordered(params(policy)), Stats(*stats), budget)

    shortlist, ceiling, tests, steps, best, closest = tree
    return Kept(
        tuple(candidate(one) for one in shortlist),
        ceiling,
        tests,
        steps,
        None if best is None else (candidate(best[0]), Trial(*best[1])),
        None if closest is None else Trial(*closest),
    )


def _ordered(policy: Params) -> Params:
    """Return parameters in one order, whoever made them, so that equal policies are equal files."""
    return {name: policy[name] for name in sorted(policy)}
