"""When runs will have ended: by their own speed, by that of their like, or by what is expected of them."""

import time
from collections import defaultdict, deque
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from heapq import heapify, heappop, heappush
from pathlib import Path
from statistics import median

from steingate.errors import InputError, RunError
from steingate.experiments.expected import Speeds, recorded_speeds, slowness
from steingate.experiments.folders import recent_rows, standing
from steingate.training.config import RunConfig

RECENT = 20  # epochs that count


class Forecast:
    """Seconds until runs end, from all that is known about their speed.

    A run counts with its own speed over its last epochs; before that with the speed of the same method on the
    same task, in its folder or elsewhere in the grid; before that with what
    :mod:`steingate.experiments.expected` says, corrected by how others of the grid compare with it.

    Parameters
    ----------
    todo
        Runs to be done, whose folders are asked how far they have come.
    seen
        Runs whose logged speeds are used, finished ones among them.
    crowd
        Runs on each core.
    speeds, machine
        What is expected on a reference machine, and how many times as long this one takes.
    clock
        Seconds that go by.
    """

    def __init__(
        self,
        todo: Iterable[RunConfig],
        seen: Iterable[RunConfig] = (),
        crowd: float = 1.0,
        speeds: Speeds | None = None,
        machine: Callable[[], float] = slowness,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.speeds = speeds or recorded_speeds()
        self._crowd, self._machine, self._clock = max(crowd, 1.0), machine, clock
        self._seen: dict[Hashable, deque[float]] = defaultdict(lambda: deque(maxlen=RECENT))
        self._ratios: deque[float] = deque(maxlen=RECENT)  # of what was seen to what was expected
        self._steps: dict[Path, float] = {}
        self._since: dict[Path, tuple[float, bool]] = {}  # last sign of life, and whether it is the start
        for cfg in todo:
            self._look(cfg)
        for cfg in seen:
            for row in recent_rows(cfg.path, RECENT):
                self._note(cfg, row)

    def started(self, cfg: RunConfig) -> None:
        """Take note that a run's process was started."""
        self._since[cfg.path] = self._clock(), True

    def lost(self, cfg: RunConfig) -> None:
        """Take note that a run waits again, with what its last checkpoint holds."""
        self._since.pop(cfg.path, None)
        self._look(cfg)

    def row(self, cfg: RunConfig, row: Mapping[str, float]) -> None:
        """Take note of an epoch that a running run has finished."""
        self._steps[cfg.path] = row.get("TotalEnvSteps", 0.0)
        self._since[cfg.path] = self._clock(), False
        self._note(cfg, row)

    def known(self, cfg: RunConfig) -> bool:
        """Whether anything is known about the speed of the run's task."""
        return self.speeds.step(cfg) is not None or bool(self._seen.get(cfg.env))

    def seconds(self, cfg: RunConfig) -> float | None:
        """Return the seconds that a run still needs, start included; None if nobody knows."""
        each = self._step(cfg)
        if each is None:
            return None
        left = (cfg.epochs * cfg.steps_per_epoch - self._steps.get(cfg.path, 0.0)) * each
        if cfg.path not in self._since:
            return left + self.speeds.start * self._pace()
        since, starting = self._since[cfg.path]
        ahead = self.speeds.start * self._pace() if starting else 0.0
        # The time goes on between two epochs, but not past the end of the one that is due.
        return max(left + ahead - min(self._clock() - since, ahead + cfg.steps_per_epoch * each), 0.0)

    def left(self, running: Sequence[RunConfig], waiting: Sequence[RunConfig], slots: int) -> float | None:
        """Return the seconds until the last run ends; None if that of some run is not known."""
        each = [self.seconds(cfg) for cfg in (*running, *waiting)]
        known = [seconds for seconds in each if seconds is not None]
        if len(known) < len(each):
            return None
        return finish_after(known[: len(running)], known[len(running) :], slots)

    def _look(self, cfg: RunConfig) -> None:
        try:
            saved = standing(cfg).saved
        except (InputError, RunError):  # said by those who start the run
            saved = 0
        self._steps[cfg.path] = float(saved * cfg.steps_per_epoch)

    def _note(self, cfg: RunConfig, row: Mapping[str, float]) -> None:
        # The first epoch compiles, which says nothing about the others.
        if row.get("Train/Epoch", 0.0) <= 0.0 or row.get("Time/FPS", 0.0) <= 0.0:
            return
        seconds = 1.0 / row["Time/FPS"]
        for key in (*_kinds(cfg), cfg.env, ""):
            self._seen[key].append(seconds)
        if expected := self.speeds.step(cfg):
            self._ratios.append(seconds / expected)

    def _step(self, cfg: RunConfig) -> float | None:
        """Return the seconds of an environment step; medians, because a machine may stop for a while."""
        for key in _kinds(cfg):
            if key in self._seen:
                return median(self._seen[key])
        expected = self.speeds.step(cfg)
        if expected is not None:
            return expected * self._pace()
        others = self._seen.get(cfg.env) or self._seen.get("")
        return median(others) if others else None

    def _pace(self) -> float:
        return median(self._ratios) if self._ratios else self._machine() * self._crowd


def finish_after(running: Iterable[float], waiting: Iterable[float], slots: int) -> float:
    """Return when the last run ends, if each that waits starts in its turn as soon as a slot is free.

    Parameters
    ----------
    running, waiting
        Seconds that each run needs.
    slots
        Runs at a time.

    Examples
    --------
    >>> finish_after([5.0], [10.0, 10.0], slots=2)
    15.0
    """
    ends = list(running)
    heapify(ends)
    for seconds in waiting:
        begin = heappop(ends) if len(ends) >= slots else 0.0
        heappush(ends, begin + seconds)
    return max(ends, default=0.0)


def _kinds(cfg: RunConfig) -> tuple[Hashable, ...]:
    """Return names for the run itself, for its like in its folder, and for its like in the grid."""
    return cfg.path, (cfg.out, cfg.env, cfg.algo.name), (cfg.env, cfg.algo.name)
