"""Velocity tasks: six robots of Gymnasium's MuJoCo v4 environments that run forward, with a cost for speed.

A velocity is the difference of positions over one environment step. Positions of bodies lag one MuJoCo substep behind
the state, as in the originals, which do not compute kinematics again before reading them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import gymnasium
import mujoco
import mujoco.batch
import numpy as np

from steingate.compiled import compiled
from steingate.tasks.base import Array, Ids, Outputs, State
from steingate.tasks.catalog import TaskSpec

# MuJoCo's solver now stops before it reaches the original's results with the default tolerance. Islands and warm
# starts slow down single robots, and change nothing at this tolerance.
_TOLERANCE: Final = 1e-14
_DISABLED: Final = int(mujoco.mjtDisableBit.mjDSBL_ISLAND | mujoco.mjtDisableBit.mjDSBL_WARMSTART)
_STAGE_NONE: Final = int(mujoco.mjtStage.mjSTAGE_NONE)
_WORD: Final = 2**64 - 1


class Robot(NamedTuple):
    """Observation, reward, cost, termination and reset noise of a robot; plain numbers for compiled functions."""

    hidden: int  # number of leading entries of qpos that are not observed
    forward: float  # weights in the reward: of the forward speed,
    alive: float  # of every step,
    control: float  # and of the squared action
    noise: float  # half width of the uniform reset noise of qpos, and of qvel
    normal: bool = False  # whether the noise of qvel is normal with this standard deviation
    free: bool = False  # whether the root is a free joint, with a quaternion in qpos[3:7]
    torso: bool = False  # whether the velocity is that of the torso body
    mass: bool = False  # whether it is that of the center of mass; otherwise it is that of qpos[0]
    forces: bool = False  # whether inertias, body velocities, actuator and contact forces are observed too
    halve_margin: bool = False  # of geoms: MuJoCo now adds the margins of a pair, the original used the larger
    clip: float = math.inf  # bound of observed velocities
    planar: bool = False  # whether the speed that costs is that in the plane; otherwise the signed speed along x
    mortal: bool = True  # whether an unhealthy state ends the episode
    height: int = 1  # entry of qpos that must stay between ``low`` and ``high`` (exclusive)
    low: float = -math.inf
    high: float = math.inf
    lean: float = math.inf  # bound (exclusive) of the next entry
    bounded: int = -1  # first entry of (qpos, qvel) that must stay within ±``bound`` (exclusive); -1 for none
    bound: float = math.inf


ROBOTS: Final[dict[str, Robot]] = {
    "half_cheetah": Robot(hidden=1, forward=1.0, alive=0.0, control=0.1, noise=0.1, normal=True, mortal=False),
    "ant": Robot(  # heights of exactly 0.2 and 1.0 are healthy
        hidden=2, forward=1.0, alive=1.0, control=0.5, noise=0.1, normal=True, free=True, torso=True, halve_margin=True,
        planar=True, height=2, low=math.nextafter(0.2, 0.0), high=math.nextafter(1.0, 2.0), bounded=0,
    ),
    "humanoid": Robot(
        hidden=2, forward=1.25, alive=5.0, control=0.1, noise=0.01, free=True, mass=True, forces=True,
        halve_margin=True, planar=True, height=2, low=1.0, high=2.0,
    ),
    "swimmer": Robot(hidden=2, forward=1.0, alive=0.0, control=1e-4, noise=0.1, mortal=False),
    "hopper": Robot(
        hidden=1, forward=1.0, alive=1.0, control=1e-3, noise=0.005, halve_margin=True, clip=10.0, low=0.7, lean=0.2,
        bounded=2, bound=100.0,
    ),
    "walker2d": Robot(
        hidden=1, forward=1.0, alive=1.0, control=1e-3, noise=0.005, clip=10.0, low=0.8, high=2.0, lean=1.0
    ),
}  # fmt: skip


def robot_file(name: str) -> str:
    """Return the path of a robot's MJCF file, which comes with Gymnasium."""
    return str(Path(gymnasium.__file__).parent / "envs" / "mujoco" / "assets" / f"{name}.xml")


def load_robot(name: str) -> mujoco.MjModel:
    """Return the compiled model of a robot, a key of ``ROBOTS``, corrected for the current MuJoCo."""
    spec = mujoco.MjSpec.from_file(robot_file(name))
    # The compiler's attribute is deprecated and prints a warning; scaling afterwards gives equal masses.
    total = spec.compiler.settotalmass
    spec.compiler.settotalmass = -1
    model = spec.compile()
    if total > 0:
        mujoco.mj_setTotalmass(model, total)
        mujoco.mj_setConst(model, mujoco.MjData(model))
    model.opt.tolerance = _TOLERANCE
    model.opt.disableflags |= _DISABLED
    if ROBOTS[name].halve_margin:
        model.geom_margin[:] *= 0.5
    return model


class Velocity:
    """N simulations of one robot.

    Each simulation has a generator ``numpy.random.default_rng(seed)``, as in Gymnasium. ``physics`` and
    ``layout_stream`` are accepted because ``Navigation`` has them; they have no effect.

    Attributes
    ----------
    qpos, qvel, ctrl : (N, n) live views of MuJoCo's state
    position : (N, 2) positions of which the velocity is the difference
    """

    def __init__(
        self, task: TaskSpec, num_envs: int, *, threads: int = 1, physics: str = "auto",
        layout_stream: str = "independent",
    ) -> None:  # fmt: skip
        self.task, self.robot, self.model = task, ROBOTS[task.agent], load_robot(task.agent)
        self.batch = mujoco.batch.Batch(self.model, num_envs, min(threads, num_envs), persistent=True)
        self.qpos, self.qvel, self.ctrl = (self.batch.bind(name) for name in ("qpos", "qvel", "ctrl"))
        self.out = Outputs(task, num_envs)
        self.position, self._before = np.zeros((num_envs, 2)), np.zeros((num_envs, 2))
        self._all = np.arange(num_envs, dtype=np.int32)
        self._generators = [np.random.default_rng() for _ in range(num_envs)]
        self._packed = np.zeros((num_envs, 6), np.uint64)
        if self.robot.torso or self.robot.mass:
            self._bodies = self.batch.bind("xpos" if self.robot.torso else "xipos")
        self._mass_share = self.model.body_mass / self.model.body_mass.sum()
        if self.robot.forces:
            self._forces = [self.batch.bind(name) for name in ("cinert", "cvel", "qfrc_actuator")]
            self._data = mujoco.MjData(self.model)

    def reset(self, ids: Ids, seeds: Sequence[int | None]) -> None:
        """Start new episodes in the simulations ``ids`` from the model's reference pose at rest, with noise."""
        robot, noise = self.robot, self.robot.noise
        self.batch.reset(ids, stage=_STAGE_NONE)
        for i, seed in zip(ids, seeds, strict=True):
            if seed is not None:
                self._generators[i] = np.random.default_rng(seed)
            rng = self._generators[i]
            self.qpos[i] += rng.uniform(-noise, noise, self.model.nq)
            size = self.model.nv
            self.qvel[i] += noise * rng.standard_normal(size) if robot.normal else rng.uniform(-noise, noise, size)
            if robot.free:
                w, x, y, z = self.qpos[i, 3:7]
                self.qpos[i, 3:7] *= 1.0 / math.sqrt(w * w + x * x + y * y + z * z)
        self.batch.forward(ids)
        self._read_positions(ids)
        _observe(self.robot, ids, self.qpos, self.qvel, self.out.obs)
        if self.robot.forces:
            self._observe_forces(ids, contacts=False)

    def step(self, actions: Array) -> None:
        """Advance all simulations by one environment step; MuJoCo clips actions, the reward does not."""
        self.ctrl[:] = actions
        self.batch.step(None, self.task.substeps, _STAGE_NONE)
        self._before[:] = self.position
        self._read_positions(self._all)
        self.evaluate(self._before, self.position, actions)
        if self.robot.forces:
            self._observe_forces(self._all, contacts=True)

    def evaluate(self, before: Array, after: Array, actions: Array) -> None:
        """Write the results of a step that has led to the present states, without moving.

        ``before`` and ``after`` (N, 2) are the positions from which the velocity is computed.
        """
        out = self.out
        _observe(self.robot, self._all, self.qpos, self.qvel, out.obs)
        _evaluate(
            self.robot, self.task.period, self.task.speed_limit, self.qpos, self.qvel, before, after,
            actions, out.reward, out.cost, out.terminated,
        )  # fmt: skip
        out.parts[0] = out.cost

    def _read_positions(self, ids: Ids) -> None:
        if self.robot.torso:
            self.position[ids] = self._bodies[ids, 1, :2]
        elif self.robot.mass:
            _centers_of_mass(self._mass_share, self._bodies, ids, self.position)
        else:
            self.position[ids, 0] = self.qpos[ids, 0]

    def _observe_forces(self, ids: Ids, *, contacts: bool) -> None:
        """Write inertias, body velocities, actuator and contact forces to ``out.obs``."""
        start = self.model.nq - self.robot.hidden + self.model.nv
        for field in self._forces:
            rows = field[ids].reshape(len(ids), -1)
            self.out.obs[ids, start : start + rows.shape[1]] = rows
            start += rows.shape[1]
        self.out.obs[ids, start:] = 0.0
        for i in ids if contacts else ():
            self.batch.get_data(i, self._data)
            mujoco.mj_rnePostConstraint(self.model, self._data)
            self.out.obs[i, start:] = self._data.cfrc_ext.ravel()

    def state(self) -> State:
        """Return the complete state as live arrays, except for the generators, see ``restore_generators``."""
        self._packed[:] = [_pack(rng) for rng in self._generators]
        return {"mujoco": self.batch.state, "position": self.position, "generators": self._packed}

    def restore_generators(self) -> None:
        """Set the generators to the states that were written into the array of ``state``."""
        for rng, row in zip(self._generators, self._packed, strict=True):
            low, high, inc_low, inc_high, has_uint32, uinteger = (int(v) for v in row)
            words = {"state": high << 64 | low, "inc": inc_high << 64 | inc_low}
            state: Any = {"bit_generator": "PCG64", "state": words, "has_uint32": has_uint32, "uinteger": uinteger}
            rng.bit_generator.state = state

    def scene(self, index: int) -> State:
        """Return the pose from which ``scene`` draws one simulation."""
        return {"qpos": self.qpos[index]}


def _pack(rng: np.random.Generator) -> list[int]:
    """Return the state of a PCG64 generator as six unsigned 64-bit numbers."""
    full: Any = rng.bit_generator.state
    words = [full["state"][name] >> shift & _WORD for name in ("state", "inc") for shift in (0, 64)]
    return [*words, full["has_uint32"], full["uinteger"]]


@compiled
def _centers_of_mass(mass_share, xipos, ids, position):
    """Write centers of mass in the plane; plain sums, whose order does not depend on the batch size."""
    for i in ids:
        x, y = 0.0, 0.0
        for body in range(mass_share.size):
            x += mass_share[body] * xipos[i, body, 0]
            y += mass_share[body] * xipos[i, body, 1]
        position[i, 0], position[i, 1] = x, y


@compiled
def _observe(robot, ids, qpos, qvel, obs):
    """Write positions and clipped velocities to ``obs``."""
    split = qpos.shape[1] - robot.hidden
    for i in ids:
        for j in range(split):
            obs[i, j] = qpos[i, robot.hidden + j]
        for j in range(qvel.shape[1]):
            obs[i, split + j] = min(max(qvel[i, j], -robot.clip), robot.clip)


@compiled
def _evaluate(robot, period, speed_limit, qpos, qvel, before, after, actions, reward, cost, terminated):
    """Write reward, cost and termination of every simulation."""
    for i in range(qpos.shape[0]):
        effort = 0.0
        for j in range(actions.shape[1]):
            effort += actions[i, j] * actions[i, j]
        speed_x = (after[i, 0] - before[i, 0]) / period
        speed_y = (after[i, 1] - before[i, 1]) / period
        reward[i] = robot.forward * speed_x + robot.alive - robot.control * effort
        speed = math.sqrt(speed_x * speed_x + speed_y * speed_y) if robot.planar else speed_x
        cost[i] = 1.0 if speed > speed_limit else 0.0
        terminated[i] = robot.mortal and not _healthy(robot, qpos[i], qvel[i])


@compiled
def _healthy(robot, qpos, qvel):
    if not robot.low < qpos[robot.height] < robot.high:
        return False
    if not abs(qpos[robot.height + 1]) < robot.lean:
        return False
    if robot.bounded >= 0:
        for j in range(robot.bounded, qpos.size):
            if not abs(qpos[j]) < robot.bound:
                return False
        for j in range(max(robot.bounded - qpos.size, 0), qvel.size):
            if not abs(qvel[j]) < robot.bound:
                return False
    return True
