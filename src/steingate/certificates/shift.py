"""The shift radius: how much the distribution of the episodes may change with the risk still certified."""

from math import log, log1p
from typing import NamedTuple

from steingate.errors import InputError


class ShiftRadius(NamedTuple):
    """Largest change from the distribution P of the tested episodes to Q for which Q(cost > limit) <= risk.

    Attributes
    ----------
    total_variation : largest difference between the probabilities of any event under P and Q
    density_ratio : largest factor dQ/dP by which any event becomes more likely
    kl_divergence, chi_squared : KL(Q | P) in nats, and the chi-squared divergence, the mean of (dQ/dP - 1)^2 under P
    """

    total_variation: float
    density_ratio: float
    kl_divergence: float
    chi_squared: float


def shift_radius(bound: float, risk: float) -> ShiftRadius:
    """Return the shifts that an upper bound u <= B = risk on P(cost > limit) survives.

    B - u, B / u, kl(B, u) = B log(B / u) + (1 - B) log((1 - B) / (1 - u)), (B - u)^2 / (u (1 - u)). Each is sharp: by
    the data processing inequality only the two events cost > limit and cost <= limit matter, and a larger shift of
    their probabilities (u, 1 - u) reaches B.

    >>> [round(value, 3) for value in shift_radius(0.0099362, 0.1)]
    [0.09, 10.064, 0.145, 0.825]
    """
    if not 0.0 < bound <= risk < 1.0:
        raise InputError(f"The bound {bound!r} and the risk {risk!r} do not satisfy 0 < bound <= risk < 1.")
    kl = risk * log(risk / bound) + (1.0 - risk) * log1p((bound - risk) / (1.0 - bound))
    return ShiftRadius(risk - bound, risk / bound, max(kl, 0.0), (risk - bound) ** 2 / (bound * (1.0 - bound)))
