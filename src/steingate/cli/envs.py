"""``steingate envs``: the native tasks, one line each."""

from __future__ import annotations

import argparse
import dataclasses
import json
from typing import TYPE_CHECKING, Any

from steingate.errors import MissingExtraError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from steingate.tasks.catalog import TaskSpec


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    parser.add_argument("--json", action="store_true", help="print one JSON list instead of a table")


def run(args: argparse.Namespace) -> int:
    """Print every task with its sizes, episode length and what costs; return the exit status."""
    try:
        from steingate.tasks.catalog import TASKS
    except ModuleNotFoundError as error:
        raise MissingExtraError("steingate envs", "envs") from error
    if args.json:
        print(json.dumps([description(task) for task in TASKS.values()], indent=2))
    else:
        _print_table(TASKS.values())
    return 0


def description(task: TaskSpec) -> dict[str, Any]:
    """Return a task's sizes, episode length and costs as plain values."""
    return {
        "id": task.env_id,
        "family": task.family,
        "agent": task.agent,
        "level": task.level,
        "observation_size": task.observation_size,
        "action_size": task.action_size,
        "action_bound": task.action_bound,
        "max_episode_steps": task.max_episode_steps,
        "cost": task.cost_text,
        "cost_parts": list(task.cost_parts),
        "objects": [dataclasses.asdict(kind) for kind in task.objects],
    }


def _print_table(tasks: Iterable[TaskSpec]) -> None:
    """Print the tasks, a line between families."""
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table

    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    table.add_column("task", no_wrap=True, style="bold")
    for heading in ("observation", "action", "steps"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("a step costs 1 for")
    family = ""
    for task in tasks:
        if family and task.family != family:
            table.add_section()
        family = task.family
        sizes = (str(task.observation_size), str(task.action_size), str(task.max_episode_steps))
        table.add_row(task.env_id, *sizes, task.cost_text)
    console = Console()
    # A pipe has no width of its own: one line per task is what grep and scripts expect.
    (console if console.is_terminal else Console(width=120)).print(table)
