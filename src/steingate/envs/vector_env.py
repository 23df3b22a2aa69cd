"""Vector environment over any Gymnasium environments, with the interface of the native tasks.

The environments are stepped in this process or by worker processes (:mod:`steingate.envs.worker_pool`), with the same
results. Seeds are passed on modulo 2**32, the range of older random generators. The reset at the end of an episode
passes no seed, so the environment's own generator continues: epochs that start from a seeded reset are reproducible if
the environment depends on nothing but its seed and its actions.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from gymnasium.spaces import Box, Discrete
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space
from numpy.typing import ArrayLike, NDArray

from steingate.envs.adapters import EnvAdapter, observation_layout
from steingate.envs.worker_pool import UNCHANGED, EnvSpec, SyncWorkers, WorkerPool, choose_num_processes
from steingate.errors import InputError, SteingateError
from steingate.tasks.validation import check_seeds

Array = NDArray[np.float64]


class AdapterVectorEnv(VectorEnv[Array, Array, NDArray[Any]]):
    """Several environments as one vector environment with same-step autoreset and ``info["cost"]``.

    Observations are flat float64 vectors; actions are flat Boxes or those of a Discrete space. ``info["cost"]`` holds
    the cost of every step. Where an episode ended, the last observation is the row of ``info["final_obs"]`` (valid
    where ``info["_final_obs"]``); the last info is in ``info["final_info"]``.

    Parameters
    ----------
    factory : makes one environment
    num_envs : number of environments
    name : name of the environment in error messages
    copy : if False, observations are returned in a buffer that the next step overwrites
    workers : number of worker processes; 1 steps all environments in this process, None measures what is faster
    spec : specification for worker processes; None if they cannot make the environments
    max_processes : upper bound of the measured number of processes; the number of usable cores by default
    **options : ``cost`` and ``max_episode_steps`` of :class:`~steingate.envs.adapters.EnvAdapter`

    Attributes
    ----------
    messages : sentences for the user about the number of processes
    """

    _workers: SyncWorkers | WorkerPool | None = None

    def __init__(
        self, factory: Callable[[], Any], num_envs: int, *, name: str, copy: bool = True, workers: int | None = 1,
        spec: EnvSpec | None = None, max_processes: int | None = None, **options: Any,
    ) -> None:  # fmt: skip
        if workers is not None and workers < 1:
            raise InputError(f"workers is {workers}: a positive number is expected, or none to measure.")
        self.name, self.num_envs, self._copy = name, num_envs, copy
        self.messages: list[str] = []

        def make_adapter() -> EnvAdapter:
            return EnvAdapter(factory(), name, **options)

        first = self._start_workers(make_adapter, workers, spec, max_processes)
        self.max_episode_steps = first.max_episode_steps
        self.single_observation_space = first.observation_space
        self.single_action_space = first.action_space
        given = first.env.observation_space
        vector = isinstance(given, Box) and len(given.shape) == 1
        self.observation_layout = None if vector else observation_layout(given)
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self.metadata = {**getattr(first.env, "metadata", {}), "autoreset_mode": AutoresetMode.SAME_STEP}
        self.render_mode = getattr(first.env, "render_mode", None)
        self._observations = np.zeros((num_envs, *self.single_observation_space.shape))

    def _start_workers(
        self, make_adapter: Callable[[], EnvAdapter], workers: int | None, spec: EnvSpec | None,
        max_processes: int | None,
    ) -> EnvAdapter:  # fmt: skip
        """Make the environments; return one of them, which may already be closed."""
        if self.num_envs > 1 and workers != 1:
            first = make_adapter()
            available = spec is not None
            count, message = choose_num_processes(first, self.num_envs, workers, available, max_processes)
            first.close()
            if message:
                self.messages.append(message)
            if count > 1 and spec is not None:
                try:
                    self._workers = WorkerPool(spec, self.name, self.num_envs, count)
                    return first
                except (SteingateError, OSError) as error:
                    self.messages.append(f"All environments are stepped in one process: {error}")
        sync_workers = SyncWorkers(make_adapter, self.num_envs)
        self._workers = sync_workers
        return sync_workers.envs[0]

    @property
    def envs(self) -> list[Any]:
        """The environments; empty if worker processes hold them."""
        workers = self._workers
        return [adapter.env for adapter in workers.envs] if isinstance(workers, SyncWorkers) else []

    @property
    def worker_pool(self) -> SyncWorkers | WorkerPool:
        """The object that steps the environments."""
        assert self._workers is not None
        return self._workers

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
        if options is not None and "reset_mask" in options:
            options = dict(options)
            mask = options.pop("reset_mask")
            seeds = [each if chosen else UNCHANGED for each, chosen in zip(seeds, mask, strict=True)]
        for i, answer in enumerate(self.worker_pool.reset(seeds, options)):
            if answer is not None:
                self._observations[i] = answer[0]
                infos = self._add_info(infos, answer[1], i)
        return self._output(), infos

    def step(self, actions: ArrayLike) -> tuple[Array, Array, NDArray[np.bool_], NDArray[np.bool_], dict[str, Any]]:
        """Step every environment once and reset those whose episode ended."""
        env_actions = self._check_actions(actions)
        rewards, costs = np.zeros(self.num_envs), np.zeros(self.num_envs)
        terminated, truncated = np.zeros(self.num_envs, np.bool_), np.zeros(self.num_envs, np.bool_)
        infos: dict[str, Any] = {}
        final_infos: dict[str, Any] = {}
        final_obs = np.zeros_like(self._observations)
        for i, result in enumerate(self.worker_pool.step(env_actions)):
            self._observations[i], rewards[i], costs[i] = result.obs, result.reward, result.cost
            terminated[i], truncated[i] = result.terminated, result.truncated
            infos = self._add_info(infos, result.info, i)
            if result.final_obs is not None:
                final_infos = self._add_info(final_infos, {**result.info, "cost": costs[i]}, i)
                final_obs[i] = result.final_obs
        infos["cost"] = costs
        infos["_cost"] = np.ones(self.num_envs, dtype=np.bool_)
        ended = terminated | truncated
        if ended.any():
            infos["final_obs"], infos["_final_obs"] = final_obs, ended
            infos["final_info"], infos["_final_info"] = final_infos, ended.copy()
        return self._output(), rewards, terminated, truncated, infos

    def render(self) -> tuple[Any, ...]:
        """Return one frame per environment."""
        return tuple(self.worker_pool.render())

    def snapshot(self) -> dict[str, NDArray[Any]]:
        """Return the whole state, if the environments implement ``snapshot`` and ``restore``."""
        states = self.worker_pool.snapshot()
        result: dict[str, NDArray[Any]] = {
            "elapsed": np.array([elapsed for _, elapsed in states], dtype=np.int64),
            "observations": self._observations.copy(),
        }
        for i, (state, _) in enumerate(states):
            result.update({f"env{i}/{key}": value for key, value in state.items()})
        return result

    def restore(self, snapshot: dict[str, NDArray[Any]]) -> Array:
        """Return to a snapshot; return its observations."""
        elapsed = snapshot["elapsed"]
        if elapsed.shape != (self.num_envs,):
            raise InputError(f"This snapshot holds {elapsed.size} environments: {self.num_envs} are expected.")
        states = [
            {key.removeprefix(prefix): value for key, value in snapshot.items() if key.startswith(prefix)}
            for prefix in (f"env{i}/" for i in range(self.num_envs))
        ]
        self.worker_pool.restore([(state, int(n)) for state, n in zip(states, elapsed, strict=True)])
        self._observations[:] = snapshot["observations"]
        return self._observations.copy()

    def close_extras(self, **kwargs: Any) -> None:
        """Close the environments, and end worker processes."""
        if self._workers is not None:
            self._workers.close()

    def _check_actions(self, actions: ArrayLike) -> NDArray[Any]:
        """Return one valid action per environment, or raise InputError."""
        space = self.single_action_space
        array = np.asarray(actions)
        if not (isinstance(space, Discrete) and np.issubdtype(array.dtype, np.integer)):
            array = np.asarray(array, np.float64)
        if array.shape != self.action_space.shape:
            raise InputError(f"Actions for {self.name!r} have shape {array.shape}, not {self.action_space.shape}.")
        if isinstance(space, Discrete):
            low, high = int(space.start), int(space.start + space.n) - 1
            wrong = (array < low) | (array > high) | (array != np.floor(array))
            if wrong.any():
                i = int(wrong.argmax())
                raise InputError(
                    f"The action for environment {i} of {self.name!r} is {array[i].item()}: "
                    f"a whole number from {low} to {high} is expected."
                )
            return array.astype(np.int64)
        wrong = ~np.isfinite(array).all(axis=1)
        if wrong.any():
            raise InputError(f"The action for environment {int(wrong.argmax())} of {self.name!r} is not finite.")
        return array

    def _output(self) -> Array:
        return self._observations.copy() if self._copy else self._observations
