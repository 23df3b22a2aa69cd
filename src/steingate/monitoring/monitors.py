"""Monitors of several costs, with one error probability for all."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from steingate.certificates.io import Costs, check_costs
from steingate.errors import InputError
from steingate.monitoring.monitor import Monitor, status
from steingate.monitoring.state import read_state, require, write_state

FORMAT = "steingate-monitors-2"


class Monitors(Mapping[str, Monitor]):
    """One monitor per named cost; each gets an equal part of ``delta``, so their statements hold together.

    Parameters
    ----------
    limits : name and limit of each cost
    budget : accepted violation rate: one number, or one per name
    delta : error probability of all bounds together (and of ``certified``, and of ``unsafe``)
    **settings : further settings of each ``Monitor``

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
            raise InputError(f"The limits are {limits!r}: give a dictionary of names and limits.")
        budgets = budget if isinstance(budget, Mapping) else dict.fromkeys(limits, budget)
        if set(budgets) != set(limits):
            raise InputError(f"The budgets name {sorted(budgets)}, the limits {sorted(limits)}: use the same names.")
        self.delta = Monitor(1.0, delta=delta).delta  # raises InputError before delta is divided
        self._monitors = {
            str(name): Monitor(limit, budgets[name], delta / len(limits), **settings) for name, limit in limits.items()
        }

    def __getitem__(self, name: str) -> Monitor:
        return self._monitors[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._monitors)

    def __len__(self) -> int:
        return len(self._monitors)

    def update(self, costs: Mapping[str, float]) -> None:
        """Count one finished episode; if one of its costs is invalid, none is counted."""
        self.update_many({name: [cost] for name, cost in self._check_names(costs).items()})

    def update_many(self, costs: Mapping[str, npt.ArrayLike]) -> None:
        """Count many finished episodes; entry i of every array belongs to episode i."""
        given = {name: np.asarray(values) for name, values in self._check_names(costs).items()}
        if all(values.shape == (0,) for values in given.values()):
            return
        for name, values in self._check_costs(given).items():
            self[name].update_many(values)

    def _check_costs(self, costs: Mapping[str, npt.ArrayLike]) -> dict[str, Costs]:
        checked = {}
        for name, values in costs.items():
            try:
                checked[name] = check_costs(values)
            except InputError as error:
                raise InputError(f"{name}: {error}") from None
        lengths = {name: len(values) for name, values in checked.items()}
        if len(set(lengths.values())) > 1:
            raise InputError(f"The costs have different lengths, {lengths}: give one of each per episode.")
        return checked

    def _check_names(self, costs: Mapping[str, Any]) -> Mapping[str, Any]:
        if not isinstance(costs, Mapping) or set(costs) != set(self):
            given = sorted(map(str, costs)) if isinstance(costs, Mapping) else costs
            raise InputError(f"The costs are {given}: give a dictionary with one number for each of {', '.join(self)}.")
        return costs

    @property
    def episodes(self) -> int:
        """Number of episodes."""
        return next(iter(self.values())).episodes

    @property
    def certified(self) -> bool:
        """Whether all costs are certified."""
        return all(monitor.certified for monitor in self.values())

    @property
    def certified_now(self) -> bool:
        """Whether all costs are certified and none has since been shown unsafe or drifting."""
        return all(monitor.certified_now for monitor in self.values())

    @property
    def unsafe(self) -> bool:
        """Whether the policy has been shown unsafe for some cost."""
        return any(monitor.unsafe for monitor in self.values())

    @property
    def drift(self) -> bool:
        """Whether some violation rate has risen above its baseline."""
        return any(monitor.drift for monitor in self.values())

    @property
    def status(self) -> str:
        """``unsafe``, ``drift``, ``certified`` or ``undecided``, the first that applies."""
        return status(self)

    @property
    def summary(self) -> str:
        """What is known, and what to do, for each cost."""
        return " ".join(f"{name}: {monitor.summary}" for name, monitor in self.items())

    def metrics(self) -> dict[str, Any]:
        """Return the main numbers, for a log."""
        bounds = {f"bound/{name}": monitor.bound for name, monitor in self.items()}
        names = ("episodes", "certified", "certified_now", "unsafe", "drift")
        return {"bound": max(bounds.values()), **bounds, **{name: getattr(self, name) for name in names}}

    def to_dict(self) -> dict[str, Any]:
        """Return all numbers as JSON types, for each cost."""
        return {name: monitor.to_dict() for name, monitor in self.items()}

    def new_policy(self, name: str = "") -> None:
        """Start anew for another policy; see ``Monitor.new_policy``."""
        for monitor in self.values():
            monitor.new_policy(name)

    def rearm(self) -> None:
        """Restart the drift detectors that have raised an alarm."""
        for monitor in self.values():
            if monitor.drift:
                monitor.rearm()

    def state_dict(self) -> dict[str, Any]:
        """Return the complete state as JSON types, for ``from_state``."""
        parts = [[name, monitor.state_dict()] for name, monitor in self.items()]
        return {"format": FORMAT, "delta": self.delta, "monitors": parts}

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> "Monitors":
        """Return the monitors with this state, bit for bit; an invalid state raises ``InputError``."""
        if not isinstance(state, Mapping) or state.get("format") != FORMAT:
            raise InputError("This is not the state of several monitors, or it was written by another version.")
        try:
            parts = {str(name): Monitor.from_state(part) for name, part in state["monitors"]}
            require(len({monitor.episodes for monitor in parts.values()}) == 1, "episodes")
            monitors = cls({name: monitor.limit for name, monitor in parts.items()}, delta=state["delta"])
        except (KeyError, TypeError, ValueError) as error:
            raise InputError(f"This state of several monitors is damaged ({error}): start new ones.") from None
        monitors._monitors = parts
        return monitors

    def save(self, path: str | Path) -> None:
        """Write the state to a file with a checksum, atomically."""
        write_state(path, self.state_dict())

    @classmethod
    def load(cls, path: str | Path) -> "Monitors":
        """Return the monitors stored in a file."""
        return cls.from_state(read_state(path))


def restore_monitor(state: Mapping[str, Any]) -> Monitor | Monitors:
    """Return the ``Monitor`` or the ``Monitors`` with this state."""
    several = isinstance(state, Mapping) and state.get("format") == FORMAT
    return Monitors.from_state(state) if several else Monitor.from_state(state)


def by_name(monitors: Monitor | Monitors, name: str = "cost") -> dict[str, Monitor]:
    """Return the monitors by the names of their costs; a single one is called ``name``."""
    return dict(monitors) if isinstance(monitors, Monitors) else {name: monitors}
