"""A risk bound that holds with a chosen probability: the smaller of a Stein bound and a direct bound.

For independent episodes with cost distribution q, write a0 and a1 for the masses of the two atoms, and let
every interior episode have risk at most ci on average. Then E_q[h] <= c0 a0 + c1 a1 + ci (1 - a0 - a1), with
c0 = h(zero_tol) and c1 = h(1). Given their number m, the interior episodes are independent draws from the
interior part of q, so conditionally on every m

    ci <= E_p[h] + factor (KSD + radius(m))

holds with probability 1 - d, hence also without conditioning. Clopper-Pearson bounds on a0 (from below) and
a1 (from above) complete the Stein half, each with the same d; the direct half bounds the mean of h over all
episodes. A union bound joins them. How ``delta`` is split depends on n, budget and delta alone; the direct
half, which needs fewer episodes, gets nearly all of it.
"""

from dataclasses import dataclass
from math import exp, inf, isfinite, log, log1p

import numpy as np
import numpy.typing as npt

from steingate.core.bounds import (
    betting_within,
    clopper_pearson_lower,
    clopper_pearson_upper,
    direct_upper,
    embedding_radius,
)
from steingate.core.kernels import Kernel
from steingate.core.reference import HybridReference, Interior
from steingate.core.result import DecidedBy
from steingate.core.risk import Exceedance, Risk
from steingate.core.stein import Operator, stein_kernel_bound

Array = npt.NDArray[np.float64]

_COUNTABLE = 1e15  # episodes that floating point still tells apart


@dataclass(frozen=True)
class ConfidenceBounds:
    """Both halves of the bound; ``stein_upper`` is ``None`` when there is no valid Stein half."""

    direct_upper: float
    stein_upper: float | None

    @property
    def bound(self) -> float:
        """The smaller of the two."""
        return self.direct_upper if self.stein_upper is None else min(self.direct_upper, self.stein_upper)

    @property
    def decided_by(self) -> DecidedBy:
        """Which half is the smaller."""
        return "direct_confidence" if self.bound == self.direct_upper else "stein_confidence"


@dataclass(frozen=True)
class ConfidenceRule:
    """What the bound needs to know of a certificate, computed once."""

    kernel_bound: float  # M_u; inf switches the Stein half off
    interior_risk: float  # E_p[h] of the interior reference, plus what clipping at the upper end may hide
    zero_risk: float
    one_risk: float
    binary: bool  # the risk is 0 or 1, so the exact binomial bound applies
    budget: float
    delta: float
    stein_share: float

    @classmethod
    def build(
        cls,
        *,
        interior: Interior,
        risk: Risk,
        kernel: Kernel | None,
        operator: Operator,
        zero_tol: float,
        one_tol: float,
        clip: float,
        budget: float,
        delta: float,
        stein_share: float,
    ) -> "ConfidenceRule":
        """Return the rule of one configuration; ``kernel=None`` gives the direct half all of ``delta``."""
        kernel_bound = inf if kernel is None else stein_kernel_bound(interior, kernel, operator, clip)
        ends = np.asarray(risk(np.array([zero_tol, 1.0 - clip, 1.0])), dtype=np.float64)
        hidden = float(ends[2] - ends[1]) if one_tol < clip else 0.0
        return cls(
            kernel_bound=kernel_bound,
            interior_risk=HybridReference(interior).expectation(risk) + hidden,
            zero_risk=float(ends[0]),
            one_risk=float(ends[2]),
            binary=isinstance(risk, Exceedance),
            budget=budget,
            delta=delta,
            stein_share=stein_share if isfinite(kernel_bound) else 0.0,
        )

    def bounds(self, risks: Array, zeros: int, ones: int, ksd: float, factor: float) -> ConfidenceBounds:
        """Return both bounds for episodes with these risks, atom counts and interior discrepancy."""
        n = risks.size
        direct_delta, stein_delta = self._split(n)
        direct = min(direct_upper(risks, direct_delta, binary=self.binary), self.one_risk)
        if stein_delta <= 0.0:
            return ConfidenceBounds(direct, None)
        m = n - zeros - ones
        interior = self.one_risk
        if m > 0:
            radius = embedding_radius(self.kernel_bound, m, stein_delta / 3.0)
            interior = min(self.interior_risk + factor * (ksd + radius), self.one_risk)
        interior = max(interior, self.zero_risk)
        zero_mass = clopper_pearson_lower(zeros, n, stein_delta / 3.0)
        one_mass = clopper_pearson_upper(ones, n, stein_delta / 3.0)
        stein = interior + (self.one_risk - interior) * one_mass - (interior - self.zero_risk) * zero_mass
        return ConfidenceBounds(direct, stein)

    def more_episodes(self, risks: Array, bound: float) -> int | None:
        """Return how many further episodes of no risk bring the direct bound within the budget, 0 if it is.

        ``None`` when they are more than 1e15, too many to count.
        """
        if bound <= self.budget:
            return 0
        n, hits = risks.size, int(risks.sum()) if self.binary else 0

        def holds(extra: int) -> bool:
            delta = self._split(n + extra)[0]
            if self.binary:
                return clopper_pearson_upper(hits, n + extra, delta) <= self.budget
            return betting_within(risks, extra, delta, self.budget)

        # No bound lies below the mean, nor below what as many episodes without any risk would give.
        fewest = max(float(risks.sum()) / self.budget, log(self.delta) / log1p(-self.budget))
        if fewest > _COUNTABLE:
            return None
        low = max(int(fewest) - n, 0)
        reach = max(4, int(0.1 * fewest))
        while not holds(low + reach):
            low, reach = low + reach, 2 * reach
            if low > _COUNTABLE:
                return None
        high = low + reach
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if holds(middle) else (middle, high)
        return high

    def _split(self, n: int) -> tuple[float, float]:
        """Return the error probabilities of the direct half and of the Stein half; they depend on n alone.

        The Stein half takes its share, but at most half of what the direct one can spare where it still
        certifies the budget from n episodes without risk.
        """
        if self.stein_share == 0.0:
            return self.delta, 0.0
        clean = exp(n * log1p(-self.budget))
        spare = self.delta - clean if clean < self.delta else self.delta
        stein = min(self.stein_share * self.delta, 0.5 * spare)
        return self.delta - stein, stein
