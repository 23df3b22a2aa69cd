"""Where ``certify`` takes its costs from: a list of costs, or a file whose kind says more about them.

The episodes of a training run, and those in a Monitor file of Stable-Baselines3, come from a policy that
changed on the way; what a certificate says about them it does not say about the policy at the end.
"""

import csv
import json
from dataclasses import dataclass
from math import ceil
from pathlib import Path

import numpy as np

from steingate.certificates.costs import Costs, check_costs, read_costs
from steingate.errors import InputError
from steingate.runs import RunFolder, read_episodes, table_file
from steingate.storage.tables import COMPRESSED, EPISODE_COLUMNS

LAST = 0.2  # share of a run's episodes that are taken


@dataclass(frozen=True)
class Source:
    """Costs and what to know about where they are from.

    ``mixed`` tells episodes of training, which certify no policy; ``policies`` how many made them, if known.
    """

    costs: Costs
    notes: tuple[str, ...] = ()
    mixed: bool = False
    policies: int | None = None


def read_source(text: str, column: str | None = None) -> Source:
    """Return the costs of a file, a run folder, its ``episodes.csv``, or of standard input (``-``)."""
    if text == "-":
        return Source(read_costs(text, column))
    path = Path(text)
    if path.is_dir():
        if not RunFolder(path).config.is_file():
            raise InputError(f"{path} is a folder but no run; name the file that holds the costs.")
        path = table_file(RunFolder(path).episodes)
        if not path.is_file():
            raise InputError(f"{path.parent} has no {path.name}: no episode of this run has finished yet.")
        if path.suffix == COMPRESSED:
            return _of_run(path)
    first = _first_lines(path)
    if first and first[0] == ",".join(EPISODE_COLUMNS) and column in (None, "cost"):
        return _of_run(path)
    if first and first[0].startswith("#"):
        return _of_monitor(path, first, column)
    return Source(read_costs(path, column))


def _of_run(path: Path) -> Source:
    if path == table_file(RunFolder(path.parent).episodes):
        table = read_episodes(path.parent)  # leaves out a line that is still being written
        costs, epochs = check_costs(np.maximum(table["cost"], 0.0)), table["epoch"]  # as training counts them
        below = bool((table["cost"] < 0.0).any())
    else:
        costs, epochs, below = read_costs(path, "cost"), read_costs(path, "epoch"), False
    # Whole epochs: each is one policy.
    cut = epochs[len(epochs) - ceil(LAST * len(epochs))]
    taken = epochs >= cut
    policies = len(set(epochs[taken].tolist()))
    run = path.parent
    what = (
        f"{path} holds the {len(costs):,} training episodes of a run, whose policy changed every epoch. "
        f"The last {int(taken.sum()):,} of them are taken, "
    )
    if policies == 1:
        what += f"epoch {int(cut)}: these are of one policy, but with the noise of training"
    else:
        what += (
            f"epochs {int(cut)} to {int(epochs[-1])}: a mixture of {policies} policies, with the noise of "
            "training"
        )
    note = f"{what}; steingate evaluate {run} tests the policy of the run."
    if below:
        note += " Costs below 0 are taken as 0."
    return Source(costs[taken], (note,), True, policies)


def _of_monitor(path: Path, first: list[str], column: str | None) -> Source:
    """Read a file of ``stable_baselines3.common.monitor.Monitor``: a comment, then r, l, t and keywords."""
    names = next(csv.reader([first[1]])) if len(first) > 1 else []
    if not (_is_object(first[0][1:]) and names[:3] == ["r", "l", "t"]):
        return Source(read_costs(path, column))
    extra = names[3:]
    if column is None:
        costly = ["cost"] if "cost" in extra else [name for name in extra if "cost" in name.lower()]
        if len(costly) != 1:
            found = f"the columns {', '.join(names)}" if extra else "returns and lengths only"
            raise InputError(
                f"{path} is a Monitor file of Stable-Baselines3 with {found}; choose one with --column, or "
                "record the cost with Monitor(env, FILE, info_keywords=('cost',))."
            )
        column = costly[0]
    note = (
        f"{path} is a Monitor file of Stable-Baselines3: its column {column} is info[{column!r}] at the last "
        "step of each episode, so it is the cost of the episode only if the environment adds it up; and if "
        "it was written while training, its episodes are of many policies."
    )
    return Source(read_costs(path, column), (note,), True)


def _is_object(text: str) -> bool:
    try:
        return isinstance(json.loads(text), dict)
    except (ValueError, RecursionError):
        return False


def _first_lines(path: Path) -> list[str]:
    """Return the first two lines, or nothing where there is no text; what is wrong is told by the reader."""
    try:
        with open(path, encoding="utf-8-sig") as file:
            return [file.readline(1 << 16).strip() for _ in range(2)]
    except (OSError, UnicodeDecodeError):
        return []
