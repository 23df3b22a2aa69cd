"""What a certificate says about a list of costs: every term of the bound, which rule decided, and why."""

from collections.abc import Callable
from dataclasses import dataclass, field, fields
from functools import cached_property
from math import isfinite
from typing import Any, Literal, NamedTuple

from steingate.certificates import words
from steingate.certificates.bounds import clopper_pearson_upper
from steingate.certificates.diagnosis import diagnosis

DecidedBy = Literal["stein_bound", "guard", "excess", "mean_risk", "direct_confidence"]
ShutBy = Literal["atoms", "interior", "reference", "samples"]


class Check(NamedTuple):
    """One statement about a configuration: its subject, whether it is good news, and the sentence."""

    name: str
    holds: bool
    text: str


@dataclass(frozen=True)
class Result:
    """The certificate of one list of episode costs; ``str(result)`` says in plain words what it means.

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
        The number compared with the budget; differs from ``bound`` only under the rule ``excess``, which
        takes sampling noise off, though never more than down to the mean risk.
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
        when no valid one is known, which ``confident`` does not need.
    violation_factor
        P(cost > limit) is at most this many times the risk: 1 for an exceedance of the limit, 2 for the
        default sigmoid.
    attainable
        Whether this configuration's bound can meet the budget at all.
    valid
        Whether the bound is proven for this configuration; ``certificate.explain()`` says why not.
    null_quantile, excess_discrepancy
        The discrepancy that sampling noise alone explains at this size, and what exceeds it (rule
        ``excess``).
    delta
        Error probability (rule ``confident``).
    over, mean_cost, worst_cost
        How many episodes cost more than the limit, and the mean and largest cost.
    over_delta
        Error probability of ``over_bound``.
    checks
        What the configuration can and cannot promise, as ``certificate.checks``.

    Examples
    --------
    >>> from steingate import Certificate
    >>> print(Certificate.preset("confident", limit=25.0).evaluate([30.0] * 4 + [3.0] * 96).headline)
    4 of 100 episodes exceeded 25 (4.0 %); with 95 % confidence at most 9 %. Certified for 10 %.
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
    violation_factor: float
    attainable: bool
    valid: bool
    over: int
    mean_cost: float
    worst_cost: float
    over_delta: float
    null_quantile: float | None = None
    excess_discrepancy: float | None = None
    delta: float | None = None
    checks: tuple[Check, ...] = ()
    count_more: Callable[[], int | None] | None = field(default=None, repr=False, compare=False)

    @cached_property
    def more_episodes(self) -> int | None:
        """How many more episodes without any risk would open the gate (rule ``confident``), 0 if it is open.

        ``None`` when the mean risk is itself over the budget, or the number more than 1e15. It says how large
        a sample had to be; episodes added after looking at the result void its guarantee.
        """
        return None if self.count_more is None else self.count_more()

    @property
    def over_share(self) -> float:
        """The share of these episodes that cost more than the limit."""
        return self.over / self.samples

    @cached_property
    def over_bound(self) -> float:
        """The exact bound (Clopper and Pearson) on P(cost > limit), whatever risk and rule the gate has.

        Wrong with probability at most ``over_delta``, for independent episodes of a number fixed beforehand.
        """
        return clopper_pearson_upper(self.over, self.samples, self.over_delta)

    @property
    def certified(self) -> bool:
        """Whether ``over_bound`` is within the budget: few enough episodes over the limit, for sure."""
        return self.over_bound <= self.budget

    @property
    def headline(self) -> str:
        """How many episodes exceeded the limit, how many may, and whether that certifies the budget."""
        return words.headline(self)

    @property
    def summary(self) -> str:
        """The headline, mean and worst cost, and what to do, as one paragraph; also ``str(result)``."""
        return words.summary(self)

    def __str__(self) -> str:
        return self.summary

    @property
    def violation_bound(self) -> float:
        """The bound on the share of episodes over the limit that follows from ``bound``, at most 1."""
        return min(self.violation_factor * self.bound, 1.0) if self.bound > 0.0 else 0.0

    @property
    def shut_by(self) -> ShutBy | None:
        """Return what keeps the gate shut, or ``None`` when it is open."""
        if self.safe:
            return None
        if self.delta is not None and self.empirical_risk <= self.budget:
            return "samples"
        if self.delta is not None or self.decided_by == "mean_risk":
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
        return diagnosis(self)

    def to_dict(self) -> dict[str, Any]:
        """Return every field and property as JSON types, ``None`` where not finite."""
        kept = [item.name for item in fields(self) if item.name not in ("checks", "count_more")]
        values = {name: _plain(getattr(self, name)) for name in kept}
        values["checks"] = [check._asdict() for check in self.checks]
        more = {"more_episodes": self.more_episodes, "violation_bound": _plain(self.violation_bound)}
        plain = {
            "over_share": self.over_share,
            "over_bound": self.over_bound,
            "certified": self.certified,
            "summary": self.summary,
        }
        return {**values, **more, **plain, "shut_by": self.shut_by, "diagnosis": self.diagnosis}


def _plain(value: Any) -> Any:
    return None if isinstance(value, float) and not isfinite(value) else value
