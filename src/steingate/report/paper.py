"""Table 1 of the paper: 6 seeds, 10 million steps, 8 environments, limit 25.

Every value is a rounded multiple of 1/600. The table therefore counts epochs (the last fifths of six runs of
500 epochs, judged by 100-episode means), not episodes as the text of the paper says.
"""

from collections.abc import Mapping
from functools import cache
from typing import Any, NamedTuple

from steingate.algorithms import make_algorithm
from steingate.report.run_settings import canonical, flatten, settings
from steingate.settings import to_json

STEPS = 10_000_000
SEEDS = 6


class PaperResult(NamedTuple):
    """Tail feasibility and feasible return as printed in the paper."""

    feasibility: float
    ret: float


_TASKS = ("SafetyPointGoal1-v0", "SafetyPointCircle1-v0", "SafetyCarGoal1-v0", "SafetyCarCircle1-v0")
_ROWS = {
    "cpo": ((0.258, 19.21), (0.775, 47.16), (0.257, 22.86), (0.578, 18.24)),
    "evo": ((0.988, 3.68), (0.990, 44.27), (0.997, 3.23), (0.995, 15.64)),
    "trpo-saute": ((0.563, 14.26), (0.992, 41.25), (0.575, 17.54), (0.998, 14.31)),
    "trpo-simmer": ((0.858, 12.33), (0.915, 40.80), (0.698, 15.62), (0.977, 14.51)),
    "steingate": ((0.987, 9.77), (0.992, 46.15), (0.998, 12.65), (0.997, 16.77)),
}
_RUN_SETTINGS = {
    "cost_limit": 25.0, "steps_per_epoch": 20_000, "num_envs": 8, "window": 100, "carry_episodes": False,
}  # fmt: skip
_ANY_VALUE = ("algo", "env", "total_steps")


def paper_numbers(env: str, algo: str) -> PaperResult | None:
    """Return the paper's result of an algorithm on a task, None if the table has none."""
    env = env.removeprefix("steingate/")
    if algo not in _ROWS or env not in _TASKS:
        return None
    return PaperResult(*_ROWS[algo][_TASKS.index(env)])


def paper_result(config: Mapping[str, Any]) -> PaperResult | None:
    """Return the paper's result for the task and algorithm of a run, if the run has the paper's settings.

    They are those of ``--variant published``. A setting that is None has its default, and the number of steps
    may differ; it is shown beside the numbers.
    """
    env, algo = str(config.get("env")).removeprefix("steingate/"), str(config.get("algo"))
    numbers = paper_numbers(env, algo)
    if numbers is None:
        return None
    expected = _published_settings(env, algo) | _RUN_SETTINGS
    found = {name: value for name, value in settings(dict(config)).items() if name not in _ANY_VALUE}
    same = all(
        name in expected and (value is None or canonical(value) == canonical(expected[name]))
        for name, value in found.items()
    )
    return numbers if same and found.get("variant") == "published" else None


@cache
def _published_settings(env: str, algo: str) -> dict[str, Any]:
    return flatten(to_json(make_algorithm(algo, env, {"variant": "published"}).resolve(1000)))
