"""The certificate: a configuration checked once, then evaluated on any list of episode costs."""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from steingate.certificates.attainability import attainability, proven
from steingate.certificates.checked_options import NUMBERS, Guard, InteriorStatistic, Rule, check_options
from steingate.certificates.confidence import ConfidenceRule
from steingate.certificates.evaluation import evaluate
from steingate.certificates.io import check_costs
from steingate.certificates.kernels import Kernel, KernelName, Operator
from steingate.certificates.old_factors import rkhs_factor
from steingate.certificates.presets import half_budget_reference, limit_share, preset_fields
from steingate.certificates.reference import Beta, HybridReference, Interior
from steingate.certificates.result import Check, Result
from steingate.certificates.risk import Risk, Sigmoid
from steingate.certificates.text_forms import from_plain, to_plain
from steingate.errors import InputError, nearest

_SIGMOID = Sigmoid()


@dataclass(frozen=True)
class Certificate:
    """A risk bound for episode costs: the reference's risk plus how far the costs are from the reference.

    ``bound = reference_risk + discrete_weight * SD_disc + stein_factor * interior_mass * SD_int``, and the
    gate opens when the bound is within the budget. Start from ``Certificate.preset``; every field may be
    overridden there. ``dataclasses.replace`` keeps a reference and a factor that were solved for the old
    fields; make a new certificate instead.

    Parameters
    ----------
    limit
        Episode-cost limit, in cost units; 0 when no cost at all is accepted.
    budget
        Largest accepted risk, in (0, 1).
    scale_multiplier
        Costs are divided by ``limit * scale_multiplier`` and clipped to [0, 1]; the paper uses 1, its code 2.
    cost_scale
        The cost that maps to 1 instead; ``None`` takes that product, or 1 when the limit is 0.
    reference
        Density between the atoms; ``None`` solves Beta(2, b) for a reference risk of half the budget.
    zero_mass, one_mass
        The reference's atoms at 0 and 1.
    risk
        Nondecreasing function from normalized cost to [0, 1].
    zero_tol, one_tol
        A normalized cost up to ``zero_tol``, or from ``1 - one_tol``, belongs to an atom.
    interior_clip
        Costs between the atoms are moved into ``[interior_clip, 1 - interior_clip]`` for the discrepancy.
    min_interior
        Fewer costs than this between the atoms count as no discrepancy (2 in the paper and its code).
    kernel, kernel_length
        Base kernel and its length; length ``None`` is the released rule, which looks at the samples.
    min_bandwidth
        Smallest length of the released rule.
    operator
        ``langevin`` as published, or ``weighted`` by x (1 - x), which keeps the Stein kernel bounded.
    interior_statistic
        ``ksd``, or ``ksd_squared`` as in the paper's appendix.
    interior_weighted
        Whether the interior term carries the interior mass; the paper's Algorithm 2 omits it.
    stein_factor
        Factor of the interior term; ``None`` computes the smallest valid one. Where none is known it stays
        ``None`` for ``confident``, which needs none, and is an error otherwise.
    discrete_weight
        Factor of the atom term.
    guard, guard_slack
        Whether the mean risk of the episodes replaces the bound when no violation atom shows (``released``:
        none beyond the reference's) and it is at most ``reference_risk + guard_slack``.
    decision
        ``bound`` compares the bound with the budget; ``excess`` first removes the discrepancy that sampling
        noise explains, but never goes below the mean risk of the episodes; ``confident`` uses a bound on the
        risk that holds with probability ``1 - delta`` and neither reference nor kernel.
    alpha
        Level of the noise quantile that ``excess`` removes.
    delta
        Error probability of ``confident``.
    preset_name
        Where the configuration started; a label only.
    """

    limit: float
    budget: float = 0.10
    scale_multiplier: float = 2.0
    cost_scale: float | None = None
    reference: Interior | None = None
    zero_mass: float = 0.0
    one_mass: float = 0.0
    risk: Risk = _SIGMOID
    zero_tol: float = 1e-4
    one_tol: float = 1e-4
    interior_clip: float = 1e-5
    min_interior: int = 1
    kernel: KernelName = "matern52"
    kernel_length: float | None = 0.2
    min_bandwidth: float = 0.05
    operator: Operator = "weighted"
    interior_statistic: InteriorStatistic = "ksd"
    interior_weighted: bool = True
    stein_factor: float | None = None
    discrete_weight: float = 1.0
    guard: Guard = "none"
    guard_slack: float = 0.0
    decision: Rule = "excess"
    alpha: float = 0.05
    delta: float = 0.05
    preset_name: str = "custom"
    reference_risk: float = field(init=False)
    scale: float = field(init=False, repr=False, compare=False)
    base_kernel: Kernel | None = field(init=False, repr=False, compare=False)
    confidence: ConfidenceRule | None = field(init=False, repr=False, compare=False)
    noise_of: dict[int, float] = field(init=False, repr=False, compare=False, default_factory=dict)

    @classmethod
    def preset(cls, name: str, limit: float, **overrides: Any) -> "Certificate":
        """Return the preset ``paper``, ``released``, ``certified`` or ``confident`` with overrides applied.

        Besides the fields, ``risk_threshold`` and ``risk_width`` set the risk function. Texts such as
        ``exceedance:0.5``, ``Beta(1, 10)`` or ``module:function`` stand for risks and densities.

        >>> Certificate.preset("confident", limit=25.0, risk="hinge:0.3").risk
        Hinge(threshold=0.3)
        """
        return cls(limit=limit, **preset_fields(name, limit, overrides, cls._options()))

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> "Certificate":
        """Return the certificate of a plain dict: ``limit``, ``preset`` and options, as texts and numbers.

        ``to_dict`` gives such a dict back.

        >>> made = Certificate.from_dict({"preset": "confident", "limit": 25, "budget": 0.05})
        >>> Certificate.from_dict(made.to_dict()) == made
        True
        """
        given = {name: from_plain(value) for name, value in values.items() if name != "preset"}
        if "limit" not in given:
            raise InputError("The certificate has no limit; give the episode-cost limit as 'limit'.")
        preset = values.get("preset", "custom")
        if preset != "custom":
            return cls.preset(preset, given.pop("limit"), **given)
        known = ["limit", *cls._options()]
        for name in given:
            if name not in known:
                raise InputError(f"A certificate has no option {name!r}{nearest(name, known)}.")
        return cls(**given)

    def to_dict(self) -> dict[str, Any]:
        """Return every option as JSON types, with the reference and the factor that were solved for.

        A risk or density that has no text form (see ``core.text_forms``) is refused.
        """
        options = {name: to_plain(getattr(self, name)) for name in ("limit", *self._options())}
        return {"preset": self.preset_name, **options}

    @classmethod
    def _options(cls) -> list[str]:
        return [item.name for item in fields(cls) if item.init and item.name not in ("limit", "preset_name")]

    def __post_init__(self) -> None:
        check_options(self)
        for name in NUMBERS:
            value = getattr(self, name)
            self._fill(name, value if value is None else float(value))
        if self.reference is None:
            self._fill("reference", self._solved_reference())
        hybrid = HybridReference(self.interior, self.zero_mass, self.one_mass)
        self._fill("reference_risk", hybrid.expectation(self.risk))
        product = self.limit * self.scale_multiplier or 1.0
        self._fill("scale", product if self.cost_scale is None else self.cost_scale)
        kernel = None if self.kernel_length is None else Kernel(self.kernel, self.kernel_length)
        self._fill("base_kernel", kernel)
        if self.stein_factor is None:
            self._fill("stein_factor", self._valid_factor())
        rule = ConfidenceRule.build(self.risk, self.budget, self.delta)
        self._fill("confidence", rule if self.decision == "confident" else None)

    def _solved_reference(self) -> Beta:
        try:
            return half_budget_reference(self.budget, self.risk, self.zero_mass, self.one_mass)
        except InputError:
            if self.decision != "confident":  # which needs none
                raise
            return Beta(2.0, 5.0)

    def _fill(self, name: str, value: object) -> None:
        object.__setattr__(self, name, value)  # only while the frozen instance is being made

    @property
    def interior(self) -> Interior:
        """The density between the atoms, solved or given."""
        assert self.reference is not None
        return self.reference

    @property
    def factor(self) -> float:
        """The factor in front of the interior discrepancy, computed or given."""
        if self.stein_factor is None:
            raise InputError(f"No valid Stein factor is known here ({self.factor_reason}).")
        return self.stein_factor

    @cached_property
    def violation_factor(self) -> float:
        """How many times the risk the share of episodes over the limit may be: 1 / h(limit), inf if h is 0.

        An episode just over the limit has this risk, so P(cost > limit) <= violation_factor * risk: 1 for an
        exceedance of the limit, 2 for the sigmoid, whose risk at the limit is one half.
        """
        share = limit_share(self.limit, self.scale_multiplier, self.cost_scale)
        just_over = min(float(np.nextafter(share, 2.0)), 1.0)
        least = float(np.asarray(self.risk(np.array([just_over])), dtype=np.float64)[0])
        return 1.0 / least if least > 0.0 else float("inf")

    @property
    def attainable(self) -> bool:
        """Whether the rule that decides can meet the budget at all, guards aside."""
        return self.decision == "confident" or self.reference_risk < self.budget

    @property
    def reference_name(self) -> str:
        """The reference in a few characters, such as ``Beta(2, 6.506)``."""
        shapes = [getattr(self.interior, key, None) for key in ("a", "b", "mu", "sigma")]
        known = ", ".join(f"{shape:.4g}" for shape in shapes if shape is not None)
        name = type(self.interior).__name__
        return f"{name}({known})" if known else str(getattr(self.interior, "name", name))

    @cached_property
    def valid(self) -> bool:
        """Whether the number that decides is a proven bound, or a proven bound minus sampling noise."""
        return proven(self)

    @property
    def required_factor(self) -> float | None:
        """The smallest valid Stein factor, or ``None`` when this kernel has none that can be computed."""
        return self._found_factor[0]

    @property
    def factor_reason(self) -> str:
        """Why ``required_factor`` is ``None``; empty when it is a number."""
        return self._found_factor[1]

    @cached_property
    def _found_factor(self) -> tuple[float | None, str]:
        if self.base_kernel is None:
            return None, "the length of its kernel depends on the samples"
        found = rkhs_factor(self.interior, self.risk, self.base_kernel, self.operator)
        return found.value, "" if found.value is not None else found.reason.rstrip(".")

    @cached_property
    def checks(self) -> tuple[Check, ...]:
        """What this configuration can and cannot promise, one statement at a time."""
        return attainability(self)

    def explain(self) -> str:
        """Return the checks as text, one line each."""
        return "\n".join(f"{'yes' if check.holds else 'NO '}  {check.text}" for check in self.checks)

    def evaluate(self, costs: npt.ArrayLike) -> Result:
        """Return the certificate of a list of episode costs, whatever their order."""
        return evaluate(self, check_costs(costs))

    def _valid_factor(self) -> float | None:
        value = self.required_factor
        if value is None and self.decision != "confident":
            raise InputError(
                f"No valid Stein factor is known here ({self.factor_reason}); "
                f"choose another kernel, reference or risk, or give stein_factor explicitly."
            )
        return value
