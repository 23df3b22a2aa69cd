"""One try of the campaign: a copy of good files, one damage, one command in this process."""

import contextlib
import io
import json
import random
import shutil
import signal
import traceback
import warnings
from pathlib import Path

import numpy as np
from tests.fuzz.cost_files import cost_file
from tests.fuzz.damage import change_tree, damage_bytes, damage_cells, damage_json, damage_place
from tests.training.runs_of_probes import facts, tiny

from steingate.cli import main
from steingate.report.dashboard import Source
from steingate.report.monitors import monitors_data
from steingate.runs import read_checkpoint
from steingate.storage.checkpoint import checkpoint_files, decode, encode, read_tree
from steingate.training.config import digest
from steingate.training.loop import train

PATIENCE = 600  # seconds; a command that takes longer hangs, on however busy a machine
STATUSES = (0, 1, 2, 3, 4)


class Hung(BaseException):
    """Nothing catches this."""


class Base:
    """A good run, what it computed, and a state of a monitor."""

    def __init__(self, scratch: Path) -> None:
        self.scratch = scratch
        scratch.mkdir(exist_ok=True)
        self.run = train(tiny(scratch / "good", total_steps=320, checkpoint_every=2), quiet=True)
        self.facts = facts(self.run)
        costs = scratch / "costs.csv"
        costs.write_text("".join(f"{cost}\n" for cost in (0, 3, 30, 1, 0, 2)))
        self.state = scratch / "good.monitor.json"
        status, _, err = call(["monitor", str(costs), "--limit", "25", "--state", str(self.state), "--json"])
        assert status == 0, err


def attempt(base: Base, seed: int, number: int) -> tuple[str, str, str]:
    """Return what was tried, how it came out, and a description."""
    rng = random.Random(f"{seed} {number}")
    place = base.scratch / "try"
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir()
    name, argv, what = (costs_try if rng.random() < 0.3 else run_try)(base, place, rng)
    kind = f"{argv[0]}: {name}"
    if argv[0] == "dashboard":
        return kind, *watched(place / "run", what)
    outcome, what = judged(argv, what)
    if argv[0] == "resume" and outcome == "went on" and differs(place / "run", base.facts):
        return kind, "failed", f"{what}: went on to other numbers"
    return kind, outcome, what


def attempt_in(base: Base, place: Path, rng) -> tuple[list[str], str]:
    """Damage something in a folder; return the command to run on it, and a description."""
    while True:
        inner = place / str(rng.randrange(10**9))
        inner.mkdir()
        _, argv, what = (costs_try if rng.random() < 0.3 else run_try)(base, inner, rng)
        if argv[0] != "dashboard":
            return argv, what


def costs_try(base: Base, place: Path, rng) -> tuple[str, list[str], str]:
    """Damage a file of costs, or a monitor's state; return what it is, the command, and a description."""
    file, state = place / "costs", place / "a.monitor.json"
    file.write_bytes(cost_file(rng))
    shutil.copy(base.state, state)
    command = rng.choice(["certify", "monitor", "monitor --state"])
    damaged = state if command == "monitor --state" else file
    if damaged is state and rng.random() < 0.5:
        kind = damage_json(state, rng)
    elif command != "certify" and rng.random() < 0.1:  # a pipe may be meant where certify reads
        kind = damage_place(damaged, rng)
    else:
        for _ in range(rng.choice([1, 1, 2, 5])):
            kind = damage_bytes(damaged, rng)
    argv = [command.split()[0], str(file), "--limit", "25"]
    argv += ["--state", str(state)] if damaged is state else []
    argv += rng.choice([[], ["--json"], ["--column", rng.choice(["cost", "2", "9" * 5000, "[/red]"])]])
    name = "state of a monitor" if damaged is state else "costs"
    return name, argv, f"{command}, {name}: {kind} ({' '.join(argv)[:200]})"


def run_try(base: Base, place: Path, rng) -> tuple[str, list[str], str]:
    """Damage one file of a run folder; return what it is, the command, and a description."""
    run = Path(shutil.copytree(base.run, place / "run"))
    (_, older), (_, newest) = checkpoint_files(run / "checkpoints")
    kept = [run / "certified.safetensors", run / "certification.json"]
    file = rng.choice([run / "config.json", run / "progress.csv", run / "episodes.csv", newest, *kept])
    name = "checkpoint" if file is newest else file.name
    command = rng.choice(["resume", "resume", "report", "report", "evaluate", "export", "dashboard"])
    if file is newest and command == "resume" and rng.random() < 0.95:
        command = "evaluate"  # going on from the older checkpoint compiles everything: seconds each
    kind = rng.choice([damage_bytes, damage_bytes, damage_place, None, None])
    if kind is not None:
        told = kind(file, rng)
    elif file.suffix == ".csv":
        told = damage_cells(file, rng)
    elif file.suffix == ".safetensors":
        told = "tree, " + resealed(file, rng)
    elif file.name == "certification.json":
        told = damage_json(file, rng)
    else:
        told = damage_json(file, rng)
        if command != "resume" and rng.random() < 0.5:
            told += ", signed again"
            signed(run, (older, newest))
        elif command == "resume" and longer(file):
            command = "report"  # a run may be made longer, and would train until it is
    argv = {
        "resume": ["resume", str(run), "--quiet"],
        "report": ["report", str(run), "--out", str(place / "page.html"), "--table", str(place / "table.md")],
        "evaluate": ["evaluate", str(run), "--episodes", "4"],
        "export": ["export", str(run), "--to", str(place / "policy.npz")],
        "dashboard": ["dashboard", str(run)],
    }[command]
    return name, argv, f"{command}, {name}: {told}"


def longer(file: Path) -> bool:
    """Return whether a configuration asks for more steps than the good one."""
    try:
        return float(json.loads(file.read_text())["config"]["total_steps"]) > 320
    except (ValueError, KeyError, TypeError, OverflowError, RecursionError):
        return False


def differs(run: Path, good: dict) -> bool:
    """Return whether a finished run holds other numbers than it should."""
    try:
        found = facts(run)
        states = [_state(one["checkpoint"]) for one in (found, good)]
        return {**found, "checkpoint": states[0]} != {**good, "checkpoint": states[1]}
    except Exception:
        return True


def _state(content: bytes) -> bytes:
    """Return a checkpoint without its copy of the configuration, which only names what was edited."""
    tree, epoch = decode(content)
    return encode({name: part for name, part in tree.items() if name != "config"}, epoch)


def resealed(path: Path, rng) -> str:
    """Change a value in a checkpoint and give it a fitting checksum."""
    found = read_tree(path)
    if rng.random() < 0.3:
        found.tree["policy"]["b"][0] = rng.choice([np.zeros(3), np.zeros(8, np.int8), "text", None])
        told = "an array"
    else:
        told = change_tree(found.tree, rng)
    with contextlib.suppress(TypeError, ValueError, UnicodeError):
        path.write_bytes(encode(found.tree, found.epoch))
    return told


def signed(run: Path, checkpoints: tuple[Path, ...]) -> None:
    """Make an edited configuration look as if the run had been started with it."""
    with contextlib.suppress(Exception):
        record = json.loads((run / "config.json").read_text())
        record["identity"] = digest(record["config"], steps=False)
        (run / "config.json").write_text(json.dumps(record))
        for path in checkpoints:
            found = read_checkpoint(path)
            path.write_bytes(encode({**found.tree, "identity": record["identity"]}, found.epoch))


def call(argv: list[str]) -> tuple[int, str, str]:
    """Run a command in this process; return its status and what it printed."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err), warnings.catch_warnings():
        warnings.simplefilter("always")
        status = main(argv)
    return status, out.getvalue(), err.getvalue()


def judged(argv: list[str], what: str) -> tuple[str, str]:
    """Run a command and return how it came out."""
    try:
        with patience():
            status, out, err = call(argv)
        out.encode()
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt):
            raise
        last = traceback.extract_tb(error.__traceback__)[-1]
        return (
            "failed",
            f"{what}: {type(error).__name__}: {str(error)[:150]} at {Path(last.filename).name}:{last.lineno}",
        )
    if "Traceback" in err or "Warning" in err or status not in STATUSES:
        return "failed", f"{what}: status {status}, {err[-300:]!r}"
    complaints = [line for line in err.splitlines() if line.startswith("steingate: ")]
    if status == 2 and (not complaints or len(complaints[-1]) > 2000):
        return "failed", f"{what}: no sentence of decent length ({err[:200]!r})"
    return (
        "refused" if status == 2 else "went on"
    ), f"{what}: {err.strip()[-300:] or 'status ' + str(status)}"


def watched(run: Path, what: str) -> tuple[str, str]:
    """Ask the dashboard for its numbers, as a browser does."""
    try:
        with patience():
            content, _ = Source([run], rest=0.0).content()
            monitors_data([run.parent])
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt):
            raise
        last = traceback.extract_tb(error.__traceback__)[-1]
        return (
            "failed",
            f"{what}: {type(error).__name__}: {str(error)[:150]} at {Path(last.filename).name}:{last.lineno}",
        )
    left_out = json.loads(content)["skipped"]
    return ("refused" if left_out else "went on"), what


@contextlib.contextmanager
def patience():
    """Interrupt what takes too long."""

    def ring(number, frame):
        raise Hung(f"hangs for more than {PATIENCE} s")

    usual = signal.signal(signal.SIGALRM, ring)
    signal.alarm(PATIENCE)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, usual)
