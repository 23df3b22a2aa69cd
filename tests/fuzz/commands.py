"""Commands in processes of their own: lost outputs, signals in quick succession, damaged runs."""

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from tests.fuzz.tries import Base, attempt_in
from tests.training.runs_of_probes import tiny

ROOT = Path(__file__).parents[2]
STEINGATE = [sys.executable, "-m", "steingate"]
PAIRS = [("INT", "INT"), ("INT", "TERM"), ("TERM", "INT"), ("TERM", "TERM"), ("INT",), ("TERM",)]
ENDED = (130, 143, -signal.SIGINT, -signal.SIGTERM, 0)


def samples(scratch: Path, seed: int, number: int) -> Iterator[tuple[str, str, str]]:
    """Yield how each of some commands came out; the kinds take turns."""
    base = Base(scratch / "samples")
    for index in range(number):
        rng = random.Random(f"{seed} sample {index}")
        kind = (lost_output, quick_signals, damaged)[index % 3]
        yield kind(base, scratch / "samples" / str(index), rng)


def lost_output(base: Base, place: Path, rng) -> tuple[str, str, str]:
    """Run a command whose standard output is full, closed or open for reading alone."""
    place.mkdir()
    costs = place / "costs.csv"
    costs.write_text("0\n3\n40\n" * 50)
    argv = rng.choice(
        [
            ["certify", str(costs), "--limit", "25"],
            ["monitor", str(costs), "--limit", "25"],
            ["report", str(base.run), "--out", str(place / "page.html")],
            ["evaluate", str(base.run), "--episodes", "2"],
            ["resume", str(base.run)],
            ["algos"],
            ["--help"],
        ]
    )
    where = rng.choice([">/dev/full", ">&-", "1</dev/null", ">&- 2>&-", "| true"])
    done = subprocess.run(
        ["bash", "-c", f'set -o pipefail; "$@" {where}', "bash", *STEINGATE, *argv],
        cwd=ROOT, capture_output=True, text=True, timeout=600, stdin=subprocess.DEVNULL, check=False,
    )  # fmt: skip
    good = done.returncode in (0, 1, 2, 141) and clean(done.stderr)
    what = f"{argv[0]} {where}: status {done.returncode} {done.stderr[-300:]!r}"
    return "process: lost output", ("refused" if done.returncode else "went on") if good else "failed", what


def quick_signals(base: Base, place: Path, rng) -> tuple[str, str, str]:
    """Interrupt a training run twice within milliseconds, at any moment of its life."""
    cfg = tiny(place, total_steps=80 * 100_000)
    options = ["--env", cfg.env, "--out", cfg.out, "--total-steps", str(cfg.total_steps)]
    options += ["--steps-per-epoch", "80", "--num-envs", "4", "--cost-limit", "4", "--hidden", "8,8"]
    process = subprocess.Popen(
        [*STEINGATE, "train", *options], cwd=ROOT, text=True,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    # The first moments belong to the interpreter, which has words of its own for an interruption.
    until = time.monotonic() + 60
    while not imported(process.pid) and time.monotonic() < until:
        time.sleep(0.005)
    time.sleep(rng.choice([0.0, 0.3, 1.0, 5.0]) * rng.random())
    names = rng.choice(PAIRS)
    for name in names:
        if process.poll() is None:
            process.send_signal(getattr(signal, f"SIG{name}"))
        time.sleep(rng.choice([0.0, 0.001, 0.01, 0.1]))
    try:
        _, err = process.communicate(timeout=300)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        return "process: quick signals", "failed", f"{names}: hangs"
    good = process.returncode in ENDED and clean(err)
    what = f"{' '.join(names)}: status {process.returncode} {err[-600:]!r}"
    return "process: quick signals", "went on" if good else "failed", what


def imported(pid: int) -> bool:
    """Return whether a process has loaded NumPy, and so is past the start of the interpreter."""
    try:
        return "numpy" in Path(f"/proc/{pid}/maps").read_text()
    except OSError:
        return True


def damaged(base: Base, place: Path, rng) -> tuple[str, str, str]:
    """Damage a file and run the command on it as a user does."""
    place.mkdir()
    argv, what = attempt_in(base, place, rng)
    done = subprocess.run(
        [*STEINGATE, *argv],
        cwd=ROOT, capture_output=True, text=True, timeout=600, stdin=subprocess.DEVNULL, check=False,
        env={**os.environ, "COLUMNS": "120"}, errors="surrogateescape",
    )  # fmt: skip
    good = done.returncode in (0, 1, 2, 3, 4) and clean(done.stderr)
    what = f"{what}: status {done.returncode} {done.stderr[-300:]!r}"
    return (
        "process: damaged files",
        ("refused" if done.returncode == 2 else "went on") if good else "failed",
        what,
    )


def clean(err: str) -> bool:
    """Return whether there is nothing in it that a user should not have to read."""
    return not any(word in err for word in ("Traceback", "Warning", "Exception ignored", "Fatal Python"))
