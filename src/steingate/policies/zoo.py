"""The model zoo: certified policies that are part of this package.

An entry is the folder ``zoo/TASK/ALGORITHM`` of the package. It has the files of a run that a stored policy needs
(``config.json``, ``certified.safetensors``, ``certification.json``). ``zoo:TASK/ALGORITHM`` names it wherever
a run folder is expected; ``zoo:TASK`` is the entry of the task with the highest return.
"""

import os
from pathlib import Path
from typing import Any, NamedTuple

from steingate.errors import InputError, nearest
from steingate.runs import load_certification, read_config

PREFIX = "zoo:"
FOLDER = Path(__file__).parents[1] / "zoo"


class ZooEntry(NamedTuple):
    """A policy of the zoo, with the numbers of its ``certification.json``.

    ``mean_return`` and ``return_error`` (standard error) are of ``fresh_episodes`` that did not select the policy;
    the violations are those of the certification test.
    """

    task: str
    algo: str
    variant: str
    seed: int
    total_steps: int
    cost_limit: float
    mean_return: float
    return_error: float
    violations: int
    episodes: int
    bound: float  # on P(cost > cost_limit), with confidence
    confidence: float
    kilobytes: float
    sha256: str

    @property
    def name(self) -> str:
        """Name for commands and ``load_policy``."""
        return f"{PREFIX}{self.task}/{self.algo}"

    @property
    def command(self) -> str:
        """Command that trains the policy again."""
        variant = "" if self.variant == "corrected" else f" --variant {self.variant}"
        options = f"--env {self.task} --algo {self.algo}{variant} --total-steps {self.total_steps} --seed {self.seed}"
        return f"steingate train {options}"

    @property
    def path(self) -> Path:
        """Folder of the entry."""
        return FOLDER / self.task / self.algo


def run_folder(path: str | os.PathLike[str]) -> Path:
    """Return a path as it is, or the folder of the entry that it names.

    >>> run_folder("runs/cpo").as_posix()
    'runs/cpo'
    """
    text = os.fspath(path)
    if not text.startswith(PREFIX):
        return Path(text)
    entries = zoo_entries()
    for entry in entries:
        if text in (entry.name, f"{PREFIX}{entry.task}"):
            return entry.path
    known = [name for entry in entries for name in (f"{PREFIX}{entry.task}", entry.name)]
    raise InputError(f"There is no policy {text!r}{nearest(text, known)}; `steingate zoo` lists them.")


def zoo_entries() -> list[ZooEntry]:
    """Return all entries by task, those with a higher return first."""
    found = [_entry(file.parent) for file in FOLDER.glob("*/*/config.json")]
    return sorted(found, key=lambda entry: (entry.task, -entry.mean_return))


def _entry(path: Path) -> ZooEntry:
    config, certification = read_config(path)["config"], load_certification(path) or {}
    test: dict[str, Any] = certification["policy"]
    fresh: dict[str, Any] = certification["fresh_episodes"]
    size = sum(file.stat().st_size for file in path.rglob("*") if file.is_file())
    return ZooEntry(
        path.parent.name, path.name, config["algorithm"]["variant"], config["seed"], config["total_steps"],
        config["cost_limit"], fresh["return"], fresh["return_error"],
        test["violations"], test["episodes"], test["bound"], 1.0 - certification["delta"], size / 1000.0,
        test["sha256"],
    )  # fmt: skip
