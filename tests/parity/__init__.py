"""``python -m tests.parity FILE.npz...``: hold the tasks against recordings of the originals.

Prints one line per criterion with the measured figure and the limit. Exit status: 0 if every criterion holds,
1 if one fails, 2 if a file cannot be used. Recordings of tasks that this package does not have are said to be
not covered; they change nothing, unless no file was covered: then nothing was checked, and the status is 2.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from typing import Final

from tests.parity.criteria import Finding
from tests.parity.layouts import judge_layouts
from tests.parity.navigation import judge_navigation
from tests.parity.recordings import Recording, read_recording
from tests.parity.statistics import judge_statistics
from tests.parity.velocity import judge_velocity

from steingate.errors import InputError
from steingate.tasks.catalog import TASKS

_QUICK_EPISODES: Final = 20

HOLDS: Final = 0
FAILS: Final = 1
UNUSABLE: Final = 2


def judge(
    recording: Recording, *, threads: int = 2, episodes: int | None = None
) -> tuple[list[Finding], list[str]]:
    """Return the findings of all criteria that apply to a recording, and the tasks in it not covered.

    Parameters
    ----------
    recording : Recording
        Any of the four kinds.
    threads : int
        Threads for the engine.
    episodes : int or None
        Run only the first so many episodes of episode statistics.
    """
    ids = list(recording.meta) if recording.kind == "layouts" else [recording.env_id]
    covered = [env_id for env_id in ids if env_id in TASKS]
    missing = [env_id for env_id in ids if env_id not in TASKS]
    findings: list[Finding] = []
    for env_id in covered:
        if recording.kind == "layouts":
            findings += judge_layouts(recording, env_id)
        elif recording.kind == "nav":
            findings += judge_navigation(recording, threads)
        elif recording.kind == "vel":
            findings += judge_velocity(recording, threads)
        else:
            findings += judge_statistics(recording, threads, episodes)
    return findings, missing


def main(arguments: Sequence[str] | None = None) -> int:
    """Return the exit status of the command.

    Parameters
    ----------
    arguments : sequence of str or None
        The command line without the program's name; None for the process's own.
    """
    options = _parser().parse_args(arguments)
    episodes = _QUICK_EPISODES if options.quick and options.episodes is None else options.episodes
    try:
        if episodes is not None and episodes < 2:
            raise InputError(f"--episodes {episodes} is too few: statistics need at least 2.")
        if options.threads < 1:
            raise InputError(f"--threads {options.threads} is too few: use at least 1.")
        recordings = [read_recording(path) for path in options.files]
        judged, failed = 0, 0
        for recording in recordings:
            findings, missing = judge(recording, threads=options.threads, episodes=episodes)
            print(recording.name)
            for finding in findings:
                print(f"  {finding.line()}", flush=True)
            for env_id in missing:
                print(f"  --    {env_id}: not covered, this package does not have the task", flush=True)
            judged += len(findings)
            failed += sum(not finding.holds for finding in findings)
    except InputError as error:
        print(error, file=sys.stderr)
        return UNUSABLE
    print(f"{judged - failed} of {judged} criteria hold")
    if judged == 0:
        return UNUSABLE
    return FAILS if failed else HOLDS


def _parser() -> argparse.ArgumentParser:
    """Return the command line's parser."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.parity",
        description="Hold the tasks against recordings of the originals, one line per criterion.",
        epilog="Exit status: 0 all criteria hold, 1 one fails, 2 a file is unusable or nothing was covered.",
    )
    parser.add_argument("files", nargs="+", metavar="FILE.npz", help="nav, vel, layouts or stats recordings")
    parser.add_argument(
        "--episodes", type=int, help="run only the first so many episodes of statistics files"
    )
    parser.add_argument("--quick", action="store_true", help=f"the same as --episodes {_QUICK_EPISODES}")
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1, help="threads for the engine")
    return parser
