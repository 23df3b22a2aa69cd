"""``python -m tests.parity FILE.npz...``: compare the tasks with recordings of the original tasks.

Prints one line per criterion with the measured figure and its limit. Exit status: 0 if all criteria hold, 1 if one
fails, 2 if no file belongs to a task of this package.
"""

import argparse
import os
import sys
from collections.abc import Sequence

from tests.parity.navigation import check_layouts, check_navigation
from tests.parity.recordings import Finding, Recording, load_recording
from tests.parity.statistics import check_statistics
from tests.parity.velocity import check_velocity

from steingate.tasks.catalog import TASKS


def check(recording: Recording, *, threads: int = 2, episodes: int | None = None) -> list[Finding]:
    """Return the findings of all criteria for the tasks in a recording that this package has.

    ``episodes`` limits episode statistics to the first episodes.
    """
    findings: list[Finding] = []
    for env_id in recording.env_ids:
        if env_id not in TASKS:
            print(f"  --    {env_id}: not covered, this package does not have the task")
        elif recording.kind == "layouts":
            findings += check_layouts(recording, env_id)
        elif recording.kind == "stats":
            findings += check_statistics(recording, threads, episodes)
        else:
            findings += (check_navigation if recording.kind == "nav" else check_velocity)(recording, threads)
    return findings


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.parity", description=__doc__.split("\n\n")[1])
    parser.add_argument("files", nargs="+", metavar="FILE.npz", help="nav, vel, layouts or stats recordings")
    parser.add_argument("--episodes", type=int, help="number of episodes per statistics file (default: all)")
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1, help="MuJoCo threads")
    options = parser.parse_args(arguments)
    findings: list[Finding] = []
    for path in options.files:
        recording = load_recording(path)
        print(recording.name)
        found = check(recording, threads=options.threads, episodes=options.episodes)
        print(*(f"  {finding}" for finding in found), sep="\n", flush=True)
        findings += found
    passed = sum(finding.passed for finding in findings)
    print(f"{passed} of {len(findings)} criteria hold")
    return 2 if not findings else int(passed < len(findings))


if __name__ == "__main__":
    sys.exit(main())
