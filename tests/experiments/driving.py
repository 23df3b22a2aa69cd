"""Start ``steingate bench`` as users do, inspect its run folders, kill its processes."""

import json
import os
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

from tests.training.runs_of_probes import facts

from steingate.algorithms.common.jax_setup import configure
from steingate.experiments.grid import load_grid, plan_runs
from steingate.storage.checkpoint import checkpoint_files
from steingate.training.runner import train

configure()

ROOT = Path(__file__).parents[2]
WALK = Path(__file__).with_name("walk_grid.py")
EPOCHS = 80


def bench(grid, out, *options, **variables):
    """Return a process that runs a grid."""
    return subprocess.Popen(
        [sys.executable, "-m", "steingate", "bench", str(grid), "--out", str(out), "--no-report", *options],
        env={**os.environ, **variables},
        cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
    )  # fmt: skip


def mixed_grid(folder):
    """Return a grid file with one run that fails and one that does not."""
    grid = folder / "mixed.py"
    grid.write_text(
        "from tests.experiments.walk_grid import OPTIONS, SIZES\n"
        "def grid(sizes):\n"
        "    walk = 'tests.training.probes:Walk'\n"
        "    good = sizes.runs(walk, 'cpo', **OPTIONS)\n"
        "    bad = sizes.runs(walk, 'cpo', folder='bad', env_options={'pause': 'x'}, **OPTIONS)\n"
        "    return bad + good\n"
    )
    return grid


def uninterrupted_facts(out):
    """Return what the runs of the walk grid compute, trained one after the other in this process."""
    grid = load_grid(str(WALK))
    runs = plan_runs(grid, replace(grid.sizes, out=str(out)))
    assert {run.epochs for run in runs} == {EPOCHS}
    return [facts(train(run, quiet=True)) for run in runs]


def last_checkpoint(run):
    """Return the epoch of the newest checkpoint."""
    return checkpoint_files(run / "checkpoints")[-1][0]


def certified_epoch(run):
    """Return the epoch at which the certification was completed."""
    report = json.loads((run / "certification.json").read_text())
    return report["epoch"] if report["finished"] else None


def folder(out, seed):
    """Return the run folder of a seed of the walk grid."""
    return out / "steingate" / "tests.training.probes-Walk" / f"seed-{seed}"


def rows(run):
    """Return the number of complete rows of progress."""
    try:
        return max((run / "progress.csv").read_bytes().count(b"\n") - 1, 0)
    except OSError:
        return 0


def writer(run):
    """Return the process that holds the lock of a run folder."""
    try:
        return int((run / "lock").read_text())
    except (OSError, ValueError):
        return None


def alive(pid):
    """Return whether a process exists and is no zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def wait_until(condition, driver=None, seconds=180.0):
    """Wait for a condition while the driver runs."""
    end = time.monotonic() + seconds
    while not condition():
        assert driver is None or driver.poll() is None, driver.communicate()
        assert time.monotonic() < end
        time.sleep(0.02)
