"""``python -m tests.count_reading_paths``: count the lines of the reading paths listed in ARCHITECTURE.md.

Writes the table between ``<!-- paths -->`` and ``<!-- end -->``; ``--check`` writes nothing. The exit status
is 1 if a path is longer than its limit, or if the table is not current with ``--check``.
"""

import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGE, SOURCE = ROOT / "ARCHITECTURE.md", ROOT / "src" / "steingate"
TRAINER = ("training/loop.py", "training/epoch.py", "training/rollout.py")
STEINGATE = ("algorithms/steingate.py", "certificates/stein.py", "algorithms/common/trust_region.py")
PATHS = {  # files to read in order, and the largest number of files and lines
    "SteinGate": (("algorithms/base.py", *STEINGATE, *TRAINER), 8, 1800),
    "allowance, after SteinGate": (("algorithms/allowance.py",), 1, 500),
    "PPO": (("algorithms/base.py", "algorithms/ppo.py", "algorithms/common/ppo_update.py", *TRAINER), 6, 1100),
}


def main() -> int:
    """Write or check the table and return the exit status."""
    status, table = 0, ["| to read | files in order (lines) | files | lines |", "|---|---|---:|---:|"]
    for name, (files, max_files, max_lines) in PATHS.items():
        lines = [len((SOURCE / file).read_text(encoding="utf-8").splitlines()) for file in files]
        shown = ", ".join(f"`{file}` ({count})" for file, count in zip(files, lines, strict=True))
        table.append(f"| {name} | {shown} | {len(files)} | {sum(lines)} |")
        print(f"{name}: {len(files)} files, {sum(lines)} lines")
        if len(files) > max_files or sum(lines) > max_lines:
            print(f"  more than {max_files} files or {max_lines} lines")
            status = 1
    before = PAGE.read_text(encoding="utf-8")
    head, rest = before.split("<!-- paths -->\n")
    after = head + "<!-- paths -->\n" + "\n".join(table) + "\n" + rest[rest.index("<!-- end -->") :]
    if "--check" not in sys.argv[1:]:
        PAGE.write_text(after, encoding="utf-8")
    elif after != before:
        print("ARCHITECTURE.md is not current: run python -m tests.count_reading_paths")
        status = 1
    return status


if __name__ == "__main__":
    sys.exit(main())
