"""A result in plain words: how many episodes went over the limit, how many may, and what follows from it."""

from math import ceil, floor
from typing import TYPE_CHECKING

from steingate.certificates.bounds import clopper_pearson_upper
from steingate.certificates.plan import episodes_needed

if TYPE_CHECKING:
    from steingate.certificates.result import Result

SAFER = "more episodes of this policy would not help, a safer policy would"
EXPECTED = "more of them are over the limit than the budget allows, so expect to need a safer policy"


def headline(result: "Result") -> str:
    """Return the count, the exact bound, and whether that certifies the budget."""
    word = "Certified" if result.certified else "Not certified"
    return f"{counted(result)} {word} for {number(100.0 * result.budget)} %."


def counted(result: "Result") -> str:
    """Return the count and the exact bound, without a verdict."""
    return (
        f"{result.over} of {episodes(result.samples)} exceeded {number(result.limit)} "
        f"({share(result.over_share)}); with {confidence(result.over_delta)} confidence at most "
        f"{at_most(result.over_bound)}."
    )


def advice(result: "Result") -> str:
    """Return what the verdict rests on, or what would change it."""
    if result.certified:
        return "This holds for independent episodes of one unchanged policy, as many as were planned."
    if result.over_share > result.budget:
        least = 1.0 - clopper_pearson_upper(result.samples - result.over, result.samples, result.over_delta)
        if least > result.budget:
            return f"{SAFER[0].upper()}{SAFER[1:]}."
        return f"{EXPECTED[0].upper()}{EXPECTED[1:]}."
    needed = episodes_needed(result.budget, result.over_delta, result.over)
    most = "none" if result.over == 0 else f"no more than {result.over}"
    return (
        f"The episodes are too few: {needed:,} with {most} over the limit would have been enough; fix the "
        "number before looking, so plan a new sample, or use a Monitor (steingate monitor), which may be "
        "watched."
    )


def gate_note(result: "Result") -> str:
    """Return a sentence where the gate and the verdict disagree, else nothing."""
    if result.safe and result.over_share > result.budget:
        return f"The gate of the preset {result.preset} is open all the same: {softness(result)}."
    if result.safe and not result.certified:
        return f"The gate of the preset {result.preset} is open: it asks for less than that."
    if result.certified and not result.safe:
        return f"The gate of the preset {result.preset} is shut all the same: it asks for more than that."
    return ""


def softness(result: "Result") -> str:
    """Return why a gate may be open although more episodes than the budget are over the limit."""
    return (
        f"its risk counts an episode over {number(result.limit)} as less than a whole one, so it promises "
        "nothing about how many there are; the risk exceedance counts them"
    )


def summary(result: "Result") -> str:
    """Return all of it as one paragraph."""
    costs = f"Mean cost {number(result.mean_cost)}, worst {number(result.worst_cost)}."
    return " ".join(part for part in (headline(result), costs, advice(result), gate_note(result)) if part)


def share(value: float) -> str:
    """Return a share in per cent with one decimal, or as many as tell it from 0 and from 100 %.

    >>> share(0.13), share(0.00004), share(1.0)
    ('13.0 %', '0.004 %', '100.0 %')
    """
    percent = 100.0 * value
    for digits in range(1, 12):
        text = f"{percent:.{digits}f}"
        if 0.0 < float(text) < 100.0 or percent in (0.0, 100.0):
            return f"{text} %"
    return f"{percent:g} %"


def confidence(delta: float) -> str:
    """Return 1 - delta in per cent.

    >>> confidence(0.05), confidence(1e-6)
    ('95 %', '99.9999 %')
    """
    text = share(1.0 - delta).removesuffix(" %")
    return f"{text.rstrip('0').rstrip('.')} %"


def at_most(bound: float) -> str:
    """Return a bound in per cent, rounded up, so that what is printed holds too.

    >>> at_most(0.1483), at_most(0.000021), at_most(1.0)
    ('14.9 %', '0.0021 %', '100 %')
    """
    percent = 100.0 * bound
    if not percent > 0.0:
        return "0 %"
    digits = 1
    while percent * 10.0**digits < 10.0 and digits < 15:
        digits += 1
    raised = ceil(percent * 10.0**digits * (1.0 - 1e-12)) / 10.0**digits
    return f"{min(raised, 100.0):.{digits}f}".rstrip("0").rstrip(".") + " %"


def number(value: float) -> str:
    """Return a number as people write it: whole ones whole, others with up to four digits.

    >>> number(25.0), number(12.3456), number(123456.0), number(0.00012)
    ('25', '12.35', '123,456', '0.00012')
    """
    if value == floor(value) and abs(value) < 1e15:
        return f"{int(value):,}"
    return f"{value:,.2f}" if 1000.0 <= abs(value) < 1e15 else f"{value:.4g}"


def episodes(count: int) -> str:
    """Return ``1 episode`` or ``n episodes``."""
    return "1 episode" if count == 1 else f"{count} episodes"
