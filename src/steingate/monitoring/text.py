"""Sentences of a monitor: what is known about the policy, and what to do."""

from typing import TYPE_CHECKING

from steingate.certificates.words import at_most

if TYPE_CHECKING:
    from steingate.monitoring.monitor import Monitor


def summary(monitor: "Monitor") -> str:
    """Return what is known about the policy, and what to do."""
    limit, budget = f"the limit {monitor.limit:g}", percent(monitor.budget)
    confidence = f"with {percent(1.0 - monitor.delta)} confidence"
    n, over = monitor.episodes, monitor.violations
    if monitor.certified and monitor.unsafe:
        return (
            f"Certified at episode {monitor.certified_at}, shown unsafe at episode {monitor.unsafe_at}: the "
            "policy or its environment has changed. Do not rely on the certificate; find the cause and start "
            "a new monitor."
        )
    if monitor.unsafe:
        return (
            f"Unsafe since episode {monitor.unsafe_at}: {confidence} more than {budget} of the episodes "
            f"exceed {limit} ({over} of {n} did). Take this policy out of service."
        )
    if monitor.drift:
        return (
            f"Drift at episode {monitor.detector.alarms[-1]}: more than {percent(monitor.baseline)} of the "
            f"episodes exceed {limit} (mean distance of false alarms: {monitor.run_length:,.0f} episodes or "
            "more). Stop, find the cause and calibrate again."
        )
    if monitor.certified:
        return (
            f"Certified at episode {monitor.certified_at}: {confidence} at most {budget} of the episodes "
            f"exceed {limit}; after {n} episodes the bound is {at_most(monitor.bound)}. Continue to monitor."
        )
    more = f"{monitor.more_episodes:,}"
    if n == 0:
        return f"No episodes yet: {more} without a violation would certify a violation rate of {budget}."
    known = (
        f"Undecided: {over} of {n} episodes exceed {limit}; {confidence} at most {at_most(monitor.bound)} do "
        f"({budget} are accepted)."
    )
    if over > monitor.budget * n:
        return f"{known} The violation rate is too high, so expect the policy to be shown unsafe."
    return f"{known} {more} more episodes without a violation would certify it."


def percent(fraction: float) -> str:
    """Return a fraction in percent, with enough digits to tell it from 0 and from 100 %.

    >>> percent(0.0984), percent(1e-6), percent(0.999999)
    ('9.8 %', '0.0001 %', '99.9999 %')
    """
    value = 100.0 * fraction
    for digits in range(1, 12):
        text = f"{value:.{digits}f}".rstrip("0").rstrip(".")
        if 0.0 < float(text) < 100.0 or value in (0.0, 100.0):
            return f"{text} %"
    return f"{value:g} %"
