"""The verdicts of runs in words: which of them deliver a policy that is certified."""

from collections.abc import Sequence
from typing import Any

from steingate.errors import RunError
from steingate.report.groups import Group
from steingate.report.loading import Run, inside
from steingate.report.report_tables import task
from steingate.runs import RunFolder, load_certification


def verdict_of(run: Run) -> dict[str, Any] | None:
    """Return what a run says about the policy it delivers; None where it says nothing that can be read."""
    if not inside(RunFolder(run.path).certification, run.path):
        return None
    try:
        return load_certification(run.path)
    except (RunError, OSError):
        return None


def verdict_sentences(groups: Sequence[Group]) -> list[str]:
    """Return a sentence for each group whose runs have verdicts: its own for one seed, counts for several."""
    sentences = []
    for group in groups:
        found = [verdict_of(run) for run in group.runs]
        known = [verdict for verdict in found if verdict is not None]
        if not known:
            continue
        start = f"{task(group.env)}, {group.label}: "
        if len(group.runs) == 1:
            sentences.append(start + known[0]["sentence"])
            continue
        certified = [verdict for verdict in known if verdict["certified"]]
        last = sum(verdict.get("which") == "last" for verdict in certified)
        text = f"{len(certified)} of {len(group.runs)} seeds deliver a certified policy"
        if certified:
            text += f", {last} of them the last one"
        if len(known) < len(found):
            text += f"; {len(found) - len(known)} have no verdict"
        sentences.append(f"{start}{text}.")
    return sentences
