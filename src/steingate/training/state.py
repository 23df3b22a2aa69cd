"""TrainState: the state between two epochs, and its conversion to and from the tree of a checkpoint."""

from concurrent.futures import Future
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from steingate.algorithms.base import Algorithm, EnvParams, Params, State
from steingate.algorithms.common.critics import Critics, init_critics
from steingate.algorithms.common.networks import init_policy
from steingate.algorithms.common.ppo_update import Adam
from steingate.errors import RunError
from steingate.monitoring.state import as_count
from steingate.policies.action_space import discrete_actions, n_outputs
from steingate.policies.normalizer import Stats, init_stats
from steingate.training.algorithm_checks import check_state
from steingate.training.background import completed
from steingate.training.config import RunConfig
from steingate.training.environment import TrainerEnv
from steingate.training.logging.rows import Window
from steingate.training.rollout import Carry
from steingate.training.seeding import Purpose, stream
from steingate.training.selection import SelectionState, selection_from_tree


class TrainState(NamedTuple):
    """All state that one epoch hands to the next; a checkpoint stores exactly this."""

    epoch: int
    policy: Params
    algorithm: State  # of the algorithm: gate and optimizer
    critics: "Future[Critics]"  # may still be fitted by another thread
    stats: Stats  # of observations
    window: Window  # last episodes, for the log
    finished: int  # number of finished episodes: rows of episodes.csv
    carry: Carry | None  # running episodes, if they continue in the next epoch
    env_state: dict[str, npt.NDArray[Any]] | None  # and the state of their environments
    selection: SelectionState = SelectionState()  # of the certified checkpoint; not used by epochs


def first_state(cfg: RunConfig, algorithm: Algorithm, envs: TrainerEnv) -> TrainState:
    """Return the state before the first epoch."""
    networks, space, obs_dim = algorithm.networks, envs.single_action_space, envs.single_observation_space.shape[0]
    discrete = discrete_actions(space) is not None
    rngs = {purpose: stream(cfg.seed, 0, purpose) for purpose in Purpose}
    policy = init_policy(rngs[Purpose.POLICY], obs_dim, n_outputs(space), networks.hidden, discrete, networks.init_std)
    critics = init_critics(rngs[Purpose.REWARD_CRITIC], rngs[Purpose.COST_CRITIC], obs_dim, networks.hidden)
    has_safety_state = algorithm.safety_state(cfg.context, EnvParams()) is not None
    stats = init_stats(obs_dim - has_safety_state)  # the safety state is not normalized
    own = check_state(algorithm, "init", algorithm.init(cfg.context, policy))
    return TrainState(
        0, policy, own, completed(critics), stats, np.zeros((0, 3)), finished=0, carry=None, env_state=None
    )


def to_tree(state: TrainState) -> dict[str, Any]:
    """Return the state as plain data, waiting for the critics if they are still being fitted."""
    tree = {**state._asdict(), "critics": state.critics.result(), "stats": state.stats._asdict()}
    return {name: plain(value) for name, value in tree.items()}


def from_tree(tree: dict[str, Any], first: TrainState, name: str) -> TrainState:
    """Return the state in a checkpoint's tree, with the types and shapes of the run's first state."""
    try:
        stats = tree["stats"]
        mean, m2 = (_like(getattr(first.stats, key), stats[key]) for key in ("mean", "m2"))
        return TrainState(
            epoch=as_count(tree["epoch"]), policy=_like(first.policy, tree["policy"]),
            algorithm=_like(first.algorithm, tree["algorithm"], fixed=False),
            critics=completed(_like(first.critics.result(), tree["critics"])), stats=Stats(stats["count"], mean, m2),
            window=_like(first.window, tree["window"], fixed=False), finished=as_count(tree["finished"]),
            carry=None if tree["carry"] is None else Carry(*tree["carry"]),
            env_state=None if tree["env_state"] is None else dict(tree["env_state"]),
            selection=selection_from_tree(tree["selection"], lambda policy: _like(first.policy, policy)),
        )  # fmt: skip
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
    """Return ``value`` with the types of ``model``; shapes are those of ``model`` if ``fixed`` or of an optimizer."""
    fixed = fixed or isinstance(model, Adam)
    if isinstance(model, dict):
        if not isinstance(value, dict) or model.keys() != value.keys():
            raise ValueError(f"it lacks one of {', '.join(model)}")
        return {key: _like(model[key], item, fixed) for key, item in value.items()}  # in the order of the file
    if isinstance(model, tuple | list):
        if not isinstance(value, list) or len(model) != len(value):
            raise ValueError("one of its sequences has a different length")
        items = [_like(item, other, fixed) for item, other in zip(model, value, strict=True)]
        return type(model)(*items) if hasattr(model, "_fields") else type(model)(items)
    if hasattr(model, "dtype"):
        array = np.asarray(value)
        if array.dtype != model.dtype or (fixed and array.shape != np.shape(model)):
            found, expected = (f"{each.dtype}{list(np.shape(each))}" for each in (array, model))
            raise ValueError(f"it has an array {found} instead of {expected}")
        return array
    if isinstance(value, np.ndarray | dict | list):
        raise ValueError(f"it has a {type(value).__name__} instead of a number")
    return value
