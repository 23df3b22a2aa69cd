"""``steingate zoo``, ``steingate algos`` and ``steingate envs``: stored policies, algorithms and native tasks."""

import argparse
import dataclasses
import json

from steingate.cli.parser import Parser, format_value
from steingate.settings import list_options, to_json


def zoo_arguments(parser: Parser) -> None:
    parser.flag("--json", "print JSON")


def zoo(args: argparse.Namespace) -> int:
    """Print one line per policy of the zoo."""
    from steingate.certificates.formatting import percent, upper
    from steingate.policies.zoo import zoo_entries

    entries = zoo_entries()
    if args.json:
        facts = [{"name": entry.name, **entry._asdict(), "command": entry.command} for entry in entries]
        print(json.dumps(facts, indent=2))
        return 0
    line = f"{{:<{max(len(entry.name) for entry in entries) + 2}}}{{:>16}}{{:>8}}{{:>12}}{{:>9}}{{:>9}}"
    print(line.format("policy", "return", "limit", "violations", "bound", "size"))
    for entry in entries:
        violations, size = f"{entry.violations} of {entry.episodes}", f"{entry.kilobytes:.0f} kB"
        limit = f"{entry.cost_limit:g}"
        print(line.format(entry.name, entry.return_text, limit, violations, upper(entry.bound), size))
    confidence = " or ".join(sorted({percent(entry.confidence) for entry in entries}))
    best = "zoo:TASK is the policy of the task with the highest return."
    print(f"bound: P(cost > limit) is at most that, with {confidence} confidence. {best}")
    return 0


def algos_arguments(parser: Parser) -> None:
    parser.add_argument("names", nargs="*", metavar="ALGO", help="show these, with their variants and all options")
    parser.flag("--json", "print JSON")


def algos(args: argparse.Namespace) -> int:
    """Print one line per algorithm, or all details of some."""
    from steingate.algorithms import ALGORITHMS, DEFAULT, find_algorithm

    found = {name: find_algorithm(name) for name in args.names or ALGORITHMS}
    if args.json:
        names = ("summary", "paper", "published", "corrected")
        facts = {
            name: {key: getattr(kind.info, key) for key in names} | {"options": to_json(kind())}
            for name, kind in found.items()
        }
        print(json.dumps(facts, indent=2))
        return 0
    width = max(map(len, found)) + 2
    for name, kind in found.items():
        info = kind.info
        note = "; ".join(["recommended"] * (name == DEFAULT) + [info.paper] * bool(info.paper))
        paper = f" [{note}]" if note else ""
        print(f"{name:<{width}}{info.summary or (kind.__doc__ or '').partition(chr(10))[0]}{paper}")
        if args.names:
            options = ", ".join(f"{option.name}={format_value(option.value)}" for option in list_options(kind()))
            for title, text in (("published", info.published), ("corrected", info.corrected), ("options", options)):
                print(f"{'':<{width}}{title}: {text}")
    return 0


def envs_arguments(parser: Parser) -> None:
    parser.flag("--json", "print JSON")


def envs(args: argparse.Namespace) -> int:
    """Print every native task with its sizes, episode length and costs."""
    from steingate.tasks.catalog import TASKS

    if args.json:
        print(json.dumps([dataclasses.asdict(task) for task in TASKS.values()], indent=2))
        return 0
    line = "{:<30}{:>11}{:>8}{:>7}  {}"
    print(line.format("task", "observation", "action", "steps", "a step costs 1 for"))
    for task in TASKS.values():
        sizes = (task.observation_size, task.action_size, task.max_episode_steps)
        print(line.format(task.env_id, *sizes, task.cost_text))
    return 0
