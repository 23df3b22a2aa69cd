"""Driving ``steingate bench`` from outside: start it, look at its runs, kill what should be killed."""

import os
import socket
import subprocess
import sys
import time
from importlib.util import find_spec
from pathlib import Path

from tests.training.runs_of_probes import facts

from steingate.algorithms.common.backend import configure
from steingate.errors import MissingExtraError
from steingate.experiments.grid import load_grid, plan, resize
from steingate.storage.checkpoint import checkpoint_files
from steingate.training.loop import train

configure()

ROOT = Path(__file__).parents[2]
WALK = Path(__file__).with_name("walk_grid.py")
EPOCHS = 80
RAY_IS_HERE = find_spec("ray") is not None
_NO_RAY = str(MissingExtraError("steingate bench --engine ray", "ray"))


def bench(grid, out, *options, **variables):
    """Return a driver process; its grid file and options as on the command line."""
    return subprocess.Popen(
        [sys.executable, "-m", "steingate", "bench", str(grid), "--out", str(out), "--no-report", *options],
        env={**os.environ, **variables},
        cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
    )  # fmt: skip


def unbroken_facts(out):
    """What the runs of the walk grid compute when nothing happens to them, in this process."""
    grid = load_grid(str(WALK))
    runs = plan(grid, resize(grid, {"out": str(out)}))
    assert {run.epochs for run in runs} == {EPOCHS}
    return [facts(train(run, quiet=True)) for run in runs]


def last_checkpoint(run):
    """The epoch of the newest checkpoint."""
    return checkpoint_files(run / "checkpoints")[-1][0]


def folder(out, seed):
    return out / "steingate" / "tests.training.probes-Walk" / f"seed-{seed}"


def rows(run):
    """Whole rows of progress so far."""
    try:
        return max((run / "progress.csv").read_bytes().count(b"\n") - 1, 0)
    except OSError:
        return 0


def writer(run):
    """The process that writes a run folder, from its lock."""
    try:
        return int((run / "lock").read_text())
    except (OSError, ValueError):
        return None


def alive(pid):
    """Whether a process is there and no zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def wait_until(claim, driver=None, patience=180.0):
    """Wait for a claim to hold, at most until the driver is gone."""
    end = time.monotonic() + patience
    while not claim():
        gone = driver is not None and driver.poll() is not None
        assert not gone, driver.communicate()
        assert time.monotonic() < end, "patience is over"
        time.sleep(0.02)


def end(driver, number, status):
    """Send a signal to the driver alone, and return what it said; ``status`` is what it must return."""
    os.kill(driver.pid, number)
    said = driver.communicate(timeout=180)
    assert driver.returncode == status, said
    return said


def on_ray(grid, out, *options, **variables):
    """A driver on the Ray engine."""
    return bench(grid, out, "--engine", "ray", "--workers", "2", *options, **variables)


def without_ray(tmp_path, *options):
    """Whether Ray is missing here, after checking that the command then says what to do."""
    if RAY_IS_HERE:
        return False
    driver = on_ray(WALK, tmp_path, *options)
    _, said = driver.communicate(timeout=120)
    assert (driver.returncode, said.strip()) == (2, f"steingate: {_NO_RAY}")
    assert not list(tmp_path.iterdir())
    return True


def parent(pid):
    """The process that started another."""
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def listening(port):
    """Whether somebody listens at a port of this machine."""
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1.0).close()
    except OSError:
        return False
    return True
