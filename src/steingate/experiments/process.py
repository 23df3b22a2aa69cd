"""Starting the process of one run, asking it to stop, and what its end means; the same on every engine."""

import json
import os
import subprocess
import sys
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Literal, NamedTuple

from steingate.experiments.worker import FAILED
from steingate.training.config import RunConfig

# Sums in BLAS depend on the number of its threads; parallel work comes from many runs.
_ONE_THREAD = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")
_LOG_TAIL = 1 << 14


class Ending(NamedTuple):
    """How a run's process ended: ``lost`` means that something killed it and the run can go on."""

    kind: Literal["finished", "failed", "lost"]
    message: str = ""


def job_text(cfg: RunConfig, cores: Iterable[int] = ()) -> str:
    """Return the line of JSON that tells a worker what to do."""
    return json.dumps({"config": cfg.to_dict(), "cores": list(cores)}) + "\n"


def log_path(run: Path) -> Path:
    """Return the file beside a run folder that takes what its process prints."""
    return run.with_name(run.name + ".log")


def start(job: str, run: Path) -> "subprocess.Popen[bytes]":
    """Return a new worker process with its job; its stdin must stay open until the run should stop."""
    log = log_path(run)
    log.parent.mkdir(parents=True, exist_ok=True)
    with open(log, "ab") as output:
        # A session of its own: Ctrl-C reaches the driver alone, which then stops its workers in order.
        process = subprocess.Popen(
            [sys.executable, "-m", "steingate.experiments.worker"],
            bufsize=0,
            stdin=subprocess.PIPE,
            stdout=output,
            stderr=output,
            start_new_session=True,
            env={**os.environ, **dict.fromkeys(_ONE_THREAD, "1")},
        )
    assert process.stdin is not None
    with suppress(BrokenPipeError):  # it is dead already; its exit status tells
        process.stdin.write(job.encode())
    return process


def ask_to_stop(process: "subprocess.Popen[bytes]") -> None:
    """Let the worker write a checkpoint and leave; asking again changes nothing."""
    assert process.stdin is not None
    process.stdin.close()


def ending(status: int, run: Path) -> Ending:
    """Return what an exit status means, with the sentence the worker left in its log."""
    if status == 0:
        return Ending("finished")
    if status in (1, FAILED):
        return Ending("failed", _last_words(log_path(run)))
    # Signals, and 128 + n for those a worker turned into a checkpoint and an exit.
    number = -status if status < 0 else status - 128
    return Ending("lost", f"its process was ended by signal {number}")


def _last_words(log: Path) -> str:
    try:
        with open(log, "rb") as file:
            file.seek(max(file.seek(0, os.SEEK_END) - _LOG_TAIL, 0))
            text = file.read().decode("utf-8", "replace")
    except OSError:
        text = ""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    for line in reversed(lines):
        if line.startswith("steingate: "):
            return line.removeprefix("steingate: ")
    return f"{lines[-1].rstrip('.') if lines else 'Its process failed'}; see {log}."
