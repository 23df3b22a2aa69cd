"""The bundles of the zoo, verified by another Python that has NumPy and nothing else."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

import steingate
from steingate.policies.zoo import zoo_entries

pytestmark = pytest.mark.slow


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


def test_bundles_verify_with_numpy_alone(tmp_path, python):
    env = {**os.environ, "PYTHONPATH": str(Path(steingate.__file__).parents[1])}
    for entry in zoo_entries():
        words = [python, "-m", "steingate", "evidence", "verify", entry.path]
        done = subprocess.run(words, env=env, capture_output=True, text=True, cwd=tmp_path)
        assert (done.returncode, done.stderr) == (0, ""), entry.name
