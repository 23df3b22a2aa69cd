"""Goal and Circle with Point and Car: N simulations advanced by the recursion, by the engine, or by both."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from steingate.tasks import car, contact_plan, nav_kernels, point
from steingate.tasks.catalog import VASE_HEIGHT, TaskSpec
from steingate.tasks.footprint import footprint
from steingate.tasks.layouts import Placement, placement, sample_layouts
from steingate.tasks.models import STATE_SIZE, compile_world, settling_curve
from steingate.tasks.physics import ACCELERATION, Array, Ids, Simulations
from steingate.tasks.protocol import Outputs
from steingate.tasks.streams import Stream, seeded_states

# How far the agent's geoms reach from its origin in the plane, in any attitude, and by how much its origin
# can get faster within one environment step. The Car: wheel corners at 0.216 m, tilted 0.24 m; friction can
# give it about 14 m/s², a hard landing a few times that for a moment.
_REACH = {"point": (point.REACH, point.SPEED_GAIN), "car": (0.24, 1.5)}

_SAVED = (
    *("q", "v", "warm", "acc", "ctrl", "xy", "rot", "vase_q", "vase_v", "vase_warm"),
    *("status", "calm", "clock", "last", "streams", "edges"),
)


class Navigation:
    """The Goal and Circle tasks over a batch; a task family of ``vector``.

    Parameters
    ----------
    spec : TaskSpec
        A Goal or Circle task.
    num_envs : int
        Number of simulations.
    threads : int
        Threads the engine uses.
    physics : "auto" or "mujoco"
        "mujoco" uses the engine for every step of every simulation with all vases.
    layout_stream : "independent" or "reference"
        Where layouts and goals come from; see ``streams``.

    Attributes
    ----------
    q, v, warm : (N, n) arrays
        The agents' states and solver warm starts, in engine order and world axes.
    acc : (N, 3) array
        Accelerations of the agents' origins.
    ctrl : (N, 2) array
        Controls of the last step: the clipped actions.
    xy, rot : (N, R, 2), (N, R) arrays
        Layouts: agent, then objects; vases and agent as placed, or as they were when the goal was last drawn.
    vase_q, vase_v, vase_warm : (N, V, 7 or 6) arrays
        The vases' states.
    status, calm : (N, V) arrays
        Which vases are fresh, still or moving, and for how many steps they have been calm.
    clock : (N,) array
        Steps since the reset.
    last : (N,) array
        Distance to the present goal.
    edges : (N, 5) array
        The Car's active contact edges, from which its solver starts.
    tally : (8,) array
        Steps made so far, by what became of them; see ``contact_plan.REASONS``.
    """

    newer: tuple[str, ...] = ("edges",)

    def __init__(
        self,
        spec: TaskSpec,
        num_envs: int,
        *,
        threads: int = 1,
        physics: str = "auto",
        layout_stream: Stream = "independent",
    ) -> None:
        self.spec = spec
        self.law: Placement = placement(spec)
        n, rows, vases = num_envs, len(self.law.kinds), spec.count("vases")
        nq, nv = STATE_SIZE[spec.agent]
        self.out = Outputs.empty(spec, n)
        self.q, self.v, self.warm = np.zeros((n, nq)), np.zeros((n, nv)), np.zeros((n, nv))
        self.acc, self.ctrl = np.zeros((n, 3)), np.zeros((n, spec.action_size))
        self.xy, self.rot, self.last = np.zeros((n, rows, 2)), np.zeros((n, rows)), np.zeros(n)
        self.vase_q, self.vase_v = np.zeros((n, vases, 7)), np.zeros((n, vases, 6))
        self.vase_warm = np.zeros((n, vases, 6))
        self.status, self.calm = np.zeros((n, vases), np.int64), np.zeros((n, vases), np.int64)
        self.clock = np.zeros(n, np.int64)
        self.streams = seeded_states([None] * n, layout_stream)
        self._stream: Stream = layout_stream
        self._goal_first = np.zeros((n, 2))
        self._touch, self._active = np.zeros(n, bool), np.zeros((n, vases), bool)
        groups = vases + 1, spec.substeps + 1
        self._group_size, self._group_ids = np.zeros(groups, np.int64), np.zeros((*groups, n), np.int32)
        self._mask = np.zeros(n, bool)
        self._everything = physics == "mujoco"
        self.edges, self.tally = np.zeros((n, 5), np.int64), np.zeros(len(contact_plan.REASONS), np.int64)
        alone = compile_world(spec, 0)
        self._cars = car.constants(alone) if spec.agent == "car" and not self._everything else None
        self._parts = footprint(alone)
        self._curve = settling_curve(spec) if vases else np.zeros((1, 2))
        self._reach, self._gain = _REACH[spec.agent]
        self._hazards = self.law.rows("hazards").start
        self._vases = self.law.rows("vases").start
        self._threads = threads
        self._engines: dict[int, tuple[Simulations, npt.NDArray[Any], npt.NDArray[Any]]] = {}

    def reset(self, ids: Ids, seeds: Sequence[int | None]) -> None:
        """Start new episodes with new layouts.

        Parameters
        ----------
        ids : int32 array
            Sorted simulations.
        seeds : sequence
            A seed each, or None to go on with the simulation's stream.
        """
        fresh = [j for j, seed in enumerate(seeds) if seed is not None]
        if fresh:
            self.streams[ids[fresh]] = seeded_states([seeds[j] for j in fresh], self._stream)
        self._mask[:] = False
        self._mask[ids] = True
        sample_layouts(self.law, self.streams, self._mask, self.xy, self.rot, self._goal_first)
        self.start(ids)

    def start(self, ids: Ids) -> None:
        """Start new episodes with the layouts that are in ``xy`` and ``rot``.

        Parameters
        ----------
        ids : int32 array
            Sorted simulations.
        """
        for zeroed in (self.q, self.v, self.warm, self.acc, self.ctrl, self.vase_q, self.vase_v):
            zeroed[ids] = 0.0
        self.edges[ids] = 0
        self.vase_warm[ids], self.calm[ids], self.clock[ids], self._touch[ids] = 0.0, 0, 0, False
        self.status[ids] = contact_plan.FRESH
        nav_kernels.start_episodes(ids, self.q, self.xy, self.rot, self.vase_q, VASE_HEIGHT, self._vases)
        if self._everything or self.spec.agent == "car":
            self._active[ids] = self._everything
            self._run(self.vase_q.shape[1] if self._everything else 0, ids, 0)
        lidar_range = self.spec.lidar_range
        if self.spec.family == "goal":
            nav_kernels.first_goal_observations(
                *(ids, self.q, self.v, self.acc, self.xy, self.vase_q, self.last, self.law.goal),
                *(self._hazards, self._vases, lidar_range, self.out.obs),
            )
        else:
            nav_kernels.first_circle_observations(ids, self.q, self.v, self.acc, lidar_range, self.out.obs)

    def step(self, actions: Array) -> None:
        """Advance all simulations by one environment step.

        Parameters
        ----------
        actions : (N, 2) array
            Clipped to ±1.
        """
        self._advance(actions, self.spec.substeps)
        self._finish()

    def evaluate(self, actions: Array) -> None:
        """Write reward, cost and observation of the present states, as if a step had just led there.

        Parameters
        ----------
        actions : (N, 2) array
            The actions of that step; they enter the accelerations.
        """
        self._advance(actions, 0)
        self._finish()

    def _advance(self, actions: Array, substeps: int) -> None:
        waiting = contact_plan.plan(
            *(actions, self.ctrl, self.q, self.v, self.acc, self.vase_q, self.vase_v, self.vase_warm),
            *(self.status, self.clock, self._curve, self._touch, self._parts, self._reach, self._gain),
            *(self.spec.timestep, substeps, self.spec.substeps, self._everything, self._cars, self.edges),
            *(self._active, self._group_size, self._group_ids, self.tally),
        )
        if waiting:
            for count, left in np.argwhere(self._group_size):
                ids = self._group_ids[count, left, : self._group_size[count, left]]
                self._run(int(count), ids, int(left))

    def _run(self, count: int, ids: Ids, substeps: int) -> None:
        """Advance some simulations, each with the same number of active vases, in the engine."""
        sims, acc, touch = self._engines.get(count) or self._new_engine(count)
        contact_plan.load(
            *(ids, sims.columns, self.ctrl, self.q, self.v, self.warm, self.vase_q, self.vase_v),
            *(self.vase_warm, self._active, sims.state),
        )
        if substeps:
            sims.step(substeps, ids, ACCELERATION)
        else:
            sims.forward(ids)
        contact_plan.save(
            *(ids, sims.columns, self.q, self.v, self.warm, self.acc, self.vase_q, self.vase_v),
            *(self.vase_warm, self._active, self.status, self.calm, self._touch, sims.state, acc, touch),
        )

    def _new_engine(self, count: int) -> tuple[Simulations, npt.NDArray[Any], npt.NDArray[Any]]:
        """Return the simulations with some vases; made when first needed, which takes a few milliseconds."""
        # only worlds that run step after step gain from keeping engine data
        model = compile_world(self.spec, count)
        sims = Simulations(model, len(self.q), self._threads, persistent=self._everything)
        touch = sims.bind("sensordata")
        self._engines[count] = sims, sims.bind("qacc"), touch
        return self._engines[count]

    def _finish(self) -> None:
        out, spec = self.out, self.spec
        results = (out.obs, out.reward, out.cost, out.parts, out.terminated, out.goal_met)
        if spec.family == "goal":
            nav_kernels.finish_goal(
                *(self.q, self.v, self.acc, self.xy, self.vase_q, self.vase_v, self._touch, self.last),
                *(self.streams, self.law.low, self.law.high, self.law.keepout, self.law.goal),
                *(self._hazards, self._vases, spec.lidar_range, *results),
            )
        else:
            nav_kernels.finish_circle(
                self.q, self.v, self.acc, self.streams, spec.level, spec.lidar_range, *results
            )

    def snapshot(self) -> dict[str, npt.NDArray[Any]]:
        """Return the complete state as arrays with first axis N."""
        return {name: getattr(self, name).copy() for name in _SAVED}

    def restore(self, state: dict[str, npt.NDArray[Any]]) -> None:
        """Go back to a state.

        Parameters
        ----------
        state : dict
            What ``snapshot`` returned; entries in ``newer`` may be missing.
        """
        for name in _SAVED:
            getattr(self, name)[...] = state.get(name, 0)

    def scene(self, index: int) -> dict[str, npt.NDArray[Any]]:
        """Return what the renderer needs of one simulation.

        Parameters
        ----------
        index : int
            The simulation.
        """
        return {
            "qpos": self.q[index].copy(),
            "goal": self.xy[index, self.law.rows("goal")].copy(),
            "hazards": self.xy[index, self.law.rows("hazards")].copy(),
            "vases": self.vase_q[index].copy(),
            "obs": self.out.obs[index].copy(),
            "cost": np.array(self.out.cost[index]),
        }

    def close(self) -> None:
        """Let go of the engine's simulations and threads."""
        self._engines.clear()
