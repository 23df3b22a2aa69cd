"""The four named configurations of the certificate, and the overrides that may change them."""

from collections.abc import Iterable
from functools import lru_cache
from typing import Any

from scipy.optimize import brentq

from steingate.certificates.checks import hashable, is_real
from steingate.certificates.kernels import Kernel
from steingate.certificates.reference import Beta, HybridReference
from steingate.certificates.risk import Exceedance, Risk, Sigmoid
from steingate.certificates.text_forms import from_plain
from steingate.errors import InputError, nearest

OVER_LIMIT = "exceedance"  # without a threshold: of the limit, wherever that is on the scale

_PUBLISHED: dict[str, Any] = {
    "reference": Beta(2.0, 5.0),
    "kernel": "rbf",
    "kernel_length": None,
    "operator": "langevin",
    "stein_factor": 0.10,
    "min_interior": 2,
    "decision": "bound",
}
_OURS: dict[str, Any] = {
    "scale_multiplier": 2.0,
    "reference": None,
    "zero_tol": 1e-4,
    "one_tol": 1e-4,
    "kernel": "matern52",
    "kernel_length": 0.2,
    "operator": "weighted",
    "interior_weighted": True,
    "stein_factor": None,
    "min_interior": 1,
    "guard": "none",
}

PRESETS: dict[str, dict[str, Any]] = {
    "paper": {
        **_PUBLISHED,
        "scale_multiplier": 1.0,
        "zero_tol": 0.0,
        "one_tol": 0.0,
        "interior_weighted": False,
        "guard": "paper",
    },
    "released": {
        **_PUBLISHED,
        "scale_multiplier": 2.0,
        "zero_tol": 1e-4,
        "one_tol": 1e-4,
        "interior_weighted": True,
        "guard": "released",
    },
    "certified": {**_OURS, "decision": "excess"},
    # At most so many episodes over the limit: what people mean by a certificate, and exact (Clopper-Pearson).
    "confident": {**_OURS, "decision": "confident", "risk": OVER_LIMIT},
}

_SHORTCUTS = ("risk_threshold", "risk_width")


def limit_share(limit: float, scale_multiplier: float, cost_scale: float | None) -> float:
    """Return where the limit is on the scale of normalized costs."""
    if cost_scale is not None:
        return limit / cost_scale
    return 1.0 / scale_multiplier if limit > 0.0 else 0.0


def preset_fields(name: str, limit: float, overrides: dict[str, Any], known: Iterable[str]) -> dict[str, Any]:
    """Return the certificate's fields for a preset with overrides applied.

    Parameters
    ----------
    name
        ``paper``, ``released``, ``certified`` or ``confident``.
    limit
        The cost limit, which the risk ``exceedance`` counts by.
    overrides
        Any field of the certificate, or ``risk_threshold`` and ``risk_width``. With a width the risk is a
        sigmoid; a threshold alone moves that of the preset's own risk. Texts mean what ``core.text_forms``
        says, ``kernel`` may be a ``Kernel``, ``reference`` a ``HybridReference``, and ``guard`` a bool.
    known
        The names of the fields.
    """
    if not isinstance(name, str) or name not in PRESETS:
        raise InputError(f"There is no preset {name!r}; choose {listed(PRESETS)}.")
    allowed = [*known, *_SHORTCUTS]
    for key in overrides:
        if key not in allowed:
            hint = nearest(key, allowed) or f"; it has {', '.join(allowed)}"
            raise InputError(f"A certificate has no option {key!r}{hint}.")
    over_limit = overrides.get("risk") == OVER_LIMIT
    overrides = {key: from_plain(value) for key, value in overrides.items()}
    values = {**PRESETS[name], **overrides, "preset_name": name}
    if any(key in values for key in _SHORTCUTS):
        if "risk" in overrides:
            raise InputError("Give either risk or risk_threshold and risk_width, not both.")
        values["risk"] = _shifted(values)
    elif over_limit or values.get("risk") == OVER_LIMIT:
        values["risk"] = _over_limit(limit, values)
    if isinstance(values["kernel"], Kernel):
        if "kernel_length" in overrides:
            raise InputError("Give the length either in the Kernel or as kernel_length, not both.")
        values["kernel"], values["kernel_length"] = values["kernel"].name, values["kernel"].length
    if isinstance(values["reference"], HybridReference):
        if "zero_mass" in overrides or "one_mass" in overrides:
            raise InputError("Give the atoms either in the HybridReference or as masses, not both.")
        hybrid = values["reference"]
        values |= {"reference": hybrid.interior, "zero_mass": hybrid.zero_mass, "one_mass": hybrid.one_mass}
    if values["guard"] is None or isinstance(values["guard"], bool):
        values["guard"] = "released" if values["guard"] else "none"
    return values


def _shifted(values: dict[str, Any]) -> Risk:
    """Return the risk that the shortcuts ask for, and take them out of ``values``."""
    given = {key.removeprefix("risk_"): values.pop(key) for key in _SHORTCUTS if key in values}
    hard = values.get("risk") == OVER_LIMIT and "width" not in given
    return Exceedance(**given) if hard else Sigmoid(**given)


def _over_limit(limit: float, values: dict[str, Any]) -> Exceedance:
    """Return the risk that is 1 over the limit; values that are out of range are told of later."""
    multiplier, scale = values["scale_multiplier"], values.get("cost_scale")
    given: list[Any] = [multiplier] if scale is None else [multiplier, scale]
    if not (is_real(limit) and all(is_real(value) and value > 0.0 for value in given)):
        return Exceedance()
    share = limit_share(limit, multiplier, scale)
    if share >= 1.0:
        raise InputError(
            f"The risk exceedance counts episodes over the limit {limit:g}, but costs are cut there: "
            "give scale_multiplier 2, or a larger cost_scale."
        )
    return Exceedance(max(share, 0.0))


def half_budget_reference(budget: float, risk: Risk, zero_mass: float, one_mass: float) -> Beta:
    """Return the Beta(2, b) whose hybrid reference has risk ``budget / 2``."""
    solve = _cached_shape if hashable(risk) else _half_budget_shape
    return Beta(2.0, solve(budget, risk, zero_mass, one_mass))


@lru_cache(maxsize=256)
def _cached_shape(budget: float, risk: Risk, zero_mass: float, one_mass: float) -> float:
    return _half_budget_shape(budget, risk, zero_mass, one_mass)


def _half_budget_shape(budget: float, risk: Risk, zero_mass: float, one_mass: float) -> float:
    def gap(shape: float) -> float:
        return HybridReference(Beta(2.0, shape), zero_mass, one_mass).expectation(risk) - budget / 2.0

    low, high = 1.05, 2000.0
    if not gap(low) >= 0.0 >= gap(high):
        raise InputError(
            f"No Beta(2, b) reference has half of the budget {budget:g} as its risk with this risk function "
            f"and atoms of {zero_mass:g} and {one_mass:g}; give reference=Beta(a, b) yourself."
        )
    return float(brentq(gap, low, high, xtol=1e-12, rtol=1e-14))


def listed(names: Iterable[str]) -> str:
    """Return names as ``a, b or c``."""
    *head, last = names
    return f"{', '.join(head)} or {last}" if head else last
