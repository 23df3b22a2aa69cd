"""What a step and an algorithm are: pure functions that move the policy once, as a gate's decision asks."""

from collections.abc import Callable
from math import inf, log
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from steingate.gates.account import Account
from steingate.gates.base import Array, Decision, Gate, Log, State

__all__ = [
    "Algorithm",
    "Batch",
    "Decision",
    "Gate",
    "Log",
    "Memory",
    "Params",
    "State",
    "Step",
    "eased",
    "first_bad",
    "priced",
]

Params = dict[
    str, Any
]  # {"w": (W1, W2, ...), "b": (b1, b2, ...)}, and "log_std" for a Gaussian policy; float32 NumPy arrays


S = TypeVar("S")


class Batch(NamedTuple):
    """What a policy step may look at: N samples of one epoch as float32 arrays."""

    obs: np.ndarray  # (N, d) as normalized when it was collected
    act: np.ndarray  # (N, a) as sampled: not clipped, not scaled; (N, 1) numbers of choices, from 0
    logp: np.ndarray  # (N,) log-density of ``act`` under the policy that collected it
    adv: np.ndarray  # (N,) reward advantage, standardized
    cost_adv: np.ndarray  # (N,) cost advantage, centered
    weight: np.ndarray | None = None  # (N,) how often each sample counts; None for once each
    scale: float = 1.0  # deviation of the reward advantages before they were standardized


class Step(NamedTuple, Generic[S]):
    """Two pure functions: the first state, and the moved policy with the next state and numbers to log."""

    init: Callable[[Params], S]
    move: Callable[[S, Params, Batch, Decision], tuple[Params, S, Log]]
    passes: Callable[[S], int] | None = None
    """For steps that make passes over the batch: how many the last one made, which the critics repeat."""


def priced(batch: Batch, price: Any, same_unit: bool = False) -> Any:
    """Return the advantage of reward - ``price`` times cost, divided by 1 + price.

    With ``same_unit`` both are in the units of the task, so that it is the advantage of a penalized reward;
    otherwise a standardized reward advantage meets a cost advantage that is only centered.
    """
    reward = batch.adv * batch.scale if same_unit else batch.adv
    return (reward - price * batch.cost_adv) / (1.0 + price)


Seen = tuple[npt.NDArray[np.float32], npt.NDArray[np.float32], npt.NDArray[np.float32]]
"""Observations (T, E, d), actions (T, E, a) and their log-densities (T, E) of a rollout."""


class Memory(NamedTuple, Generic[S]):
    """Two pure functions that remember whole episodes for a gate."""

    init: Callable[[int, int, int], S]
    """From the numbers of environments, observations and actions: the first state."""
    recall: Callable[[S, Params, Seen, npt.NDArray[np.int64], bool], tuple[Array, S]]
    """From a state, a policy, a rollout, where its episodes finished (step, environment), and whether they
    are carried over the end of an epoch: ``Episodes.log_ratio`` and the next state."""


class Algorithm(NamedTuple):
    """A gate and a step; what else a method needs is one of the optional parts."""

    gate: Gate[Any]
    step: Step[Any]
    account: Account | None = None
    """What the environments add to the observation and do to the reward."""
    tail: Callable[[Array, Decision], Array] | None = None
    """A function of the episode's cost so far; its increments are the cost that the policy learns from."""
    replay: Callable[[Array], tuple[Array, npt.NDArray[np.float32] | None, Log]] | None = None
    """From the reward advantages (T, E): the ones to follow (T * E), and how often each transition counts."""
    memory: Memory[Any] | None = None
    uses_cost: bool = True
    """Whether the cost critic is worth fitting."""
    first_budget: float = 1.0
    """Share of the budget that the episodes of the first epoch start with."""
    notes: tuple[str, ...] = ()
    """What the user should know before the first epoch, one sentence each."""


def eased(before: Params, after: Params, decision: Decision) -> Params:
    """Return the policy on the way from ``before`` to ``after``, as far as a decision lets it go.

    That is ``decision.part`` of the way, with no action's standard deviation above ``decision.noise``.
    """
    if decision.part < 1.0:
        after = _between(before, after, np.float32(decision.part))
    if decision.noise == inf or "log_std" not in after:
        return after
    return {**after, "log_std": np.minimum(np.asarray(after["log_std"]), np.float32(log(decision.noise)))}


def _between(before: Any, after: Any, part: np.float32) -> Any:
    """Return the parameters that lie this part of the way from some to others."""
    if isinstance(after, dict):
        return {name: _between(before[name], value, part) for name, value in after.items()}
    if isinstance(after, tuple | list):
        return type(after)(_between(old, new, part) for old, new in zip(before, after, strict=True))
    old = np.asarray(before)
    return old + part * (np.asarray(after) - old)


def first_bad(quantities: dict[str, Any]) -> str | None:
    """Return the name of the first quantity that holds a NaN or an infinity, or None.

    Parameters
    ----------
    quantities
        Name to number, array, or nested dict or tuple of arrays (parameters).
    """
    for name, value in quantities.items():
        if isinstance(value, dict):
            parts: dict[str, Any] = {f"{name}/{key}": part for key, part in value.items()}
        elif isinstance(value, (tuple, list)):
            parts = {f"{name}/{index}": part for index, part in enumerate(value)}
        elif np.isfinite(np.asarray(value)).all():
            continue
        else:
            return name
        bad = first_bad(parts)
        if bad is not None:
            return bad
    return None
