"""Gates on the tail of the cost: its conditional mean (CVaR) and a fitted extreme value (EVO)."""

import warnings
from dataclasses import dataclass, replace
from math import isfinite
from typing import Any, Literal, TypeVar

import numpy as np

from steingate.certificates.risk import Risk
from steingate.errors import InputError, require_between, require_positive
from steingate.gates.base import (
    Array,
    Decision,
    Episodes,
    Gate,
    Mode,
    Recent,
    Ruling,
    following,
    gate_log,
    no_costs,
)

S = TypeVar("S")


def cvar(costs: Array, tail: float) -> tuple[float, float]:
    """Return the mean of the worst ``tail`` share of the costs, and the cost at which that share begins.

    CVaR = min over u of u + E[(C - u)+] / tail; the smallest (1 - tail)-quantile is a minimizer.
    """
    level = float(np.quantile(costs, 1.0 - tail, method="inverted_cdf"))
    return level + float(np.mean(np.maximum(costs - level, 0.0))) / tail, level


def cvar_gate(limit: float, tail: float = 0.1, window: int = 100) -> Gate[Recent]:
    """Return the gate that always balances: slack = ``limit`` - the CVaR of ``window`` episodes.

    ``Decision.level`` is where the tail begins, so that a step can lower what exceeds it. An epoch without a
    finished episode keeps the episodes of the epochs before; before the first finished episode nothing is
    known, so the gate recovers.
    """
    if not 0.0 < tail <= 1.0:
        raise InputError(f"The tail is {tail!r}: give the share of worst episodes, above 0 and at most 1.")

    def decide(state: Recent, episodes: Episodes) -> Ruling[Recent]:
        costs = following(state.costs, episodes.cost, window)
        known = len(costs) > 0
        value, level = cvar(costs, tail) if known else (limit, 0.0)
        mode = Mode.BALANCE if known else Mode.RECOVER
        log = gate_log(mode, episodes, cvar=value, level=level)
        return Ruling(Decision(mode, limit - value, level=level), Recent(costs), log)

    return Gate(no_costs, decide)


def risk_slack(gate: Gate[S], risk: Risk, scale: float, budget: float) -> Gate[S]:
    """Return ``gate`` with the slack ``budget`` - the mean risk of this epoch's episodes.

    For steps whose cost is the risk of the episode cost divided by ``scale``; 0 without an episode.
    """

    def decide(state: S, episodes: Episodes) -> Ruling[S]:
        found = gate.decide(state, episodes)
        slack = 0.0
        if len(episodes.cost):
            slack = budget - float(np.mean(risk(np.clip(episodes.cost / scale, 0.0, 1.0))))
        return found._replace(decision=found.decision._replace(slack=slack))

    return Gate(gate.init, decide)


@dataclass(frozen=True)
class ExtremeValue:
    """How the extreme value of the cost is found.

    The last four say where the published code differs; None takes the variant's own.
    """

    capacity: int = 50  # episodes remembered
    percentile: float = 95.0  # above it the tail is fitted
    quantile: float = 0.5  # of the fitted excess
    clamp: Literal["ratio", "log_ratio"] | None = None  # what [0.8, 1.2] bounds
    count_twice: bool | None = None  # add the percentile once more
    free_location: bool | None = None  # fit the location too, instead of starting the excess at 0
    quiet_is_safe: bool | None = None  # an epoch of episodes without cost, or of none, has the value 0

    def __post_init__(self) -> None:
        require_positive(self, "capacity")
        require_between(self, 0.0, 100.0, "percentile")
        require_between(self, 0.0, 1.0, "quantile")
        if self.clamp not in ("ratio", "log_ratio", None):
            raise InputError(f"clamp {self.clamp!r} is not known: use ratio or log_ratio.")

    def resolved(self, published: bool = False) -> "ExtremeValue":
        """Return the same with what is open decided as the variant does."""
        own: dict[str, Any] = {
            "clamp": "log_ratio" if published else "ratio",
            "count_twice": published,
            "free_location": published,
            "quiet_is_safe": published,
        }
        return replace(self, **{name: value for name, value in own.items() if getattr(self, name) is None})


def pareto_quantile(
    sample: Array, percentile: float, quantile: float, free_location: bool | None
) -> tuple[float, bool]:
    """Return percentile + quantile of a Pareto distribution fitted to what exceeds it, and if a fit was made.

    Where the fit fails (fewer than two different excesses, or one that does not converge to a number) the
    same quantile of the excesses themselves takes its place.
    """
    from scipy.stats import FitError, genpareto  # half a second to import, and few gates need it

    threshold = float(np.percentile(sample, percentile))
    excess = sample[sample > threshold] - threshold
    if len(excess) == 0:
        return threshold, True
    if len(np.unique(excess)) > 1:
        fixed: dict[str, Any] = {} if free_location else {"floc": 0.0}
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore", RuntimeWarning)
            try:
                value = float(genpareto.ppf(quantile, *genpareto.fit(excess, **fixed)))
            except (FitError, FloatingPointError, ValueError):
                value = np.nan
        if isfinite(value) and value >= 0.0:
            return threshold + value, True
    return threshold + float(np.quantile(excess, quantile)), False


def episode_weights(log_ratio: Array, clamp: str | None) -> Array:
    """Return how much remembered episodes count: likelihood ratios, or as published their logs, clamped."""
    if clamp == "ratio":
        return np.asarray(np.clip(np.exp(np.minimum(log_ratio, 1.0)), 0.8, 1.2))
    return np.asarray(np.exp(np.clip(log_ratio, 0.8, 1.2)))


def extreme_value(costs: Array, log_ratio: Array, cfg: ExtremeValue) -> tuple[float, bool]:
    """Return the extreme value of remembered episode costs, and whether the fit was made.

    Episodes count by how likely the current policy makes them, rounded to about ten thousand copies in all.
    """
    cfg = cfg.resolved()
    weight = episode_weights(log_ratio, cfg.clamp)
    copies = (weight / weight.sum() * 1e4).astype(np.int64)
    sample = np.repeat(costs, copies)
    value, fitted = pareto_quantile(sample, cfg.percentile, cfg.quantile, cfg.free_location)
    return value + float(np.percentile(sample, cfg.percentile)) * bool(cfg.count_twice), fitted


def extreme_value_gate(limit: float, cfg: ExtremeValue | None = None) -> Gate[Recent]:
    """Return the gate that always balances: slack = ``limit`` - the extreme value of remembered episodes.

    Without any episode, now or before, the gate recovers. ``gate/fit_failed`` is 1 in the log of an epoch in
    which the Pareto fit failed and the excesses themselves were used.
    """
    settings = (cfg or ExtremeValue()).resolved()

    def decide(state: Recent, episodes: Episodes) -> Ruling[Recent]:
        costs = following(state.costs, episodes.cost, settings.capacity)
        quiet = settings.quiet_is_safe and not np.any(episodes.cost)
        value, fitted, mode = 0.0, True, Mode.BALANCE
        if len(costs) and not quiet:
            given = episodes.log_ratio
            log_ratio = np.zeros(len(costs)) if given is None else given
            value, fitted = extreme_value(costs, log_ratio, settings)
        elif not quiet:
            value, mode = limit, Mode.RECOVER
        log = gate_log(mode, episodes, extreme_cost=value, fit_failed=float(not fitted))
        return Ruling(Decision(mode, limit - value), Recent(costs), log)

    return Gate(no_costs, decide)
