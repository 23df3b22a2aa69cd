"""The batched core: N simulations of one task behind a Gymnasium ``VectorEnv``.

Episodes are kept here: seeds, step counts, truncation, automatic resets, info, snapshots. The world is the
task family's (``protocol`` says what it owes).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

import gymnasium
import numpy as np
import numpy.typing as npt
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

from steingate.errors import InputError
from steingate.gates.sight import Senses
from steingate.tasks.catalog import COMPASS, LIDAR_BINS, VELOCITY, TaskSpec, find_task
from steingate.tasks.inputs import (
    action_space,
    checked_actions,
    checked_seeds,
    observation_space,
    one_of,
    positive,
)
from steingate.tasks.protocol import Array, BatchTask, Outputs

__all__ = ["BatchTask", "Outputs", "SafetyVectorEnv"]

Info = dict[str, Any]
Snapshot = dict[str, npt.NDArray[Any]]


class SafetyVectorEnv(VectorEnv[Array, npt.ArrayLike, Array]):
    """N simulations of one native task.

    An environment that finishes is reset within the same step: the observation returned is the first of the
    next episode, the last one of the old is in ``info["final_obs"]``. Reward and all of ``info`` but
    ``final_*`` belong to the transition just made, also where an episode ended.

    Parameters
    ----------
    env_id : str
        A native task, with or without the ``steingate/`` prefix.
    num_envs : int
        Number of simulations.
    threads : int or None
        Threads the engine uses; None for one per available core. Results do not depend on it.
    physics : "auto" or "mujoco"
        "mujoco" forces the engine where the exact recursion would do.
    layout_stream : "independent" or "reference"
        "reference" repeats the original's random numbers bit for bit.
    render_mode : None or "rgb_array"
        Whether pictures can be taken.
    camera : "fixed" or "track"
        Which camera takes them.
    width, height : int
        Size of pictures.
    copy : bool
        False returns the same arrays, overwritten, on every step.
    max_episode_steps : int or None
        Another episode length than the task's.
    autoreset_mode : AutoresetMode
        SAME_STEP, or DISABLED to reset by hand with ``options={"reset_mask": mask}``.

    Attributes
    ----------
    task : TaskSpec
    max_episode_steps, threads : int
    """

    metadata: dict[str, Any] = {  # noqa: RUF012
        "autoreset_mode": AutoresetMode.SAME_STEP,
        "render_modes": ["rgb_array"],
        "render_fps": 50,
    }

    current_env: int | None = None  # all are stepped at once, so none has been called last

    def __init__(
        self,
        env_id: str,
        num_envs: int = 1,
        *,
        threads: int | None = None,
        physics: str = "auto",
        layout_stream: str = "independent",
        render_mode: str | None = None,
        camera: Literal["fixed", "track"] = "fixed",
        width: int = 480,
        height: int = 480,
        copy: bool = True,
        max_episode_steps: int | None = None,
        autoreset_mode: AutoresetMode = AutoresetMode.SAME_STEP,
    ) -> None:
        task = find_task(env_id)
        self.task = task
        self.num_envs = positive("num_envs", num_envs)
        self.threads = positive("threads", _cores() if threads is None else threads)
        self.max_episode_steps = positive(
            "max_episode_steps", task.max_episode_steps if max_episode_steps is None else max_episode_steps
        )
        one_of("physics", physics, ("auto", "mujoco"))
        one_of("layout_stream", layout_stream, ("independent", "reference"))
        one_of("render_mode", render_mode, (None, "rgb_array"))
        one_of("camera", camera, ("fixed", "track"))
        modes = (AutoresetMode.SAME_STEP, AutoresetMode.DISABLED)
        one_of("autoreset_mode", autoreset_mode, modes)
        self.metadata = {
            **type(self).metadata,
            "autoreset_mode": autoreset_mode,
            "render_fps": round(1.0 / task.period),
        }
        self.render_mode, self.width, self.height = render_mode, width, height
        self.camera: Literal["fixed", "track"] = camera
        self.single_observation_space = observation_space(task)
        self.single_action_space = action_space(task)
        self.senses = Senses(task.rings, LIDAR_BINS, COMPASS, VELOCITY) if task.rings else None
        self.observation_space = batch_space(self.single_observation_space, self.num_envs)
        self.action_space = batch_space(self.single_action_space, self.num_envs)
        self._autoreset = autoreset_mode is AutoresetMode.SAME_STEP
        self._copy = copy
        self._world = _build(task, self.num_envs, self.threads, physics, layout_stream)
        self._count_step = _step_counter()
        self._elapsed = np.zeros(self.num_envs, np.int64)
        self._goals = np.zeros(self.num_envs, np.int64)
        self._truncated = np.zeros(self.num_envs, bool)
        self._finished = np.zeros(self.num_envs, bool)
        self._ready = np.zeros(self.num_envs, bool)  # whether there is an episode to step
        self._all_ready = False
        self._all = np.arange(self.num_envs, dtype=np.int32)
        self._yes = np.ones(self.num_envs, bool)
        out = self._world.out
        parts = dict(zip(task.cost_parts, out.parts, strict=True))
        self._shown: Info = {"cost": out.cost, **parts, "goal_met": out.goal_met, "goals": self._goals}
        self._shown_for: Info = {f"_{name}": self._yes for name in self._shown}
        self._renderer: Any = None

    def reset(
        self,
        *,
        seed: int | Sequence[int | None] | None = None,
        options: Mapping[str, Any] | None = None,
    ) -> tuple[Array, Info]:
        """Return first observations and info after starting new episodes.

        Parameters
        ----------
        seed : int, sequence or None
            An integer s gives environment i the seed s + i; None goes on with each environment's own stream.
        options : mapping or None
            ``reset_mask``, a boolean array, restricts the reset to some environments.
        """
        self._check_open()
        seeds = checked_seeds(seed, self.num_envs)
        super().reset(seed=seed if isinstance(seed, (int, np.integer)) else None)
        ids = self._all
        mask = (options or {}).get("reset_mask")
        if mask is not None:
            mask = np.asarray(mask)
            if mask.dtype != bool or mask.shape != (self.num_envs,) or not mask.any():
                raise InputError(
                    f"reset_mask must be {self.num_envs} booleans, at least one of them true, got {mask!r}."
                )
            ids = np.flatnonzero(mask).astype(np.int32)
        self._start(ids, [seeds[i] for i in ids])
        out = self._world.out
        out.reward[ids], out.cost[ids], out.parts[:, ids], out.goal_met[ids] = 0.0, 0.0, 0.0, False
        return self._give(out.obs), self._info()

    def step(self, actions: npt.ArrayLike) -> tuple[Array, Array, Array, Array, Info]:
        """Return observations, rewards, both flags and info after one step of every environment.

        Parameters
        ----------
        actions : (N, a) array
            Clipped to the action space; not-a-number is refused.
        """
        if not self._all_ready:
            self._check_open()
            waiting = int(np.argmin(self._ready))
            raise gymnasium.error.ResetNeeded(
                f"Environment {waiting} has no episode to step: call reset() first."
            )
        world, out = self._world, self._world.out
        world.step(checked_actions(self.task, self.num_envs, actions))
        some_finished = self._count_step(
            *(self.max_episode_steps, out.goal_met, out.terminated),
            *(self._elapsed, self._goals, self._truncated, self._finished),
        )
        info = self._info()
        reward = self._give(out.reward)
        terminated, truncated = self._give(out.terminated), self._give(self._truncated)
        if some_finished:
            self._end_episodes(info)
        return self._give(out.obs), reward, terminated, truncated, info

    def _end_episodes(self, info: Info) -> None:
        """Reset what has finished, after its last observation and info are safe."""
        finished = self._finished.copy()
        if not self._autoreset:
            self._ready &= ~finished
            self._all_ready = False
            return
        final = {name: values.copy() for name, values in info.items()}
        info["final_obs"] = self._world.out.obs.copy()
        info["final_info"] = final
        info["_final_obs"] = info["_final_info"] = finished
        for name in ("goals", "_goals"):
            info[name] = final[name]  # the buffer restarts with the next episode
        ids = np.flatnonzero(finished).astype(np.int32)
        self._start(ids, [None] * len(ids))

    def _start(self, ids: npt.NDArray[np.int32], seeds: Sequence[int | None]) -> None:
        self._world.reset(ids, seeds)
        self._elapsed[ids] = 0
        self._goals[ids] = 0
        self._ready[ids] = True
        self._all_ready = bool(self._ready.all())

    def _info(self) -> Info:
        """Return the info arrays, each with Gymnasium's mask that says for whom it holds."""
        if self._copy:
            return {name: values.copy() for name, values in self._shown.items()} | self._shown_for
        return self._shown | self._shown_for

    def _give(self, values: Any) -> Any:
        return values.copy() if self._copy else values

    def snapshot(self) -> Snapshot:
        """Return the complete state: restoring it and repeating the actions repeats every bit."""
        self._check_open()
        out = self._world.out
        core: Snapshot = {
            "elapsed": self._elapsed,
            "goals": self._goals,
            "ready": self._ready.astype(np.uint8),
            "obs": out.obs,
            "cost": out.cost,
        }
        return {f"core/{k}": v.copy() for k, v in core.items()} | {
            f"task/{k}": v for k, v in self._world.snapshot().items()
        }

    def restore(self, snapshot: Mapping[str, npt.NDArray[Any]]) -> Array:
        """Return the observation that was current at a snapshot after going back to it.

        Parameters
        ----------
        snapshot : mapping
            What ``snapshot`` returned, from an environment of the same task and size.
        """
        self._check_open()
        newer = {f"task/{name}" for name in self._world.newer} - set(snapshot)
        mine = {name: values for name, values in self.snapshot().items() if name not in newer}
        for name, values in mine.items():
            if name not in snapshot or np.shape(snapshot[name]) != values.shape:
                raise InputError(
                    f"This snapshot does not fit {self.num_envs} environments of {self.task.env_id}: "
                    f"its entry {name!r} is missing or has another shape."
                )
        self._world.restore(
            {name.removeprefix("task/"): np.asarray(snapshot[name]) for name in mine if name[:5] == "task/"}
        )
        self._elapsed[:] = snapshot["core/elapsed"]
        self._goals[:] = snapshot["core/goals"]
        self._ready[:] = snapshot["core/ready"] != 0
        self._all_ready = bool(self._ready.all())
        self._world.out.obs[:] = snapshot["core/obs"]
        self._world.out.cost[:] = snapshot["core/cost"]
        return self._world.out.obs.copy()

    def scene(self, index: int) -> dict[str, npt.NDArray[Any]]:
        """Return what a picture of one environment needs.

        Parameters
        ----------
        index : int
            The environment.
        """
        self._check_open()
        return self._world.scene(index)

    def render(self) -> tuple[npt.NDArray[np.uint8], ...] | None:
        """Return one picture per environment, or None if no render mode was chosen."""
        if self.render_mode is None:
            gymnasium.logger.warn("render() was called without a render mode: pass render_mode='rgb_array'.")
            return None
        return tuple(self.frame(i) for i in range(self.num_envs))

    def frame(self, index: int) -> npt.NDArray[np.uint8]:
        """Return a picture of one environment.

        Parameters
        ----------
        index : int
            The environment.
        """
        self._check_open()
        if self._renderer is None:
            from steingate.tasks.render import Renderer

            self._renderer = Renderer(self, width=self.width, height=self.height, camera=self.camera)
        picture: npt.NDArray[np.uint8] = self._renderer.frame(index)
        return picture

    def close_extras(self, **kwargs: Any) -> None:
        """Let go of simulations, threads and the renderer; closing twice does nothing.

        Parameters
        ----------
        **kwargs
            Ignored.
        """
        if self._renderer is not None:
            self._renderer.close()
            self._renderer = None
        self._all_ready = False
        self._world.close()

    def _check_open(self) -> None:
        if self.closed:
            raise gymnasium.error.ClosedEnvironmentError("This environment is closed: make a new one.")


def _build(task: TaskSpec, num_envs: int, threads: int, physics: str, layout_stream: Any) -> BatchTask:
    if task.family == "velocity":
        from steingate.tasks.velocity import Velocity

        return Velocity(task, num_envs, threads=threads, physics=physics, layout_stream=layout_stream)
    from steingate.tasks.navigation import Navigation

    return Navigation(task, num_envs, threads=threads, physics=physics, layout_stream=layout_stream)


def _step_counter() -> Callable[..., bool]:
    """Return the compiled bookkeeping; imported late, as the worlds are, because it brings numba."""
    from steingate.tasks.episodes import count_step

    return count_step  # type: ignore[no-any-return]


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
