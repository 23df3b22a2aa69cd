"""Monitors that are killed while their log grows and rotates; counts are compared with what was written."""

import json
import random
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from steingate.errors import SteingateError
from steingate.monitoring.monitors import by_name, restore_monitor
from steingate.monitoring.state import read_state

ROOT = Path(__file__).parents[2]


def run_monitors(folder: Path, seed: int, count: int) -> Iterator[tuple[str, str, str]]:
    """Yield the outcome of each monitor, which must have counted every episode or have said that it could not."""
    for number in range(count):
        rng = random.Random(f"{seed} monitor {number}")
        log = folder / f"log-{number}"
        log.touch()
        argv = [sys.executable, "-m", "steingate", "monitor", str(log), "--limit", "25"]
        argv += ["--state", str(log.with_suffix(".monitor.json"))]
        errors, written = "", 0
        for _ in range(3):
            process = subprocess.Popen(
                [*argv, "--follow"], cwd=ROOT, text=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
            )
            for _ in range(rng.randrange(3, 8)):
                costs = rng.choices([0, 1, 40], k=rng.randrange(1, 30))
                with open(log, "a", encoding="utf-8") as file:
                    file.write("".join(f"{cost}\n" for cost in costs))
                written += len(costs)
                time.sleep(rng.choice([0.0, 0.2, 1.0]))
                if rng.random() < 0.2 and counts(log.with_suffix(".monitor.json"), written):
                    log.rename(log.with_name(f"{log.name}.{written}"))
                    log.touch()
                    time.sleep(rng.choice([0.0, 2.0]))
            process.kill()
            errors += process.communicate()[1]
        done = subprocess.run([*argv, "--json"], cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)
        errors += done.stderr
        found = json.loads(done.stdout)["episodes"] if done.returncode == 0 else None
        stated = any(words in errors for words in ("--new-file", "are not counted"))
        passed = "Traceback" not in errors and (found == written or stated)
        what = f"monitor {number}: {found} of {written} episodes, {errors[-400:]!r}"
        yield "monitor killed, log rotated", "accepted" if passed else "failed", what


def counts(state: Path, episodes: int) -> bool:
    """Wait until a state contains all episodes; return whether it does."""
    for _ in range(300):
        with suppress(SteingateError):
            (monitor,) = by_name(restore_monitor(read_state(state)), "").values()
            if monitor.episodes == episodes:
                return True
        time.sleep(0.1)
    return False
