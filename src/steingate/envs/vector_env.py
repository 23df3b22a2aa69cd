"""Vector environment over any Gymnasium environments, with the interface of the native tasks.

The environments are stepped in this process or by worker processes (:mod:`steingate.envs.worker_pool`), with the same
results. Seeds are passed on modulo 2**32, the range of older random generators. The reset at the end of an episode
passes no seed, so the environment's own generator continues: epochs that start from a seeded reset are reproducible if
the environment depends on nothing but its seed and its actions.
"""

from collections.abc import Callable, Sequence
from math import inf
from typing import Any

import numpy as np
from gymnasium.spaces import Box, Discrete
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space
from numpy.typing import ArrayLike, NDArray

from steingate.envs.adapters import EnvAdapter, observation_layout
from steingate.envs.worker_pool import SLOW_STEP_SECONDS, LocalEnvs, WorkerPool, measure_step
from steingate.errors import InputError
from steingate.tasks.validation import check_seeds, usable_cores

Array = NDArray[np.float64]


class AdapterVectorEnv(VectorEnv[Array, Array, NDArray[Any]]):
    """Several environments as one vector environment with same-step autoreset and ``info["cost"]``.

    Observations are flat float64 vectors; actions are flat Boxes or those of a Discrete space. ``info["cost"]`` holds
    the cost of every step. Where an episode ended, the last observation is the row of ``info["final_obs"]`` (valid
    where ``info["_final_obs"]``); the last info is in ``info["final_info"]``. ``messages`` are sentences for the user.

    Parameters
    ----------
    factory : makes one environment
    num_envs : number of environments
    name : name of the environment in error messages
    workers : number of worker processes; 1 steps all environments in this process, None measures what is faster
    remote : name and options with which worker processes make the environments; None if they cannot
    max_processes : upper bound of the measured number of processes; the number of usable cores by default
    **options : ``cost`` and ``max_episode_steps`` of :class:`~steingate.envs.adapters.EnvAdapter`
    """

    worker_pool: LocalEnvs | WorkerPool

    def __init__(
        self, factory: Callable[[], Any], num_envs: int, *, name: str, workers: int | None = 1,
        remote: tuple[str, dict[str, Any]] | None = None, max_processes: int | None = None, **options: Any,
    ) -> None:  # fmt: skip
        if workers is not None and workers < 1:
            raise InputError(f"workers is {workers}: a positive number is expected, or none to measure.")
        self.name, self.num_envs, self.messages = name, num_envs, list[str]()

        def make_adapter() -> EnvAdapter:
            return EnvAdapter(factory(), name, **options)

        count = min(num_envs, workers or max_processes or len(usable_cores()))
        pool = None
        if count > 1:
            first = make_adapter()
            seconds = inf if workers else measure_step(first)
            first.close()
            pool = self._start_pool(remote, count) if seconds >= SLOW_STEP_SECONDS else None
            if pool is not None and workers is None:
                self.messages = [f"A step takes {seconds * 1e3:.2g} ms: {count} processes step the environments."]
        if pool is None:
            self.worker_pool = LocalEnvs([make_adapter() for _ in range(num_envs)])
            first = self.worker_pool.adapters[0]
        else:
            self.worker_pool = pool
        self.max_episode_steps = first.max_episode_steps
        self.single_observation_space = first.observation_space
        self.single_action_space = first.action_space
        given = first.env.observation_space
        vector = isinstance(given, Box) and len(given.shape) == 1
        self.observation_layout = None if vector else observation_layout(given, name)
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self.metadata = {**getattr(first.env, "metadata", {}), "autoreset_mode": AutoresetMode.SAME_STEP}
        self.render_mode = getattr(first.env, "render_mode", None)
        self._observations = np.zeros((num_envs, *self.single_observation_space.shape))

    def _start_pool(self, remote: tuple[str, dict[str, Any]] | None, count: int) -> WorkerPool | None:
        """Return a pool of worker processes, or None with a message if they cannot make the environments."""
        if remote is None:
            reason = "others cannot import the environment; put it into a file and pass env='./FILE.py:NAME'."
        else:
            try:
                return WorkerPool(*remote, self.name, self.num_envs, count)
            except Exception as error:
                reason = str(error)
        self.messages = [f"All environments are stepped in one process: {reason}"]
        return None

    @property
    def current_env(self) -> int | None:
        """Index of the environment that was called last; names the environment in error messages."""
        return self.worker_pool.current_env

    def reset(
        self, *, seed: int | Sequence[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Array, dict[str, Any]]:
        """Start new episodes; an integer seed means ``seed + i`` for environment i.

        ``options["reset_mask"]``, a boolean array (N,), restricts the reset to some environments.
        """
        infos: dict[str, Any] = {}
        seeds = [None if one is None else one % 2**32 for one in check_seeds(seed, self.num_envs)]
        options = dict(options or {})
        mask = options.pop("reset_mask", np.ones(self.num_envs, np.bool_))
        given = [(one, options or None) if chosen else None for one, chosen in zip(seeds, mask, strict=True)]
        for i, result in enumerate(self.worker_pool.call("reset", given)):
            if result is not None:
                self._observations[i] = result.obs
                infos = self._add_info(infos, result.info, i)
        return self._observations.copy(), infos

    def step(self, actions: ArrayLike) -> tuple[Array, Array, NDArray[np.bool_], NDArray[np.bool_], dict[str, Any]]:
        """Step every environment once and reset those whose episode ended."""
        results = self.worker_pool.call("step", [(action,) for action in self._check_actions(actions)])
        obs, rewards, costs, terminated, truncated, step_infos, last_obs = map(list, zip(*results, strict=True))
        self._observations[:] = obs
        infos: dict[str, Any] = {}
        final_infos: dict[str, Any] = {}
        final_obs = np.zeros_like(self._observations)
        for i, (info, last) in enumerate(zip(step_infos, last_obs, strict=True)):
            infos = self._add_info(infos, info, i)
            if last is not None:
                final_infos = self._add_info(final_infos, {**info, "cost": costs[i]}, i)
                final_obs[i] = last
        ended = np.array(terminated) | np.array(truncated)
        infos |= {"cost": np.array(costs), "_cost": np.ones(self.num_envs, np.bool_)}
        if ended.any():
            infos |= {"final_obs": final_obs, "_final_obs": ended}
            infos |= {"final_info": final_infos, "_final_info": ended.copy()}
        return self._observations.copy(), np.array(rewards), np.array(terminated), np.array(truncated), infos

    def render(self) -> tuple[Any, ...]:
        """Return one frame per environment."""
        return tuple(self.worker_pool.call("render", [()] * self.num_envs))

    def snapshot(self) -> dict[str, NDArray[Any]]:
        """Return the whole state, if the environments implement ``snapshot`` and ``restore``."""
        states, elapsed = zip(*self.worker_pool.call("snapshot", [()] * self.num_envs), strict=True)
        return {
            "elapsed": np.array(elapsed, np.int64),
            "observations": self._observations.copy(),
            **{f"env{i}/{key}": value for i, state in enumerate(states) for key, value in state.items()},
        }

    def restore(self, snapshot: dict[str, NDArray[Any]]) -> Array:
        """Return to a snapshot; return its observations."""
        elapsed = snapshot["elapsed"]
        if elapsed.shape != (self.num_envs,):
            raise InputError(f"This snapshot holds {elapsed.size} environments: {self.num_envs} are expected.")
        states = [
            {key.removeprefix(prefix): value for key, value in snapshot.items() if key.startswith(prefix)}
            for prefix in (f"env{i}/" for i in range(self.num_envs))
        ]
        self.worker_pool.call("restore", list(zip(states, elapsed.tolist(), strict=True)))
        self._observations[:] = snapshot["observations"]
        return self._observations.copy()

    def close_extras(self, **kwargs: Any) -> None:
        """Close the environments, and end worker processes."""
        if hasattr(self, "worker_pool"):
            self.worker_pool.close()

    def _check_actions(self, actions: ArrayLike) -> NDArray[Any]:
        """Return one valid action per environment, or raise InputError."""
        space, array = self.single_action_space, np.asarray(actions, np.float64)
        if array.shape != self.action_space.shape:
            raise InputError(f"Actions for {self.name!r} have shape {array.shape}, not {self.action_space.shape}.")
        if isinstance(space, Discrete):
            low, high = space.start, space.start + space.n - 1
            wrong = (array < low) | (array > high) | (array != np.floor(array))
            expected = f"a whole number from {low} to {high} is"
        else:
            wrong, expected = ~np.isfinite(array).all(axis=1), "finite numbers are"
        if wrong.any():
            i = int(wrong.argmax())
            given = array[i].tolist()
            raise InputError(f"The action for environment {i} of {self.name!r} is {given}: {expected} expected.")
        return array.astype(np.int64) if isinstance(space, Discrete) else array
