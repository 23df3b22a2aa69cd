"""The model zoo: certified policies that are part of this package.

An entry is an evidence bundle in the folder ``zoo/TASK/ALGORITHM`` of the package (``steingate.evidence``).
``zoo:TASK/ALGORITHM`` names it wherever a run folder is expected; ``zoo:TASK`` is the entry of the task with the
highest return.
"""

import os
from math import floor, log10
from pathlib import Path
from typing import NamedTuple

from steingate.errors import InputError, nearest

PREFIX = "zoo:"
FOLDER = Path(__file__).parents[1] / "zoo"


class ZooEntry(NamedTuple):
    """A policy of the zoo, with the numbers of its test: fresh episodes, none of which selected the policy."""

    task: str
    algo: str
    variant: str
    seed: int
    total_steps: int
    cost_limit: float
    mean_return: float
    return_error: float  # standard error of the mean
    violations: int
    episodes: int
    bound: float  # on P(cost > cost_limit)
    confidence: float  # of the bound
    joint_confidence: float  # of all evaluations of the run together
    kilobytes: float
    sha256: str

    @property
    def name(self) -> str:
        """Name for commands and ``load_policy``."""
        return f"{PREFIX}{self.task}/{self.algo}"

    @property
    def return_text(self) -> str:
        """Mean return and its standard error, with the digits that the error leaves."""
        digits = max(0, -floor(log10(max(self.return_error, 1e-6))))
        return f"{self.mean_return:.{digits}f} ± {self.return_error:.{digits}f}"

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
    from steingate.runs import read_config, read_evidence  # not above: verifying a bundle needs NumPy alone

    entries = []
    for path in sorted(file.parent for file in FOLDER.glob("*/*/evidence.json")):
        evidence, config = read_evidence(path) or {}, read_config(path)["config"]
        result, ret = evidence["result"], evidence["result"]["return"]
        size = sum(file.stat().st_size for file in path.iterdir())
        entry = ZooEntry(
            path.parent.name, path.name, config["algorithm"]["variant"], config["seed"], config["total_steps"],
            evidence["claim"]["limit"], ret["mean"], ret["std"] / result["episodes"] ** 0.5, result["violations"],
            result["episodes"], result["bound"], 1.0 - result["error_probability"],
            evidence["claim"]["confidence"], size / 1000.0, evidence["policy"]["sha256"],
        )  # fmt: skip
        entries.append(entry)
    return sorted(entries, key=lambda entry: (entry.task, -entry.mean_return))
