"""Commands as processes: closed outputs, signals in quick succession, and runs killed at random moments."""

import json
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from tests.fuzz.tries import Originals, Outcome
from tests.training.runs_of_probes import facts, tiny

from steingate.training.runner import train

ROOT = Path(__file__).parents[2]
STEINGATE = [sys.executable, "-m", "steingate"]
PAIRS = [("INT", "INT"), ("INT", "TERM"), ("TERM", "INT"), ("TERM", "TERM"), ("INT",), ("TERM",)]
INTERRUPTED = (130, 143, -signal.SIGINT, -signal.SIGTERM, 0)
KILLS_PER_RUN = 10
SETTINGS = [
    {}, {"carry_episodes": True}, {"algo": "cpo"}, {"algo": "ppo-lag"}, {"overlap": False, "algo": "evo"},
    {"workers": 2},
]  # fmt: skip
SIGNALS = ["KILL", "INT", "TERM", "INT INT", "INT TERM", "TERM TERM"]


def run_commands(originals: Originals, seed: int, count: int) -> Iterator[Outcome]:
    """Alternate between commands with closed outputs and interrupted training runs."""
    for number in range(count):
        rng = random.Random(f"{seed} command {number}")
        folder = originals.folder / f"command-{number}"
        folder.mkdir()
        yield (quick_signals if number % 2 else closed_output)(originals, folder, rng)


def closed_output(originals: Originals, folder: Path, rng) -> Outcome:
    """Run a command whose standard output is full, closed, read-only or a closed pipe."""
    costs = folder / "costs.csv"
    costs.write_text("0\n3\n40\n" * 50)
    argv = rng.choice(
        [
            ["certify", str(costs), "--limit", "25"],
            ["monitor", str(costs), "--limit", "25"],
            ["report", str(originals.run), "--out", str(folder / "page.html")],
            ["evaluate", str(originals.run), "--episodes", "2"],
            ["resume", str(originals.run)],
            ["algos"],
            ["--help"],
        ]
    )
    where = rng.choice([">/dev/full", ">&-", "1</dev/null", ">&- 2>&-", "| true"])
    done = subprocess.run(
        ["bash", "-c", f'set -o pipefail; "$@" {where}', "bash", *STEINGATE, *argv],
        cwd=ROOT, capture_output=True, text=True, timeout=600, stdin=subprocess.DEVNULL, check=False,
    )  # fmt: skip
    what = f"{argv[0]} {where}: status {done.returncode} {done.stderr[-300:]!r}"
    if done.returncode not in (0, 1, 2, 141) or not is_clean(done.stderr):
        return "process: closed output", "failed", what
    return "process: closed output", "refused" if done.returncode else "accepted", what


def quick_signals(originals: Originals, folder: Path, rng) -> Outcome:
    """Send one or two signals within milliseconds to a training run at a random moment."""
    options = ["--env", "tests.training.probes:Walk", "--out", str(folder), "--total-steps", "8000000"]
    options += ["--steps-per-epoch", "80", "--num-envs", "4", "--cost-limit", "4", "--hidden", "8,8"]
    process = subprocess.Popen(
        [*STEINGATE, "train", *options], cwd=ROOT, text=True,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    deadline = time.monotonic() + 60
    while not is_started(process.pid) and time.monotonic() < deadline:
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
        return "process: signals", "failed", f"{names}: hangs"
    passed = process.returncode in INTERRUPTED and is_clean(err)
    what = f"{' '.join(names)}: status {process.returncode} {err[-600:]!r}"
    return "process: signals", "accepted" if passed else "failed", what


def is_started(pid: int) -> bool:
    """Return whether a process has loaded NumPy; before, the interpreter itself answers signals."""
    try:
        return "numpy" in Path(f"/proc/{pid}/maps").read_text()
    except OSError:
        return True


def is_clean(err: str) -> bool:
    """Return whether stderr has no output of the interpreter."""
    return not any(word in err for word in ("Traceback", "Warning", "Exception ignored", "Fatal Python"))


def run_kills(folder: Path, seed: int, kills: int) -> Iterator[Outcome]:
    """Kill runs again and again, let them finish, and compare them with uninterrupted runs."""
    for number in range(-(-kills // KILLS_PER_RUN)):
        settings = {"total_steps": 80 * 50, "checkpoint_every": 3, **SETTINGS[number % len(SETTINGS)]}
        cfg = tiny(folder / f"killed-{number}", **settings, seed=number)
        argv = [sys.executable, "-m", "tests.training.killing", json.dumps(cfg.to_dict())]
        argv += [str(KILLS_PER_RUN), str(seed + number), *SIGNALS]
        try:
            done = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, timeout=1200, check=False)
        except subprocess.TimeoutExpired:
            yield "killed runs", "failed", f"run {number}: hangs"
            continue
        output = done.stdout + done.stderr
        passed = done.returncode == 0 and "Traceback" not in output and "Error" not in output
        if passed:
            whole = train(tiny(folder / f"whole-{number}", **settings, seed=number), quiet=True)
            passed = facts(cfg.path) == facts(whole)
        yield f"runs killed {KILLS_PER_RUN} times", "accepted" if passed else "failed", output[-500:]
