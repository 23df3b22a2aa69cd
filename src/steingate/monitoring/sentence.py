"""What a monitor knows: one sentence that ends with what to do, and all its numbers."""

from typing import Any

from steingate.certificates.words import at_most
from steingate.monitoring.monitor import Monitor
from steingate.monitoring.tail import capped_mean


def sentence(monitor: Monitor) -> str:
    """Return what is known about the policy, and what to do."""
    budget, limit = percent(monitor.budget), f"{monitor.limit:g}"
    sure = percent(1.0 - monitor.delta)
    if monitor.certified and monitor.unsafe:
        return (
            f"Certified at episode {monitor.certified_at}, shown unsafe at episode {monitor.unsafe_at}: "
            "policy or surroundings have changed, so do not rely on the certificate, find out what changed "
            "and start a new monitor."
        )
    if monitor.unsafe:
        return (
            f"Unsafe since episode {monitor.unsafe_at}: with confidence {sure} more than {budget} of "
            f"episodes cost over {limit} ({monitor.over} of {monitor.episodes} did); "
            "take this policy out of service."
        )
    if monitor.detector.alarm:
        return (
            f"Drift at episode {monitor.detector.alarms[-1]}: episodes over {limit} have become more "
            f"frequent than {percent(monitor.baseline)} (false alarms come once in "
            f"{monitor.run_length:,.0f} episodes or more); stop, find out what changed, calibrate again."
        )
    if monitor.certified:
        return (
            f"Certified at episode {monitor.certified_at}: with confidence {sure} at most {budget} of "
            f"episodes cost over {limit}; after {monitor.episodes} the bound is {at_most(monitor.bound)}; "
            "go on watching."
        )
    needed = f"{monitor.clean_episodes_needed:,} more episodes within the limit would certify it"
    if monitor.episodes == 0:
        return f"Nothing is known yet about a budget of {budget}: {needed}."
    if monitor.over > monitor.budget * monitor.episodes:
        needed = "but expect it to be found unsafe: more of these went over than the budget allows"
    return (
        f"Not decided after {monitor.episodes} episodes, {monitor.over} of them over {limit}: with "
        f"confidence {sure} at most {at_most(monitor.bound)} are, and the budget is {budget}; "
        f"run more, {needed}."
    )


def percent(share: float) -> str:
    """Return a share in per cent, with as many digits as it takes to tell it from 0 and from 100 %."""
    value = 100.0 * share
    for digits in range(1, 12):
        text = f"{value:.{digits}f}".rstrip("0").rstrip(".")
        if 0.0 < float(text) < 100.0 or value in (0.0, 100.0):
            return f"{text} %"
    return f"{value:g} %"


def summary(monitor: Monitor) -> dict[str, Any]:
    """Return every number that a monitor knows as JSON types."""
    drift = monitor.drift
    thresholds, bounds = monitor.tail()
    return {
        **monitor.numbers(),
        "limit": monitor.limit,
        "budget": monitor.budget,
        "delta": monitor.delta,
        "soft_bound": monitor.soft_bound,
        "mean_bound": capped_mean(thresholds, bounds, monitor.cap),
        "cvar_bound": capped_mean(thresholds, bounds, monitor.cap, 0.1),
        "cap": monitor.cap,
        "worst": monitor.worst,
        "certified_at": monitor.certified_at,
        "unsafe_at": monitor.unsafe_at,
        "p_value_unsafe": monitor.p_value_unsafe,
        "drift_alarms": list(drift.alarms),
        "drift_baseline": drift.baseline,
        "drift_run_length": drift.run_length,
        "drift_evidence": drift.evidence,
        "tail": [thresholds.tolist(), bounds.tolist()],
        "sentence": sentence(monitor),
    }
