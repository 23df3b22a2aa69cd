"""Hostile run folders: links to files of the user, settings that name code, and edits of every setting."""

import contextlib
import json
import os
import shutil
import sys
from pathlib import Path

from tests.fuzz.damage import VALUES

from steingate.runs import WITHOUT_EFFECT, digest
from steingate.storage.checkpoint import checkpoint_files, encode, read_tree

EVIL = "from pathlib import Path\nPath(__file__).with_suffix('.ran').touch()\ndef X(*a, **k):\n    return 1.0\n"
TEXTS = (
    "cost=evil",
    "python:/../evil.py:X",
    "evil:X",
    "evil:X-v0",
    "inside/evil.py:X",
    "evil",
    "os:abort",
    "builtins:input",
    "../evil.py:X",
)
PLACES = (
    ["env"], ["algo"], ["env_options"], ["env_options", "cost"], ["env_options", "x"], ["env-options", "cost"],
    ["algorithm", "certificate", "reference"], ["algorithm", "certificate", "risk_function"],
    ["certificate", "reference"], ["algorithm", "env"], ["algorithm", "env_options"],
)  # fmt: skip
LINKED = (
    "config.json", "progress.csv", "episodes.csv", "certified.safetensors", "certification.json", "lock",
    "evaluations.jsonl", "checkpoints/{newest}", "checkpoints/.{newest}.tmp", "../page.html",
    "../.page.html.tmp", "../run.log", "../f.svg",
)  # fmt: skip


def commands(folder: Path) -> dict[str, list[str]]:
    """Return every command that reads the run of a folder."""
    run = str(folder / "run")
    return {
        "report": ["report", run, "--out", str(folder / "page.html"), "--figure", str(folder / "f.svg")],
        "archive": ["archive", run, "--all", "--out", str(folder / "a.jsonl.xz")],
        "export": ["export", run, "--to", str(folder / "policy.npz")],
        "certify": ["certify", run, "--limit", "25"],
        "evaluate": ["evaluate", run, "--episodes", "2"],
        "compare": ["compare", run, run, "--episodes", "2"],
        "train": ["train", "--config", f"{run}/config.json", "--out", str(folder / "new"), "--quiet"],
        "resume": ["resume", run, "--quiet"],
    }


class Hostile:
    """One hostile copy of a run: a command for it, and what must hold afterwards."""

    def __init__(self, good: Path, folder: Path, rng) -> None:
        self.folder, self.run = folder, Path(shutil.copytree(good, folder / "run"))
        self.precious, self.content = folder / "precious", b""
        self.edited = False
        self.kind = rng.choice(["link", "code", "edit"])
        self.what = getattr(self, self.kind)(rng)
        name = rng.choice(list(commands(folder)))
        long = self.kind == "edit" and name in ("resume", "train")  # an edit may ask for many steps
        self.argv = commands(folder)["report" if long else name]

    def link(self, rng) -> str:
        """Put a link to a file of the user in the place of a file, existing or temporary."""
        *_, newest = (path for _, path in checkpoint_files(self.run / "checkpoints"))
        name = rng.choice(LINKED).format(newest=newest.name)
        place = self.run / name
        if place.is_file():
            shutil.copy(place, self.precious)
            place.unlink()
        else:
            self.precious.write_text("export PATH\n")
        self.content = self.precious.read_bytes()
        place.symlink_to(self.precious)
        return name

    def code(self, rng) -> str:
        """Name a module where a setting is expected, and sign the record again."""
        for name in ("inside", "python:"):
            (self.folder / name).mkdir()
        for name in ("evil.py", "inside/evil.py", "inside/scipy.py"):
            (self.folder / name).write_text(EVIL)
        record, text = self._record(), rng.choice(TEXTS)
        config = record["config"]
        *path, key = rng.choice(PLACES)
        table = config
        for name in path:
            table = table.setdefault(name, {})
        table[key] = text
        if rng.random() < 0.5:
            config["env"] = rng.choice(["SafetyPointGoal1-v0", "CartPole-v1"]) if key != "env" else text
        self._store({**record, "env_folder": rng.choice([None, "inside", str(self.folder / "inside")])}, signed=True)
        return f"{key} {text}"

    def edit(self, rng) -> str:
        """Change one setting and leave the identity as it was."""
        record = self._record()
        table = rng.choice([record["config"], record["config"]["algorithm"]])
        key = rng.choice([name for name in table if name not in (*WITHOUT_EFFECT, "total_steps", "algorithm")])
        before, table[key] = json.dumps(table[key]), rng.choice(VALUES)
        self.edited = json.dumps(table[key]) != before
        self._store(record, signed=False)
        return f"{key} {table[key]!r:.60}"

    def failure(self, result: str, err: str) -> str:
        """Return what a command should not have done; empty if nothing."""
        if list(self.folder.rglob("*.ran")):
            return "foreign code ran"
        if self.content and self.precious.read_bytes() != self.content:
            return "a file outside the run was changed"
        if self.edited and self.argv[0] == "report" and result == "accepted" and "edited" not in err:
            return "an edited run was reported as if it were not"
        if self.edited and self.argv[0] in ("export", "archive", "evaluate", "compare") and result == "accepted":
            return "an edited run was accepted"
        return ""

    def _record(self) -> dict:
        return json.loads((self.run / "config.json").read_text())

    def _store(self, record: dict, signed: bool) -> None:
        if signed:
            record["identity"] = digest(record["config"], steps=False)
            for file in [
                *(path for _, path in checkpoint_files(self.run / "checkpoints")),
                self.run / "certified.safetensors",
            ]:
                with contextlib.suppress(Exception):
                    found = read_tree(file)
                    file.write_bytes(encode({**found.tree, "identity": record["identity"]}, found.epoch))
        (self.run / "config.json").write_text(json.dumps(record))


@contextlib.contextmanager
def working_in(folder: Path):
    """Work in a folder, whose modules are then forgotten."""
    before, path = os.getcwd(), list(sys.path)
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)
        sys.path[:] = path
        sys.modules.pop("evil", None)
