"""The tasks against recordings of the originals.

The recordings in ``tests/data`` are cut down. The slow tests check the complete recordings in the folder that
STEINGATE_GOLDEN names.
"""

import os
from pathlib import Path

import numpy as np
import pytest
from tests.parity.navigation import check_layouts, check_navigation
from tests.parity.recordings import load_recording
from tests.parity.statistics import check_statistics, run_episodes
from tests.parity.velocity import check_velocity

from steingate.tasks.catalog import TASKS

DATA = Path(__file__).parents[1] / "data" / "envs"
COMPLETE = Path(os.environ.get("STEINGATE_GOLDEN", DATA))


def files(folder, *patterns):
    found = [path for pattern in patterns for path in sorted(folder.glob(pattern))]
    covered = [path for path in found if path.stem == "layouts" or path.stem.split("_")[1] in TASKS]
    return [pytest.param(path, id=path.stem) for path in covered]


def failures(path, episodes=None):
    recording = load_recording(path)
    if recording.kind == "layouts":
        return [failure for name in recording.env_ids if name in TASKS for failure in check_layouts(recording, name)]
    if recording.kind == "stats":
        return check_statistics(recording, 2, episodes)
    return (check_navigation if recording.kind == "nav" else check_velocity)(recording, 2)


@pytest.mark.parametrize("path", files(DATA, "nav_*.npz", "vel_*.npz", "layouts.npz"))
def test_cut_recordings(path):
    assert failures(path) == []


@pytest.mark.parametrize(
    "name", ["PointGoal1-v0", "PointGoal2-v0", "PointCircle1-v0", "HumanoidVelocity-v1", "Walker2dVelocity-v1"]
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
