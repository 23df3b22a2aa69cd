"""The velocity tasks: six robots that are paid for running forward and pay for running too fast.

The rules are those of Gymnasium's MuJoCo v4 environments with a cost added. Speeds are differences of
positions over one environment step; positions of bodies are those inside the last engine step, as in
the originals, which compute nothing again at the final state before they read them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import mujoco
import numpy as np
import numpy.typing as npt

from steingate.compiled import compiled
from steingate.tasks.catalog import TaskSpec
from steingate.tasks.physics import Array, Ids, Simulations
from steingate.tasks.protocol import Outputs
from steingate.tasks.velocity_models import ROBOTS, load_robot

_WORD = 2**64 - 1


class Velocity:
    """N simulations of one robot; the batched core's protocol.

    Each simulation owns a generator ``numpy.random.default_rng(seed)``, as in Gymnasium, whichever layout
    stream is asked for: it is independent of the others and repeats the original's resets.

    Parameters
    ----------
    spec : TaskSpec
        The task.
    num_envs : int
        Number of simulations.
    threads : int
        Threads for the engine.
    physics, layout_stream : str
        Accepted because all task families have them; they change nothing here.
    """

    newer: tuple[str, ...] = ()

    def __init__(
        self,
        spec: TaskSpec,
        num_envs: int,
        *,
        threads: int = 1,
        physics: str = "auto",
        layout_stream: str = "independent",
    ) -> None:
        self.spec = spec
        self.robot = ROBOTS[spec.agent]
        self.model = load_robot(spec.agent)
        self.sims = Simulations(self.model, num_envs, threads)
        self.out = Outputs.empty(spec, num_envs)
        self.place = np.zeros((num_envs, 2))
        self._before = np.zeros((num_envs, 2))
        self._all = np.arange(num_envs, dtype=np.int32)
        self._generators = [np.random.default_rng() for _ in range(num_envs)]
        self._xpos = self.sims.bind("xpos") if self.robot.place == "torso" else None
        self._xipos = self.sims.bind("xipos") if self.robot.place == "mass" else None
        self._mass_share = self.model.body_mass / self.model.body_mass.sum()
        self._inner = (
            [self.sims.bind(name) for name in ("cinert", "cvel", "qfrc_actuator")] if self.robot.inner else []
        )
        self._data = mujoco.MjData(self.model) if self.robot.inner else None

    def reset(self, ids: Ids, seeds: Sequence[int | None]) -> None:
        """Start new episodes: the model's pose and rest, both with noise.

        Parameters
        ----------
        ids : int32 array
            Sorted simulations.
        seeds : sequence
            One seed per id; None goes on with the simulation's generator.
        """
        for i, seed in zip(ids, seeds, strict=True):
            if seed is not None:
                self._generators[i] = np.random.default_rng(seed)
        self.sims.reset(ids)
        for i in ids:
            self._disturb(self._generators[i], self.sims.qpos[i], self.sims.qvel[i])
        self.sims.forward(ids)
        self._read_places(ids)
        self._observe(ids)
        if self.robot.inner:
            self.out.obs[ids, -6 * self.model.nbody :] = 0.0

    def _disturb(self, rng: np.random.Generator, qpos: Array, qvel: Array) -> None:
        """Add the reset noise, in the original's order of draws."""
        robot = self.robot
        qpos += rng.uniform(-robot.noise_qpos, robot.noise_qpos, qpos.size)
        if robot.normal:
            qvel += robot.noise_qvel * rng.standard_normal(qvel.size)
        else:
            qvel += rng.uniform(-robot.noise_qvel, robot.noise_qvel, qvel.size)
        if robot.free:
            w, x, y, z = qpos[3:7]
            qpos[3:7] *= 1.0 / math.sqrt(w * w + x * x + y * y + z * z)

    def step(self, actions: Array) -> None:
        """Advance all simulations by one environment step.

        Parameters
        ----------
        actions : (N, a) float64 array
            Passed on as they are: the engine clamps, the control cost does not.
        """
        self.sims.ctrl[:] = actions
        self.sims.step(self.spec.substeps)
        self._before[:] = self.place
        self._read_places(None)
        self.judge(self._before, self.place, actions)
        if self.robot.inner:
            self._observe_inner(self._all, contact=True)

    def judge(self, before: Array, after: Array, actions: Array) -> None:
        """Write observation, reward, cost and termination of the present state to ``out``.

        Parameters
        ----------
        before, after : (N, 2) arrays
            The places between which the speed is measured.
        actions : (N, a) array
            The actions that led here.
        """
        out = self.out
        _judge(
            self.robot.rules,
            self.spec.period,
            self.spec.speed_limit,
            self.sims.qpos,
            self.sims.qvel,
            before,
            after,
            actions,
            out.obs,
            out.reward,
            out.cost,
            out.terminated,
        )
        out.parts[0] = out.cost

    def _read_places(self, ids: Ids | None) -> None:
        """Take over the places (of which the speed is the difference) from the engine's last pass."""
        rows = slice(None) if ids is None else ids
        if self._xpos is not None:
            self.place[rows] = self._xpos[rows, 1, :2]
        elif self._xipos is not None:
            _mean_places(self._mass_share, self._xipos, self._all if ids is None else ids, self.place)
        else:
            self.place[rows, 0] = self.sims.qpos[rows, 0]

    def _observe(self, ids: Ids) -> None:
        """Write the observation of some simulations to ``out.obs``."""
        rules = self.robot.rules
        positions = self.sims.qpos[ids, rules.hidden :]
        velocities = np.clip(self.sims.qvel[ids], -rules.clip, rules.clip)
        split = positions.shape[1]
        self.out.obs[ids, :split] = positions
        self.out.obs[ids, split : split + velocities.shape[1]] = velocities
        if self.robot.inner:
            self._observe_inner(ids, contact=False)

    def _observe_inner(self, ids: Ids, *, contact: bool) -> None:
        """Write inertias, body velocities, actuator forces and, if asked for, contact forces to ``obs``."""
        start = self.model.nq - self.robot.rules.hidden + self.model.nv
        for field in self._inner:
            rows = field[ids].reshape(len(ids), -1)
            self.out.obs[ids, start : start + rows.shape[1]] = rows
            start += rows.shape[1]
        if contact and self._data is not None:
            for i in ids:
                self.sims.batch.get_data(i, self._data)
                mujoco.mj_rnePostConstraint(self.model, self._data)
                self.out.obs[i, start:] = self._data.cfrc_ext.ravel()

    def snapshot(self) -> dict[str, npt.NDArray[Any]]:
        """Return the complete state: engine, places, generators."""
        generators = np.array([_pack(rng) for rng in self._generators], dtype=np.uint64)
        return {"physics": self.sims.state.copy(), "place": self.place.copy(), "generators": generators}

    def restore(self, state: dict[str, npt.NDArray[Any]]) -> None:
        """Go back to a state.

        Parameters
        ----------
        state : dict
            What ``snapshot`` returned.
        """
        self.sims.state[:] = state["physics"]
        self.place[:] = state["place"]
        for rng, row in zip(self._generators, state["generators"], strict=True):
            _unpack(rng, row)

    def scene(self, index: int) -> dict[str, npt.NDArray[Any]]:
        """Return what the renderer needs of one simulation.

        Parameters
        ----------
        index : int
            The simulation.
        """
        return {
            "qpos": self.sims.qpos[index].copy(),
            "obs": self.out.obs[index].copy(),
            "cost": np.array(self.out.cost[index]),
        }

    def close(self) -> None:
        """Let go of simulations and threads."""
        self._inner, self._data, self._xpos, self._xipos = [], None, None, None
        del self.sims


def _pack(rng: np.random.Generator) -> list[int]:
    """Return the state of a PCG64 generator as six unsigned 64-bit numbers."""
    full: Any = rng.bit_generator.state
    words = [full["state"][name] >> shift & _WORD for name in ("state", "inc") for shift in (0, 64)]
    return [*words, full["has_uint32"], full["uinteger"]]


def _unpack(rng: np.random.Generator, row: npt.NDArray[np.uint64]) -> None:
    """Set a PCG64 generator to a packed state."""
    low, high, inc_low, inc_high, has, word = (int(v) for v in row)
    rng.bit_generator.state = {
        "bit_generator": "PCG64",
        "state": {"state": high << 64 | low, "inc": inc_high << 64 | inc_low},
        "has_uint32": has,
        "uinteger": word,
    }


@compiled
def _mean_places(share, xipos, ids, place):
    """Write centres of mass; a plain sum, so that the size of the batch cannot change its order."""
    for i in ids:
        x, y = 0.0, 0.0
        for body in range(share.size):
            x += share[body] * xipos[i, body, 0]
            y += share[body] * xipos[i, body, 1]
        place[i, 0], place[i, 1] = x, y


@compiled
def _judge(rules, period, speed_limit, qpos, qvel, before, after, actions, obs, reward, cost, terminated):
    """Write the results of one step of every simulation."""
    nq, nv = qpos.shape[1], qvel.shape[1]
    for i in range(qpos.shape[0]):
        split = nq - rules.hidden
        for j in range(split):
            obs[i, j] = qpos[i, rules.hidden + j]
        for j in range(nv):
            obs[i, split + j] = min(max(qvel[i, j], -rules.clip), rules.clip)

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
    """Return whether an episode may go on in this state."""
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
