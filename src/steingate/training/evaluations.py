"""The ledger of evaluations of a run, ``evaluations.jsonl``: how many there were, and what each found.

Every evaluation is a look at the policy. If each had the same confidence, repeating until one is good would find a
certificate for any policy. The k-th evaluation of a run therefore gets 6 delta / (pi k)^2, so that with probability at
least 1 - delta the bounds of all evaluations hold. Each line holds the digest of the line before it.
"""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from steingate.errors import RunError
from steingate.runs import content_digest, read_evidence
from steingate.settings import too_deep
from steingate.storage.files import open_no_link, read_regular, try_lock, writing

FILE = "evaluations.jsonl"
_MAX_BYTES = 64 << 20


def ledger_of(run: Path, sha256: str) -> tuple[Path, int]:
    """Return the folder of the ledger of a policy, and how many evaluations were before its first line.

    It is the run folder. An evidence bundle must not change and is itself an evaluation: its ledger is in the user's
    state folder.
    """
    evidence = read_evidence(run)
    if evidence is None:
        return run, 0
    state = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(state) / "steingate" / "evaluations" / sha256, int(evidence["test"]["number"])


def read_evaluations(run: Path) -> list[dict[str, Any]]:
    """Return the evaluations of a run in order; RunError if a line was changed or removed."""
    file = run / FILE
    if not file.exists():
        return []
    found = list(_lines(read_regular(file, _MAX_BYTES)))
    before = ""
    for number, line in enumerate(found, 1):
        if line.get("before") != before or line.get("digest") != content_digest(line) or line.get("number") != number:
            raise RunError(
                f"{file} was changed: line {number} is not the one that was written there. Restore the file; "
                "without it, earlier evaluations cannot be counted."
            )
        before = line["digest"]
    return found


def add_evaluation(run: Path, earlier: int, content: dict[str, Any]) -> None:
    """Append an evaluation; ``earlier`` is the number of lines when it began, which decided its confidence."""
    file = run / FILE
    with writing(run):
        run.mkdir(parents=True, exist_ok=True)
    with writing(file), open_no_link(file, "ab+") as stream:
        if not try_lock(stream):
            raise RunError(f"{file} is in use by another evaluation; start this one again.")
        lines, complete = read_evaluations(run), read_regular(file, _MAX_BYTES).rfind(b"\n") + 1
        if len(lines) != earlier:
            raise RunError(f"Another evaluation of {run} has ended since this one began; start this one again.")
        line = {**content, "number": earlier + 1, "before": lines[-1]["digest"] if lines else ""}
        line["digest"] = content_digest(line)
        stream.truncate(complete)  # without the rest of a line cut by a crash
        stream.write(json.dumps(line).encode() + b"\n")


def _lines(content: bytes) -> Iterator[dict[str, Any]]:
    for text in content[: content.rfind(b"\n") + 1].splitlines():
        try:
            line = json.loads(text)
        except (ValueError, RecursionError):
            line = None
        yield line if isinstance(line, dict) and not too_deep(line) else {}
