"""How fast a run should be before any of its kind has run here: recorded speeds, scaled to this machine.

``speeds.csv`` holds processor seconds of runs on one core of a reference machine, written by
``python benchmarks/record_speeds.py``: one figure for each native task under a base method, one for each
method on a base task. What a pair takes is taken to be the task's figure plus what the method needs beyond
the base method. That is a rough model, and all that is said from it is said with "about".
"""

import csv
import time
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

import numpy as np

from steingate.algorithms.common.recipe import FirstOrder, NaturalGradient, Recipe
from steingate.training.config import RunConfig

BASE_TASK, BASE_METHOD = "SafetyPointCircle1-v0", "cpo"
_FAMILIES = ((FirstOrder, "ppo-lag"), (NaturalGradient, BASE_METHOD))  # stand-ins for methods of one's own
_MILLION = 1e6
_PROBES, _PROBE_LOOPS = 12, 200


@dataclass(frozen=True)
class Speeds:
    """Seconds on one core of some machine."""

    probe: float  # of the piece of work that machines are compared by
    start: float  # from calling a run's process to its first epoch, and after its last
    epoch: float  # of an epoch, whatever its size
    tasks: dict[str, float]  # of a million steps under the base method
    methods: dict[str, float]  # of a million steps on the base task
    passes: dict[str, int]  # over the data of an epoch, where a method makes some

    def step(self, cfg: RunConfig) -> float | None:
        """Return the seconds of one environment step of a run, learning included; None if not known.

        >>> from steingate.training.config import make_config
        >>> tasks = "SafetyPointGoal1-v0", "SafetyAntVelocity-v1"
        >>> quick, slow = (make_config({"env": task}) for task in tasks)
        >>> recorded_speeds().step(quick) < recorded_speeds().step(slow)
        True
        >>> recorded_speeds().step(make_config({"env": "some.module:Task"})) is None
        True
        """
        task = self.tasks.get(cfg.env.removeprefix("steingate/"))
        method = self._method(cfg.algo)
        if task is None or method is None:
            return None
        each = (task + method - self.tasks[BASE_TASK]) / _MILLION
        return each + self.epoch / cfg.steps_per_epoch

    def _method(self, recipe: Recipe) -> float | None:
        families = (stand_in for family, stand_in in _FAMILIES if isinstance(recipe, family))
        name = recipe.name if recipe.name in self.methods else next(families, None)
        if name is None:
            return None
        usual = self.passes.get(name)
        more = recipe.clipped.passes / usual if usual and isinstance(recipe, FirstOrder) else 1.0
        return self.methods[name] * more


@cache
def recorded_speeds() -> Speeds:
    """Return the speeds of the reference machine."""
    with files("steingate.experiments").joinpath("speeds.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    of: dict[str, dict[str, float]] = {"machine": {}, "task": {}, "method": {}}
    for row in rows:
        of[row["kind"]][row["name"]] = float(row["seconds"])
    passes = {row["name"]: int(row["passes"]) for row in rows if row["passes"]}
    return Speeds(**of["machine"], tasks=of["task"], methods=of["method"], passes=passes)


def probe_seconds() -> float:
    """Return the processor seconds of a fixed piece of work that resembles learning; takes about 0.1 s.

    The best of several tries counts, and only the time on the processor, so other load hardly matters.
    """
    rng = np.random.default_rng(0)
    # Products of this size stay on the calling thread, whatever the number of BLAS threads.
    weights, data = rng.normal(0.0, 0.1, (2, 64, 64)).astype(np.float32)
    best = np.inf
    for _ in range(_PROBES):
        began = time.thread_time()
        for _ in range(_PROBE_LOOPS):
            hidden = np.tanh(data @ weights)
            slope = (hidden @ weights.T) * (1.0 - hidden * hidden)
            weights = weights - np.float32(1e-6) * (data.T @ slope)
        best = min(best, time.thread_time() - began)
    return float(best)


@cache
def slowness() -> float:
    """Return how many times as long this machine takes as the reference machine."""
    return probe_seconds() / recorded_speeds().probe
