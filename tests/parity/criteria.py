"""Findings of a comparison: a measured figure, the limit it must respect, and whether it does."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt


@dataclass(frozen=True)
class Finding:
    """One judged criterion.

    Attributes
    ----------
    criterion : letter of the criterion and what was compared
    figure : what was measured
    limit : what it is held against
    holds : whether the criterion is met
    relation : how figure and limit must relate, ``"<="`` or ``">="``
    """

    criterion: str
    figure: float
    limit: float
    holds: bool
    relation: str = "<="

    def line(self) -> str:
        """Return the finding as one line of text."""
        verdict = "ok  " if self.holds else "FAIL"
        return f"{verdict}  {self.criterion:<72} {self.figure:9.2e} {self.relation} {self.limit:g}"


def at_most(criterion: str, values: npt.ArrayLike, limit: float, share: float = 1.0) -> list[Finding]:
    """Return the finding that a share of the values stays at or below a limit; none if there are no values.

    Parameters
    ----------
    criterion : str
        What is compared.
    values : array
        Errors; the measured figure is their quantile at ``share``.
    limit : float
        Largest value allowed; not-a-number fails.
    share : float
        Share of the values that must respect the limit.
    """
    values = np.asarray(values, dtype=np.float64).ravel()
    if values.size == 0:
        return []
    figure = float(np.quantile(np.where(np.isnan(values), math.inf, values), share, method="inverted_cdf"))
    what = "max" if share == 1.0 else "median" if share == 0.5 else f"{100 * share:g} %"
    return [Finding(f"{criterion}: {what} of {values.size}", figure, limit, figure <= limit)]


def at_least(criterion: str, figure: float, limit: float) -> list[Finding]:
    """Return the finding that a figure reaches a limit.

    Parameters
    ----------
    criterion : str
        What is measured.
    figure, limit : float
        The measured figure and the smallest one allowed.
    """
    return [Finding(criterion, figure, limit, figure >= limit, ">=")]


def equal(criterion: str, ours: npt.ArrayLike, theirs: npt.ArrayLike) -> list[Finding]:
    """Return the finding that no entry of two arrays differs; the figure is the number that do.

    Parameters
    ----------
    criterion : str
        What is compared.
    ours, theirs : arrays of one shape
        The values.
    """
    ours, theirs = np.asarray(ours), np.asarray(theirs)
    if ours.size == 0:
        return []
    count = int(np.sum(ours != theirs))
    return [Finding(f"{criterion}: mismatches of {ours.size}", count, 0, count == 0)]
