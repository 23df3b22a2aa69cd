"""Native tasks as Gymnasium environments: episodes, automatic resets, ``info``, snapshots, rendering."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import gymnasium
import numpy as np
import numpy.typing as npt
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

from steingate.errors import InputError
from steingate.policies.lidar_features import LidarFeatures
from steingate.tasks import validation
from steingate.tasks.base import Array, Ids, State, count_step
from steingate.tasks.catalog import COMPASS, LIDAR_BINS, VELOCITY, find_task
from steingate.tasks.layouts import STREAMS
from steingate.tasks.navigation import Navigation
from steingate.tasks.velocity import Velocity

Info = dict[str, Any]


class SafetyVectorEnv(VectorEnv[Array, npt.ArrayLike, Array]):
    """N simulations of one native task.

    An environment whose episode ends is reset within the same step: the observation returned is the first of the next
    episode, the last one of the old episode is in ``info["final_obs"]``. Reward and all of ``info`` except ``final_*``
    belong to the step just made, also where an episode ended.

    Parameters
    ----------
    env_id : a native task, with or without the ``steingate/`` prefix
    num_envs : number of simulations
    threads : number of simulation threads; None for one per available core; results do not depend on it
    physics : "auto" uses closed-form dynamics for Point and Car where they apply, "mujoco" never
    layout_stream : "independent", or "reference" to repeat the original's random layouts and goals bit for bit
    render_mode : None, or "rgb_array" for ``render``
    camera, width, height : "fixed" or "track", and size of frames in pixels
    copy : if False, every step returns the same arrays, overwritten
    max_episode_steps : length of an episode; None for that of the task
    autoreset_mode : SAME_STEP, or DISABLED to reset with ``reset(options={"reset_mask": mask})``

    Attributes
    ----------
    task : TaskSpec
    simulation : Navigation or Velocity
    max_episode_steps, threads : int
    lidar_layout : indices of lidar, compass and velocity in an observation; None for velocity tasks
    """

    metadata: dict[str, Any] = {  # noqa: RUF012
        "autoreset_mode": AutoresetMode.SAME_STEP,
        "render_modes": ["rgb_array"],
        "render_fps": 50,
    }

    current_env: int | None = None  # all simulations are stepped at once

    def __init__(
        self, env_id: str, num_envs: int = 1, *, threads: int | None = None, physics: str = "auto",
        layout_stream: Literal["independent", "reference"] = "independent", render_mode: str | None = None,
        camera: Literal["fixed", "track"] = "fixed", width: int = 480, height: int = 480, copy: bool = True,
        max_episode_steps: int | None = None, autoreset_mode: AutoresetMode = AutoresetMode.SAME_STEP, **unknown: Any,
    ) -> None:  # fmt: skip
        task = find_task(env_id)
        known = list(inspect.signature(SafetyVectorEnv).parameters)[2:-1]
        for option in unknown:
            raise InputError(f"The native task {task.env_id!r} has no option {option!r}: it takes {', '.join(known)}.")
        chosen = {
            "physics": (physics, ("auto", "mujoco")),
            "layout_stream": (layout_stream, STREAMS),
            "render_mode": (render_mode, (None, "rgb_array")),
            "camera": (camera, ("fixed", "track")),
            "autoreset_mode": (autoreset_mode, (AutoresetMode.SAME_STEP, AutoresetMode.DISABLED)),
        }
        for name, (value, choices) in chosen.items():
            if value not in choices:
                raise InputError(f"{name} is {value!r}; choose one of {', '.join(map(repr, choices))}.")
        self.task = task
        self.num_envs = validation.check_count("num_envs", num_envs)
        threads = len(validation.usable_cores()) if threads is None else threads
        self.threads = validation.check_count("threads", threads)
        limit = task.max_episode_steps if max_episode_steps is None else max_episode_steps
        self.max_episode_steps = validation.check_count("max_episode_steps", limit)
        fps = round(1.0 / task.period)
        self.metadata = {**type(self).metadata, "autoreset_mode": autoreset_mode, "render_fps": fps}
        self.render_mode, self.width, self.height = render_mode, width, height
        self.camera: Literal["fixed", "track"] = camera
        self.single_observation_space = validation.observation_space(task)
        self.single_action_space = validation.action_space(task)
        starts = task.lidar_starts
        self.lidar_layout = LidarFeatures((), (), starts, LIDAR_BINS, COMPASS, VELOCITY) if starts else None
        self.observation_space = batch_space(self.single_observation_space, self.num_envs)
        self.action_space = batch_space(self.single_action_space, self.num_envs)
        self._autoreset, self._copy = autoreset_mode is AutoresetMode.SAME_STEP, copy
        family = Velocity if task.family == "velocity" else Navigation
        options: Any = {"threads": self.threads, "physics": physics, "layout_stream": layout_stream}
        self.simulation: Navigation | Velocity = family(task, self.num_envs, **options)
        self._elapsed, self._goals = np.zeros(self.num_envs, np.int64), np.zeros(self.num_envs, np.int64)
        self._truncated, self._ended = np.zeros(self.num_envs, bool), np.zeros(self.num_envs, bool)
        self._ready = np.zeros(self.num_envs, np.uint8)  # whether an episode is running
        self._all_ready = False
        self._all = np.arange(self.num_envs, dtype=np.int32)
        out = self.simulation.out
        parts = dict(zip(task.cost_parts, out.parts, strict=True))
        self._info: Info = {"cost": out.cost, **parts, "goal_met": out.goal_met, "goals": self._goals}
        everywhere = np.ones(self.num_envs, bool)
        self._info_masks: Info = {f"_{name}": everywhere for name in self._info}
        self._renderer: Any = None

    def reset(
        self, *, seed: int | Sequence[int | None] | None = None, options: Mapping[str, Any] | None = None
    ) -> tuple[Array, Info]:
        """Start new episodes; return first observations and info.

        An integer seed s gives environment i the seed s + i; None continues each environment's random stream.
        ``options["reset_mask"]``, a boolean array (N,), restricts the reset to some environments.
        """
        self._check_open()
        seeds = validation.check_seeds(seed, self.num_envs)
        super().reset(seed=seed if isinstance(seed, (int, np.integer)) else None)
        ids = self._all
        mask = (options or {}).get("reset_mask")
        if mask is not None:
            mask = np.asarray(mask)
            if mask.dtype != bool or mask.shape != (self.num_envs,) or not mask.any():
                raise InputError(f"reset_mask is {mask!r}: give {self.num_envs} booleans, at least one of them true.")
            ids = np.flatnonzero(mask).astype(np.int32)
        self._start(ids, [seeds[i] for i in ids])
        out = self.simulation.out
        out.reward[ids], out.cost[ids], out.parts[:, ids], out.goal_met[ids] = 0.0, 0.0, 0.0, False
        return self._output(out.obs), self._output_info()

    def step(self, actions: npt.ArrayLike) -> tuple[Array, Array, Array, Array, Info]:
        """Step every environment; actions (N, a) are clipped, NaN is refused.

        Returns observations, rewards, terminated, truncated and info.
        """
        if not self._all_ready:
            self._check_open()
            waiting = int(np.argmin(self._ready))
            raise gymnasium.error.ResetNeeded(f"Environment {waiting} has no episode: call reset() first.")
        out = self.simulation.out
        self.simulation.step(validation.check_actions(self.task, self.num_envs, actions))
        any_ended = count_step(
            self.max_episode_steps, out.goal_met, out.terminated,
            self._elapsed, self._goals, self._truncated, self._ended,
        )  # fmt: skip
        info = self._output_info()
        reward = self._output(out.reward)
        terminated, truncated = self._output(out.terminated), self._output(self._truncated)
        if any_ended:
            self._end_episodes(info)
        return self._output(out.obs), reward, terminated, truncated, info

    def _end_episodes(self, info: Info) -> None:
        """Add final observations and infos to ``info``, and reset the environments whose episode ended."""
        ended = self._ended.copy()
        if not self._autoreset:
            self._ready[ended] = False
            self._all_ready = False
            return
        final = {name: values.copy() for name, values in info.items()}
        info["final_obs"], info["final_info"] = self.simulation.out.obs.copy(), final
        info["_final_obs"] = info["_final_info"] = ended
        info["goals"], info["_goals"] = final["goals"], final["_goals"]  # the reset overwrites the buffer
        ids = np.flatnonzero(ended).astype(np.int32)
        self._start(ids, [None] * len(ids))

    def _start(self, ids: Ids, seeds: Sequence[int | None]) -> None:
        self.simulation.reset(ids, seeds)
        self._elapsed[ids] = 0
        self._goals[ids] = 0
        self._ready[ids] = True
        self._all_ready = bool(self._ready.all())

    def _output(self, values: Any) -> Any:
        return values.copy() if self._copy else values

    def _output_info(self) -> Info:
        """Return the arrays of ``info``, each with Gymnasium's mask of the environments that have it."""
        info = {name: values.copy() for name, values in self._info.items()} if self._copy else self._info
        return info | self._info_masks

    def _state(self) -> State:
        """Return the complete state as live arrays."""
        self._check_open()
        out = self.simulation.out
        own: State = {"elapsed": self._elapsed, "goals": self._goals, "ready": self._ready}
        own |= {"obs": out.obs, "cost": out.cost}
        return own | {f"simulation/{name}": array for name, array in self.simulation.state().items()}

    def snapshot(self) -> State:
        """Return the complete state as arrays; after ``restore`` the same actions give the same bits."""
        return {name: values.copy() for name, values in self._state().items()}

    def restore(self, snapshot: Mapping[str, npt.NDArray[Any]]) -> Array:
        """Return to a snapshot of the same task and size; return the observations at that time."""
        state = self._state()
        for name, values in state.items():
            if name not in snapshot or np.shape(snapshot[name]) != values.shape:
                raise InputError(
                    f"This snapshot does not fit {self.num_envs} environments of {self.task.env_id}: "
                    f"its entry {name!r} is missing or has another shape."
                )
        for name, values in state.items():
            values[...] = snapshot[name]
        if isinstance(self.simulation, Velocity):
            self.simulation.restore_generators()
        self._all_ready = bool(self._ready.all())
        return self.simulation.out.obs.copy()

    def scene(self, index: int) -> State:
        """Return the arrays from which one environment is drawn, see ``scene``."""
        self._check_open()
        out = self.simulation.out
        state = self.simulation.scene(index) | {"obs": out.obs[index], "cost": out.cost[index]}
        return {name: np.array(values) for name, values in state.items()}

    def render(self) -> tuple[npt.NDArray[np.uint8], ...] | None:
        """Return one frame per environment; None without a render mode."""
        if self.render_mode is None:
            gymnasium.logger.warn("render() was called without a render mode: pass render_mode='rgb_array'.")
            return None
        return tuple(self.frame(i) for i in range(self.num_envs))

    def frame(self, index: int) -> npt.NDArray[np.uint8]:
        """Return a frame (height, width, 3) of one environment."""
        state = self.scene(index)
        if self._renderer is None:
            from steingate.tasks.render import Renderer  # chooses a graphics library

            self._renderer = Renderer(self.task, self.width, self.height, self.camera)
        return self._renderer.frame(state)  # type: ignore[no-any-return]

    def close_extras(self, **kwargs: Any) -> None:
        """Close simulation and renderer."""
        if self._renderer is not None:
            self._renderer.close()
            self._renderer = None
        self._all_ready = False
        del self.simulation

    def _check_open(self) -> None:
        if self.closed:
            raise gymnasium.error.ClosedEnvironmentError("This environment is closed: make a new one.")


class SafetyEnv(gymnasium.Env[Array, Array]):
    """One simulation of a native task; ``info["cost"]`` is the cost of the step.

    The options are those of :class:`SafetyVectorEnv` except the number of environments.
    """

    metadata: dict[str, Any] = {"render_modes": ["rgb_array"], "render_fps": 50}  # noqa: RUF012

    def __init__(self, env_id: str, render_mode: str | None = None, **options: Any) -> None:
        options = {"threads": 1, "render_mode": render_mode, **options}
        self.vector_env = SafetyVectorEnv(env_id, 1, autoreset_mode=AutoresetMode.DISABLED, **options)
        self.task, self.render_mode = self.vector_env.task, render_mode
        self.metadata = {**type(self).metadata, "render_fps": self.vector_env.metadata["render_fps"]}
        self.observation_space = self.vector_env.single_observation_space
        self.action_space = self.vector_env.single_action_space

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Array, Info]:
        """Start a new episode; without a seed the random stream continues. ``options`` has no effect."""
        super().reset(seed=seed)
        obs, info = self.vector_env.reset(seed=seed)
        return obs[0].copy(), _first(info)

    def step(self, action: npt.ArrayLike) -> tuple[Array, float, bool, bool, Info]:
        """Step once; the action (a,) is clipped to the action space, NaN is refused."""
        obs, reward, terminated, truncated, info = self.vector_env.step(np.asarray(action)[None])
        return obs[0].copy(), float(reward[0]), bool(terminated[0]), bool(truncated[0]), _first(info)

    def snapshot(self) -> State:
        """Return the complete state."""
        return self.vector_env.snapshot()

    def restore(self, snapshot: State) -> Array:
        """Return to a snapshot; return the observation at that time."""
        obs: Array = self.vector_env.restore(snapshot)[0]
        return obs

    def render(self) -> npt.NDArray[np.uint8] | None:
        """Return a frame (height, width, 3); None without a render mode."""
        frames = self.vector_env.render()
        return None if frames is None else frames[0]

    def close(self) -> None:
        """Close the environment; closing twice has no effect."""
        self.vector_env.close()


def _first(info: Info) -> Info:
    """Return the info of the one environment as plain numbers."""
    return {name: values[0].item() for name, values in info.items() if not name.startswith("_")}
