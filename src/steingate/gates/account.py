"""What an episode has spent: one number beside the observation, and what it does to the reward.

``Remaining`` is the safety state of Sauté and Simmer, ``Running`` the cost so far, ``Spent`` the same with an
end, below zero: they say what is *seen*.
A :data:`RewardRule` says what happens to the reward once the number is known; without one it stays.
"""

from collections.abc import Callable
from dataclasses import dataclass
from math import inf
from typing import NamedTuple, Protocol

import numpy as np

from steingate.errors import InputError
from steingate.gates.base import Array


def require_budget(name: str, limit: float) -> None:
    """Refuse a limit of 0 for a method whose policy spends a budget."""
    if not limit > 0.0:
        raise InputError(
            f"{name} spends a budget, and a cost_limit of {limit:g} leaves none; for costs in whole numbers "
            "a cost_limit of 0.5 means the same."
        )


class Extra(NamedTuple):
    """How a policy can keep the number without the wrapper: z <- max((z + cost * gain) / discount, floor)."""

    start: float
    gain: float
    discount: float
    floor: float = -inf

    def following(self, number: float, cost: float) -> float:
        """Return the number after a step."""
        return max((number + cost * self.gain) / self.discount, self.floor)

    def plain(self) -> list[float]:
        """Return the numbers to store, without a floor that is not there."""
        return list(self) if self.floor > -inf else list(self[:3])


class Seen(Protocol):
    """How the number begins and follows the cost."""

    def first(self, share: float, after_end: bool) -> float:
        """Return the number at the start of an episode, for a share of the budget."""
        ...

    def following(self, number: Array, cost: Array, share: float) -> Array:
        """Return the number after a step."""
        ...

    def extra(self, share: float) -> Extra:
        """Return the same as plain numbers."""
        ...

    @property
    def true_at_end(self) -> bool:
        """Whether a final observation shows the number of its own episode, not of the next."""
        ...


RewardRule = Callable[[Array, Array, Array, float, float], Array]
"""From the number after a step, the reward and cost of the step, the share, and the size of an episode's
return: the reward to learn from."""


class Account(NamedTuple):
    """What the policy sees of its spending, and what that does to the reward."""

    seen: Seen
    reward: RewardRule | None = None


def unsafe_reward(value: float) -> RewardRule:
    """Return the rule that pays the reward while some budget is left, and ``value`` afterwards."""

    def reward(number: Array, reward: Array, cost: Array, share: float, worth: float) -> Array:
        del cost, share, worth
        return np.where(number > 0.0, reward, value)

    return reward


def priced_beyond(price: float, early: float = 0.0, kept: float = 0.0, least: float = 0.0) -> RewardRule:
    """Return the rule that pays the reward while allowance is left, and takes q / m^2 per cost later.

    The allowance is a share m of the limit, and the number what is :class:`Spent`, in limits: from -m down it
    is used up. The tighter the allowance, the dearer what exceeds it. q is ``price``, and at least the part
    ``least`` of the worth of an episode, so that cost matters whatever the unit of the reward. ``early`` is
    the part of that which cost takes already while some allowance is left, ``kept`` the part of the reward
    that still counts once it is spent. With the whole reward kept, an episode earns its return less a convex
    function of its cost: flatter up to the allowance than beyond.
    """

    def reward(number: Array, reward: Array, cost: Array, share: float, worth: float) -> Array:
        paid = max(price, least * worth) / share**2 * cost
        return np.where(number > -share, reward - early * paid, kept * reward - paid)

    return reward


@dataclass(frozen=True)
class Remaining:
    """The share of a cost budget that is left: z <- (z - cost / budget) / discount, from 1 at the start.

    ``budget`` is the limit, discounted over an episode. A controlled share of it (Simmer) is where z starts,
    and the scale stays ``budget``. Three flags hold what the published code does instead.
    """

    budget: float
    discount: float = 0.999
    true_at_end: bool = True  # published: a final observation shows the number of the next episode
    scale_by_share: bool = False  # published: the cost is divided by the controlled budget
    restart_full: bool = False  # published: after an episode within an epoch z starts at 1

    def first(self, share: float, after_end: bool) -> float:
        """Return the number at the start of an episode."""
        return 1.0 if after_end and self.restart_full else share

    def following(self, number: Array, cost: Array, share: float) -> Array:
        """Return the number after a step."""
        scale = self.budget * share if self.scale_by_share else self.budget
        return (number - cost / scale) / self.discount

    def extra(self, share: float) -> Extra:
        """Return start, gain and discount; the published code evaluates with the whole budget."""
        share = 1.0 if self.restart_full else share
        scale = self.budget * share if self.scale_by_share else self.budget
        return Extra(self.first(share, False), -1.0 / scale, self.discount)


@dataclass(frozen=True)
class Running:
    """The cost of the episode so far, divided by ``limit``, which must not be 0."""

    limit: float
    true_at_end: bool = True

    def first(self, share: float, after_end: bool) -> float:
        """Return 0."""
        del share, after_end
        return 0.0

    def following(self, number: Array, cost: Array, share: float) -> Array:
        """Return the number after a step."""
        del share
        return number + cost / self.limit

    def extra(self, share: float) -> Extra:
        """Return start, gain and discount."""
        del share
        return Extra(0.0, 1.0 / self.limit, 1.0)


@dataclass(frozen=True)
class Spent:
    """What an episode has spent, in limits, as a debt: z <- z - cost / limit, from 0.

    The share m of an allowance is not in it, so m can move while a policy learns. A number that starts at m
    moves with it, for every observation of an episode without cost, into a range that the policy only knows
    from episodes gone wrong: it then does there what it does in those. ``lowest`` is where z ends: one that
    falls without end drowns all other observations in the network just when they are needed most.
    """

    limit: float
    true_at_end: bool = True
    lowest: float = -inf

    def first(self, share: float, after_end: bool) -> float:
        """Return 0."""
        del share, after_end
        return 0.0

    def following(self, number: Array, cost: Array, share: float) -> Array:
        """Return the number after a step."""
        del share
        return np.maximum(number - cost / self.limit, self.lowest)

    def extra(self, share: float) -> Extra:
        """Return start, gain, discount and floor."""
        del share
        return Extra(0.0, -1.0 / self.limit, 1.0, self.lowest)
