"""One run as a process of its own: ``python -m steingate.experiments.worker``, started by every engine.

The process reads one line of JSON from stdin: the settings of the run and the CPU cores to use. stdin then
stays open while the run is wanted. When it closes, because the engine asks the run to stop or has ended, the
run writes a checkpoint and ends.
"""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

if TYPE_CHECKING:
    from steingate.training.config import RunConfig

GRACE = 120.0  # seconds in which a run must write its checkpoint after it was asked to stop
_FAILED = 2
_LOCK_SECONDS = 180.0  # longer than GRACE: an earlier worker may still be writing its checkpoint
_POLL = 0.05
# The result of a sum in BLAS depends on the number of threads.
_ONE_THREAD = dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1")


class WorkerExit(NamedTuple):
    """How a worker ended; a run whose worker was killed ("lost") can continue from its last checkpoint."""

    kind: Literal["finished", "failed", "lost", "stopped"]
    message: str = ""


def job_text(cfg: "RunConfig", cores: Sequence[int] = ()) -> str:
    """Return the line of JSON that a worker reads."""
    return json.dumps({"config": cfg.to_dict(), "cores": list(cores)}) + "\n"


def run_worker(job: str, run: Path, stop: Callable[[], bool] = lambda: False) -> WorkerExit:
    """Run a worker to its end; when ``stop`` returns true, let it write a checkpoint and end."""
    process = start_worker(job, run)
    try:
        while process.poll() is None and not stop():  # Ray can interrupt Python code only
            time.sleep(_POLL)
    finally:
        process.stdin.close()  # type: ignore[union-attr]
        process.wait()
    if process.returncode == 0:
        return WorkerExit("finished")
    if process.returncode in (1, _FAILED):
        return WorkerExit("failed", _error_in(log_path(run)))
    number = -process.returncode if process.returncode < 0 else process.returncode - 128
    return WorkerExit("lost", f"its process was ended by signal {number}")


def start_worker(job: str, run: Path) -> "subprocess.Popen[bytes]":
    """Start a worker; its output is appended to ``RUN.log`` beside the run folder."""
    from steingate.storage.files import open_no_link, writing

    log = log_path(run)
    log.parent.mkdir(parents=True, exist_ok=True)
    with writing(log), open_no_link(log, "ab") as output:
        process = subprocess.Popen(
            [sys.executable, "-P", "-m", "steingate.experiments.worker"],  # -P: not from the working directory
            bufsize=0, stdin=subprocess.PIPE, stdout=output, stderr=output, env={**os.environ, **_ONE_THREAD},
            start_new_session=True,  # Ctrl-C reaches only the engine, which then stops its workers
        )  # fmt: skip
    with suppress(BrokenPipeError):  # it has ended already
        process.stdin.write(job.encode())  # type: ignore[union-attr]
    return process


def log_path(run: Path) -> Path:
    """Return the file beside a run folder with the output of its workers."""
    return run.with_name(run.name + ".log")


def _error_in(log: Path) -> str:
    """Return the last error message in a log, or its last line."""
    with suppress(OSError):
        lines = [line.strip() for line in log.read_text("utf-8", "replace").splitlines() if line.strip()]
        for line in reversed(lines):
            if line.startswith("steingate: "):
                return line.removeprefix("steingate: ")
        if lines:
            return f"{lines[-1].rstrip('.')}; see {log}."
    return f"Its process failed; see {log}."


def main() -> int:
    """Train or resume the run described on stdin and return the exit status."""
    with open(0, "rb", buffering=0, closefd=False) as stdin:  # unbuffered: the other thread reads what follows
        line = stdin.readline()
    if not line.endswith(b"\n"):  # the engine has ended
        return 128 + signal.SIGTERM
    job = json.loads(line)
    if job["cores"] and hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, job["cores"])
    threading.Thread(target=_stop_when_stdin_closes, daemon=True).start()
    # Imported after the affinity is set, because libraries count the available cores at import.
    from steingate.errors import SteingateError, needs

    try:
        with needs("training", "train"):
            _run(job["config"])
    except SteingateError as error:
        print(f"steingate: {error}", file=sys.stderr, flush=True)
        return _FAILED
    return 0


def _run(config: dict[str, Any]) -> None:
    from steingate.runs import read_config
    from steingate.training.config import read_stored
    from steingate.training.runner import resume, train
    from steingate.trust import outside_code

    cfg = read_stored(config, "the grid")
    _wait_for_lock(cfg.path / "lock")
    if (cfg.path / "config.json").exists():
        # The grid names its own code, so a run folder may name the same, but nothing else.
        own, found = outside_code(config), outside_code(read_config(cfg.path).get("config") or {})
        resume(cfg.path, env=cfg.env if own else None, trust_code=set(found) <= set(own))
    else:
        train(cfg)


def _stop_when_stdin_closes() -> None:
    while os.read(0, 1 << 16):
        pass
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(GRACE)
    os._exit(128 + signal.SIGTERM)


def _wait_for_lock(lock: Path) -> None:
    """Wait until no other process has locked the run folder."""
    from steingate.storage.files import open_no_link, try_lock, writing

    if not lock.exists():
        return
    deadline = time.monotonic() + _LOCK_SECONDS
    with writing(lock), open_no_link(lock, "a+", encoding="utf-8") as file:
        while not try_lock(file) and time.monotonic() < deadline:
            time.sleep(0.1)


if __name__ == "__main__":
    sys.exit(main())
