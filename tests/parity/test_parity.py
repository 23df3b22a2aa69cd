"""The tasks against recordings of the originals, and the command that compares them.

The recordings in ``tests/data`` are cut down. Set STEINGATE_GOLDEN to a folder with whole ones, and the slow
tests judge those instead.
"""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from tests import parity
from tests.parity.recordings import read_recording
from tests.parity.statistics import run_episodes

from steingate.tasks.catalog import TASKS

DATA = Path(__file__).parents[2] / "data" / "envs"
WHOLE = Path(os.environ.get("STEINGATE_GOLDEN", DATA))


def files(folder, *patterns):
    found = [path for pattern in patterns for path in sorted(folder.glob(pattern))]
    covered = [path for path in found if path.stem == "layouts" or path.stem.split("_")[1] in TASKS]
    return [pytest.param(path, id=path.stem) for path in covered]


def failures(path, **options):
    findings, _ = parity.judge(read_recording(path), **options)
    assert findings
    return [finding.line() for finding in findings if not finding.holds]


@pytest.mark.parametrize("path", files(DATA, "nav_*.npz", "vel_*.npz", "layouts.npz"))
def test_cut_recordings_hold(path):
    assert failures(path) == []


@pytest.mark.parametrize(
    "name",
    [
        *("SafetyPointGoal1-v0", "SafetyPointGoal2-v0", "SafetyPointCircle1-v0", "SafetyPointCircle2-v0"),
        *("SafetyHumanoidVelocity-v1", "SafetyHopperVelocity-v1", "SafetyWalker2dVelocity-v1"),
    ],
)
def test_statistics_of_some_episodes_hold(name):
    assert failures(DATA / f"stats_{name}.npz", episodes=20) == []


@pytest.mark.slow
@pytest.mark.parametrize("path", files(WHOLE, "nav_*.npz", "vel_*.npz", "layouts.npz", "stats_*.npz"))
def test_whole_recordings_hold(path):
    assert failures(path) == []


def test_recorded_episodes_of_exact_robots_are_repeated_whole():
    # No chaos within these short episodes, so each one must repeat the recorded return itself.
    for name, tolerance in (("SafetyHopperVelocity-v1", 1e-9), ("SafetyWalker2dVelocity-v1", 1e-9)):
        recording = read_recording(DATA / f"stats_{name}.npz")
        seeds = [int(seed) for seed in recording["seed"][:10]]
        ours = run_episodes(TASKS[name], "uniform", seeds, 2)
        for quantity in ("return", "cost", "distance", "length"):
            theirs = recording[f"uniform/{quantity}"][:10]
            np.testing.assert_allclose(ours[quantity], theirs, rtol=0, atol=tolerance)


def changed(tmp_path, name, array, change):
    with np.load(DATA / f"{name}.npz") as file:
        arrays = dict(file)
    change(arrays[array])
    path = tmp_path / f"{name}.npz"
    np.savez(path, **arrays)
    return path


def shift(amount, where=slice(None)):
    def change(array):
        array[where] += amount

    return change


@pytest.mark.parametrize(
    ("name", "array", "change", "criterion"),
    [
        ("nav_SafetyPointGoal1-v0", "row_obs", shift(1e-8, (40, 20)), "A observation without accelerometer"),
        ("nav_SafetyPointGoal1-v0", "row_obs", shift(1e-7, (40, 0)), "A accelerometer, free"),
        ("nav_SafetyPointGoal1-v0", "row_obs", shift(0.2, (slice(None), 0)), "A accelerometer, touching"),
        ("nav_SafetyPointGoal1-v0", "step_reward", shift(1e-8, 7), "A reward"),
        ("nav_SafetyPointGoal1-v0", "step_cost_hazards", shift(1.0, 7), "A cost_hazards"),
        ("nav_SafetyPointGoal1-v0", "step_goal_met", np.logical_not, None),
        ("nav_SafetyPointGoal1-v0", "row_goal_pos", shift(1e-15, (115, 0)), "C goal positions"),
        ("nav_SafetyPointGoal1-v0", "obj_pos0", shift(1e-12, (0, 3, 0)), "C layouts by seed"),
        ("nav_SafetyPointGoal1-v0", "row_ncon", shift(1, slice(0, 20)), "A number of contacts"),
        ("nav_SafetyCarCircle1-v0", "row_qpos", shift(1e-7, (100, 0)), "B one step, qpos"),
        ("nav_SafetyCarCircle1-v0", "row_qvel", shift(1e-5, (100, 0)), "B one step, qvel"),
        ("nav_SafetyCarCircle1-v0", "row_qpos", shift(1e-6, (100, 0)), "D free run"),
        ("nav_SafetyCarGoal1-v0", "row_qpos", shift(1e-2, (slice(150, None), 0)), "B one step, touching"),
        ("vel_SafetySwimmerVelocity-v1", "row_qvel", shift(1e-6, (50, 2)), "B one step, qvel"),
        ("vel_SafetySwimmerVelocity-v1", "row_qpos", shift(1e-16, (0, 2)), "C state after reset"),
        ("vel_SafetyHopperVelocity-v1", "step_cost", shift(1.0, 3), "A cost"),
        ("vel_SafetyHumanoidVelocity-v1", "row_obs", shift(1.0, (slice(None), 300)), "B one step, inertia"),
        ("layouts", "SafetyPointGoal2-v0/second_xy", shift(1e-15, (3, 5, 0)), "positions, second reset"),
    ],
)  # fmt: skip
def test_each_criterion_can_fail(tmp_path, name, array, change, criterion):
    if criterion is None:  # flags cannot be shifted
        criterion, flip = "A goal_met", change

        def change(values):
            values[9] = flip(values[9])

    lines = failures(changed(tmp_path, name, array, change))
    assert any(criterion in line for line in lines), lines


def test_statistics_can_fail(tmp_path):
    def far(array):
        array += 5 * array.std()

    path = changed(tmp_path, "stats_SafetyPointCircle1-v0", "uniform/return", far)
    lines = failures(path, episodes=20)
    assert len(lines) == 2
    assert all("E uniform return" in line for line in lines)
    path = changed(tmp_path, "stats_SafetyPointCircle1-v0", "scripted/return", shift(0.5))
    assert any("same episode" in line for line in failures(path, episodes=10))


def test_exit_status_and_lines(tmp_path, capsys):
    good = str(DATA / "vel_SafetySwimmerVelocity-v1.npz")
    bad = str(changed(tmp_path, "vel_SafetyHopperVelocity-v1", "step_reward", shift(1e-8, 3)))
    assert parity.main([good]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "vel_SafetySwimmerVelocity-v1"
    assert len([line for line in lines if line.startswith("  ok")]) == len(lines) - 2
    assert lines[-1].startswith(f"{len(lines) - 2} of {len(lines) - 2} criteria")
    assert parity.main([good, bad]) == 1
    assert capsys.readouterr().out.count("FAIL") == 2  # the reward of the state, and of the step


def test_tasks_the_package_does_not_have(tmp_path, capsys):
    with np.load(DATA / "nav_SafetyPointGoal1-v0.npz") as file:
        arrays = dict(file)
    arrays["meta"] = np.array(str(arrays["meta"]).replace("PointGoal1", "PointPush1"))
    other = tmp_path / "nav_SafetyPointPush1-v0.npz"
    np.savez(other, **arrays)
    assert parity.main([str(other)]) == 2
    assert "SafetyPointPush1-v0: not covered" in capsys.readouterr().out
    assert parity.main([str(other), str(DATA / "vel_SafetySwimmerVelocity-v1.npz")]) == 0


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["absent.npz"], "absent.npz"),
        ([__file__], "test_parity.py"),
        ([str(DATA / "stats_SafetyPointGoal1-v0.npz"), "--episodes", "1"], "--episodes 1"),
        ([str(DATA / "stats_SafetyPointGoal1-v0.npz"), "--threads", "0"], "--threads 0"),
    ],
)
def test_bad_input_ends_with_one_sentence(arguments, text, capsys):
    assert parity.main(arguments) == 2
    streams = capsys.readouterr()
    assert streams.out == ""
    assert text in streams.err
    assert len(streams.err.splitlines()) == 1


def test_runs_as_a_module():
    command = [sys.executable, "-m", "tests.parity", str(DATA / "vel_SafetySwimmerVelocity-v1.npz")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0
    assert "criteria hold" in done.stdout
    assert done.stderr == ""
