"""Bundles of the four navigation tasks, verified by another Python that has NumPy and nothing else."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

import steingate
from steingate.evidence import Plan, verify_bundle, write_bundle
from steingate.training.config import make_config
from steingate.training.runner import train

pytestmark = pytest.mark.slow
SMALL = {"total_steps": 40_000, "steps_per_epoch": 20_000, "certify.enabled": False}


@pytest.fixture(scope="module")
def python(tmp_path_factory):
    """The interpreter of a fresh environment of Python 3.13 (or 3.12) with NumPy alone."""
    folder = tmp_path_factory.mktemp("python") / "venv"
    known = [
        path for name in ("3.13", "3.12") for path in (Path.home() / ".pyenv/versions").glob(f"{name}*/bin/python")
    ]
    for found in ("python3.13", *known, "python3.12"):
        if shutil.which(found) and not subprocess.run([found, "-m", "venv", folder], capture_output=True).returncode:
            subprocess.run([folder / "bin" / "pip", "install", "-q", "numpy"], check=True)
            return folder / "bin" / "python"
    pytest.skip("needs Python 3.13 or 3.12")


@pytest.mark.parametrize("task", ["PointGoal1", "PointCircle1", "CarGoal1", "CarCircle1"])
def test_a_bundle_of_a_navigation_task(tmp_path, python, task):
    config = make_config({"env": f"Safety{task}-v0", "out": str(tmp_path), **SMALL})
    path = train(config, quiet=True)
    bundle = write_bundle(path, tmp_path / "bundle", Plan(25.0, episodes=40), policy="last", warn=lambda text: None)
    assert verify_bundle(bundle, replay=40).replayed == 40

    def verify():
        env = {**os.environ, "PYTHONPATH": str(Path(steingate.__file__).parents[1])}
        words = [python, "-m", "steingate", "evidence", "verify", bundle]
        return subprocess.run(words, env=env, capture_output=True, text=True, cwd=tmp_path)

    done = verify()
    assert (done.returncode, done.stderr) == (0, "")
    content = bytearray((bundle / "episodes.csv").read_bytes())
    content[100] ^= 1
    (bundle / "episodes.csv").write_bytes(content)
    assert verify().returncode == 1
