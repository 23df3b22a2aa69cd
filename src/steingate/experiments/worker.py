"""The process of one run: ``python -m steingate.experiments.worker`` with the job as one JSON line on stdin.

Stdin stays open as long as somebody waits for the run. When it closes, because the waiting process wants the
run to stop or is no longer there, the run writes a checkpoint and ends.
"""

import json
import os
import signal
import sys
import threading
import time
from pathlib import Path
from typing import Any

GRACE = 120.0  # seconds for a checkpoint, once the run was asked to end
FAILED = 2
_LOCK_PATIENCE = 180.0  # longer than the grace of a worker that is just leaving the folder
_STDIN = 0


def main() -> int:
    """Run the job on stdin to its end and return the exit status."""
    job = _read_job()
    if job.get("cores") and hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, job["cores"])
    threading.Thread(target=_stop_with_stdin, daemon=True).start()
    # Imported after pinning, because libraries count the cores they may use when they are loaded.
    from steingate.errors import SteingateError

    try:
        run(job["config"])
    except SteingateError as error:
        print(f"steingate: {error}", file=sys.stderr, flush=True)
        return FAILED
    return 0


def run(settings: dict[str, Any]) -> Path:
    """Train the run of a configuration, or go on with it, and return its folder."""
    from steingate.errors import MissingExtraError
    from steingate.training.config import read_stored

    cfg = read_stored(settings, "the grid")
    try:
        from steingate.training.loop import resume, train
    except ModuleNotFoundError as error:
        raise MissingExtraError("training", "train") from error
    _wait_for_lock(cfg.path)
    return resume(cfg.path) if (cfg.path / "config.json").exists() else train(cfg)


def _read_job() -> dict[str, Any]:
    text = b""
    while not text.endswith(b"\n"):
        # Read without a buffer: the thread that watches stdin must see all that follows.
        more = os.read(_STDIN, 1 << 16)
        if not more:
            raise SystemExit(128 + signal.SIGTERM)
        text += more
    job: dict[str, Any] = json.loads(text)
    return job


def _stop_with_stdin() -> None:
    while os.read(_STDIN, 1 << 16):
        pass
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(GRACE)
    os._exit(128 + signal.SIGTERM)


def _wait_for_lock(folder: Path) -> None:
    """Wait until no other process writes the folder: a worker that was asked to end may still be saving."""
    if not (folder / "lock").exists():
        return
    from steingate.storage.files import try_lock

    patience = time.monotonic() + _LOCK_PATIENCE
    with open(folder / "lock", "a+", encoding="utf-8") as file:
        while time.monotonic() < patience:
            if try_lock(file):
                return
            time.sleep(0.1)


if __name__ == "__main__":
    sys.exit(main())
