"""Velocity recordings: results at recorded states (A), single steps (B), states after reset (C)."""

from __future__ import annotations

import numpy as np
from tests.parity.recordings import Array, Finding, Recording, at_most, equal

from steingate.tasks.catalog import find_task
from steingate.tasks.velocity import Velocity

_CHUNK = 64

# robot -> (fraction, limit of qpos errors, limit of qvel errors); all others: _EXACT
_EXACT = ((1.0, 1e-9, 1e-8),)
_STEP_LIMITS = {
    "ant": ((0.5, 1e-4, 1e-4), (0.99, 1e-3, 3e-2)),
    "humanoid": ((0.5, 1e-5, 1e-5), (0.99, 1e-4, 1e-3)),
}


def check_velocity(recording: Recording, threads: int) -> list[Finding]:
    """Return the findings on one velocity recording.

    The Humanoid's inertias, body velocities and forces lag behind the recorded state, so they are compared
    after one step from the state before; the limits allow for MuJoCo's changed integrator.
    """
    spec = find_task(recording.env_ids[0])
    task = Velocity(spec, _CHUNK, threads=threads)
    state = _errors(task, recording, simulate=False)
    step = _errors(task, recording, simulate=True)
    findings = [
        *at_most("A observation", state["obs"], 1e-9),
        *at_most("A reward", state["reward"], 1e-9),
        *equal("A cost", state["cost"], recording["step_cost"]),
        *equal("A terminated", state["terminated"], recording["step_terminated"]),
        *equal("A truncated", recording.number >= spec.max_episode_steps, recording["step_truncated"]),
    ]
    for fraction, qpos, qvel in _STEP_LIMITS.get(spec.agent, _EXACT):
        findings += at_most("B one step, qpos", step["qpos"], qpos, fraction)
        findings += at_most("B one step, qvel", step["qvel"], qvel, fraction)
    if spec.agent != "ant":
        findings += at_most("B one step, reward", step["reward"], 2e-3 if spec.agent == "humanoid" else 1e-9)
    if spec.agent == "humanoid":
        for fraction, limit in ((0.5, 1e-3), (0.99, 0.1)):
            findings += at_most("B one step, inertia, velocity, force entries", step["extra_obs"], limit, fraction)
    findings += _check_resets(task, recording)
    task.close()
    return findings


def _errors(task: Velocity, recording: Recording, *, simulate: bool) -> dict[str, Array]:
    """Return errors and results of all steps, at the recorded state or after one simulated step to it."""
    chunks = []
    for start in range(0, len(recording.number), _CHUNK):
        steps = np.arange(start, min(start + _CHUNK, len(recording.number)))
        errors = _chunk_errors(task, recording, np.resize(steps, _CHUNK), simulate=simulate)
        chunks.append({name: array[: len(steps)] for name, array in errors.items()})
    return {name: np.concatenate([chunk[name] for chunk in chunks]) for name in chunks[0]}


def _chunk_errors(task: Velocity, recording: Recording, steps: Array, *, simulate: bool) -> dict[str, Array]:
    """Return errors and results of as many steps as the task has simulations."""
    out, positions = task.out, recording["row_ref_xy"]
    after = recording.after[steps]
    rows = after - 1 if simulate else after
    task.batch.reset(None, stage=0)
    task.qpos[:] = recording["row_qpos"][rows]
    task.qvel[:] = recording["row_qvel"][rows]
    actions = np.ascontiguousarray(recording["step_action"][steps])
    if simulate:
        task.position[:] = positions[after - 1]
        task.step(actions)
    else:
        task.evaluate(positions[after - 1], positions[after], actions)
    split = task.model.nq - task.robot.rules.hidden + task.model.nv
    gap = np.abs(out.obs - recording["row_obs"][after])
    return {
        "qpos": np.abs(task.qpos - recording["row_qpos"][after]).max(axis=1),
        "qvel": np.abs(task.qvel - recording["row_qvel"][after]).max(axis=1),
        "obs": gap[:, :split].max(axis=1),
        "extra_obs": gap[:, split:].max(axis=1, initial=0.0),
        "reward": np.abs(out.reward - recording["step_reward"][steps]),
        "cost": out.cost.copy(),
        "terminated": out.terminated.copy(),
    }


def _check_resets(task: Velocity, recording: Recording) -> list[Finding]:
    """Return the finding that resets by seed give the recorded first states."""
    gaps = []
    for episode in np.flatnonzero(recording["policy"] != "kick"):  # these were pushed after the reset
        row = recording.first_rows[episode]
        task.reset(np.zeros(1, dtype=np.int32), [int(recording["seed"][episode])])
        gaps.append(np.abs(task.qpos[0] - recording["row_qpos"][row]).max())
        gaps.append(np.abs(task.qvel[0] - recording["row_qvel"][row]).max())
    return at_most("C state after reset by seed", gaps, 0.0)
