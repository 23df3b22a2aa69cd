"""``steingate zoo``, ``steingate algos`` and ``steingate envs``: stored policies, algorithms and native tasks."""

import argparse
import dataclasses
import json

from steingate.cli.parser import Parser
from steingate.settings import list_options, to_json


def zoo_arguments(parser: Parser) -> None:
    """Add the options of ``zoo``."""
    parser.add_argument("--json", action="store_true", help="print JSON")


def zoo(args: argparse.Namespace) -> int:
    """Print one line per policy of the zoo."""
    from steingate.certificates.formatting import percent, upper
    from steingate.policies.zoo import zoo_entries

    entries = zoo_entries()
    if args.json:
        facts = [{"name": entry.name, **entry._asdict(), "command": entry.command} for entry in entries]
        print(json.dumps(facts, indent=2))
        return 0
    width = max(len(entry.name) for entry in entries) + 2
    line = f"{{:<{width}}}{{:>16}}{{:>8}}{{:>12}}{{:>9}}{{:>9}}"
    print(line.format("policy", "return", "limit", "violations", "bound", "size"))
    for entry in entries:
        counts = f"{entry.violations} of {entry.episodes}"
        cells = (
            entry.name,
            entry.return_text,
            f"{entry.cost_limit:g}",
            counts,
            upper(entry.bound),
            f"{entry.kilobytes:.0f} kB",
        )
        print(line.format(*cells))
    confidence = " or ".join(sorted({percent(entry.confidence) for entry in entries}))
    best = "zoo:TASK is the policy of the task with the highest return."
    print(f"bound: P(cost > limit) is at most that, with {confidence} confidence. {best}")
    return 0


def algos_arguments(parser: Parser) -> None:
    """Add the options of ``algos``."""
    parser.add_argument("names", nargs="*", metavar="ALGO", help="show these, with all their options")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--variants", action="store_true", help="also show how the variants differ")


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


def envs_arguments(parser: Parser) -> None:
    """Add the options of ``envs``."""
    parser.add_argument("--json", action="store_true", help="print JSON")


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
