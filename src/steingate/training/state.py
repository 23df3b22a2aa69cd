"""TrainState: all that one epoch hands to the next, and its way into a checkpoint and back."""

from concurrent.futures import Future
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from steingate.algorithms.common.base import Algorithm, Params
from steingate.errors import InputError, RunError
from steingate.gates.base import State
from steingate.policies.normalizer import Stats, init_stats
from steingate.training.candidates import Kept, kept_from
from steingate.training.config import RunConfig
from steingate.training.fitting import Critics, init_critics
from steingate.training.logging.rows import Window, empty_window
from steingate.training.rollout import Carry
from steingate.training.seeding import Purpose, stream


class TrainState(NamedTuple):
    """The state between two epochs; saving it, and nothing else, is what a checkpoint does."""

    epoch: int
    policy: Params
    step: State
    gate: State
    critics: "Future[Critics]"  # perhaps still being fitted on another thread
    stats: Stats  # of observations
    window: Window  # last episodes, for the log
    finished: int  # episodes finished so far: rows of episodes.csv
    budget: float  # share of its budget that an episode may spend
    memory: State  # episodes that the algorithm remembers
    carry: Carry | None  # running episodes, when they outlive an epoch
    world: dict[str, npt.NDArray[Any]] | None  # and the environments they run in
    worth: float = 0.0  # size of an episode's return, where a price on cost is counted in returns
    kept: Kept = Kept()  # candidates for the policy to deliver; an epoch does not touch them


def finished(value: Critics) -> "Future[Critics]":
    """Return a future that already holds ``value``."""
    future: Future[Critics] = Future()
    future.set_result(value)
    return future


def first_state(
    cfg: RunConfig, algo: Algorithm, obs_dim: int, act_dim: int, discrete: bool = False
) -> TrainState:
    """Return the state before the first epoch.

    What an account adds to an observation, at its end, is never normalized. With ``discrete``, ``act_dim`` is
    the number of choices.
    """
    from steingate.algorithms.common.networks import init_policy

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
        stats=init_stats(obs_dim - (algo.account is not None)),
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
    """Return the state a checkpoint's tree holds, in the types and shapes of the run's first state."""
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
            worth=tree.get("worth", 0.0),
            kept=kept_from(tree.get("kept"), lambda policy: _like(first.policy, policy)),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise RunError(f"Checkpoint {name} does not belong to this run: {error}.") from error


def plain(value: Any) -> Any:
    """Return a tree of parameters with every array as NumPy's."""
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, tuple | list):
        return [plain(item) for item in value]
    if value is None or isinstance(value, bool | int | float | str):
        return value
    return np.asarray(value)


def _like(model: Any, value: Any, fixed: bool = True) -> Any:
    """Return ``value`` in the types of ``model``, and if ``fixed`` in the shapes of its arrays."""
    if isinstance(model, dict):
        if not isinstance(value, dict) or model.keys() != value.keys():
            raise ValueError(f"it lacks one of {', '.join(model)}")
        return {key: _like(item, value[key], fixed) for key, item in model.items()}
    if isinstance(model, tuple | list):
        if not isinstance(value, list) or len(model) != len(value):
            raise ValueError("a part of it has another length")
        items = [_like(item, other, fixed) for item, other in zip(model, value, strict=True)]
        return type(model)(*items) if hasattr(model, "_fields") else type(model)(items)
    if isinstance(model, np.ndarray | np.generic) or hasattr(model, "dtype"):
        array = np.asarray(value)
        if array.dtype != model.dtype:
            raise ValueError(f"an array of it has the type {array.dtype} instead of {model.dtype}")
        if fixed and array.shape != np.shape(model):
            raise ValueError(f"an array of it has the shape {array.shape} instead of {np.shape(model)}")
        return array
    if isinstance(value, np.ndarray | dict | list):
        raise ValueError("a number of it is something else")
    return value
