"""What a page says before any curve, and how methods stand over all tasks."""

from math import isfinite
from typing import Any

from steingate.report.aggregates import THRESHOLDS, Aggregate
from steingate.report.evidence import Evidence
from steingate.report.json_numbers import short
from steingate.report.report_tables import overall_notes, percent, task

MOST = 8  # methods in a sentence


def notices(evidence: Evidence) -> list[str]:
    """Return the sentences at the top of the page: how often whose episodes are over the limit, by task."""
    sentences = []
    for env, members in evidence.by_task().items():
        known = [(group, summary) for group, summary in members if isfinite(summary.exceedance)]
        known.sort(key=lambda pair: pair[1].exceedance)
        shown = [f"{group.label} {percent(summary.exceedance)}" for group, summary in known]
        limits = " or ".join(f"{limit:g}" for limit in sorted({group.limit for group, _ in members}))
        if shown:
            more = f" and {len(shown) - MOST} more" if len(shown) > MOST else ""
            sentences.append(
                f"{task(env)}, episodes over the limit of {limits} in the last fifth of training: "
                f"{', '.join(shown[:MOST])}{more}."
            )
    return sentences


def profiles(evidence: Evidence) -> dict[str, Any] | None:
    """Return the performance profiles over all tasks, or nothing where no method ran on all of them."""
    found = evidence.overall
    if not found.standings:
        return None

    def curves(score: Aggregate) -> list[list[float | None]]:
        return [[short(value) for value in values] for values in (score.profile, score.low, score.high)]

    return {
        "thresholds": [short(value) for value in THRESHOLDS],
        "tasks": len(found.scales),
        "notes": list(overall_notes(found)[1:]),
        "methods": [
            {
                "label": item.group.label,
                "color": evidence.color(item.group),
                "ret": curves(item.ret),
                "safety": curves(item.safety),
            }
            for item in found.standings
        ],
    }
