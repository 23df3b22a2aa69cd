"""The environments of a run: the interface that the trainer uses, and how they are made."""

import hashlib
import inspect
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol, cast

import numpy as np
import numpy.typing as npt
from gymnasium.spaces import Box, Discrete

from steingate.algorithms.base import Algorithm, Array, EnvParams
from steingate.envs.make import find_module, make_vec, split_name
from steingate.envs.wrappers import EarlyTerminationWrapper, LidarFeatureWrapper, SafetyStateWrapper
from steingate.errors import InputError
from steingate.training.config import RunConfig

Flags = npt.NDArray[np.bool_]
Info = dict[str, Any]


def source_digest(env: str) -> str | None:
    """Return the SHA-256 of the file that defines an own environment; None for others, and if there is no file."""
    source = getattr(env, "source", env)
    try:
        if isinstance(source, str):
            module, name = split_name(source)
            if not name or module == "python":
                return None  # a registered id, or an object that was not given again
            source = find_module(module)
        file = inspect.getsourcefile(getattr(source, "func", source))
        return hashlib.sha256(Path(file).read_bytes()).hexdigest() if file else None
    except (OSError, TypeError):
        return None


class TrainerEnv(Protocol):
    """A vector environment of E environments with same-step autoreset and ``info["cost"]``.

    ``info["final_obs"]`` holds the last observations of episodes that ended, and ``info["original_reward"]``
    the true reward where the one returned is another.
    """

    num_envs: int

    @property
    def single_observation_space(self) -> Box:
        """The space of one observation, a vector."""

    @property
    def single_action_space(self) -> Box | Discrete:
        """The space of one action: a vector, or a discrete action."""

    @property
    def current_env(self) -> int | None:
        """Index of the environment called last, if they are called one by one; for messages."""

    def reset(self, *, seed: Sequence[int] | int | None = None) -> tuple[Array, Info]:
        """Start new episodes everywhere."""

    def step(self, actions: Array) -> tuple[Array, Array, Flags, Flags, Info]:
        """Take actions (E, a), or (E,) integers; return observations, rewards, terminated, truncated, info."""

    def snapshot(self) -> dict[str, npt.NDArray[Any]]:
        """Return the whole state, also within an episode; not every environment can."""

    def restore(self, snapshot: Mapping[str, npt.NDArray[Any]]) -> Array:
        """Go back to a snapshot and return the observations that were current then."""

    def close(self) -> None:
        """Close the environments."""


def new_messages(envs: TrainerEnv) -> tuple[str, ...]:
    """Return messages of the environments that were not returned before."""
    waiting: list[str] = getattr(envs, "messages", [])
    messages = tuple(waiting)
    waiting.clear()
    return messages


def make_envs(
    cfg: RunConfig, num_envs: int | None = None, params: EnvParams | None = None, training: bool = False, **options: Any
) -> TrainerEnv:
    """Return the vector environment of a run, with the observation and reward of its algorithm.

    ``params`` are those of the algorithm's safety state and reward, and ``options`` are further options of the
    environment. With ``training``, the algorithm may end episodes.
    """
    threads = {} if cfg.threads is None else {"threads": cfg.threads}
    own = {"copy": False, "workers": cfg.workers, **threads, **cfg.env_options, **options}
    envs: Any = make_vec(cfg.env, num_envs or cfg.num_envs, **own)
    algorithm, networks, params = cfg.algo, cfg.algo.networks, params or EnvParams()
    if networks.lidar_powers or networks.lidar_positions:
        envs = LidarFeatureWrapper(envs, networks.lidar_powers, networks.lidar_positions)
    if training and type(algorithm).ends_episode is not Algorithm.ends_episode:
        envs = EarlyTerminationWrapper(envs, algorithm, cfg.context)
    if algorithm.safety_state(cfg.context, params) is not None:
        envs = SafetyStateWrapper(envs, algorithm, cfg.context, params)
    return cast(TrainerEnv, envs)


def set_params(envs: TrainerEnv, params: EnvParams) -> None:
    """Pass an algorithm's parameters to its environments, if they have a safety state."""
    getattr(envs, "set_params", lambda params: None)(params)


def require_snapshots(cfg: RunConfig, envs: TrainerEnv) -> None:
    """Refuse ``carry_episodes`` if the environments cannot be saved within an episode."""
    if cfg.carry_episodes:
        envs.reset(seed=0)
        try:
            envs.snapshot()
        except AttributeError as error:
            message = f"carry_episodes needs an environment that can be saved, and {cfg.env} has no snapshot()."
            raise InputError(message) from error
