"""Velocity tasks: six robots of Gymnasium's MuJoCo v4 environments that run forward, with a cost for speed.

A velocity is the difference of positions over one environment step. Positions of bodies lag one MuJoCo substep behind
the state, as in the originals, which do not compute kinematics again before reading them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple

import gymnasium
import mujoco
import mujoco.batch
import numpy as np
import numpy.typing as npt

from steingate.compiled import compiled
from steingate.tasks.base import Array, Ids, Outputs, State
from steingate.tasks.catalog import TaskSpec

# MuJoCo's solver now stops before it reaches the original's results with the default tolerance. Islands and warm
# starts slow down single robots, and change nothing at this tolerance.
_TOLERANCE: Final = 1e-14
_DISABLED: Final = int(mujoco.mjtDisableBit.mjDSBL_ISLAND | mujoco.mjtDisableBit.mjDSBL_WARMSTART)
_STAGE_NONE: Final = int(mujoco.mjtStage.mjSTAGE_NONE)
_WORD: Final = 2**64 - 1


class Rules(NamedTuple):
    """Observation, reward, cost and termination of a robot; plain numbers for compiled functions."""

    hidden: int  # number of leading entries of qpos that are not observed
    forward: float  # weights in the reward: of the forward speed,
    alive: float  # of every step,
    control: float  # and of the squared action
    clip: float = math.inf  # bound of observed velocities
    planar: bool = False  # whether the speed that costs is that in the plane; otherwise the signed speed along x
    mortal: bool = True  # whether an unhealthy state ends the episode
    height: int = 1  # entry of qpos that must stay between ``low`` and ``high`` (exclusive)
    low: float = -math.inf
    high: float = math.inf
    lean: float = math.inf  # bound (exclusive) of the next entry
    bounded: int = -1  # first entry of (qpos, qvel) that must stay within ±``bound`` (exclusive); -1 for none
    bound: float = math.inf


@dataclass(frozen=True)
class Robot:
    """Rules and reset noise of a robot."""

    rules: Rules
    position: Literal["root", "torso", "mass"]  # its motion is the velocity: qpos[0], torso body, or center of mass
    noise: float  # half width of the uniform reset noise of qpos, and of qvel
    normal: bool = False  # whether the noise of qvel is normal with this standard deviation
    free: bool = False  # whether the root is a free joint, with a quaternion in qpos[3:7]
    forces: bool = False  # whether inertias, body velocities, actuator and contact forces are observed too
    halve_margin: bool = False  # of geoms: MuJoCo now adds the margins of a pair, the original used the larger


ROBOTS: Final[dict[str, Robot]] = {
    "half_cheetah": Robot(
        Rules(hidden=1, forward=1.0, alive=0.0, control=0.1, mortal=False), "root", noise=0.1, normal=True
    ),
    "ant": Robot(  # heights of exactly 0.2 and 1.0 are healthy
        Rules(
            hidden=2, forward=1.0, alive=1.0, control=0.5, planar=True, height=2, low=math.nextafter(0.2, 0.0),
            high=math.nextafter(1.0, 2.0), bounded=0,
        ),
        "torso", noise=0.1, normal=True, free=True, halve_margin=True,
    ),
    "humanoid": Robot(
        Rules(hidden=2, forward=1.25, alive=5.0, control=0.1, planar=True, height=2, low=1.0, high=2.0),
        "mass", noise=0.01, free=True, forces=True, halve_margin=True,
    ),
    "swimmer": Robot(Rules(hidden=2, forward=1.0, alive=0.0, control=1e-4, mortal=False), "root", noise=0.1),
    "hopper": Robot(
        Rules(
            hidden=1, forward=1.0, alive=1.0, control=1e-3, clip=10.0, low=0.7, lean=0.2, bounded=2, bound=100.0
        ),
        "root", noise=0.005, halve_margin=True,
    ),
    "walker2d": Robot(
        Rules(hidden=1, forward=1.0, alive=1.0, control=1e-3, clip=10.0, low=0.8, high=2.0, lean=1.0), "root", 0.005
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
    generators : (N, 6) states of the random generators
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
        self.generators = np.array([_pack(np.random.default_rng()) for _ in range(num_envs)], np.uint64)
        kinds = {"torso": ["xpos"], "mass": ["xipos"], "root": []}
        self._bodies = [self.batch.bind(name) for name in kinds[self.robot.position]]
        self._mass_share = self.model.body_mass / self.model.body_mass.sum()
        forces = ("cinert", "cvel", "qfrc_actuator") if self.robot.forces else ()
        self._forces = [self.batch.bind(name) for name in forces]
        self._data = mujoco.MjData(self.model) if forces else None

    def reset(self, ids: Ids, seeds: Sequence[int | None]) -> None:
        """Start new episodes in the simulations ``ids`` from the model's reference pose at rest, with noise."""
        self.batch.reset(ids, stage=_STAGE_NONE)
        for i, seed in zip(ids, seeds, strict=True):
            rng = _unpack(self.generators[i]) if seed is None else np.random.default_rng(seed)
            self._add_noise(rng, self.qpos[i], self.qvel[i])
            self.generators[i] = _pack(rng)
        self.batch.forward(ids)
        self._read_positions(ids)
        _observe(self.robot.rules, ids, self.qpos, self.qvel, self.out.obs)
        if self.robot.forces:
            self._observe_forces(ids)
            self.out.obs[ids, -6 * self.model.nbody :] = 0.0

    def _add_noise(self, rng: np.random.Generator, qpos: Array, qvel: Array) -> None:
        """Add the reset noise, in the original's order of draws."""
        noise = self.robot.noise
        qpos += rng.uniform(-noise, noise, qpos.size)
        if self.robot.normal:
            qvel += noise * rng.standard_normal(qvel.size)
        else:
            qvel += rng.uniform(-noise, noise, qvel.size)
        if self.robot.free:
            w, x, y, z = qpos[3:7]
            qpos[3:7] *= 1.0 / math.sqrt(w * w + x * x + y * y + z * z)

    def step(self, actions: Array) -> None:
        """Advance all simulations by one environment step; MuJoCo clips actions, the reward does not."""
        self.ctrl[:] = actions
        self.batch.step(None, self.task.substeps, _STAGE_NONE)
        self._before[:] = self.position
        self._read_positions(self._all)
        self.evaluate(self._before, self.position, actions)
        if self.robot.forces:
            self._observe_forces(self._all)
            self._observe_contact_forces()

    def evaluate(self, before: Array, after: Array, actions: Array) -> None:
        """Write the results of a step that has led to the present states, without moving.

        ``before`` and ``after`` (N, 2) are the positions from which the velocity is computed.
        """
        out = self.out
        _observe(self.robot.rules, self._all, self.qpos, self.qvel, out.obs)
        _evaluate(
            self.robot.rules, self.task.period, self.task.speed_limit, self.qpos, self.qvel, before, after,
            actions, out.reward, out.cost, out.terminated,
        )  # fmt: skip
        out.parts[0] = out.cost

    def _read_positions(self, ids: Ids) -> None:
        if self.robot.position == "torso":
            self.position[ids] = self._bodies[0][ids, 1, :2]
        elif self.robot.position == "mass":
            _centers_of_mass(self._mass_share, self._bodies[0], ids, self.position)
        else:
            self.position[ids, 0] = self.qpos[ids, 0]

    def _observe_forces(self, ids: Ids) -> None:
        """Write inertias, body velocities and actuator forces to ``out.obs``."""
        start = self.model.nq - self.robot.rules.hidden + self.model.nv
        for field in self._forces:
            rows = field[ids].reshape(len(ids), -1)
            self.out.obs[ids, start : start + rows.shape[1]] = rows
            start += rows.shape[1]

    def _observe_contact_forces(self) -> None:
        assert self._data is not None
        for i in self._all:
            self.batch.get_data(i, self._data)
            mujoco.mj_rnePostConstraint(self.model, self._data)
            self.out.obs[i, -6 * self.model.nbody :] = self._data.cfrc_ext.ravel()

    def state(self) -> State:
        """Return the complete state as live arrays."""
        return {"mujoco": self.batch.state, "position": self.position, "generators": self.generators}

    def scene(self, index: int) -> State:
        """Return the pose from which ``scene`` draws one simulation."""
        return {"qpos": self.qpos[index]}


def _pack(rng: np.random.Generator) -> list[int]:
    """Return the state of a PCG64 generator as six unsigned 64-bit numbers."""
    full: Any = rng.bit_generator.state
    words = [full["state"][name] >> shift & _WORD for name in ("state", "inc") for shift in (0, 64)]
    return [*words, full["has_uint32"], full["uinteger"]]


def _unpack(row: npt.NDArray[np.uint64]) -> np.random.Generator:
    """Return a PCG64 generator with a packed state."""
    low, high, inc_low, inc_high, has_uint32, uinteger = (int(v) for v in row)
    state = {"state": high << 64 | low, "inc": inc_high << 64 | inc_low}
    rng = np.random.default_rng(0)
    flags = {"has_uint32": has_uint32, "uinteger": uinteger}
    rng.bit_generator.state = {"bit_generator": "PCG64", "state": state, **flags}
    return rng


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
def _observe(rules, ids, qpos, qvel, obs):
    """Write positions and clipped velocities to ``obs``."""
    split = qpos.shape[1] - rules.hidden
    for i in ids:
        for j in range(split):
            obs[i, j] = qpos[i, rules.hidden + j]
        for j in range(qvel.shape[1]):
            obs[i, split + j] = min(max(qvel[i, j], -rules.clip), rules.clip)


@compiled
def _evaluate(rules, period, speed_limit, qpos, qvel, before, after, actions, reward, cost, terminated):
    """Write reward, cost and termination of every simulation."""
    for i in range(qpos.shape[0]):
        effort = 0.0
        for j in range(actions.shape[1]):
            effort += actions[i, j] * actions[i, j]
        speed_x = (after[i, 0] - before[i, 0]) / period
        speed_y = (after[i, 1] - before[i, 1]) / period
        reward[i] = rules.forward * speed_x + rules.alive - rules.control * effort
        speed = math.sqrt(speed_x * speed_x + speed_y * speed_y) if rules.planar else speed_x
        cost[i] = 1.0 if speed > speed_limit else 0.0
        terminated[i] = rules.mortal and not _healthy(rules, qpos[i], qvel[i])


@compiled
def _healthy(rules, qpos, qvel):
    if not rules.low < qpos[rules.height] < rules.high:
        return False
    if not abs(qpos[rules.height + 1]) < rules.lean:
        return False
    if rules.bounded >= 0:
        for j in range(rules.bounded, qpos.size):
            if not abs(qpos[j]) < rules.bound:
                return False
        for j in range(max(rules.bounded - qpos.size, 0), qvel.size):
            if not abs(qvel[j]) < rules.bound:
                return False
    return True
