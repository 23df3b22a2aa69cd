"""Why a gate is open or shut, in words: the rule that decided, its numbers, and what would change them."""

from typing import TYPE_CHECKING

from steingate.certificates import words
from steingate.certificates.words import episodes as _episodes

if TYPE_CHECKING:
    from steingate.certificates.result import Result

_RULES: dict[str, str] = {
    "stein_bound": "the Stein bound",
    "guard": "the empirical guard (mean risk of the episodes seen, no statistical guarantee)",
    "excess": "the Stein bound minus the discrepancy that sampling noise explains",
    "mean_risk": "the mean risk of the episodes, below which taking off noise must not go",
    "direct_confidence": "the confidence bound on the risk",
}


def rule_in_words(rule: str) -> str:
    """Return the phrase that names a decision rule."""
    return _RULES[rule]


def diagnosis(result: "Result") -> str:
    """Return the verdict of the gate and its reason."""
    doubt = "" if result.valid or result.guarded else "No proof supports this number for this configuration."
    parts = (_verdict(result), _reason(result), _open_but_over(result), doubt)
    return " ".join(part for part in parts if part)


def _verdict(result: "Result") -> str:
    sign = "is within" if result.safe else "exceeds"
    state = "Open" if result.safe else "Shut"
    value = f"{result.decision_value:.4g}, {sign} the budget {result.budget:g}"
    return f"{state}: {_RULES[result.decided_by]}, {value}."


def _reason(result: "Result") -> str:
    if result.safe:
        return _open_reason(result)
    shut_by = result.shut_by
    if shut_by == "samples":
        return (
            f"The mean risk of the {_episodes(result.samples)}, {result.empirical_risk:.4g}, is within the "
            f"budget, but {_more(result)}."
        )
    if shut_by == "atoms":
        effect = f"this adds {result.discrete_term:.4g} to the bound"
        if result.delta is not None or result.decided_by == "mean_risk":
            effect = words.SAFER
        return (
            f"The atoms keep it shut: {result.one_mass:.1%} of the episodes cost {result.scale:g} or more "
            f"and {result.zero_mass:.1%} cost nothing; {effect}."
        )
    if shut_by == "reference":
        return (
            f"The reference keeps it shut: its own risk {result.reference_risk:.4g} is above the budget, "
            f"so no episodes can bring the bound under it; choose a safer reference or a larger budget."
        )
    return _interior_reason(result)


def _open_reason(result: "Result") -> str:
    if result.guarded and not result.attainable:
        return (
            f"Without the guard it could never open, because the reference risk {result.reference_risk:.4g} "
            f"is above the budget."
        )
    if result.decided_by in ("excess", "mean_risk"):
        noise = ""
        if result.bound > result.budget:
            noise = (
                f"The bound itself is {result.bound:.4g}; with {_episodes(result.samples)} the rest "
                f"cannot be told from sampling noise. "
            )
        return f"{noise}This is a test of the episodes seen, not a guarantee."
    if result.delta is not None:
        return (
            f"For {_episodes(result.samples)}, independent and planned beforehand, this fails with "
            f"probability at most {result.delta:g}{_over_the_limit(result)}."
        )
    return ""


def _over_the_limit(result: "Result") -> str:
    if result.violation_factor <= 1.0 + 1e-9:
        return f"; at most {result.bound:.2%} of episodes cost more than {result.limit:g}"
    if result.violation_bound >= 1.0:
        return f"; it says nothing about how many episodes cost more than {result.limit:g}"
    return (
        f"; the risk is soft, so up to {result.violation_factor:.3g} times as many episodes, "
        f"{result.violation_bound:.2%}, may cost more than {result.limit:g}"
    )


def _interior_reason(result: "Result") -> str:
    if result.empirical_risk > result.budget:
        advice = f"mean risk {result.empirical_risk:.4g}, so too many of them are costly"
        if result.delta is not None:
            advice += f"; {words.SAFER}"
    else:
        advice = (
            f"their mean risk is only {result.empirical_risk:.4g}, so they may well be safe "
            f"but are shaped unlike the reference; use more episodes, a reference closer to them, "
            f"or the preset confident"
        )
    return f"The interior keeps it shut: {_episodes(result.interior_samples)} between the atoms, {advice}."


def _open_but_over(result: "Result") -> str:
    if not result.safe or result.over_share <= result.budget:
        return ""
    over = f"{words.share(result.over_share)} of these episodes cost more than {words.number(result.limit)}"
    return f"But {over}, and the budget is {100.0 * result.budget:g} %: {words.softness(result)}."


def _more(result: "Result") -> str:
    if result.over_share > result.budget:
        over = f"{words.share(result.over_share)} of them cost more than {words.number(result.limit)}"
        return f"{over}, over the budget, so {words.SAFER}"
    more = result.more_episodes
    enough = "they are too few"
    if more is not None:
        enough += f": {more} more without any risk, {result.samples + more} in all, would have been enough"
    return (
        f"{enough}; the number must be fixed before looking, so plan a new sample, "
        f"or use a Monitor (steingate monitor), which may be watched"
    )
