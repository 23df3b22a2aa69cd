"""Stored runs repeat: training with their configuration gives their first episodes."""

import json
import lzma

import numpy as np
import pytest
from tests.docs.scripts import ROOT

from steingate.runs import read_episodes
from steingate.training.config import read_stored
from steingate.training.loop import train

RUNS = (
    "table1 cpo/SafetyPointGoal1-v0/seed-0",
    "table1 evo/SafetyCarGoal1-v0/seed-1",
    "table1 steingate/SafetyPointCircle1-v0/seed-2",
    "table1 trpo-simmer/SafetyCarCircle1-v0/seed-3",
    "allowance allowance/SafetyPointGoal1-v0/seed-0",
    "gates valid/steingate/SafetyPointGoal1-v0/seed-0",
    "velocity trpo-saute/SafetyHalfCheetahVelocity-v1/seed-0",
    "cpo-variants pcpo/SafetyPointGoal1-v0/seed-0",
    "baselines trpo-lag/SafetyCarGoal1-v0/seed-0",
)


def archived(grid, name):
    with lzma.open(ROOT / "results" / "runs" / f"{grid}.jsonl.xz", "rt") as file:
        next(file)
        return next(run for run in map(json.loads, file) if run["run"] == name)


@pytest.mark.slow
@pytest.mark.parametrize("run", RUNS)
def test_first_epochs_repeat(run, tmp_path):
    stored = archived(*run.split())
    config = stored["config"]["config"]
    config |= {"total_steps": 3 * config["steps_per_epoch"], "out": str(tmp_path), "certify": {"enabled": False}}
    found = read_episodes(train(read_stored(config, "the archive"), quiet=True))
    for name, values in found.items():
        expected = np.array(stored["episodes"][name][: len(values)])
        np.testing.assert_allclose(values, expected, rtol=5e-4)
