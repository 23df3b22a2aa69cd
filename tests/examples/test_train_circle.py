"""The example behind ``make train``: trains, evaluates, draws; a second call goes on with the same run."""

import subprocess
import sys
from pathlib import Path

EXAMPLE = Path(__file__).parents[2] / "examples" / "train_circle.py"


def run(out: Path) -> str:
    command = [sys.executable, str(EXAMPLE), "--out", str(out), "--total-steps", "40000", "--episodes", "4"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=300)
    return done.stderr + done.stdout


def test_the_example_trains_evaluates_and_draws(tmp_path):
    first = run(tmp_path)
    folder = tmp_path / "steingate" / "SafetyPointCircle1-v0" / "seed-0"
    assert "epoch 2/2" in first
    assert "after epoch 2, at the mean action" in first
    assert str(folder / "run.png") in first
    assert (folder / "run.png").read_bytes()[:4] == b"\x89PNG"
    assert "<html" in (folder / "report.html").read_text()

    second = run(tmp_path)
    assert "is there already" in second
    assert "epoch 1/2" not in second
    assert "after epoch 2, at the mean action" in second
