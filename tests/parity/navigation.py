"""Navigation recordings against the navigation tasks: states judged, single steps, goals, free runs."""

from __future__ import annotations

from typing import Final

import numpy as np
from tests.parity.criteria import Finding, at_least, at_most, equal
from tests.parity.recordings import Recording
from tests.parity.states import Array, Case, read_case

from steingate.tasks.models import STATE_SIZE, compile_world
from steingate.tasks.navigation import Navigation
from steingate.tasks.physics import Simulations

_CHUNK: Final = 64
_ACCELEROMETER: Final = 3  # the first entries of the observation

# (share, qpos limit, qvel limit) by kind of step
_CIRCLE: Final = ((0.995, 1e-11, 1e-9), (1.0, 1e-8, 1e-6))
_FREE: Final = ((0.97, 1e-11, 1e-9), (0.995, 1e-4, 1e-2))
_TOUCHING: Final = ((0.5, 1e-5, 1e-3), (0.95, 5e-4, 0.1))


def judge_navigation(recording: Recording, threads: int) -> list[Finding]:
    """Return the findings of criteria A to D for one navigation recording.

    All but the contact count is judged in both physics modes: as usual, and with the engine everywhere.

    Parameters
    ----------
    recording : Recording
        A ``nav`` file.
    threads : int
        Threads for the engine.
    """
    findings: list[Finding] = []
    for physics in ("auto", "mujoco"):
        case = read_case(recording, threads, physics)
        findings += _recorded_states(case)
        findings += _single_steps(case)
        if case.spec.agent == "car":
            findings += _free_runs(case)
    return findings + _contact_counts(case)


def _recorded_states(case: Case) -> list[Finding]:
    """Return the findings of criteria A and C: recorded states judged in order, the stream running along."""
    recording, index, spec, mode = case.recording, case.index, case.spec, f"[{case.physics}]"
    lengths = recording["ep_len"]
    first_step = np.cumsum(lengths) - lengths
    task = case.task(len(lengths))
    task.reset(np.arange(len(lengths), dtype=np.int32), [int(seed) for seed in recording["seed"]])
    layout = _layout_gaps(task, case)
    obs, goal = np.full(recording["row_obs"].shape, np.nan), np.full(case.states.goal.shape, np.nan)
    obs[index.starts], goal[index.starts] = task.out.obs, task.xy[:, task.law.goal]
    names = ("cost", "terminated", "goal_met", *spec.cost_parts)
    columns = dict(zip(spec.cost_parts, task.out.parts, strict=True))
    columns |= {name: getattr(task.out, name) for name in ("reward", "cost", "terminated", "goal_met")}
    results = {name: np.full(len(index.number), np.nan) for name in columns}
    for number in range(1, int(lengths.max()) + 1):
        within = np.minimum(number, lengths)  # finished episodes stay at their last state, unread
        rows, steps, on = index.starts + within, first_step + within - 1, number <= lengths
        case.put(task, rows)
        task.evaluate(case.actions(steps))
        obs[rows[on]], goal[rows[on]] = task.out.obs[on], task.xy[on, task.law.goal]
        for name, column in columns.items():
            results[name][steps[on]] = column[on]
    task.close()
    findings = _observations(case, obs)
    findings += at_most(f"A reward {mode}", np.abs(results["reward"] - recording["step_reward"]), 1e-9)
    for name in names:
        findings += equal(f"A {name} {mode}", results[name], recording[f"step_{name}"].astype(np.float64))
    findings += equal("A truncated", index.number >= spec.max_episode_steps, recording["step_truncated"])
    findings += at_most(f"C layouts by seed {mode}", layout, 0.0)
    if spec.family == "goal":
        findings += at_most(f"C goal positions {mode}", np.abs(goal - case.states.goal), 0.0)
    return findings


def _layout_gaps(task: Navigation, case: Case) -> Array:
    """Return the differences between layouts after reset and the recorded ones, flat."""
    pairs = [
        (task.xy[:, 0], case.recording["agent_xy0"]),
        (task.rot[:, 0], case.recording["agent_rot0"]),
        (task.xy[:, task.law.rows("hazards")], case.states.hazards),
        (task.xy[:, task.law.rows("vases")], case.states.vases),
    ]
    return np.concatenate([np.abs(ours - theirs).ravel() for ours, theirs in pairs])


def _observations(case: Case, obs: Array) -> list[Finding]:
    """Return the findings on observations: the accelerometer apart, which feels contacts."""
    gap = np.abs(obs - case.recording["row_obs"])
    accelerometer, rest = gap[:, :_ACCELEROMETER].max(axis=1), gap[:, _ACCELEROMETER:].max(axis=1)
    touched = np.zeros(len(gap), dtype=np.bool_)
    touched[case.index.after[case.touching]] = True
    mode = f"[{case.physics}]"
    return [
        *at_most(f"A observation without accelerometer {mode}", rest, 1e-9),
        *at_most(f"A accelerometer, free {mode}", accelerometer[case.regular & ~touched], 1e-8),
        *at_most(f"A accelerometer, touching {mode}", accelerometer[touched], 0.1, 0.99),
    ]


def _single_steps(case: Case) -> list[Finding]:
    """Return the findings of criterion B: one environment step from every recorded state."""
    index, total = case.index, len(case.index.number)
    task = case.task(_CHUNK)
    gaps = np.zeros((total, 2))
    for start in range(0, total, _CHUNK):
        steps = np.arange(start, min(start + _CHUNK, total))
        padded = np.resize(steps, _CHUNK)
        case.put(task, index.before[padded])
        case.place(task, padded)
        task.step(case.actions(padded))
        gaps[steps] = case.gaps(task, index.after[padded])[: len(steps)]
    task.close()
    touched_before = np.concatenate([[False], case.touching[:-1]]) & (index.number > 1)
    free = ~(case.touching | touched_before)
    counted = case.regular[index.before]
    groups = (
        [("", counted, _CIRCLE)]
        if case.spec.family == "circle"
        else [(", free", counted & free, _FREE), (", touching", counted & ~free, _TOUCHING)]
    )
    findings: list[Finding] = []
    for name, chosen, limits in groups:
        for share, qpos, qvel in limits:
            findings += at_most(f"B one step{name}, qpos [{case.physics}]", gaps[chosen, 0], qpos, share)
            findings += at_most(f"B one step{name}, qvel [{case.physics}]", gaps[chosen, 1], qvel, share)
    return findings


def _free_runs(case: Case) -> list[Finding]:
    """Return the finding of criterion D: the Car alone from its second state on, up to the first touch."""
    index, lengths = case.index, case.recording["ep_len"]
    first_step = np.cumsum(lengths) - lengths
    task = case.task(len(lengths))
    case.put(task, index.starts + 1)
    case.place(task, first_step)
    untouched = ~case.touching[first_step]
    worst = np.zeros(len(lengths))
    for number in range(2, int(lengths.max()) + 1):
        steps = first_step + np.minimum(number, lengths) - 1
        task.step(case.actions(steps))
        untouched &= ~case.touching[steps] & (number <= lengths)
        gap = case.gaps(task, index.after[steps])[:, 0]
        worst = np.where(untouched, np.maximum(worst, gap), worst)
    task.close()
    return at_most(f"D free run up to the first touch, qpos [{case.physics}]", worst, 1e-7)


def _contact_counts(case: Case) -> list[Finding]:
    """Return the finding on the number of contacts the engine lists at recorded states."""
    spec, states = case.spec, case.states
    sims = Simulations(compile_world(spec, spec.count("vases")), _CHUNK, case.threads)
    listed = sims.bind("ncon")
    nq, nv = STATE_SIZE[spec.agent]
    rows = np.arange(len(states.q))
    counts = np.zeros(len(rows), dtype=np.int64)
    for start in range(0, len(rows), _CHUNK):
        chunk = np.resize(rows[start : start + _CHUNK], _CHUNK)
        sims.qpos[:, :nq], sims.qvel[:, :nv] = states.q[chunk], states.v[chunk]
        sims.qpos[:, nq:] = states.vase_q[chunk].reshape(_CHUNK, -1)
        sims.qvel[:, nv:] = states.vase_v[chunk].reshape(_CHUNK, -1)
        sims.forward()
        counts[chunk] = listed.reshape(_CHUNK)
    share = float(np.mean(counts[case.regular] == case.recording["row_ncon"][case.regular]))
    limit = 1.0 if spec.family == "circle" else 0.985
    return at_least("A number of contacts: share of rows that agree", share, limit)
