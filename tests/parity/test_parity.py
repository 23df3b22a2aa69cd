"""The tasks against recordings of the originals, and the command that compares them.

The recordings in ``tests/data`` are cut down. The slow tests check the complete recordings in the folder that
STEINGATE_GOLDEN names.
"""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from tests.parity.__main__ import check, main
from tests.parity.recordings import at_most, equal, load_recording
from tests.parity.statistics import Scripted, Uniform, run_episodes

from steingate.tasks.catalog import TASKS

DATA = Path(__file__).parents[1] / "data" / "envs"
COMPLETE = Path(os.environ.get("STEINGATE_GOLDEN", DATA))


def files(folder, *patterns):
    found = [path for pattern in patterns for path in sorted(folder.glob(pattern))]
    covered = [path for path in found if path.stem == "layouts" or path.stem.split("_")[1] in TASKS]
    return [pytest.param(path, id=path.stem) for path in covered]


def failures(path, **options):
    findings = check(load_recording(path), **options)
    assert findings
    return [str(finding) for finding in findings if not finding.passed]


@pytest.mark.parametrize("path", files(DATA, "nav_*.npz", "vel_*.npz", "layouts.npz"))
def test_cut_recordings(path):
    assert failures(path) == []


@pytest.mark.parametrize(
    "name",
    ["PointGoal1-v0", "PointGoal2-v0", "PointCircle1-v0", "HumanoidVelocity-v1", "Walker2dVelocity-v1"],
)
def test_statistics_of_twenty_episodes(name):
    assert failures(DATA / f"stats_Safety{name}.npz", episodes=20) == []


@pytest.mark.slow
@pytest.mark.parametrize("path", files(COMPLETE, "nav_*.npz", "vel_*.npz", "layouts.npz", "stats_*.npz"))
def test_complete_recordings(path):
    assert failures(path) == []


@pytest.mark.parametrize("name", ["SafetyHopperVelocity-v1", "SafetyWalker2dVelocity-v1"])
def test_short_episodes_repeat_recorded_results(name):
    """Within these short episodes there is no chaos."""
    recording = load_recording(DATA / f"stats_{name}.npz")
    ours = run_episodes(TASKS[name], "uniform", [int(seed) for seed in recording["seed"][:10]], 2)
    for quantity in ("return", "cost", "distance", "length"):
        np.testing.assert_allclose(ours[quantity], recording[f"uniform/{quantity}"][:10], rtol=0, atol=1e-9)


@pytest.mark.parametrize("name", ["PointGoal1", "PointCircle2", "CarGoal1", "CarCircle1"])
def test_policies_repeat_recorded_actions(name):
    recording = load_recording(DATA / f"nav_Safety{name}-v0.npz")
    policies = {"uniform": Uniform, "scripted": Scripted}
    compared = 0
    for episode, policy in enumerate(recording["policy"]):
        if policy in policies:
            act = policies[policy](TASKS[recording.env_ids[0]], [int(recording["policy_seed"][episode])])
            steps = np.flatnonzero(recording.episode == episode)
            rows = recording.after[steps] - 1
            ours = [act(k, recording["row_obs"][[row]])[0] for k, row in enumerate(rows)]
            np.testing.assert_allclose(ours, recording["step_action"][steps], rtol=0, atol=1e-14)
            compared += 1
    assert compared


@pytest.mark.parametrize(
    ("name", "array", "amount", "where", "criterion"),
    [
        ("nav_SafetyPointGoal1-v0", "row_obs", 1e-8, (40, 20), "A observation without accelerometer"),
        ("nav_SafetyPointGoal1-v0", "step_reward", 1e-8, 7, "A reward"),
        ("nav_SafetyPointGoal1-v0", "row_goal_pos", 1e-15, (115, 0), "C goal positions"),
        ("nav_SafetyPointGoal1-v0", "obj_pos0", 1e-12, (0, 3, 0), "C layouts by seed"),
        ("nav_SafetyCarCircle1-v0", "row_qpos", 1e-6, (100, 0), "D free run"),
        ("nav_SafetyCarGoal1-v0", "row_qpos", 1e-2, (slice(150, None), 0), "B one step, touching"),
        ("vel_SafetySwimmerVelocity-v1", "row_qpos", 1e-16, (0, 2), "C state after reset"),
        ("vel_SafetyHumanoidVelocity-v1", "row_obs", 1.0, (slice(None), 300), "B one step, inertia"),
        ("layouts", "SafetyPointGoal2-v0/second_xy", 1e-15, (3, 5, 0), "positions, second reset"),
        ("stats_SafetyPointCircle1-v0", "uniform/return", 1e3, ..., "E uniform return: distribution"),
        ("stats_SafetyPointCircle1-v0", "scripted/return", 0.5, ..., "same episode"),
    ],
)
def test_each_criterion_can_fail(name, array, amount, where, criterion):
    """Shift some entries of a recorded array, or flip them if they are boolean."""
    recording = load_recording(DATA / f"{name}.npz")
    values = recording.arrays[array]
    values[where] = ~values[where] if values.dtype == bool else values[where] + amount
    lines = [str(finding) for finding in check(recording, episodes=10) if not finding.passed]
    assert any(criterion in line for line in lines), lines


def test_criteria():
    values = [*np.full(97, 1e-12), *np.ones(3)]
    assert at_most("B", values, 1e-9, 0.97)[0].passed
    assert not at_most("B", values, 1e-9, 0.98)[0].passed
    assert not at_most("B", [np.nan, 0.0], 1.0)[0].passed
    assert " ".join(str(at_most("A", [2e-15], 1e-9)[0]).split()) == "ok A: max of 1 2.00e-15 <= 1e-09"
    assert equal("A", [0.0, 1.0, np.nan], [0, 0, 0])[0].figure == 2
    assert at_most("A", [], 1.0) == equal("A", [], []) == []


def test_command(tmp_path, capsys):
    with np.load(DATA / "vel_SafetyHopperVelocity-v1.npz") as file:
        arrays = dict(file)
    arrays["step_reward"][3] += 1e-8
    bad, other = tmp_path / "vel_SafetyHopperVelocity-v1.npz", tmp_path / "stats_SafetyPointPush1-v0.npz"
    np.savez(bad, **arrays)
    other.write_bytes((DATA / "stats_SafetyPointGoal1-v0.npz").read_bytes())
    good = str(DATA / "vel_SafetySwimmerVelocity-v1.npz")
    assert main([good, str(bad)]) == 1
    assert capsys.readouterr().out.count("FAIL") == 2  # the reward at the state, and after the step
    assert main([str(other)]) == 2
    assert "SafetyPointPush1-v0: not covered" in capsys.readouterr().out
    command = [sys.executable, "-m", "tests.parity", good, str(other)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1].endswith("criteria hold")
    assert done.stderr == ""
