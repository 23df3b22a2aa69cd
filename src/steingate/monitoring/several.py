"""Several kinds of cost at once, each with its limit, and one error probability for all."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from steingate.certificates.costs import check_costs
from steingate.errors import InputError, nearest
from steingate.monitoring.monitor import Monitor

FORMAT = "steingate-monitors-1"


class Monitors(Mapping[str, Monitor]):
    """One monitor per named cost; ``delta`` is split evenly, so that all their statements hold together.

    Parameters
    ----------
    limits
        Name and limit of each cost.
    budget
        Largest accepted share of episodes over the limit: one number, or one per name.
    delta
        Probability that any of the statements of one kind (bound, certified, unsafe) is ever wrong.
    **settings
        Those of each ``Monitor``.

    Examples
    --------
    >>> monitors = Monitors({"hazards": 25, "speed": 10})
    >>> monitors.update({"hazards": 3.0, "speed": 0.0})
    >>> monitors["speed"].delta
    0.025
    """

    def __init__(
        self,
        limits: Mapping[str, float],
        budget: float | Mapping[str, float] = 0.1,
        delta: float = 0.05,
        **settings: Any,
    ) -> None:
        if not isinstance(limits, Mapping) or not limits:
            raise InputError(f"The limits are {limits!r}: give a dictionary of at least one name and limit.")
        budgets = budget if isinstance(budget, Mapping) else dict.fromkeys(limits, budget)
        if set(budgets) != set(limits):
            raise InputError(f"The budgets name {sorted(budgets)}: name {sorted(limits)} as the limits do.")
        Monitor(delta=delta)  # refuses what is no probability, before it is divided
        self.delta = float(delta)
        self._monitors = {
            str(name): Monitor(limit, budgets[name], delta / len(limits), **settings)
            for name, limit in limits.items()
        }

    def __getitem__(self, name: str) -> Monitor:
        return self._monitors[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._monitors)

    def __len__(self) -> int:
        return len(self._monitors)

    def update(self, costs: Mapping[str, float]) -> None:
        """Count one finished episode; if one of its costs is refused, none is counted."""
        self.update_many({name: [cost] for name, cost in self._checked(costs).items()})

    def update_many(self, costs: Mapping[str, npt.ArrayLike]) -> None:
        """Count many finished episodes; entry i of every array belongs to the same one."""
        given = {name: np.asarray(values) for name, values in self._checked(costs).items()}
        if all(values.shape == (0,) for values in given.values()):
            return
        arrays = {}
        for name, values in given.items():
            try:
                arrays[name] = check_costs(values)
            except InputError as error:
                raise InputError(f"{name}: {error}") from None
        lengths = {name: len(values) for name, values in arrays.items()}
        if len(set(lengths.values())) > 1:
            raise InputError(f"The costs have different lengths, {lengths}: give one of each per episode.")
        for name, values in arrays.items():
            self[name].update_many(values)

    def _checked(self, costs: Mapping[str, Any]) -> Mapping[str, Any]:
        if not isinstance(costs, Mapping):
            raise InputError(f"The costs are {costs!r}: give a dictionary with {', '.join(self)}.")
        for name in costs:
            if name not in self:
                raise InputError(f"No limit is set for the cost {name!r}{nearest(str(name), self)}.")
        missing = [name for name in self if name not in costs]
        if missing:
            raise InputError(f"The cost {missing[0]!r} is missing: give one number for each limit.")
        return costs

    @property
    def episodes(self) -> int:
        """Number of episodes counted."""
        return next(iter(self.values())).episodes

    @property
    def certified(self) -> bool:
        """Whether every cost is certified to be within its limit often enough."""
        return all(monitor.certified for monitor in self.values())

    @property
    def unsafe(self) -> bool:
        """Whether some cost has been shown to be over its limit too often."""
        return any(monitor.unsafe for monitor in self.values())

    @property
    def drift(self) -> bool:
        """Whether some cost has become worse than its baseline."""
        return any(monitor.detector.alarm for monitor in self.values())

    @property
    def bounds(self) -> dict[str, float]:
        """Upper bounds on P(cost > limit), which hold together."""
        return {name: monitor.bound for name, monitor in self.items()}

    @property
    def sentence(self) -> str:
        """What is known, and what to do, cost by cost."""
        return " ".join(f"{name}: {monitor.sentence}" for name, monitor in self.items())

    def numbers(self) -> dict[str, Any]:
        """Return the few numbers to log after an episode; the bounds are named after their costs."""
        return {
            "episodes": self.episodes,
            "bound": max(self.bounds.values()),
            **{f"bound/{name}": bound for name, bound in self.bounds.items()},
            "certified": self.certified,
            "unsafe": self.unsafe,
            "drift": self.drift,
        }

    def summary(self) -> dict[str, Any]:
        """Return every number as JSON types, cost by cost."""
        return {name: monitor.summary() for name, monitor in self.items()}

    @classmethod
    def watch(cls, baseline: "Mapping[str, npt.ArrayLike] | Monitors", **settings: Any) -> "Monitors":
        """Return fresh monitors whose drift alarms are set at what calibration has shown.

        Parameters
        ----------
        baseline
            Costs of calibration episodes by name, or the monitors that counted them.
        **settings
            ``limits`` and the other settings, needed with costs.
        """
        if isinstance(baseline, Monitors):
            known = baseline
        else:
            known = cls(**settings)
            known.update_many(baseline)
        fresh = cls({name: monitor.limit for name, monitor in known.items()}, delta=known.delta)
        fresh._monitors = {name: Monitor.watch(monitor) for name, monitor in known.items()}
        return fresh

    def reset(self) -> None:
        """Forget every episode."""
        for monitor in self.values():
            monitor.reset()

    def rearm(self) -> None:
        """Start every drift detector again that has raised an alarm."""
        for monitor in self.values():
            if monitor.detector.alarm:
                monitor.rearm()

    def to_dict(self) -> dict[str, Any]:
        """Return the whole state as JSON types; ``from_dict`` gives it back bit for bit."""
        parts = [[name, monitor.to_dict()] for name, monitor in self.items()]
        return {"format": FORMAT, "delta": self.delta, "monitors": parts}

    @classmethod
    def from_dict(cls, state: Mapping[str, Any]) -> "Monitors":
        """Return the monitors that ``to_dict`` described."""
        if not isinstance(state, Mapping) or state.get("format") != FORMAT:
            raise InputError("This is not the state of several monitors, or that of another version.")
        try:
            parts = {str(name): Monitor.from_dict(part) for name, part in state["monitors"]}
            found = cls({name: monitor.limit for name, monitor in parts.items()}, delta=state["delta"])
        except (KeyError, TypeError) as error:
            raise InputError(f"This state of several monitors is damaged ({error}): start anew.") from None
        if len({monitor.episodes for monitor in parts.values()}) > 1:
            raise InputError("This state of several monitors is damaged (episodes): start anew.")
        found._monitors = parts
        return found

    def save(self, path: str | Path) -> None:
        """Write the state to a file with a checksum; a crash leaves the old file or the new one."""
        from steingate.monitoring.state import write_state

        write_state(path, self.to_dict())

    @classmethod
    def load(cls, path: str | Path) -> "Monitors":
        """Return the monitors stored in a file."""
        from steingate.monitoring.state import read_state

        return cls.from_dict(read_state(path))
