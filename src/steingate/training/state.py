"""TrainState: the state between two epochs, and its conversion to and from the tree of a checkpoint."""

from concurrent.futures import Future
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from steingate.algorithms.common.base import Algorithm, Params
from steingate.algorithms.common.networks import init_policy
from steingate.errors import InputError, RunError
from steingate.gates.base import State
from steingate.policies.normalizer import Stats, init_stats
from steingate.training.config import RunConfig
from steingate.training.fitting import Critics, init_critics
from steingate.training.logging.rows import Window, empty_window
from steingate.training.rollout import Carry
from steingate.training.seeding import Purpose, stream
from steingate.training.selection import SelectionState, selection_from_tree


class TrainState(NamedTuple):
    """All state that one epoch hands to the next; a checkpoint stores exactly this."""

    epoch: int
    policy: Params
    step: State
    gate: State
    critics: "Future[Critics]"  # may still be fitted by another thread
    stats: Stats  # of observations
    window: Window  # last episodes, for the log
    finished: int  # number of finished episodes: rows of episodes.csv
    budget: float  # fraction of the cost budget that an episode may spend
    memory: State  # episodes that the algorithm remembers
    carry: Carry | None  # running episodes, if they continue in the next epoch
    world: dict[str, npt.NDArray[Any]] | None  # and the state of their environments
    worth: float = 0.0  # size of an episode's return, for cost penalties in units of returns
    selection: SelectionState = SelectionState()  # of the certified checkpoint; not used by epochs


def finished(value: Critics) -> "Future[Critics]":
    """Return a completed future with the given result."""
    future: Future[Critics] = Future()
    future.set_result(value)
    return future


def first_state(
    cfg: RunConfig, algo: Algorithm, obs_dim: int, act_dim: int, discrete: bool = False
) -> TrainState:
    """Return the state before the first epoch; ``act_dim`` is the number of actions if they are discrete."""
    if discrete and not cfg.algo.takes_choices:
        raise InputError(f"{cfg.algo.name} needs continuous actions, and those of {cfg.env} are discrete.")
    rng, recipe = stream(cfg.seed, 0, Purpose.POLICY), cfg.algo
    policy = init_policy(rng, obs_dim, act_dim, recipe.hidden, discrete, recipe.first_std)
    size = 1 if discrete else act_dim
    return TrainState(
        epoch=0,
        policy=policy,
        step=algo.step.init(policy),
        gate=algo.gate.init(),
        critics=finished(init_critics(cfg, obs_dim)),
        stats=init_stats(obs_dim - (algo.account is not None)),  # the safety state is not normalized
        window=empty_window(),
        finished=0,
        budget=algo.first_budget,
        memory=() if algo.memory is None else algo.memory.init(cfg.num_envs, obs_dim, size),
        carry=None,
        world=None,
    )


def to_tree(state: TrainState) -> dict[str, Any]:
    """Return the state as plain data, waiting for the critics if they are still being fitted."""
    tree = {**state._asdict(), "critics": state.critics.result(), "stats": state.stats._asdict()}
    return {name: plain(value) for name, value in tree.items()}


def from_tree(tree: dict[str, Any], first: TrainState, name: str) -> TrainState:
    """Return the state in a checkpoint's tree, with the types and shapes of the run's first state."""
    try:
        stats = tree["stats"]
        return TrainState(
            epoch=tree["epoch"],
            policy=_like(first.policy, tree["policy"]),
            step=_like(first.step, tree["step"]),
            gate=_like(first.gate, tree["gate"], fixed=False),
            critics=finished(_like(first.critics.result(), tree["critics"])),
            stats=Stats(
                stats["count"], _like(first.stats.mean, stats["mean"]), _like(first.stats.m2, stats["m2"])
            ),
            window=tree["window"],
            finished=tree["finished"],
            budget=tree["budget"],
            memory=_like(first.memory, tree["memory"], fixed=False),
            carry=None if tree["carry"] is None else Carry(*tree["carry"]),
            world=tree["world"],
            worth=tree["worth"],
            selection=selection_from_tree(tree["selection"], lambda policy: _like(first.policy, policy)),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise RunError(f"Checkpoint {name} does not belong to this run: {error}.") from error


def plain(value: Any) -> Any:
    """Return a tree with tuples as lists and every array as a NumPy array."""
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, tuple | list):
        return [plain(item) for item in value]
    if value is None or isinstance(value, bool | int | float | str):
        return value
    return np.asarray(value)


def _like(model: Any, value: Any, fixed: bool = True) -> Any:
    """Return ``value`` with the types of ``model``, and with the shapes of its arrays if ``fixed``."""
    if isinstance(model, dict):
        if not isinstance(value, dict) or model.keys() != value.keys():
            raise ValueError(f"it lacks one of {', '.join(model)}")
        return {key: _like(item, value[key], fixed) for key, item in model.items()}
    if isinstance(model, tuple | list):
        if not isinstance(value, list) or len(model) != len(value):
            raise ValueError("one of its sequences has a different length")
        items = [_like(item, other, fixed) for item, other in zip(model, value, strict=True)]
        return type(model)(*items) if hasattr(model, "_fields") else type(model)(items)
    if isinstance(model, np.ndarray | np.generic) or hasattr(model, "dtype"):
        array = np.asarray(value)
        if array.dtype != model.dtype:
            raise ValueError(f"an array has the type {array.dtype} instead of {model.dtype}")
        if fixed and array.shape != np.shape(model):
            raise ValueError(f"an array has the shape {array.shape} instead of {np.shape(model)}")
        return array
    if isinstance(value, np.ndarray | dict | list):
        raise ValueError(f"it has a {type(value).__name__} instead of a number")
    return value
