"""The sentences of a monitor: what is known about the policy, and what to do."""

from typing import TYPE_CHECKING

from steingate.certificates.formatting import number, percent, violations_text

if TYPE_CHECKING:
    from steingate.monitoring.monitor import Monitor


def summary(monitor: "Monitor") -> str:
    """Return what is known about the policy, and what to do."""
    n, over, budget = monitor.episodes, monitor.violations, percent(monitor.budget)
    confidence = round(1.0 - monitor.delta, 15)
    more = f"{monitor.more_episodes:,}"
    if n == 0:
        return f"No episodes yet: {more} without a violation would certify a violation rate of {budget}."
    clusters = monitor.counted if monitor.counted < n else 0
    known = violations_text(over, n, monitor.limit, monitor.bound, confidence, clusters=clusters)
    if monitor.certified and monitor.unsafe:
        return (
            f"Certified at episode {monitor.certified_at}, shown unsafe at episode {monitor.unsafe_at}: the "
            "policy or its environment has changed. Do not rely on the certificate; find the cause and start "
            "anew with new_policy."
        )
    if monitor.unsafe:
        return (
            f"Unsafe since episode {monitor.unsafe_at}: {over:,} of {n:,} episodes cost more than "
            f"{number(monitor.limit)}; with {percent(confidence)} confidence more than {budget} do. "
            "Take this policy out of service."
        )
    if monitor.drift:
        rose = f"more than {percent(monitor.baseline)} of the episodes cost more than {number(monitor.limit)}"
        detector, change = (
            (monitor.detector, rose)
            if monitor.detector.alarm
            else (monitor.cost_detector, "the episodes cost more than those of the calibration")
        )
        return (
            f"Drift at episode {detector.alarms[-1]}: {change} (false alarms are at least "
            f"{monitor.run_length:,.0f} episodes apart on average). Stop, find the cause and calibrate again."
        )
    if monitor.certified:
        return f"Certified for {budget} at episode {monitor.certified_at}: {known}. Continue to monitor."
    if over > monitor.budget * n:
        return f"Undecided: {known}. That is above {budget}, so expect the policy to be shown unsafe."
    return f"Undecided: {known}. {more} more episodes without a violation would certify {budget}."
