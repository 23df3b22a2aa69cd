"""A run that was killed at random moments equals an uninterrupted one."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from tests.training.runs_of_probes import facts, tiny

from steingate.training.runner import train

ROOT = Path(__file__).parents[2]
SLOW = pytest.mark.slow
SIGNALS = ["KILL", "INT", "TERM", "INT INT", "INT TERM", "TERM TERM"]
NATIVE = {"env": "SafetyPointGoal1-v0", "num_envs": 4, "steps_per_epoch": 4400, "cost_limit": 25.0}


@pytest.mark.parametrize(
    ("kills", "signals", "settings"),
    [
        (2, [], {"total_steps": 80 * 30, "carry_episodes": True}),
        pytest.param(20, SIGNALS, {"total_steps": 80 * 50, "algo": "evo"}, marks=SLOW),
        pytest.param(10, SIGNALS, {"total_steps": 80 * 50, "workers": 2}, marks=SLOW),
        pytest.param(20, [], {"total_steps": 4400 * 100, **NATIVE}, marks=SLOW),
    ],
)
def test_a_killed_run_equals_an_uninterrupted_one(tmp_path, kills, signals, settings):
    cfg = tiny(tmp_path / "killed", checkpoint_every=3, **settings)
    numbers = [str(kills), str(kills)]
    command = [sys.executable, "-m", "tests.training.killing", json.dumps(cfg.to_dict()), *numbers, *signals]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=900)
    assert done.returncode == 0, done.stdout + done.stderr
    assert len(done.stdout.split()) == 3 + kills
    uninterrupted = train(tiny(tmp_path / "uninterrupted", overlap=False, **settings), quiet=True)
    assert facts(cfg.path) == facts(uninterrupted)
