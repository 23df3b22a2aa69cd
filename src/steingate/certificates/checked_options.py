"""The certificate's options: which values each may take, checked when a certificate is made."""

from math import inf, isfinite
from typing import TYPE_CHECKING, Literal, get_args

import numpy as np

from steingate.certificates.checks import is_real
from steingate.certificates.kernels import KernelName, Operator
from steingate.certificates.plan import SMALLEST
from steingate.certificates.presets import listed
from steingate.certificates.risk import check_risk
from steingate.errors import InputError

if TYPE_CHECKING:
    from steingate.certificates.certificate import Certificate

Guard = Literal["none", "paper", "released"]
Rule = Literal["bound", "excess", "confident"]
InteriorStatistic = Literal["ksd", "ksd_squared"]

_RANGES: dict[str, tuple[float, float, str]] = {
    # name: lowest, highest, and the brackets of the interval
    "limit": (0.0, inf, "[)"),
    "budget": (SMALLEST, 1.0, "[)"),
    "scale_multiplier": (0.0, inf, "()"),
    "zero_mass": (0.0, 1.0, "[]"),
    "one_mass": (0.0, 1.0, "[]"),
    "zero_tol": (0.0, 0.5, "[)"),
    "one_tol": (0.0, 0.5, "[)"),
    "interior_clip": (0.0, 0.5, "()"),
    "min_interior": (1, inf, "[)"),
    "min_bandwidth": (0.0, inf, "()"),
    "discrete_weight": (0.0, inf, "[)"),
    "guard_slack": (-1.0, 1.0, "[]"),
    "alpha": (0.0, 1.0, "()"),
    "delta": (SMALLEST, 1.0, "[)"),
}
NUMBERS = (
    *(name for name in _RANGES if name != "min_interior"),
    "cost_scale",
    "kernel_length",
    "stein_factor",
)
_DENSITY = ("log_pdf", "pdf", "score", "logit_score", "logit_log_pdf", "sample")
_CHOICES: dict[str, tuple[str, ...]] = {
    "kernel": get_args(KernelName),
    "operator": get_args(Operator),
    "interior_statistic": get_args(InteriorStatistic),
    "guard": get_args(Guard),
    "decision": get_args(Rule),
}


def check_options(certificate: "Certificate") -> None:
    """Raise an ``InputError`` that names the first option with an unusable value."""
    for name, (low, high, brackets) in _RANGES.items():
        _check_number(name, getattr(certificate, name), low, high, brackets)
    for name in ("cost_scale", "kernel_length", "stein_factor"):
        value = getattr(certificate, name)
        if value is not None:
            _check_number(name, value, 0.0, inf, "[)" if name == "stein_factor" else "()")
    for name, choices in _CHOICES.items():
        value = getattr(certificate, name)
        if not isinstance(value, str) or value not in choices:
            raise InputError(f"{name} is {value!r}; choose {listed(choices)}.")
    if not isinstance(certificate.min_interior, int | np.integer):
        raise InputError(f"min_interior is {certificate.min_interior!r}; give a whole number.")
    if not isinstance(certificate.interior_weighted, bool | np.bool_):
        raise InputError(f"interior_weighted is {certificate.interior_weighted!r}; give True or False.")
    if certificate.zero_mass + certificate.one_mass > 1.0:
        raise InputError(
            f"The atoms zero_mass {certificate.zero_mass:g} and one_mass {certificate.one_mass:g} "
            f"add up to more than 1."
        )
    if certificate.decision == "confident" and certificate.guard != "none":
        raise InputError(
            f"The decision rule 'confident' has no use for guard {certificate.guard!r}: give guard='none'."
        )
    if certificate.decision == "excess" and certificate.kernel_length is None:
        raise InputError("The decision rule 'excess' needs a fixed kernel: give kernel_length.")
    product = certificate.limit * certificate.scale_multiplier
    if certificate.cost_scale is None and certificate.limit > 0.0 and not 0.0 < product < inf:
        raise InputError(
            f"limit {certificate.limit!r} times scale_multiplier is out of range; rescale the costs."
        )
    reference = certificate.reference
    if reference is not None and not _is_density(reference):
        raise InputError(
            f"reference is {reference!r}; write Beta(a, b) or LogitNormal(mu, sigma), or give a Density."
        )
    check_risk(certificate.risk)


def _is_density(value: object) -> bool:
    methods = all(callable(getattr(value, name, None)) for name in _DENSITY)
    return methods and hasattr(value, "logit_range") and not isinstance(value, type)


def _check_number(name: str, value: object, low: float, high: float, brackets: str) -> None:
    number = float(value) if is_real(value) else float("nan")  # type: ignore[arg-type]
    above = number >= low if brackets[0] == "[" else number > low
    below = number <= high if brackets[1] == "]" else number < high
    if not (isfinite(number) and above and below):
        wanted = f"{brackets[0]}{low:g}, {high:g}{brackets[1]}"
        raise InputError(f"{name} is {value!r}; give a number in {wanted}.")
