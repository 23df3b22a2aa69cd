import json
import subprocess
import sys
from pathlib import Path

import pytest
from tests.training.runs_of_probes import facts, tiny

from steingate.runs import read_episodes
from steingate.training.loop import train

ROOT = Path(__file__).parents[2]


def killed_often(cfg, kills, seed):
    out = subprocess.run(
        [sys.executable, "-m", "tests.training.killing", json.dumps(cfg.to_dict()), str(kills), str(seed)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=900,
    )
    assert out.returncode == 0, out.stdout + out.stderr
    return out.stdout


@pytest.mark.parametrize(("carry", "kills"), [(False, 10), (True, 3)])
def test_a_run_killed_at_random_moments_equals_an_unbroken_one(tmp_path, carry, kills):
    cfg = tiny(tmp_path / "broken", total_steps=80 * 50, checkpoint_every=3, carry_episodes=carry)
    told = killed_often(cfg, kills=kills, seed=int(carry))
    assert len(told.split()) == 3 + kills
    whole = facts(
        train(tiny(tmp_path / "whole", total_steps=80 * 50, overlap=False, carry_episodes=carry), quiet=True)
    )
    broken = facts(cfg.path)
    assert broken["progress"] == whole["progress"]
    assert broken["episodes"] == whole["episodes"]
    assert broken["checkpoint"] == whole["checkpoint"]


@pytest.mark.slow
def test_a_native_task_killed_at_random_moments_equals_an_unbroken_one(tmp_path):
    settings = {"env": "SafetyPointGoal1-v0", "num_envs": 4, "steps_per_epoch": 4400, "cost_limit": 25.0}
    many = 4400 * 100
    cfg = tiny(tmp_path / "broken", total_steps=many, checkpoint_every=3, **settings)
    killed_often(cfg, kills=20, seed=5)
    whole = facts(train(tiny(tmp_path / "whole", total_steps=many, overlap=False, **settings), quiet=True))
    assert facts(cfg.path) == whole
    assert len(read_episodes(cfg.path)["cost"]) > 100
