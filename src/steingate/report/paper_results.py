"""Table 1 of the paper: 6 seeds, 10 million steps, 8 environments, limit 25.

Every value is a rounded multiple of 1/600. The table therefore counts epochs (the last fifths of six runs of
500 epochs, judged by 100-episode means), not episodes as the text of the paper says.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

from steingate.certificates.certificate import Certificate
from steingate.report.run_settings import algorithm_settings, canonical, settings

LIMIT = 25.0
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

# Settings of these runs. A setting that is None in config.json has its default, which is the paper's.
_SHARED: dict[str, Any] = {
    "cost_limit": LIMIT, "steps_per_epoch": 20_000, "num_envs": 8, "window": 100, "carry_episodes": False,
    "variant": "published", "hidden": [64, 64], "normalize_obs": True, "max_kl": 0.01, "cg_iters": 15,
    "damping": 0.1, "search_steps": 20, "shrink": 0.8, "discount": 0.99, "lam": 0.95, "cost_discount": 0.99,
    "cost_lam": 0.95, "cost_adv_lam": 0.95, "critic_lr": 1e-3, "critic_passes": 10, "critic_batch": 128,
    "critic_decay": 0.001, "critic_grad_norm": 40.0, "near": [], "trim": None, "first_std": 1.0,
    "places": False, "inward": 0.0,    "count": "finished",
}  # fmt: skip
_SAUTE = {"search_steps": 15, "budget_discount": 0.9999, "unsafe_reward": -0.2, "length": 1000}
_SIMMER = {
    "controller.proportional": 5e-4, "controller.integral": 1e-5, "controller.derivative": 0.0,
    "controller.smoothing": 0.995, "controller.memory": 10, "controller.largest": 1.0,
}  # fmt: skip
_EVO = {
    "extreme.capacity": 50, "extreme.percentile": 95.0, "extreme.quantile": 0.5, "extreme.clamp": "log_ratio",
    "extreme.count_twice": True, "extreme.free_location": True, "extreme.quiet_is_safe": True,
    "replay.copies": 4, "replay.percentile": 90.0, "replay.quantile": 0.5, "replay.buffer": 100,
    "replay.whole_epoch": False, "replay.everywhere": True, "replay.free_location": True,
}  # fmt: skip
_PRESET = "released"
_OWN: dict[str, dict[str, Any]] = {
    "cpo": {},
    "evo": _EVO,
    "trpo-saute": _SAUTE,
    "trpo-simmer": _SAUTE | _SIMMER,
    "steingate": {"preset": _PRESET, "recovery": "mean"},
}


def paper_result(config: Mapping[str, Any]) -> PaperResult | None:
    """Return the paper's result for the task and algorithm of a run, if the run has the paper's settings.

    The number of steps may differ; it is shown beside the numbers.
    """
    env, algo = str(config.get("env")), str(config.get("algo"))
    return paper_numbers(env, algo) if in_paper(env, algo) and _same_settings(dict(config), algo) else None


def paper_numbers(env: str, algo: str) -> PaperResult | None:
    """Return the paper's result of an algorithm on a task, None if the table has none."""
    if not in_paper(env, algo):
        return None
    return PaperResult(*_ROWS[algo][_TASKS.index(env.removeprefix("steingate/"))])


def in_paper(env: str, algo: str) -> bool:
    """Return whether the table of the paper has a result of an algorithm on a task."""
    return algo in _ROWS and env.removeprefix("steingate/") in _TASKS


def _same_settings(config: dict[str, Any], algo: str) -> bool:
    expected = _SHARED | _OWN[algo] | _certificate(algo)
    found = settings(config)
    known = set(algorithm_settings(config)) | {name for name in found if name.startswith("env_options.")}
    if found.get("variant") is None or known - set(expected):
        return False
    return all(
        found[name] is None or canonical(found[name]) == canonical(value)
        for name, value in expected.items()
        if name in found
    )


def _certificate(algo: str) -> dict[str, Any]:
    """Return the settings of the certificate's preset."""
    if algo != "steingate":
        return {}
    own = vars(Certificate.preset(_PRESET, LIMIT))
    plain = {name: value for name, value in own.items() if isinstance(value, str | int | float | bool)}
    return {f"certificate.{name}": value for name, value in plain.items()}
