"""Velocity recordings against the velocity tasks: judgment of recorded states, single steps, resets."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt
from tests.parity.criteria import Finding, at_most, equal
from tests.parity.recordings import Index, Recording, step_index

from steingate.tasks.catalog import find_task
from steingate.tasks.velocity import Velocity

_CHUNK: Final = 64

# share, qpos limit, qvel limit
_EXACT = ((1.0, 1e-9, 1e-8),)
_STEP_LIMITS: Final[dict[str, tuple[tuple[float, float, float], ...]]] = {
    "half_cheetah": _EXACT,
    "swimmer": _EXACT,
    "walker2d": _EXACT,
    "hopper": _EXACT,
    "ant": ((0.5, 1e-4, 1e-4), (0.99, 1e-3, 3e-2)),
    "humanoid": ((0.5, 1e-5, 1e-5), (0.99, 1e-4, 1e-3)),
}
_REWARD_LIMIT: Final = {
    "half_cheetah": 1e-9,
    "swimmer": 1e-9,
    "walker2d": 1e-9,
    "hopper": 1e-9,
    "humanoid": 2e-3,
}

Errors = dict[str, npt.NDArray[Any]]


def judge_velocity(recording: Recording, threads: int) -> list[Finding]:
    """Return the findings of criteria A, B and C for one velocity recording.

    The Humanoid's inertias, body velocities and forces lag behind the recorded state, so they are compared
    after one step from the state before, with limits as wide as the engine's change of integrator asks for.

    Parameters
    ----------
    recording : Recording
        A ``vel`` file.
    threads : int
        Threads for the engine.
    """
    spec = find_task(recording.env_id)
    index = step_index(recording)
    task = Velocity(spec, _CHUNK, threads=threads)
    pure = _over_chunks(task, recording, index, physics=False)
    step = _over_chunks(task, recording, index, physics=True)
    truncated = index.number >= spec.max_episode_steps
    findings = [
        *at_most("A observation", pure["obs"], 1e-9),
        *at_most("A reward", pure["reward"], 1e-9),
        *equal("A cost", pure["cost"], recording["step_cost"]),
        *equal("A terminated", pure["terminated"], recording["step_terminated"]),
        *equal("A truncated", truncated, recording["step_truncated"]),
    ]
    for share, qpos, qvel in _STEP_LIMITS[spec.agent]:
        findings += at_most("B one step, qpos", step["qpos"], qpos, share)
        findings += at_most("B one step, qvel", step["qvel"], qvel, share)
    if spec.agent in _REWARD_LIMIT:
        findings += at_most("B one step, reward", step["reward"], _REWARD_LIMIT[spec.agent])
    if task.robot.inner:
        findings += at_most("B one step, inertia, velocity, force entries", step["inner"], 1e-3, 0.5)
        findings += at_most("B one step, inertia, velocity, force entries", step["inner"], 0.1, 0.99)
    findings += _resets(task, recording, index)
    task.close()
    return findings


def _over_chunks(task: Velocity, recording: Recording, index: Index, *, physics: bool) -> Errors:
    """Return errors and results of all steps: judged at the recorded state, or after one step towards it."""
    parts = []
    for start in range(0, len(index.number), _CHUNK):
        steps = np.arange(start, min(start + _CHUNK, len(index.number)))
        padded = np.resize(steps, _CHUNK)
        part = _one_chunk(task, recording, padded, index.before[padded], index.after[padded], physics=physics)
        parts.append({name: array[: len(steps)] for name, array in part.items()})
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def _one_chunk(
    task: Velocity,
    recording: Recording,
    steps: npt.NDArray[np.int64],
    before: npt.NDArray[np.int64],
    after: npt.NDArray[np.int64],
    *,
    physics: bool,
) -> Errors:
    """Return errors and results of as many steps as the task has simulations."""
    sims, out = task.sims, task.out
    rows = before if physics else after
    sims.reset()
    sims.qpos[:] = recording["row_qpos"][rows]
    sims.qvel[:] = recording["row_qvel"][rows]
    actions = np.ascontiguousarray(recording["step_action"][steps])
    places = recording["row_ref_xy"]
    if physics:
        task.place[:] = places[before]
        task.step(actions)
    else:
        task.judge(places[before], places[after], actions)
    outer = task.model.nq - task.robot.rules.hidden + task.model.nv
    gap = np.abs(out.obs - recording["row_obs"][after])
    return {
        "qpos": np.abs(sims.qpos - recording["row_qpos"][after]).max(axis=1),
        "qvel": np.abs(sims.qvel - recording["row_qvel"][after]).max(axis=1),
        "obs": gap[:, :outer].max(axis=1),
        "inner": gap[:, outer:].max(axis=1, initial=0.0),
        "reward": np.abs(out.reward - recording["step_reward"][steps]),
        "cost": out.cost.copy(),
        "terminated": out.terminated.copy(),
    }


def _resets(task: Velocity, recording: Recording, index: Index) -> list[Finding]:
    """Return the finding that resets by seed repeat the recorded first states."""
    plain = np.flatnonzero(recording["policy"] != "kick")  # kicked episodes were pushed after the reset
    gaps = []
    ids = np.zeros(1, dtype=np.int32)
    for episode in plain:
        row = index.starts[episode]
        task.reset(ids, [int(recording["seed"][episode])])
        gaps.append(np.abs(task.sims.qpos[0] - recording["row_qpos"][row]).max())
        gaps.append(np.abs(task.sims.qvel[0] - recording["row_qvel"][row]).max())
    return at_most("C state after reset by seed", gaps, 0.0)
