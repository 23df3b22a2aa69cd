"""``steingate zoo``, ``steingate algos`` and ``steingate envs``: stored policies, algorithms and native tasks."""

import argparse

from steingate.cli.parser import Parser, format_value
from steingate.settings import list_options


def zoo(args: argparse.Namespace) -> int:
    """Print one line per policy of the zoo."""
    from steingate.certificates.formatting import align, percent_down, upper
    from steingate.policies.zoo import zoo_entries

    entries, rows = zoo_entries(), [["policy", "return", "limit", "violations", "bound", "size"]]
    for entry in entries:
        violations, size = f"{entry.violations} of {entry.episodes}", f"{entry.kilobytes:.0f} kB"
        rows.append([entry.name, entry.return_text, f"{entry.cost_limit:g}", violations, upper(entry.bound), size])
    print(align(rows, numbers=range(1, 6)))
    alone = " or ".join(sorted({percent_down(entry.confidence) for entry in entries}))
    joint = " or ".join(sorted({percent_down(entry.joint_confidence) for entry in entries}))
    together = f"all evaluations of a run together have {joint}"
    print(f"bound: P(cost > limit) is at most that, with {alone} confidence; {together}.")
    print("zoo:TASK is the policy of the task with the highest return.")
    return 0


def algos_arguments(parser: Parser) -> None:
    parser.add_argument("names", nargs="*", metavar="ALGO", help="show these, with their variants and all options")


def algos(args: argparse.Namespace) -> int:
    """Print one line per algorithm, or all details of some."""
    from steingate.algorithms import ALGORITHMS, DEFAULT, find_algorithm

    found = {name: find_algorithm(name) for name in args.names or ALGORITHMS}
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


def envs(args: argparse.Namespace) -> int:
    """Print every native task with its sizes, episode length and costs."""
    from steingate.certificates.formatting import align
    from steingate.tasks.catalog import TASKS

    rows = [["task", "observation", "action", "steps", "a step costs 1 for"]]
    for task in TASKS.values():
        sizes = (task.observation_size, task.action_size, task.max_episode_steps)
        rows.append([task.env_id, *map(str, sizes), task.cost_text])
    print(align(rows, numbers=(1, 2, 3)))
    return 0
