"""The hybrid reference of a run's certificate as a curve, and episode costs as bars over it."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from steingate.certificates.certificate import Certificate
from steingate.errors import SteingateError
from steingate.report.loading import Run, setting

Array = npt.NDArray[np.float64]
Counts = npt.NDArray[np.int64]
BINS = 40  # between the atoms
POINTS = 81


@dataclass(frozen=True)
class Reference:
    """A hybrid reference in units of cost.

    Attributes
    ----------
    name
        The density and the preset it belongs to; empty when the certificate cannot be built.
    scale
        The cost that maps to 1.
    zero_tol, one_tol
        How near to the ends, as shares of the scale, a cost belongs to an atom.
    zero_mass, one_mass
        The reference's atoms.
    density
        Mass per bin width at evenly spaced costs from 0 to ``scale``, so that it lies over shares of
        episodes.
    """

    name: str
    scale: float
    zero_tol: float
    one_tol: float
    zero_mass: float
    one_mass: float
    density: Array


def run_reference(run: Run) -> Reference:
    """Return the reference of a run's certificate; without one, bare axes of twice the limit."""
    preset, overrides = setting(run, "preset", "released"), setting(run, "certificate", {})
    try:
        certificate = Certificate.preset(str(preset), run.limit, **_options(overrides))
    except (SteingateError, TypeError, ValueError):
        # A configuration from another version, or damaged: the costs can be shown all the same.
        return Reference("", 2.0 * run.limit, 1e-4, 1e-4, 0.0, 0.0, np.zeros(0))
    grid = np.linspace(0.0, 1.0, POINTS)
    mass = 1.0 - certificate.zero_mass - certificate.one_mass
    # A density that is infinite at an end is drawn up to a little before it.
    density = mass * certificate.interior.pdf(np.clip(grid, 2e-3, 1.0 - 2e-3)) / BINS
    return Reference(
        f"{certificate.reference_name}, preset {preset}",
        certificate.scale,
        certificate.zero_tol,
        certificate.one_tol,
        certificate.zero_mass,
        certificate.one_mass,
        np.asarray(density, np.float64),
    )


def bars(cost: npt.ArrayLike, owner: Counts, owners: int, reference: Reference) -> Counts:
    """Return (owners, 2 + BINS) counts: episodes without cost, at the top of the scale, in each bin between.

    ``owner`` says for each episode in which row it counts.
    """
    x = np.minimum(np.asarray(cost, np.float64) / reference.scale, 1.0)
    inner = 2 + np.minimum((x * BINS).astype(np.int64), BINS - 1)
    column = np.where(x <= reference.zero_tol, 0, np.where(x >= 1.0 - reference.one_tol, 1, inner))
    width = 2 + BINS
    return np.bincount(owner * width + column, minlength=owners * width).reshape(owners, width)


def _options(overrides: Any) -> dict[str, Any]:
    return {str(key): value for key, value in overrides.items()} if isinstance(overrides, dict) else {}
