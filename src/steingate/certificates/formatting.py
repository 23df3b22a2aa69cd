"""Numbers as they are printed for people."""

from collections.abc import Container, Sequence
from math import ceil, floor, log10


def percent(value: float) -> str:
    """Return a fraction in percent, with as many digits as needed to distinguish it from 0 and 100 %.

    >>> percent(0.1), percent(0.95), percent(1 - 1e-6)
    ('10 %', '95 %', '99.9999 %')
    """
    number = rate(value).removesuffix(" %")
    return f"{number.rstrip('0').rstrip('.')} %"


def percent_down(value: float) -> str:
    """Return a confidence in percent, rounded down to one decimal.

    >>> percent_down(0.9696), percent_down(0.95)
    ('96.9 %', '95 %')
    """
    return percent(floor(1000 * value + 1e-9) / 1000)


def rate(value: float) -> str:
    """Return a fraction in percent with at least one decimal.

    >>> rate(0.13), rate(0.00004), rate(1.0)
    ('13.0 %', '0.004 %', '100.0 %')
    """
    scaled = 100.0 * value
    for digits in range(1, 12):
        text = f"{scaled:.{digits}f}"
        if 0.0 < float(text) < 100.0 or scaled in (0.0, 100.0):
            return f"{text} %"
    return f"{scaled:g} %"


def upper(bound: float) -> str:
    """Return an upper bound in percent, rounded up, so that the printed bound holds too.

    >>> upper(0.0892), upper(0.000021), upper(1.0)
    ('9.0 %', '0.0021 %', '100.0 %')
    """
    scaled, digits = 100.0 * bound, 1
    while 0.0 < scaled * 10.0**digits < 10.0 and digits < 15:
        digits += 1
    raised = ceil(scaled * 10.0**digits * (1.0 - 1e-12)) / 10.0**digits
    return f"{min(raised, 100.0):.{digits}f} %"


def number(value: float) -> str:
    """Return a number with about four digits; integers are complete.

    >>> number(25.0), number(12.3456), number(123456.0), number(0.00012)
    ('25', '12.35', '123,456', '0.00012')
    """
    if float(value).is_integer() and abs(value) < 1e15:
        return f"{int(value):,}"
    return f"{value:,.2f}" if 1000.0 <= abs(value) < 1e15 else f"{value:.4g}"


def upper_number(bound: float) -> str:
    """Return an upper bound as :func:`number` does, rounded up.

    >>> upper_number(14.8801), upper_number(25.0)
    ('14.89', '25')
    """
    step = 10.0 ** (floor(log10(bound)) - 3) if bound > 0.0 else 1.0
    return number(ceil(bound / step * (1.0 - 1e-12)) * step)


def count(episodes: int) -> str:
    """Return ``1 episode`` or ``n episodes``."""
    return "1 episode" if episodes == 1 else f"{episodes:,} episodes"


def violations_text(
    violations: int, episodes: int, limit: float, bound: float, confidence: float, clusters: int = 0
) -> str:
    """Return the number of violations, and the upper bound on their probability, in words.

    >>> violations_text(0, 48, 25.0, 0.0605, 0.95)
    '0 of 48 episodes cost more than 25 (0.0 %); with 95 % confidence at most 6.1 % do'
    """
    name = count(episodes) + (f" in {clusters:,} clusters" if clusters else "")
    text = f"{violations:,} of {name} cost more than {number(limit)} ({rate(violations / episodes)})"
    end = "of a cluster are expected to" if clusters else "do"
    return f"{text}; with {percent(confidence)} confidence at most {upper(bound)} {end}"


def policy_name(which: str, step: int, sampled: bool = False) -> str:
    """Return the name of a policy in sentences; ``which`` is "certified", "last" or empty.

    >>> policy_name("last", 1_000_000)
    'the last policy (step 1,000,000), without exploration noise'
    """
    names = {"certified": "the policy that training certified", "last": "the last policy"}
    name = f"{names[which]} (step {step:,})" if which else f"the policy of step {step:,}"
    return f"{name if step else 'the untrained policy'}, with{'' if sampled else 'out'} exploration noise"


def verdict(certified: bool | None, risk: float, known: str, policy: str = "", *advice: str) -> str:
    """Return the sentence in which training, evaluation, reports and certificates end.

    ``certified`` says whether P(cost > limit) <= risk, None if the episodes are too few to tell. ``known`` is what
    they showed (``violations_text``, or why they show nothing), ``policy`` which policy was tested, and ``advice`` what
    to do next.

    >>> known = violations_text(0, 48, 25.0, 0.0605, 0.95)
    >>> verdict(True, 0.1, known, policy_name("last", 500))[:79]
    'Certified for 10 %: the last policy (step 500), without exploration noise: 0 of'
    """
    word = {True: "Certified", False: "Not certified", None: "Undecided"}[certified]
    start = f"{word} for {percent(risk)}: {policy}{': ' if policy else ''}{known}."
    return " ".join((start, *(sentence for sentence in advice if sentence)))


def align(rows: Sequence[Sequence[str]], numbers: Container[int]) -> str:
    """Return rows as lines with columns of equal width; ``numbers`` are the columns that are aligned right.

    >>> print(align([("limit", "25"), ("cost", "8")], numbers=(1,)))
    limit  25
    cost    8
    """
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = []
    for row in rows:
        cells = enumerate(zip(row, widths, strict=True))
        padded = [cell.rjust(width) if index in numbers else cell.ljust(width) for index, (cell, width) in cells]
        lines.append("  ".join(padded).rstrip())
    return "\n".join(lines)
