"""``steingate algos`` and ``steingate envs``: the algorithms and the native tasks."""

from __future__ import annotations

import argparse
import dataclasses
import json
from typing import TYPE_CHECKING, Any

from steingate.cli.parser import Parser
from steingate.settings import list_options, to_json

if TYPE_CHECKING:
    from collections.abc import Iterable

    from steingate.algorithms.base import Algorithm
    from steingate.tasks.catalog import TaskSpec


def algos_arguments(parser: Parser) -> None:
    """Add the options of ``algos``."""
    parser.add_argument("names", nargs="*", metavar="ALGO", help="show these, with all their options")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--variants", action="store_true", help="also show how the variants differ")


def algos(args: argparse.Namespace) -> int:
    """Print one line per algorithm, or all details of some."""
    from steingate.algorithms import ALGORITHMS, find_algorithm

    found = {name: find_algorithm(name) for name in args.names or ALGORITHMS}
    if args.json:
        print(json.dumps({name: _algorithm_facts(kind) for name, kind in found.items()}, indent=2))
        return 0
    width = max(map(len, found)) + 2
    for name, kind in found.items():
        info = kind.info
        paper = f" [{info.paper}]" if info.paper else ""
        print(f"{name:<{width}}{info.summary or (kind.__doc__ or '').partition(chr(10))[0]}{paper}")
        if args.variants or args.names:
            print(f"{'':<{width}}published: {info.published}")
            print(f"{'':<{width}}corrected: {info.corrected}")
        if args.names:
            values = [f"{option.name}={_format(option.value)}" for option in list_options(kind())]
            print(f"{'':<{width}}options: {', '.join(values)}")
    return 0


def _format(value: object) -> str:
    value = to_json(value)
    text = ",".join(map(str, value)) if isinstance(value, list) else value
    return "none" if text in (None, {}) else str(text)


def _algorithm_facts(kind: type[Algorithm]) -> dict[str, object]:
    info = kind.info
    facts = {name: getattr(info, name) for name in ("summary", "paper", "published", "corrected")}
    return {**facts, "options": to_json(kind())}


def envs_arguments(parser: Parser) -> None:
    """Add the options of ``envs``."""
    parser.add_argument("--json", action="store_true", help="print JSON")


def envs(args: argparse.Namespace) -> int:
    """Print every native task with its sizes, episode length and costs."""
    from steingate.tasks.catalog import TASKS

    if args.json:
        print(json.dumps([_task_facts(task) for task in TASKS.values()], indent=2))
    else:
        _print_tasks(TASKS.values())
    return 0


def _task_facts(task: TaskSpec) -> dict[str, Any]:
    same = (
        "family", "agent", "level", "observation_size", "action_size", "action_bound", "max_episode_steps",
    )  # fmt: skip
    return {
        "id": task.env_id,
        **{name: getattr(task, name) for name in same},
        "cost": task.cost_text,
        "cost_parts": list(task.cost_parts),
        "objects": [dataclasses.asdict(kind) for kind in task.objects],
    }


def _print_tasks(tasks: Iterable[TaskSpec]) -> None:
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
    # In a pipe: one line per task.
    (console if console.is_terminal else Console(width=120)).print(table)
