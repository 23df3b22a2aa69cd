"""Velocity recordings: results at recorded states (A), single steps (B), states after reset (C)."""

import numpy as np
from tests.parity.recordings import Array, Recording, at_most, equal

from steingate.tasks.catalog import find_task
from steingate.tasks.velocity import Velocity

_CHUNK = 64

# robot -> (fraction, limit of qpos errors, limit of qvel errors); all others: _EXACT
_EXACT = ((1.0, 1e-9, 1e-8),)
_STEP_LIMITS = {"ant": ((0.5, 1e-4, 1e-4), (0.99, 1e-3, 3e-2)), "humanoid": ((0.5, 1e-5, 1e-5), (0.99, 1e-4, 1e-3))}


def check_velocity(recording: Recording, threads: int) -> list[str]:
    """Return the failures on one velocity recording.

    The Humanoid's inertias, body velocities and forces lag behind the recorded state, so they are compared after one
    step from the state before; the limits allow for MuJoCo's changed integrator.
    """
    task = find_task(recording.env_ids[0])
    sim = Velocity(task, _CHUNK, threads=threads)
    state, step = (_errors(sim, recording, simulate) for simulate in (False, True))
    failures = [
        *at_most("A observation", state["obs"], 1e-9),
        *at_most("A reward", state["reward"], 1e-9),
        *equal("A cost", state["cost"], recording["step_cost"]),
        *equal("A terminated", state["terminated"], recording["step_terminated"]),
        *equal("A truncated", recording.number >= task.max_episode_steps, recording["step_truncated"]),
    ]
    for fraction, qpos, qvel in _STEP_LIMITS.get(task.agent, _EXACT):
        failures += at_most("B one step, qpos", step["qpos"], qpos, fraction)
        failures += at_most("B one step, qvel", step["qvel"], qvel, fraction)
    if task.agent != "ant":
        failures += at_most("B one step, reward", step["reward"], 2e-3 if task.agent == "humanoid" else 1e-9)
    if task.agent == "humanoid":
        for fraction, limit in ((0.5, 1e-3), (0.99, 0.1)):
            failures += at_most("B one step, inertia, velocity, force entries", step["forces"], limit, fraction)
    gaps = []
    for episode in np.flatnonzero(recording["policy"] != "kick"):  # these were pushed after the reset
        row = recording.first_rows[episode]
        sim.reset(np.zeros(1, dtype=np.int32), [int(recording["seed"][episode])])
        gaps += [*(sim.qpos[0] - recording["row_qpos"][row]), *(sim.qvel[0] - recording["row_qvel"][row])]
    return failures + at_most("C state after reset by seed", np.abs(gaps), 0.0)


def _errors(sim: Velocity, recording: Recording, simulate: bool) -> dict[str, Array]:
    """Return errors and results of all steps, at the recorded state or after one simulated step to it."""
    chunks = []
    for start in range(0, len(recording.number), _CHUNK):
        steps = np.arange(start, min(start + _CHUNK, len(recording.number)))
        errors = _chunk_errors(sim, recording, np.resize(steps, _CHUNK), simulate)
        chunks.append({name: array[: len(steps)] for name, array in errors.items()})
    return {name: np.concatenate([chunk[name] for chunk in chunks]) for name in chunks[0]}


def _chunk_errors(sim: Velocity, recording: Recording, steps: Array, simulate: bool) -> dict[str, Array]:
    """Return errors and results of as many steps as there are simulations."""
    out, positions, after = sim.out, recording["row_ref_xy"], recording.after[steps]
    rows = after - 1 if simulate else after
    sim.batch.reset(None, stage=0)
    sim.qpos[:], sim.qvel[:] = recording["row_qpos"][rows], recording["row_qvel"][rows]
    actions = np.ascontiguousarray(recording["step_action"][steps])
    if simulate:
        sim.position[:] = positions[after - 1]
        sim.step(actions)
    else:
        sim.evaluate(positions[after - 1], positions[after], actions)
    split = sim.model.nq - sim.robot.hidden + sim.model.nv
    gap = np.abs(out.obs - recording["row_obs"][after])
    return {
        "qpos": np.abs(sim.qpos - recording["row_qpos"][after]).max(axis=1),
        "qvel": np.abs(sim.qvel - recording["row_qvel"][after]).max(axis=1),
        "obs": gap[:, :split].max(axis=1),
        "forces": gap[:, split:].max(axis=1, initial=0.0),
        "reward": np.abs(out.reward - recording["step_reward"][steps]),
        "cost": out.cost.copy(),
        "terminated": out.terminated.copy(),
    }
