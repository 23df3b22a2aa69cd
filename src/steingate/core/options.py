"""The certificate's options: which values each may take, checked when a certificate is made."""

from math import inf, isfinite
from typing import TYPE_CHECKING, Literal, get_args

import numpy as np

from steingate.core.kernels import KernelName
from steingate.core.presets import listed
from steingate.core.risk import check_risk
from steingate.core.stein import Operator, Statistic
from steingate.errors import InputError

if TYPE_CHECKING:
    from steingate.core.certificate import Certificate

Guard = Literal["none", "paper", "released"]
Rule = Literal["bound", "excess", "confident"]
InteriorStatistic = Literal["ksd", "ksd_squared"]

_RANGES: dict[str, tuple[float, float, str]] = {
    # name: lowest, highest, and the brackets of the interval
    "limit": (0.0, inf, "()"),
    "budget": (0.0, 1.0, "()"),
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
    "delta": (0.0, 1.0, "()"),
    "stein_share": (0.0, 1.0, "()"),
}
NUMBERS = (*(name for name in _RANGES if name != "min_interior"), "kernel_length", "stein_factor")
_DENSITY = ("log_pdf", "score", "sample")
_CHOICES: dict[str, tuple[str, ...]] = {
    "kernel": get_args(KernelName),
    "operator": get_args(Operator),
    "statistic": get_args(Statistic),
    "interior_statistic": get_args(InteriorStatistic),
    "guard": get_args(Guard),
    "decision": get_args(Rule),
}


def check_options(certificate: "Certificate") -> None:
    """Raise an ``InputError`` that names the first option with an unusable value."""
    for name, (low, high, brackets) in _RANGES.items():
        _check_number(name, getattr(certificate, name), low, high, brackets)
    for name in ("kernel_length", "stein_factor"):
        value = getattr(certificate, name)
        if value is not None:
            _check_number(name, value, 0.0, inf, "[)" if name == "stein_factor" else "()")
    for name, choices in _CHOICES.items():
        if getattr(certificate, name) not in choices:
            raise InputError(f"{name} is {getattr(certificate, name)!r}; choose {listed(choices)}.")
    if certificate.zero_mass + certificate.one_mass > 1.0:
        raise InputError(
            f"The atoms zero_mass {certificate.zero_mass:g} and one_mass {certificate.one_mass:g} "
            f"add up to more than 1."
        )
    if certificate.decision == "excess" and certificate.kernel_length is None:
        raise InputError("The decision rule 'excess' needs a fixed kernel: give kernel_length.")
    if certificate.decision == "excess" and certificate.statistic == "U":
        raise InputError(
            "The decision rule 'excess' knows the noise of the V-statistic only: use statistic 'V'."
        )
    if not 0.0 < certificate.limit * certificate.scale_multiplier < inf:
        raise InputError(
            f"limit {certificate.limit!r} times scale_multiplier is out of range; rescale the costs."
        )
    reference = certificate.reference
    if reference is not None and not all(callable(getattr(reference, name, None)) for name in _DENSITY):
        raise InputError(f"reference is {reference!r}; give Beta(a, b), LogitNormal(mu, sigma) or a Density.")
    check_risk(certificate.risk)


def _check_number(name: str, value: object, low: float, high: float, brackets: str) -> None:
    real = isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)
    number = float(value) if real else float("nan")  # type: ignore[arg-type]
    above = number >= low if brackets[0] == "[" else number > low
    below = number <= high if brackets[1] == "]" else number < high
    if not (isfinite(number) and above and below):
        wanted = f"{brackets[0]}{low:g}, {high:g}{brackets[1]}"
        raise InputError(f"{name} is {value!r}; give a number in {wanted}.")
