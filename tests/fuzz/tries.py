"""One try: copy good files, damage one of them, and run a command on it in this process."""

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
from tests.fuzz.damage import damage_bytes, damage_json, damage_table, damage_tree, random_costs, replace_file
from tests.fuzz.hostile import Hostile, working_in
from tests.training.runs_of_probes import facts, tiny

from steingate.cli import main
from steingate.runs import digest
from steingate.storage.checkpoint import checkpoint_files, decode, encode, read_checkpoint, read_tree
from steingate.training.runner import train

TIMEOUT = 600  # seconds
STATUSES = (0, 1, 2, 3, 4)
STEPS = 320
Outcome = tuple[str, str, str]  # kind of try, "refused", "accepted" or "failed", description


class HangError(BaseException):
    """Raised when a command takes longer than ``TIMEOUT``; no handler of commands catches it."""


class Originals:
    """An undamaged run, what it computed, and the state file of a monitor."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.run = train(tiny(folder / "good", total_steps=STEPS, checkpoint_every=2), quiet=True)
        self.facts = facts(self.run)
        costs = folder / "costs.csv"
        costs.write_text("".join(f"{cost}\n" for cost in (0, 3, 30, 1, 0, 2)))
        self.state = folder / "good.monitor.json"
        status, err = call(["monitor", str(costs), "--limit", "25", "--state", str(self.state), "--json"])
        assert status == 0, err


def run_try(originals: Originals, seed: int, number: int) -> Outcome:
    """Run one try."""
    rng = random.Random(f"{seed} {number}")
    folder = originals.folder / "try"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    chance = rng.random()
    if chance < 0.25:
        return try_hostile(originals, folder, rng)
    damage = damage_costs if chance < 0.45 else damage_run
    file, argv, what = damage(originals, folder, rng)
    result, what = judge(argv, f"{argv[0]}, {file}: {what}")
    if argv[0] == "resume" and result == "accepted" and differs(folder / "run", originals.facts):
        result, what = "failed", f"{what}: continued with other numbers"
    return f"{argv[0]}: {file}", result, what


def try_hostile(originals: Originals, folder: Path, rng) -> Outcome:
    """Run a command on a hostile run folder, in a folder with modules of the attacker."""
    hostile = Hostile(originals.run, folder, rng)
    with working_in(folder):
        result, what = judge(hostile.argv, f"{hostile.argv[0]}, {hostile.kind}: {hostile.what}")
    failure = hostile.failure(result, what)
    if failure:
        result, what = "failed", f"{what}: {failure}"
    return f"{hostile.argv[0]}: hostile {hostile.kind}", result, what


def damage_costs(originals: Originals, folder: Path, rng) -> tuple[str, list[str], str]:
    """Damage a cost file or the state of a monitor; return its name, a command and a description."""
    file, state = folder / "costs", folder / "a.monitor.json"
    file.write_bytes(random_costs(rng))
    shutil.copy(originals.state, state)
    command = rng.choice(["certify", "monitor", "monitor --state"])
    damaged = state if command == "monitor --state" else file
    if damaged is state and rng.random() < 0.5:
        what = damage_json(state, rng)
    elif command != "certify" and rng.random() < 0.1:  # certify may read from a pipe
        what = replace_file(damaged, rng)
    else:
        what = ", ".join(damage_bytes(damaged, rng) for _ in range(rng.choice([1, 1, 2, 5])))
    argv = [command.split()[0], str(file), "--limit", "25"]
    argv += ["--state", str(state)] if damaged is state else []
    argv += rng.choice([[], ["--json"], ["--column", rng.choice(["cost", "2", "9" * 5000, "[/red]"])]])
    return "monitor state" if damaged is state else "costs", argv, f"{what} ({' '.join(argv)[:200]})"


def damage_run(originals: Originals, folder: Path, rng) -> tuple[str, list[str], str]:
    """Damage one file of a run folder; return its name, a command and a description."""
    run = Path(shutil.copytree(originals.run, folder / "run"))
    *_, newest = (path for _, path in checkpoint_files(run / "checkpoints"))
    names = ("config.json", "progress.csv", "episodes.csv", "certified.safetensors", "certification.json")
    file = rng.choice([newest, *(run / name for name in names)])
    commands = {
        "resume": ["resume", str(run), "--quiet"],
        "report": ["report", str(run), "--out", str(folder / "page.html"), "--table", str(folder / "t.md")],
        "evaluate": ["evaluate", str(run), "--episodes", "4"],
        "export": ["export", str(run), "--to", str(folder / "policy.npz")],
    }
    command = rng.choice(["resume", "resume", "report", "report", "evaluate", "export"])
    if file == newest and command == "resume" and rng.random() < 0.95:
        command = "evaluate"  # resuming from the older checkpoint compiles for seconds
    damage = rng.choice([damage_bytes, damage_bytes, replace_file, None, None])
    if damage is not None:
        what = damage(file, rng)
    elif file.suffix == ".csv":
        what = damage_table(file, rng)
    elif file.suffix == ".safetensors":
        what = "tree, " + reseal(file, rng)
    else:
        what = damage_json(file, rng)
        if file.name == "config.json" and command != "resume" and rng.random() < 0.5:
            what += ", with a new identity"
            renew_identity(run)
        elif command == "resume" and is_longer(file):
            command = "report"  # a run may be extended; it would train for long
    return "checkpoint" if file == newest else file.name, commands[command], what


def is_longer(file: Path) -> bool:
    """Return whether a configuration has more steps than the original."""
    try:
        return float(json.loads(file.read_text())["config"]["total_steps"]) > STEPS
    except (ValueError, KeyError, TypeError, OverflowError, RecursionError):
        return False


def reseal(path: Path, rng) -> str:
    """Change a value in a checkpoint and write it with a valid checksum."""
    found = read_tree(path)
    if rng.random() < 0.3:
        found.tree["policy"]["b"][0] = rng.choice([np.zeros(3), np.zeros(8, np.int8), "text", None])
        what = "an array"
    else:
        what = damage_tree(found.tree, rng)
    with contextlib.suppress(TypeError, ValueError, UnicodeError):
        path.write_bytes(encode(found.tree, found.epoch))
    return what


def renew_identity(run: Path) -> None:
    """Make an edited configuration look as if the run had been started with it."""
    with contextlib.suppress(Exception):
        record = json.loads((run / "config.json").read_text())
        record["identity"] = digest(record["config"], steps=False)
        (run / "config.json").write_text(json.dumps(record))
        for _, path in checkpoint_files(run / "checkpoints"):
            found = read_checkpoint(path)
            path.write_bytes(encode({**found.tree, "identity": record["identity"]}, found.epoch))


def differs(run: Path, original: dict) -> bool:
    """Return whether a finished run has other results than the original."""
    try:
        return results(facts(run)) != results(original)
    except Exception:
        return True


def results(found: dict) -> dict:
    """Return facts of a run with its checkpoint, without the configuration in it."""
    tree, epoch = decode(found["checkpoint"])
    state = {name: part for name, part in tree.items() if name != "config"}
    return {**found, "checkpoint": encode(state, epoch)}


def call(argv: list[str]) -> tuple[int, str]:
    """Run a command in this process; return its status and what it printed to stderr."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err), warnings.catch_warnings():
        warnings.simplefilter("always")
        status = main(argv)
    out.getvalue().encode()
    return status, err.getvalue()


def judge(argv: list[str], what: str) -> tuple[str, str]:
    """Run a command and return the result with a description."""
    try:
        with time_limit():
            status, err = call(argv)
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        last = traceback.extract_tb(error.__traceback__)[-1]
        where = f"{Path(last.filename).name}:{last.lineno}"
        return "failed", f"{what}: {type(error).__name__}: {str(error)[:150]} at {where}"
    messages = [line for line in err.splitlines() if line.startswith("steingate: ")]
    what = f"{what}: status {status}, {err[-300:]!r}"
    if "Traceback" in err or "Warning" in err or status not in STATUSES:
        return "failed", what
    if status == 2 and (not messages or len(messages[-1]) > 2000):
        return "failed", f"{what}: no message of reasonable length"
    return "refused" if status == 2 else "accepted", what


@contextlib.contextmanager
def time_limit():
    """Raise ``HangError`` after ``TIMEOUT`` seconds."""

    def ring(number, frame):
        raise HangError(f"more than {TIMEOUT} s")

    before = signal.signal(signal.SIGALRM, ring)
    signal.alarm(TIMEOUT)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
