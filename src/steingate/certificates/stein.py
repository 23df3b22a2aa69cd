"""The certificate of SteinGate (Chemingui et al., UAI 2026, Section 3): a bound U on the risk of costs.

    x       = min(cost / scale, 1)                     normalized costs; x > limit / scale iff cost > limit
    SD_disc = (a0* - a0)_+ + (a1 - a1*)_+              fractions at x = 0 and x = 1; *: of the reference
    SD_int  = KSD(costs between the atoms, p)          p: density of the reference between the atoms
    U       = h_ref + lambda_disc SD_disc + lambda_int w SD_int

with w = 1 - a0 - a1 and the mean risk h_ref of the reference. The gate of the training method is open if U,
after the guard or the noise correction, is at most the budget. The result is a test of the episodes seen, not
a bound for the policy: use ``steingate.certify`` for that.
"""

from collections.abc import Hashable
from dataclasses import dataclass, field, fields
from functools import cached_property
from math import inf, isfinite
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt

from steingate.certificates.factors import (
    SteinFactor,
    half_budget_reference,
    required_discrete_weight,
    valid_stein_factor,
)
from steingate.certificates.formatting import count, number, rate
from steingate.certificates.io import Costs, check_costs
from steingate.certificates.kernels import Kernel, KernelName, Operator, ksd, released_length
from steingate.certificates.noise import null_quantile
from steingate.certificates.reference import Beta, HybridReference, Interior
from steingate.certificates.risk import Risk, Sigmoid, check_risk
from steingate.certificates.text_forms import from_text
from steingate.errors import InputError, check_interval, nearest

DecidedBy = Literal["bound", "guard", "noise_corrected", "mean_risk"]
BlockedBy = Literal["atoms", "interior", "reference"]

_NO_EXCESS = 1e-12  # atom mass that counts as none, as in the released code
_RELEASED: dict[str, Any] = {
    "reference": Beta(2.0, 5.0), "kernel": "rbf", "kernel_length": None, "operator": "langevin", "stein_factor": 0.10,
    "min_interior": 2, "guard": True, "noise_level": None,
}  # fmt: skip
PRESETS: dict[str, dict[str, Any]] = {
    "paper": {**_RELEASED, "atom_tol": 0.0, "interior_weighted": False},  # and cost_scale = limit
    "released": _RELEASED,
    "corrected": {},
}
_RANGES: dict[str, tuple[float, float, str]] = {
    "limit": (0.0, inf, "[)"), "budget": (1e-12, 1.0, "[)"), "cost_scale": (0.0, inf, "()"),
    "zero_mass": (0.0, 1.0, "[]"), "one_mass": (0.0, 1.0, "[]"), "atom_tol": (0.0, 0.5, "[)"),
    "interior_clip": (0.0, 0.5, "()"), "min_interior": (1, inf, "[)"), "kernel_length": (0.0, inf, "()"),
    "min_bandwidth": (0.0, inf, "()"), "stein_factor": (0.0, inf, "[)"), "discrete_weight": (0.0, inf, "[)"),
    "noise_level": (0.0, 1.0, "()"),
}  # fmt: skip
_OPTIONAL = ("cost_scale", "kernel_length", "stein_factor", "noise_level")
_CHOICES: dict[str, tuple[Any, ...]] = {
    "kernel": get_args(KernelName), "operator": get_args(Operator), "interior_weighted": (True, False),
    "guard": (True, False),
}  # fmt: skip


@dataclass(frozen=True)
class SteinCertificate:
    """A Stein certificate; :meth:`evaluate` applies it to episode costs.

    :meth:`paper`, :meth:`released` and :meth:`corrected` are the usual configurations; the defaults of the fields
    are those of ``corrected``.

    Parameters
    ----------
    limit : limit on the episode cost; 0 if no cost is accepted
    budget : largest accepted risk, in (0, 1)
    cost_scale : cost that is mapped to x = 1; ``None``: twice the limit (1 if the limit is 0)
    reference : density between the atoms; ``None``: the Beta(2, b) with which h_ref is half the budget
    zero_mass, one_mass : atoms a0* and a1* of the reference at x = 0 and x = 1
    risk_function : nondecreasing function h from normalized cost to [0, 1]
    atom_tol : costs with x <= atom_tol or x >= 1 - atom_tol belong to the atoms
    interior_clip : the other costs are clipped to [interior_clip, 1 - interior_clip] for the KSD
    min_interior : with fewer costs between the atoms, SD_int is 0
    kernel : base kernel, ``rbf`` or ``matern52``
    kernel_length : its length; ``None``: the rule of the released code, which depends on the samples
    min_bandwidth : smallest length of that rule
    operator : Stein operator: ``langevin``, or ``weighted`` by x (1 - x)
    interior_weighted : multiply the interior term by w; Algorithm 2 of the paper does not
    stein_factor : lambda_int; ``None``: the smallest valid factor, computed
    discrete_weight : lambda_disc
    guard : if no more episodes than in the reference reach x = 1, and the mean risk of the episodes is at most
        h_ref, that mean risk replaces U
    noise_level : subtract this quantile of the KSD that samples of the reference have, but do not go below the mean
        risk of the episodes; ``None``: do not subtract
    name : name of the configuration, for messages only
    """

    limit: float
    budget: float = 0.10
    cost_scale: float | None = None
    reference: Interior | None = None
    zero_mass: float = 0.0
    one_mass: float = 0.0
    risk_function: Risk = Sigmoid()  # noqa: RUF009  (immutable)
    atom_tol: float = 1e-4
    interior_clip: float = 1e-5
    min_interior: int = 1
    kernel: KernelName = "matern52"
    kernel_length: float | None = 0.2
    min_bandwidth: float = 0.05
    operator: Operator = "weighted"
    interior_weighted: bool = True
    stein_factor: float | None = None
    discrete_weight: float = 1.0
    guard: bool = False
    noise_level: float | None = 0.95
    name: str = "custom"

    @classmethod
    def paper(cls, limit: float, **options: Any) -> "SteinCertificate":
        """Return the certificate of the paper's text: costs divided by the limit, interior term without w."""
        return cls.from_name("paper", limit, **options)

    @classmethod
    def released(cls, limit: float, **options: Any) -> "SteinCertificate":
        """Return the certificate of the paper's code, which produced its results."""
        return cls.from_name("released", limit, **options)

    @classmethod
    def corrected(cls, limit: float, **options: Any) -> "SteinCertificate":
        """Return the certificate with a proven Stein factor and the noise correction.

        Its gate is a test of the sample, not a bound for the policy: it opens for 8 episodes within the limit.
        """
        return cls.from_name("corrected", limit, **options)

    @classmethod
    def from_name(cls, name: str, limit: float, *, imports: bool = True, **options: Any) -> "SteinCertificate":
        """Return the certificate ``paper``, ``released`` or ``corrected`` with some options changed.

        Options may be texts such as ``Beta(1, 10)`` or ``module:function``, see
        :mod:`steingate.certificates.text_forms`. With ``imports=False``, for stored data, ``module:function``
        is refused.

        >>> SteinCertificate.from_name("corrected", 25.0, reference="Beta(2, 9)").interior
        Beta(a=2.0, b=9.0)
        """
        if name not in PRESETS:
            raise InputError(f"There is no Stein certificate {name!r}: choose {', '.join(PRESETS)}.")
        known = [item.name for item in fields(cls) if item.name not in ("limit", "name")]
        for key in options:
            if key not in known:
                hint = nearest(key, known) or f"; it has {', '.join(known)}"
                raise InputError(f"A Stein certificate has no option {key!r}{hint}.")
        values = {**PRESETS[name], **{key: from_text(value, imports) for key, value in options.items()}}
        limit = from_text(limit)
        check_interval("limit", limit, *_RANGES["limit"])
        if name == "paper" and values.get("cost_scale") is None and limit > 0.0:
            values["cost_scale"] = limit
        return cls(limit, name=name, **values)

    def __post_init__(self) -> None:
        for name, interval in _RANGES.items():
            if getattr(self, name) is not None or name not in _OPTIONAL:
                check_interval(name, getattr(self, name), *interval)
        if self.min_interior != int(self.min_interior):
            raise InputError(f"min_interior is {self.min_interior!r}; give a whole number.")
        for name, choices in _CHOICES.items():
            if getattr(self, name) not in choices:
                raise InputError(f"{name} is {getattr(self, name)!r}; choose {' or '.join(map(str, choices))}.")
        if not isinstance(self.reference, Interior | None):
            raise InputError(
                f"reference is {self.reference!r}; give Beta(a, b), LogitNormal(mu, sigma) or another Interior."
            )
        if self.noise_level is not None and self.kernel_length is None:
            raise InputError("The noise correction needs a kernel_length; give one, or noise_level=None.")
        if not isfinite(self.scale):
            raise InputError(f"The limit {self.limit!r} is too large; rescale the costs.")
        for part in (self.reference, self.risk_function):
            if not isinstance(part, Hashable):
                raise InputError(f"{part!r} has no hash; make its class a frozen dataclass.")
        check_risk(self.risk_function)
        assert 0.0 <= self.reference_risk <= 1.0  # an error here if no reference has half of the budget
        if self.stein_factor is None and self.found_factor.value is None:
            raise InputError(
                f"No valid Stein factor is known here ({self.found_factor.reason}); choose another kernel, "
                "reference or risk function, or give stein_factor."
            )

    @property
    def scale(self) -> float:
        """Cost that is mapped to x = 1."""
        return (2.0 * self.limit or 1.0) if self.cost_scale is None else self.cost_scale

    @cached_property
    def interior(self) -> Interior:
        """Density between the atoms, given or solved for."""
        if self.reference is not None:
            return self.reference
        return half_budget_reference(self.budget, self.risk_function, self.zero_mass, self.one_mass)

    @cached_property
    def hybrid_reference(self) -> HybridReference:
        """The reference: both atoms and the density between them."""
        return HybridReference(self.interior, self.zero_mass, self.one_mass)

    @cached_property
    def reference_risk(self) -> float:
        """Mean risk h_ref of the reference."""
        return self.hybrid_reference.expectation(self.risk_function)

    @property
    def attainable(self) -> bool:
        """Whether U can be within the budget; otherwise only the guard can open the gate."""
        return self.reference_risk < self.budget

    @property
    def reference_name(self) -> str:
        """The density in a few characters, such as ``Beta(2, 6.506)``."""
        shapes = [getattr(self.interior, key, None) for key in ("a", "b", "mu", "sigma")]
        known = ", ".join(f"{shape:.4g}" for shape in shapes if shape is not None)
        return f"{type(self.interior).__name__}({known})"

    @cached_property
    def base_kernel(self) -> Kernel | None:
        """Kernel, or ``None`` if its length depends on the samples."""
        return None if self.kernel_length is None else Kernel(self.kernel, self.kernel_length)

    @property
    def factor(self) -> float:
        """The factor lambda_int, given or computed."""
        factor = self.found_factor.value if self.stein_factor is None else self.stein_factor
        assert factor is not None  # checked in __post_init__
        return factor

    @cached_property
    def found_factor(self) -> SteinFactor:
        """The smallest valid Stein factor, or the reason why none is known."""
        if self.base_kernel is None:
            return SteinFactor(None, "the length of the kernel depends on the samples")
        return valid_stein_factor(self.interior, self.risk_function, self.base_kernel, self.operator)

    @cached_property
    def bounds_sample_risk(self) -> bool:
        """Whether U is proven to be at least the mean risk of any episodes; not a bound for their policy."""
        smallest = self.found_factor.value
        return (
            smallest is not None
            and self.factor >= smallest * (1.0 - 1e-9)
            and self.discrete_weight >= required_discrete_weight(self.hybrid_reference, self.risk_function)
            and self.min_interior <= 1
            and not self.guard
            and self._hidden_risk() <= 1e-9
        )

    def _hidden_risk(self) -> float:
        """Return the risk that U may miss because costs within atom_tol count as atoms and others are clipped.

        An episode of the lower atom has risk up to h(atom_tol). With h(atom_tol) for h(0) in the proof of
        ``required_discrete_weight``, only a0* (h(atom_tol) - h(0)) is missing while h(atom_tol) is at most E_p[h].
        Above 1 - interior_clip, h is taken at the clip. All other moves raise the risk.
        """
        x = np.array([0.0, self.atom_tol, 1.0 - self.interior_clip, 1.0 - self.atom_tol])
        at_zero, zero_top, at_clip, one_low = np.asarray(self.risk_function(x), dtype=np.float64).tolist()
        mean = HybridReference(self.interior).expectation(self.risk_function)
        share = self.zero_mass if zero_top <= mean else 1.0
        return float(share * (zero_top - at_zero) + max(one_low - at_clip, 0.0))

    def normalize(self, costs: Costs) -> Costs:
        """Return min(cost / scale, 1); rounding does not move a cost over the limit onto limit / scale."""
        x = np.minimum(costs, self.scale) / self.scale
        if self.limit >= self.scale:
            return x
        return np.maximum(x, np.where(costs > self.limit, np.nextafter(self.limit / self.scale, 1.0), 0.0))

    def evaluate(self, costs: npt.ArrayLike) -> "SteinResult":
        """Return the certificate of episode costs, shape (n,), in any order."""
        costs = check_costs(costs)
        n = costs.size
        x = self.normalize(costs)
        inside = (x > self.atom_tol) & (x < 1.0 - self.atom_tol)
        m = int(np.count_nonzero(inside))
        ones = int(np.count_nonzero(x >= 1.0 - self.atom_tol))
        zero_mass, one_mass, interior_mass = (n - m - ones) / n, ones / n, m / n
        empirical_risk = float(np.add.reduce(np.asarray(self.risk_function(x), dtype=np.float64))) / n

        discrepancy = self._ksd(x[inside])
        weight = interior_mass if self.interior_weighted else 1.0
        excess_mass = max(one_mass - self.one_mass, 0.0)
        discrete = max(self.zero_mass - zero_mass, 0.0) + excess_mass
        discrete_term = self.discrete_weight * discrete
        interior_term = self.factor * weight * discrepancy
        bound = stein_bound = self.reference_risk + discrete_term + interior_term

        value, quantile = bound, None
        decided_by: DecidedBy = "bound"
        if self.guard and excess_mass <= _NO_EXCESS and empirical_risk <= self.reference_risk:
            bound = value = empirical_risk
            decided_by = "guard"
        elif self.noise_level is not None:
            assert self.base_kernel is not None  # checked in __post_init__
            parts = (self.interior, self.base_kernel, self.operator)
            enough = m >= self.min_interior
            quantile = null_quantile(*parts, m, self.noise_level, self.interior_clip) if enough else 0.0
            rest = self.factor * weight * max(discrepancy - quantile, 0.0)
            value, decided_by = self.reference_risk + discrete_term + rest, "noise_corrected"
            if value < empirical_risk:
                value, decided_by = empirical_risk, "mean_risk"
        return SteinResult(
            bound=bound,
            decision_value=value,
            decided_by=decided_by,
            reference_risk=self.reference_risk,
            discrete_term=discrete_term,
            interior_term=interior_term,
            stein_bound=stein_bound,
            empirical_risk=empirical_risk,
            discrete_discrepancy=discrete,
            interior_discrepancy=discrepancy,
            null_quantile=quantile,
            episodes=n,
            interior_episodes=m,
            zero_mass=zero_mass,
            one_mass=one_mass,
            interior_mass=interior_mass,
            violations=int(np.count_nonzero(costs > self.limit)),
            certificate=self,
        )

    def _ksd(self, points: Costs) -> float:
        """KSD of the normalized costs between the atoms."""
        if points.size < self.min_interior:
            return 0.0
        if self.atom_tol < self.interior_clip:
            points = np.clip(points, self.interior_clip, 1.0 - self.interior_clip)
        kernel = self.base_kernel or Kernel(self.kernel, released_length(points, self.min_bandwidth))
        return ksd(points, self.interior, kernel, self.operator)


@dataclass(frozen=True)
class SteinResult:
    """Result of ``SteinCertificate.evaluate``; ``str(result)`` is the decision in words.

    Attributes
    ----------
    bound : U, or the mean risk of the episodes if the guard applies
    decision_value : number that is compared with the budget: ``bound``, or U after the noise correction
    decided_by : where ``decision_value`` comes from: ``bound``, ``guard``, ``noise_corrected``, or ``mean_risk`` where
        the noise correction would go below the mean risk
    reference_risk, discrete_term, interior_term, stein_bound : h_ref, lambda_disc SD_disc, lambda_int w SD_int, and
        their sum U
    empirical_risk : mean risk of the episodes
    discrete_discrepancy, interior_discrepancy : SD_disc and SD_int
    null_quantile : KSD of samples of the reference that the noise correction subtracts, or ``None``
    episodes, interior_episodes : number of episodes, and of those between the atoms
    zero_mass, one_mass, interior_mass : fractions a0, a1 and w of the episodes
    violations : number of episodes with cost > limit
    """

    bound: float
    decision_value: float
    decided_by: DecidedBy
    reference_risk: float
    discrete_term: float
    interior_term: float
    stein_bound: float
    empirical_risk: float
    discrete_discrepancy: float
    interior_discrepancy: float
    null_quantile: float | None
    episodes: int
    interior_episodes: int
    zero_mass: float
    one_mass: float
    interior_mass: float
    violations: int
    certificate: SteinCertificate = field(repr=False)

    @property
    def budget(self) -> float:
        """Largest accepted risk."""
        return self.certificate.budget

    @property
    def is_open(self) -> bool:
        """Whether the gate is open: ``decision_value <= budget``."""
        return self.decision_value <= self.budget

    @property
    def guarded(self) -> bool:
        """Whether the guard replaced U."""
        return self.decided_by == "guard"

    @property
    def blocked_by(self) -> BlockedBy | None:
        """What keeps the gate closed, or ``None`` if it is open."""
        if self.is_open:
            return None
        if self.decided_by == "mean_risk":
            return "atoms" if self.one_mass >= 0.5 * self.empirical_risk else "interior"
        atoms, interior = self.discrete_term, self.decision_value - self.reference_risk - self.discrete_term
        if not self.certificate.attainable:  # only the guard could have opened the gate: what stopped it?
            if atoms > 0.0:
                return "atoms"
            return "interior" if self.empirical_risk > self.budget else "reference"
        return "atoms" if atoms >= interior else "interior"

    @property
    def advice(self) -> str:
        """Why the gate is closed and what to do, or what an open gate does not say."""
        if self.blocked_by == "atoms":
            return (
                f"{rate(self.one_mass)} of the episodes cost {number(self.certificate.scale)} or more and "
                f"{rate(self.zero_mass)} cost nothing: lower the cost, or set zero_mass and one_mass."
            )
        if self.blocked_by == "reference":
            return (
                f"The risk of the reference, {self.reference_risk:.4g}, is above the budget: choose a safer "
                "reference or a larger budget."
            )
        if self.blocked_by == "interior":
            risk = f"The mean risk of the episodes is {self.empirical_risk:.4g}"
            if self.empirical_risk > self.budget:
                return f"{risk}: lower the cost."
            return f"{risk}, but their costs differ from the reference: choose a closer one, or run more."
        if self.violations > self.budget * self.episodes:
            share = f"{rate(self.violations / self.episodes)} of the episodes"
            return f"But {share} cost more than {number(self.certificate.limit)}: the risk function is soft."
        return "This is a test of these episodes, not a bound for the policy; use certify for that."

    def __str__(self) -> str:
        state, sign = ("Open", "at most") if self.is_open else ("Closed", "above")
        value = {
            "bound": "U",
            "guard": "guard: mean risk",
            "noise_corrected": f"U = {self.bound:.4g}, after noise correction",
            "mean_risk": f"U = {self.bound:.4g}, mean risk",
        }[self.decided_by]
        decision = f"{value} {self.decision_value:.4g}, {sign} the budget {self.budget:g}"
        return f"{state} for {count(self.episodes)} ({decision}). {self.advice}"

    def to_dict(self) -> dict[str, Any]:
        """Return all numbers and texts as JSON types."""
        names = [item.name for item in fields(self) if item.name != "certificate"]
        names += ["is_open", "budget", "blocked_by", "advice"]
        certificate = self.certificate
        return {
            "certificate": certificate.name,
            "limit": certificate.limit,
            "scale": certificate.scale,
            **{name: getattr(self, name) for name in names},
            "bounds_sample_risk": certificate.bounds_sample_risk,
        }
