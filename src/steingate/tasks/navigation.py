"""Goal and Circle tasks with Point and Car: closed-form dynamics, MuJoCo, or both within a step."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import mujoco
import mujoco.batch
import numpy as np

from steingate.errors import InputError
from steingate.tasks import mujoco_handoff as handoff
from steingate.tasks import navigation_kernels as kernels
from steingate.tasks import point
from steingate.tasks.base import Array, Ids, Outputs, State
from steingate.tasks.car_model import car_parameters
from steingate.tasks.catalog import VASE_HEIGHT, TaskSpec
from steingate.tasks.geometry import agent_parts
from steingate.tasks.layouts import Stream, draw_layouts, make_placement, seeded_states
from steingate.tasks.navigation_models import STATE_SIZE, compile_world, settling_curve

# Distance of the agent's farthest point from its origin in the plane, in any attitude, and a bound on the increase of
# the origin's speed within an environment step. The Car: wheel corners at 0.216 m, tilted 0.24 m; friction gives about
# 14 m/s², a hard landing a few times that for a moment.
_REACH = {"point": (point.REACH, point.SPEED_GAIN), "car": (0.24, 1.5)}

_SAVED = (
    "q", "v", "acc", "ctrl", "xy", "yaw", "vase_q", "vase_v",
    "status", "calm", "clock", "distance", "streams", "edges",
)  # fmt: skip


class Navigation:
    """N simulations of a Goal or Circle task; the arguments are those of ``SafetyVectorEnv``.

    Attributes
    ----------
    q, v : (N, n) states of the agents, in MuJoCo's order and world axes
    acc, ctrl : (N, 3) accelerations of the agents' origins, (N, 2) clipped actions of the last step
    xy, yaw : (N, R, 2), (N, R) layouts in the rows of ``placement``; agent and vases as they were when the
        goal was drawn last
    vase_q, vase_v : (N, V, 7), (N, V, 6) states of the vases
    status, calm : (N, V) status of the vases (see ``mujoco_handoff``), number of steps they have been calm
    clock, distance : (N,) steps since the reset, distance to the goal
    edges : (N, 5) active contact edges of the Car, from which its solver starts
    step_counts : (8,) number of steps by ``mujoco_handoff.STEP_KINDS``
    """

    def __init__(
        self, task: TaskSpec, num_envs: int, *, threads: int = 1, physics: str = "auto",
        layout_stream: Stream = "independent",
    ) -> None:  # fmt: skip
        self.task, self.placement = task, make_placement(task)
        n, rows, vases = num_envs, len(self.placement.kinds), task.count("vases")
        nq, nv = STATE_SIZE[task.agent]
        self.out = Outputs(task, n)
        self.q, self.v = np.zeros((n, nq)), np.zeros((n, nv))
        self.acc, self.ctrl = np.zeros((n, 3)), np.zeros((n, task.action_size))
        self.xy, self.yaw, self.distance = np.zeros((n, rows, 2)), np.zeros((n, rows)), np.zeros(n)
        self.vase_q, self.vase_v = np.zeros((n, vases, 7)), np.zeros((n, vases, 6))
        self.status, self.calm = np.zeros((n, vases), np.int64), np.zeros((n, vases), np.int64)
        self.clock, self.edges = np.zeros(n, np.int64), np.zeros((n, 5), np.int64)
        self.streams = seeded_states([None] * n, layout_stream)
        self.step_counts = np.zeros(len(handoff.STEP_KINDS), np.int64)
        self._stream: Stream = layout_stream
        self._touch, self._active = np.zeros(n, bool), np.zeros((n, vases), bool)
        groups = vases + 1, task.substeps + 1
        self._group_size, self._group_ids = np.zeros(groups, np.int64), np.zeros((*groups, n), np.int32)
        self._use_mujoco, self._threads = physics == "mujoco", threads
        world = compile_world(task, 0)
        self._car = car_parameters(world) if task.agent == "car" and not self._use_mujoco else None
        self._agent = agent_parts(world), *_REACH[task.agent]
        self._curve = settling_curve(task) if vases else np.zeros((1, 2))
        self._rows = (self.placement.goal, *(self.placement.rows(kind).start for kind in ("hazards", "vases")))
        self._worlds: dict[int, Any] = {}  # by number of vases

    def reset(self, ids: Ids, seeds: Sequence[int | None]) -> None:
        """Start new episodes with new layouts in the simulations ``ids`` (sorted), and write ``out.obs[ids]``.

        A seed of None continues a simulation's random stream.
        """
        fresh = [j for j, seed in enumerate(seeds) if seed is not None]
        if fresh:
            self.streams[ids[fresh]] = seeded_states([seeds[j] for j in fresh], self._stream)
        rule = self.placement
        if not draw_layouts(ids, self.streams, rule.low, rule.high, rule.keepout, rule.goal, self.xy, self.yaw):
            raise InputError(f"{self.task.env_id}: no layout respects all keepouts.")
        self.start(ids)

    def start(self, ids: Ids) -> None:
        """Start new episodes with the layouts in ``xy`` and ``yaw``."""
        for array in (self.q, self.v, self.acc, self.ctrl, self.vase_q, self.vase_v):
            array[ids] = 0.0
        self.edges[ids], self.calm[ids], self.clock[ids], self._touch[ids] = 0, 0, 0, False
        self.status[ids] = handoff.SETTLING
        kernels.start_episodes(
            ids, self.q, self.xy, self.yaw, self.vase_q, VASE_HEIGHT, self.placement.goal, self._rows[2],
            self.distance,
        )  # fmt: skip
        if self._use_mujoco or self.task.agent == "car":
            self._active[ids] = self._use_mujoco
            self._run_mujoco(self.vase_q.shape[1] if self._use_mujoco else 0, ids, 0)
        agents = self.q, self.v, self.acc, self.xy, self.vase_q
        kernels.observe(ids, *agents, *self._rows, self.task.lidar_range, self.out.obs)

    def step(self, actions: Array, substeps: int | None = None) -> None:
        """Advance all simulations by one environment step and write its results; actions are clipped to ±1.

        With 0 substeps, nothing moves: the results are those of a step with these actions to the present states.
        """
        substeps = self.task.substeps if substeps is None else substeps
        waiting = handoff.advance_agents(
            actions, self.ctrl, self.q, self.v, self.acc, self.vase_q, self.vase_v, self.status,
            self.clock, self._curve, self._touch, *self._agent,
            self.task.timestep, substeps, self.task.substeps, self._use_mujoco, self._car, self.edges,
            self._active, self._group_size, self._group_ids, self.step_counts,
        )  # fmt: skip
        if waiting:
            for vases, left in np.argwhere(self._group_size):
                ids = self._group_ids[vases, left, : self._group_size[vases, left]]
                self._run_mujoco(int(vases), ids, int(left))
        out, task, rule = self.out, self.task, self.placement
        kernels.finish_step(
            self.q, self.v, self.acc, self.xy, self.vase_q, self.vase_v, self._touch, self.distance, self.streams,
            rule.low, rule.high, rule.keepout, *self._rows, task.level, task.lidar_range,
            out.obs, out.reward, out.cost, out.parts, out.terminated, out.goal_met,
        )  # fmt: skip

    def _run_mujoco(self, vases: int, ids: Ids, substeps: int) -> None:
        """Advance simulations that have the same number of active vases."""
        if vases not in self._worlds:
            # Keeping MuJoCo's data pays only if a world is used in consecutive steps.
            model, n, keep = compile_world(self.task, vases), len(self.q), self._use_mujoco
            batch = mujoco.batch.Batch(model, n, min(self._threads, n), persistent=keep)
            fields = [batch.bind(name).ctypes.data for name in ("qpos", "qvel", "ctrl")]
            columns = tuple((field - batch.state.ctypes.data) // batch.state.itemsize for field in fields)
            self._worlds[vases] = batch, columns, batch.bind("qacc"), batch.bind("sensordata")
        batch, columns, qacc, sensors = self._worlds[vases]
        agents = self.q, self.v, self.vase_q, self.vase_v, self._active
        handoff.write_mujoco_state(ids, *agents, self.ctrl, columns, batch.state)
        if substeps:
            batch.step(ids, substeps, int(mujoco.mjtStage.mjSTAGE_ACC))  # and all derived fields at the new state
        else:
            batch.forward(ids)
        results = self.acc, self.status, self.calm, self._touch
        handoff.read_mujoco_state(ids, *agents, *results, columns, batch.state, qacc, sensors)

    def state(self) -> State:
        """Return the complete state as live arrays."""
        return {name: getattr(self, name) for name in _SAVED}

    def scene(self, index: int) -> State:
        """Return the poses from which ``scene`` draws one simulation."""
        objects = {name: self.xy[index, self.placement.rows(name)] for name in ("goal", "hazards")}
        return {"qpos": self.q[index], **objects, "vases": self.vase_q[index]}
