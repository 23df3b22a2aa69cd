"""``python -m tests.count_reading_paths``: count the lines of the reading paths listed in ARCHITECTURE.md.

Writes the table between ``<!-- paths -->`` and ``<!-- end -->``; ``--check`` writes nothing. The exit status
is 1 if a path is longer than its limit, or if the table is not current with ``--check``.
"""

import re
import sys
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "ARCHITECTURE.md"
SOURCE = ROOT / "src" / "steingate"


class ReadingPath(NamedTuple):
    """Files to read in order, and the largest number of files and lines."""

    name: str
    files: tuple[str, ...]
    max_files: int
    max_lines: int


TRAINER = ("training/loop.py", "training/epoch.py", "training/rollout.py")
PATHS = (
    ReadingPath(
        "SteinGate",
        (
            "algorithms/base.py",
            "algorithms/steingate.py",
            "certificates/stein.py",
            "algorithms/common/trust_region.py",
            *TRAINER,
        ),
        8,
        1800,
    ),
    ReadingPath("allowance, after SteinGate", ("algorithms/allowance.py",), 1, 500),
    ReadingPath(
        "PPO",
        ("algorithms/base.py", "algorithms/ppo.py", "algorithms/common/ppo_update.py", *TRAINER),
        6,
        1100,
    ),
)


def count_lines(file: str) -> int:
    """Return the number of lines of a source file."""
    return len((SOURCE / file).read_text(encoding="utf-8").splitlines())


def table() -> str:
    """Return the reading paths as a Markdown table."""
    lines = ["| to read | files in order (lines) | files | lines |", "|---|---|---:|---:|"]
    for path in PATHS:
        files = ", ".join(f"`{file}` ({count_lines(file)})" for file in path.files)
        lines.append(f"| {path.name} | {files} | {len(path.files)} | {total(path)} |")
    return "\n".join(lines)


def total(path: ReadingPath) -> int:
    """Return the number of lines of a path."""
    return sum(map(count_lines, path.files))


def main() -> int:
    """Write or check the table and return the exit status."""
    before = PAGE.read_text(encoding="utf-8")
    after = re.sub(
        r"(<!-- paths -->\n).*?(<!-- end -->)",
        lambda match: f"{match[1]}{table()}\n{match[2]}",
        before,
        flags=re.DOTALL,
    )
    status = 0
    if "--check" not in sys.argv[1:]:
        PAGE.write_text(after, encoding="utf-8")
    elif after != before:
        print("ARCHITECTURE.md is not current: run python -m tests.count_reading_paths")
        status = 1
    for path in PATHS:
        print(f"{path.name}: {len(path.files)} files, {total(path)} lines")
        if len(path.files) > path.max_files or total(path) > path.max_lines:
            print(f"  more than {path.max_files} files or {path.max_lines} lines")
            status = 1
    return status


if __name__ == "__main__":
    sys.exit(main())
