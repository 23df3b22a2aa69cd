"""Runs of several settings, killed and interrupted at random moments and finished all the same."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from tests.training.runs_of_probes import facts, tiny

from steingate.training.loop import train

ROOT = Path(__file__).parents[2]
EACH = 10  # kills of one run
SETTINGS = [
    {}, {"carry_episodes": True}, {"algo": "cpo"}, {"algo": "ppo-lag"}, {"overlap": False, "algo": "evo"},
    {"workers": 2},
]  # fmt: skip
SIGNALS = ["KILL", "INT", "TERM", "INT INT", "INT TERM", "TERM TERM"]


def kill_runs(scratch: Path, seed: int, kills: int) -> Iterator[tuple[str, str, str]]:
    """Yield how each kill, and each run that was finished after its kills, came out."""
    for number in range(-(-kills // EACH)):
        settings = {
            "total_steps": 80 * 50,
            "checkpoint_every": 3,
            **SETTINGS[number % len(SETTINGS)],
            "seed": number,
        }
        cfg = tiny(scratch / f"killed-{number}", **settings)
        argv = [
            "-m",
            "tests.training.killing",
            json.dumps(cfg.to_dict()),
            str(EACH),
            str(seed + number),
            *SIGNALS,
        ]
        try:
            done = subprocess.run(
                [sys.executable, *argv], cwd=ROOT, capture_output=True, text=True, timeout=1200, check=False
            )
        except subprocess.TimeoutExpired:
            yield "kills", "failed", f"run {number}: hangs"
            continue
        told = done.stdout + done.stderr
        clean = done.returncode == 0 and "Traceback" not in told and "Error" not in told
        for _ in range(min(EACH, kills - number * EACH)):
            yield "kills", "went on" if clean else "failed", f"run {number}: {told[-500:]}"
        if clean:
            whole = facts(train(tiny(scratch / f"whole-{number}", **settings), quiet=True))
            same = facts(cfg.path) == whole
            yield (
                "runs finished after their kills, equal to the bit",
                "went on" if same else "failed",
                f"run {number}",
            )
