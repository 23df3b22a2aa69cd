"""The examples run and print what they promise."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"


def run(name, *arguments):
    command = [sys.executable, str(EXAMPLES / name), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout, done.stderr


def test_certify_costs():
    out, err = run("certify_costs.py")
    assert err == ""
    steady, gambling = out.split("gambling:")
    for preset in ("released", "corrected"):
        assert re.search(rf"{preset} +open", steady)
        assert re.search(rf"{preset} +closed", gambling)


def test_watch_costs():
    out, err = run("watch_costs.py")
    assert err == ""
    assert out.startswith("laboratory: Certified for 10 % at episode")
    assert 500 < int(re.search(r"Drift at episode (\d+)", out)[1]) < 600


def test_train_circle(tmp_path):
    arguments = ("--out", str(tmp_path), "--total-steps", "40000", "--episodes", "4")
    folder = tmp_path / "allowance" / "SafetyPointCircle1-v0" / "seed-0"
    out, err = run("train_circle.py", *arguments)
    assert "epoch 2/2" in out + err
    assert str(folder / "run.png") in out
    assert (folder / "run.png").read_bytes()[:4] == b"\x89PNG"
    assert "<html" in (folder / "report.html").read_text()
    out, err = run("train_circle.py", *arguments)
    assert "continuing it" in out
    assert "epoch 1/2" not in out + err


@pytest.mark.slow
def test_sweep(tmp_path):
    pytest.importorskip("optuna", minversion="5", reason="pip install 'optuna>=5'")
    arguments = ("--out", str(tmp_path), "--total-steps", "20000", "--episodes", "2", "--trials", "1")
    for trials in (1, 2):  # the second call adds a trial
        out, _ = run("sweep.py", *arguments)
        assert "return" in out or "No trial" in out
        assert len(list(tmp_path.glob("trial-*/trpo-lag/*/seed-0/config.json"))) == trials
