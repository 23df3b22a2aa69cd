"""Has the chance of going over the limit risen? A Shiryaev-Roberts detector made of bets.

For each boldness theta the detector is R <- (1 + R)(1 + theta (x - m0) / m0), with x = 1 for an episode over
the limit and 0 otherwise. While the chance of x = 1 stays at most m0, mean(R) minus the number of episodes
does not grow in expectation, so the first time that mean(R) >= A comes after A episodes or more on average.
It is looked at when an episode is over the limit, because between those it hardly rises.

R is kept as R_n = exp(L_n) sum_{s<n} exp(-L_s), where L_n is the sum of log(1 + theta (x - m0) / m0) and so a
function of counts. Stretches within the limit add a geometric sum, taken from a table.
"""

from dataclasses import dataclass
from math import inf, log, log1p

import numpy as np
import numpy.typing as npt

from steingate.monitoring.bets import BOLDNESS, log_sum_exp

Array = npt.NDArray[np.float64]

STRETCH = 1024  # episodes within the limit that are summed at once, at most
_UNDER = np.log1p(-np.array(BOLDNESS))


def _geometric() -> Array:
    """Return log(sum_{i<j} (1 - theta)^-i) for every j up to ``STRETCH`` and every theta."""
    rate = -_UNDER
    number = np.arange(1, STRETCH + 1)[:, None]
    sums = number * rate + np.log(-np.expm1(-number * rate)) - np.log(np.expm1(rate))
    return np.concatenate([np.full((1, len(rate)), -inf), sums])


_GEOMETRIC = _geometric()


@dataclass(frozen=True)
class Drift:
    """What a detector says; true in conditions when there is an alarm.

    Attributes
    ----------
    alarm : whether the detector has raised an alarm that was not answered with ``rearm``
    alarms : the episodes, counted from 1, at which alarms were raised
    baseline : the chance m0 that is still in order
    run_length : episodes between false alarms, on average at least
    evidence : mean(R) now; an alarm is raised at ``run_length``
    """

    alarm: bool
    alarms: tuple[int, ...]
    baseline: float
    run_length: float
    evidence: float

    def __bool__(self) -> bool:
        return self.alarm


class Detector:
    """State of the detector; ``episode`` and ``advance`` give the same bits."""

    def __init__(self, baseline: float, run_length: float) -> None:
        self.baseline, self.run_length = baseline, run_length
        self._up = np.array([log1p(bold * (1.0 - baseline) / baseline) for bold in BOLDNESS])
        self._threshold = log(run_length) + log(len(BOLDNESS))
        self.alarms: list[int] = []
        self.rearm()

    def rearm(self) -> None:
        """Start again after an alarm."""
        self.alarm = False
        self.sums = np.full(len(BOLDNESS), -inf)  # log sum_s exp(-L_s) before the present stretch
        self.over = 0  # episodes before the present stretch
        self.under = 0
        self.pending = 0  # length of the present stretch within the limit

    def episode(self, over: bool, number: int) -> None:
        """Count one episode, the ``number``-th of the monitor."""
        if self.alarm:
            return
        if not over:
            self.pending += 1
            if self.pending == STRETCH:
                self._add(STRETCH)
                self.under, self.pending = self.under + STRETCH, 0
            return
        self._add(self.pending + 1)
        self.over, self.under, self.pending = self.over + 1, self.under + self.pending, 0
        if log_sum_exp((self._walk(self.over, self.under) + self.sums).tolist()) >= self._threshold:
            self._raise(number)

    def advance(self, flags: npt.NDArray[np.bool_], number: int) -> None:
        """Count many episodes, the first of which is the ``number``-th of the monitor."""
        if self.alarm:
            return
        places = np.flatnonzero(flags)
        gaps = np.diff(places, prepend=-1) - 1
        tail = len(flags) - 1 - (int(places[-1]) if len(places) else -1)
        if len(places):
            gaps[0] += self.pending
        else:
            tail += self.pending
        # One event per whole stretch, and one per episode over the limit.
        whole = gaps // STRETCH
        last = np.cumsum(whole + 1) - 1
        events = int(last[-1]) + 1 if len(last) else 0
        lengths = np.full(events + tail // STRETCH, STRETCH)
        lengths[last] = gaps % STRETCH
        is_over = np.zeros(len(lengths), bool)
        is_over[last] = True
        over = self.over + np.concatenate([[0], np.cumsum(is_over)])
        under = self.under + np.concatenate([[0], np.cumsum(lengths)])
        terms = _GEOMETRIC[lengths + is_over] - self._walk(over[:-1, None], under[:-1, None])
        sums = np.logaddexp.accumulate(np.concatenate([self.sums[None], terms]), axis=0)
        found = self._crossing(sums[1:][last], over[1:][last], under[1:][last])
        if found is None:
            self.sums, self.over, self.under = sums[-1].copy(), int(over[-1]), int(under[-1])
            self.pending = tail % STRETCH
            return
        event = int(last[found]) + 1
        self.sums, self.over, self.under = sums[event].copy(), int(over[event]), int(under[event])
        self.pending = 0
        self._raise(number + int(places[found]))

    def evidence(self) -> float:
        """Return mean(R) now, at most 1e300."""
        sums = self.sums
        if self.pending:
            sums = np.logaddexp(sums, _GEOMETRIC[self.pending] - self._walk(self.over, self.under))
        if self.over + self.under + self.pending == 0:
            return 0.0
        logs = self._walk(self.over, self.under + self.pending) + sums
        return float(np.exp(np.minimum(logs, 690.0)).mean())

    def _walk(self, over: npt.ArrayLike, under: npt.ArrayLike) -> Array:
        return np.asarray(over * self._up + under * _UNDER)

    def _add(self, terms: int) -> None:
        self.sums = np.logaddexp(self.sums, _GEOMETRIC[terms] - self._walk(self.over, self.under))

    def _raise(self, number: int) -> None:
        self.alarm = True
        self.alarms.append(number)

    def _crossing(self, sums: Array, over: npt.NDArray[np.int64], under: npt.NDArray[np.int64]) -> int | None:
        """Return the first of these moments at which an alarm is due."""
        if not len(sums):
            return None
        logs = self._walk(over[:, None], under[:, None]) + sums
        top = logs.max(axis=1)
        levels = top + np.log(np.exp(logs - top[:, None]).sum(axis=1))
        for index in np.flatnonzero(levels >= self._threshold - 1e-9).tolist():
            if log_sum_exp(logs[index].tolist()) >= self._threshold:
                return int(index)
        return None
