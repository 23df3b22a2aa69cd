"""What a certificate says about a list of costs: every term of the bound, which rule decided, and why."""

from dataclasses import dataclass, fields
from math import isfinite
from typing import Any, Literal, NamedTuple

DecidedBy = Literal["stein_bound", "guard", "excess", "stein_confidence", "direct_confidence"]
ShutBy = Literal["atoms", "interior", "reference", "samples"]


class Check(NamedTuple):
    """One statement about a configuration: its subject, whether it is good news, and the sentence."""

    name: str
    holds: bool
    text: str


@dataclass(frozen=True)
class Result:
    """The certificate of one list of episode costs.

    Attributes
    ----------
    bound
        The risk bound of the preset: the guarded value for ``paper`` and ``released``, the Stein bound for
        ``certified``, the bound that holds with probability ``1 - delta`` for ``confident``.
    safe
        Whether the gate opens: ``decision_value <= budget``.
    budget
        The largest risk that is accepted.
    decided_by
        Which rule gave ``decision_value``.
    decision_value
        The number compared with the budget; differs from ``bound`` only when sampling noise was subtracted.
    preset, limit, scale
        Where the configuration started, the cost limit, and the cost that maps to 1.
    samples, interior_samples
        Episodes in all, and those strictly between the atoms.
    zero_mass, one_mass, interior_mass
        Shares of episodes at no cost, at the top of the scale, and between.
    reference_risk, empirical_risk
        Expected risk under the reference, and mean risk of these episodes.
    discrete_discrepancy, interior_discrepancy
        SD_disc, and the kernel Stein discrepancy as it enters the bound.
    discrete_term, interior_term
        Both multiplied by their weights: ``stein_bound = reference_risk + discrete_term + interior_term``.
    stein_bound
        The Stein bound before any guard.
    guarded
        Whether the empirical guard replaced the Stein bound.
    stein_factor
        The factor in front of the interior discrepancy; ``None``, like ``interior_term`` and ``stein_bound``,
        when no valid one is known and the direct bound of ``confident`` decides alone.
    attainable
        Whether this configuration's bound can meet the budget at all.
    valid
        Whether the bound is proven for this configuration; ``certificate.explain()`` says why not.
    null_quantile, excess_discrepancy
        The discrepancy that sampling noise alone explains at this size, and what exceeds it (rule
        ``excess``).
    delta, stein_upper, direct_upper
        Error probability and both confidence bounds (rule ``confident``); ``None`` where one does not apply.
    more_episodes
        How many further episodes without risk would open the gate (rule ``confident``); 0 when it is open,
        ``None`` when they are more than 1e15.
    checks
        What the configuration can and cannot promise, as ``certificate.checks``.
    """

    bound: float
    safe: bool
    budget: float
    decided_by: DecidedBy
    decision_value: float
    preset: str
    limit: float
    scale: float
    samples: int
    interior_samples: int
    zero_mass: float
    one_mass: float
    interior_mass: float
    reference_risk: float
    empirical_risk: float
    discrete_discrepancy: float
    interior_discrepancy: float
    discrete_term: float
    interior_term: float | None
    stein_bound: float | None
    guarded: bool
    stein_factor: float | None
    attainable: bool
    valid: bool
    null_quantile: float | None = None
    excess_discrepancy: float | None = None
    delta: float | None = None
    stein_upper: float | None = None
    direct_upper: float | None = None
    more_episodes: int | None = None
    checks: tuple[Check, ...] = ()

    @property
    def shut_by(self) -> ShutBy | None:
        """Return what keeps the gate shut, or ``None`` when it is open."""
        if self.safe:
            return None
        if self.delta is not None:
            if self.empirical_risk <= self.budget:
                return "samples"
            return "atoms" if self.one_mass >= 0.5 * self.empirical_risk else "interior"
        atoms, interior = self.discrete_term, self.decision_value - self.reference_risk - self.discrete_term
        if not self.attainable:
            # The bound is out of reach, so only a guard could have opened the gate: name what stopped it.
            if atoms > 0.0:
                return "atoms"
            return "interior" if self.empirical_risk > self.budget else "reference"
        return "atoms" if atoms >= interior else "interior"

    @property
    def diagnosis(self) -> str:
        """Return the verdict and its reason in plain words."""
        doubt = "" if self.valid or self.guarded else "No proof supports this number for this configuration."
        return " ".join(part for part in (_verdict(self), _reason(self), doubt) if part)

    def to_dict(self) -> dict[str, Any]:
        """Return every field, ``shut_by`` and the diagnosis as JSON types, ``None`` where not finite."""
        values = {field.name: _plain(getattr(self, field.name)) for field in fields(self)}
        values["checks"] = [check._asdict() for check in self.checks]
        return {**values, "shut_by": self.shut_by, "diagnosis": self.diagnosis}

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> "Result":
        """Return the result that ``to_dict`` was taken from."""
        known = {field.name: values[field.name] for field in fields(cls) if field.name != "checks"}
        return cls(**known, checks=tuple(Check(**check) for check in values.get("checks", ())))


def _plain(value: Any) -> Any:
    return None if isinstance(value, float) and not isfinite(value) else value


_RULES: dict[str, str] = {
    "stein_bound": "the Stein bound",
    "guard": "the empirical guard (mean risk of the episodes seen, no statistical guarantee)",
    "excess": "the Stein bound less the discrepancy that sampling noise explains",
    "stein_confidence": "the Stein bound plus its confidence radii",
    "direct_confidence": "the direct confidence bound on the risk",
}


def rule_in_words(rule: DecidedBy) -> str:
    """Return the phrase that names a decision rule."""
    return _RULES[rule]


def _verdict(result: Result) -> str:
    sign = "is within" if result.safe else "exceeds"
    state = "Open" if result.safe else "Shut"
    value = f"{result.decision_value:.4g}, {sign} the budget {result.budget:g}"
    return f"{state}: {_RULES[result.decided_by]}, {value}."


def _reason(result: Result) -> str:
    if result.safe:
        return _open_reason(result)
    shut_by = result.shut_by
    if shut_by == "samples":
        return (
            f"The {_episodes(result.samples)} look safe (mean risk {result.empirical_risk:.4g}) "
            f"but are too few: {_more(result)}."
        )
    if shut_by == "atoms":
        effect = (
            f"this adds {result.discrete_term:.4g} to the bound" if result.delta is None else _more(result)
        )
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


def _open_reason(result: Result) -> str:
    if result.guarded and not result.attainable:
        return (
            f"Without the guard it could never open, because the reference risk {result.reference_risk:.4g} "
            f"is above the budget."
        )
    if result.decided_by == "excess" and result.bound > result.budget:
        return (
            f"The bound itself is {result.bound:.4g}; with {_episodes(result.samples)} the rest "
            f"cannot be told from sampling noise."
        )
    if result.delta is not None:
        return f"For independent episodes this fails with probability at most {result.delta:g}."
    return ""


def _interior_reason(result: Result) -> str:
    if result.empirical_risk > result.budget:
        advice = f"mean risk {result.empirical_risk:.4g}, so too many of them are costly"
        if result.more_episodes is not None:
            advice += f"; {_more(result)}"
    else:
        advice = (
            f"their mean risk is only {result.empirical_risk:.4g}, so they may well be safe "
            f"but are shaped unlike the reference; use more episodes, a reference closer to them, "
            f"or the preset confident"
        )
    return f"The interior keeps it shut: {_episodes(result.interior_samples)} between the atoms, {advice}."


def _more(result: Result) -> str:
    if result.more_episodes is None:
        return "more episodes are needed"
    return f"{result.more_episodes} more without any risk would open it"


def _episodes(count: int) -> str:
    return "1 episode" if count == 1 else f"{count} episodes"
