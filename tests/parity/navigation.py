"""Navigation recordings: results at recorded states (A), single steps (B), layouts (C), free runs (D)."""

from functools import cached_property

import mujoco
import numpy as np
from tests.parity.recordings import Array, Recording, at_most, equal

from steingate.tasks.catalog import find_task
from steingate.tasks.layouts import Placement, draw_layouts, make_placement, seeded_states
from steingate.tasks.mujoco_handoff import AT_REST, CALM_SPEED, CALM_TURN, MOVING
from steingate.tasks.navigation import Navigation
from steingate.tasks.navigation_models import STATE_SIZE, compile_world

_CHUNK = 64

# (fraction, limit of qpos errors, limit of qvel errors) by kind of step
_CIRCLE = ((0.995, 1e-11, 1e-9), (1.0, 1e-8, 1e-6))
_FREE = ((0.97, 1e-11, 1e-9), (0.995, 1e-4, 1e-2))
_TOUCHING = ((0.5, 1e-5, 1e-3), (0.95, 5e-4, 0.1))


def check_navigation(recording: Recording, threads: int) -> list[str]:
    """Return the failures on one navigation recording, for both values of ``physics``."""
    failures: list[str] = []
    for physics in ("auto", "mujoco"):
        case = Case(recording, threads, physics)
        failures += _check_states(case) + _check_steps(case)
        if case.task.agent == "car":
            failures += _check_free_runs(case)
    return failures + _check_contact_counts(case)


class Case:
    """One recording: its states (one per row, in world axes) and how to run the task.

    ``goal`` (rows, 2) is the goal during the step that follows, ``touching`` (steps,) contacts with objects
    at the end of the step; ``hazards`` and ``vases`` (episodes, n, 2) are positions after reset.
    """

    def __init__(self, recording: Recording, threads: int, physics: str) -> None:
        self.recording, self.threads, self.physics = recording, threads, physics
        self.task = find_task(recording.env_ids[0])
        nq, nv = STATE_SIZE[self.task.agent]
        qpos, qvel = recording["row_qpos"], recording["row_qvel"]
        self.q, self.v = qpos[:, :nq].copy(), qvel[:, :nv].copy()
        if self.task.agent == "point":  # the original's Point uses the frame of its first pose
            episode = np.repeat(np.arange(len(recording["ep_len"])), recording["ep_len"] + 1)
            yaw = recording["agent_rot0"][episode]
            self.q[:, :2] = recording["agent_xy0"][episode] + _rotate(qpos[:, :2], yaw)
            self.q[:, 2] += yaw
            self.v[:, :2] = _rotate(qvel[:, :2], yaw)
        vases = self.task.count("vases")
        self.vase_q = qpos[:, nq:].reshape(len(qpos), vases, 7)
        self.vase_v = qvel[:, nv:].reshape(len(qpos), vases, 6)
        self.has_goal = self.task.family == "goal"
        self.goal = recording["row_goal_pos"][:, :2] if self.has_goal else np.zeros((len(qpos), 2))
        self.hazards, self.vases = (
            recording["obj_pos0"][:, [name.startswith(kind) for name in recording.meta["obj_names"]], :2]
            for kind in ("hazard", "vase")
        )
        self.touching = recording["step_n_agent_contacts"].sum(axis=1) > 0

    @cached_property
    def regular(self) -> Array:
        """Rows (as flags) at which rounding does not decide about contacts: all but the Car's first."""
        flags = np.ones(len(self.q), dtype=np.bool_)
        if self.task.agent == "car":
            flags[self.recording.first_rows] = False
        return flags

    def simulate(self, count: int) -> Navigation:
        """Return the task with ``count`` simulations on the reference layout stream."""
        return Navigation(self.task, count, threads=self.threads, physics=self.physics, layout_stream="reference")

    def set_states(self, task: Navigation, rows: Array) -> None:
        """Put the agents and vases of all simulations into recorded states."""
        task.q[:], task.v[:] = self.q[rows], self.v[rows]
        task.vase_q[:], task.vase_v[:] = self.vase_q[rows], self.vase_v[rows]
        speed = np.linalg.norm(task.vase_v[:, :, :3], axis=2)
        turn = np.linalg.norm(task.vase_v[:, :, 3:], axis=2)
        task.status[:] = np.where((speed < CALM_SPEED) & (turn < CALM_TURN), AT_REST, MOVING)
        task.calm[:] = 0

    def set_objects(self, task: Navigation, steps: Array) -> None:
        """Put goals and hazards where they are during recorded steps."""
        if self.has_goal:
            task.xy[:, task.placement.goal] = self.goal[self.recording.after[steps] - 1]
            task.xy[:, task.placement.rows("hazards")] = self.hazards[self.recording.episode[steps]]

    def gaps(self, task: Navigation, rows: Array) -> Array:
        """Return the largest differences (N, 2) of the agents' qpos and qvel to recorded states."""
        qpos = np.abs(task.q - self.q[rows]).max(axis=1)
        qvel = np.abs(task.v - self.v[rows]).max(axis=1)
        return np.stack([qpos, qvel], axis=1)


def _rotate(xy: Array, yaw: Array) -> Array:
    """Return vectors (n, 2) rotated by angles (n,)."""
    c, s = np.cos(yaw), np.sin(yaw)
    return np.stack([c * xy[:, 0] - s * xy[:, 1], s * xy[:, 0] + c * xy[:, 1]], axis=1)


def _check_states(case: Case) -> list[str]:
    """Return the failures on all recorded states, evaluated in order so that goals are redrawn on the way."""
    recording, spec, mode = case.recording, case.task, f"[{case.physics}]"
    lengths = recording["ep_len"]
    task = case.simulate(len(lengths))
    task.reset(np.arange(len(lengths), dtype=np.int32), [int(seed) for seed in recording["seed"]])
    layout_gaps = [
        np.abs(task.xy[:, 0] - recording["agent_xy0"]),
        np.abs(task.yaw[:, 0] - recording["agent_rot0"]),
        np.abs(task.xy[:, task.placement.rows("hazards")] - case.hazards),
        np.abs(task.xy[:, task.placement.rows("vases")] - case.vases),
    ]
    obs, goal = np.full(recording["row_obs"].shape, np.nan), np.full(case.goal.shape, np.nan)
    obs[recording.first_rows] = task.out.obs
    goal[recording.first_rows] = task.xy[:, task.placement.goal]
    columns = dict(zip(spec.cost_parts, task.out.parts, strict=True))
    columns |= {name: getattr(task.out, name) for name in ("reward", "cost", "terminated", "goal_met")}
    results = {name: np.full(len(recording.number), np.nan) for name in columns}
    for number in range(1, int(lengths.max()) + 1):
        within = np.minimum(number, lengths)  # finished episodes stay at their last state, unread
        rows, steps = recording.first_rows + within, recording.first_steps + within - 1
        running = number <= lengths
        case.set_states(task, rows)
        task.step(np.ascontiguousarray(recording["step_action"][steps]), substeps=0)
        obs[rows[running]] = task.out.obs[running]
        goal[rows[running]] = task.xy[running, task.placement.goal]
        for name, column in columns.items():
            results[name][steps[running]] = column[running]
    gap = np.abs(obs - recording["row_obs"])
    accelerometer, others = gap[:, :3].max(axis=1), gap[:, 3:].max(axis=1)
    touched = np.zeros(len(gap), dtype=np.bool_)  # the accelerometer depends on contact forces
    touched[recording.after[case.touching]] = True
    failures = at_most(f"A observation without accelerometer {mode}", others, 1e-9)
    failures += at_most(f"A accelerometer, free {mode}", accelerometer[case.regular & ~touched], 1e-8)
    failures += at_most(f"A accelerometer, touching {mode}", accelerometer[touched], 0.1, 0.99)
    failures += at_most(f"A reward {mode}", np.abs(results.pop("reward") - recording["step_reward"]), 1e-9)
    for name, values in results.items():
        failures += equal(f"A {name} {mode}", values, recording[f"step_{name}"].astype(np.float64))
    failures += equal("A truncated", recording.number >= spec.max_episode_steps, recording["step_truncated"])
    gaps = np.concatenate([gap.ravel() for gap in layout_gaps])
    failures += at_most(f"C layouts by seed {mode}", gaps, 0.0)
    if case.has_goal:
        failures += at_most(f"C goal positions {mode}", np.abs(goal - case.goal), 0.0)
    return failures


def _check_steps(case: Case) -> list[str]:
    """Return the failures on one simulated step from every recorded state."""
    recording, total = case.recording, len(case.recording.number)
    task = case.simulate(_CHUNK)
    gaps = np.zeros((total, 2))
    for start in range(0, total, _CHUNK):
        steps = np.arange(start, min(start + _CHUNK, total))
        padded = np.resize(steps, _CHUNK)
        case.set_states(task, recording.after[padded] - 1)
        case.set_objects(task, padded)
        task.step(np.ascontiguousarray(recording["step_action"][padded]))
        gaps[steps] = case.gaps(task, recording.after[padded])[: len(steps)]
    touched_before = np.concatenate([[False], case.touching[:-1]]) & (recording.number > 1)
    free = ~(case.touching | touched_before)
    counted = case.regular[recording.after - 1]
    groups = [("", counted, _CIRCLE)]
    if case.has_goal:
        groups = [(", free", counted & free, _FREE), (", touching", counted & ~free, _TOUCHING)]
    failures: list[str] = []
    for name, chosen, limits in groups:
        for fraction, qpos, qvel in limits:
            for field, column, limit in (("qpos", 0, qpos), ("qvel", 1, qvel)):
                criterion = f"B one step{name}, {field} [{case.physics}]"
                failures += at_most(criterion, gaps[chosen, column], limit, fraction)
    return failures


def _check_free_runs(case: Case) -> list[str]:
    """Return the failure on the Car's run from its second state up to its first touch of a vase."""
    recording, lengths = case.recording, case.recording["ep_len"]
    task = case.simulate(len(lengths))
    case.set_states(task, recording.first_rows + 1)
    case.set_objects(task, recording.first_steps)
    untouched = ~case.touching[recording.first_steps]
    worst = np.zeros(len(lengths))
    for number in range(2, int(lengths.max()) + 1):
        steps = recording.first_steps + np.minimum(number, lengths) - 1
        task.step(np.ascontiguousarray(recording["step_action"][steps]))
        untouched &= ~case.touching[steps] & (number <= lengths)
        gap = case.gaps(task, recording.after[steps])[:, 0]
        worst = np.where(untouched, np.maximum(worst, gap), worst)
    return at_most(f"D free run up to the first touch, qpos [{case.physics}]", worst, 1e-7)


def _check_contact_counts(case: Case) -> list[str]:
    """Return the failure on the number of contacts that MuJoCo lists at recorded states."""
    model = compile_world(case.task, case.task.count("vases"))
    data, counts = mujoco.MjData(model), np.zeros(len(case.q), dtype=np.int64)
    for row in range(len(case.q)):
        data.qpos[:] = np.concatenate([case.q[row], case.vase_q[row].ravel()])
        data.qvel[:] = np.concatenate([case.v[row], case.vase_v[row].ravel()])
        mujoco.mj_fwdPosition(model, data)
        counts[row] = data.ncon
    gaps = np.abs(counts - case.recording["row_ncon"])[case.regular]
    return at_most("A number of contacts", gaps, 0, 0.985 if case.has_goal else 1.0)


def check_layouts(recording: Recording, env_id: str) -> list[str]:
    """Return the failures on one task of a ``layouts`` file: positions and yaws must be equal in all bits."""
    rule = make_placement(find_task(env_id))
    states = seeded_states(recording["seeds"].tolist(), "reference")
    xy, yaw = _sample(rule, states)
    repeated = len(recording[f"{env_id}/second_xy"])
    second_xy, second_yaw = _sample(rule, states[:repeated])
    rotated = rule.high[1:, 0] - rule.low[1:, 0] > 1e-6  # yaws of fixed objects are drawn and discarded
    gaps = {
        "positions": xy - recording[f"{env_id}/xy"],
        "yaws": yaw[:, 1:][:, rotated] - recording[f"{env_id}/rot"][:, 1:][:, rotated],
        "agent yaw": yaw[:, 0] - recording[f"{env_id}/agent_rot"],
        "positions, second reset": second_xy - recording[f"{env_id}/second_xy"],
        "agent yaw, second reset": second_yaw[:, 0] - recording[f"{env_id}/second_agent_rot"],
    }
    return [failure for name, gap in gaps.items() for failure in at_most(f"C {env_id} {name}", np.abs(gap), 0.0)]


def _sample(rule: Placement, states: Array) -> tuple[Array, Array]:
    """Return positions (E, R, 2) and yaws (E, R) of one layout per stream state."""
    xy, yaw = np.empty((len(states), len(rule.kinds), 2)), np.empty((len(states), len(rule.kinds)))
    everywhere = np.arange(len(states), dtype=np.int32)
    assert draw_layouts(everywhere, states, rule.low, rule.high, rule.keepout, rule.goal, xy, yaw)
    return xy, yaw
