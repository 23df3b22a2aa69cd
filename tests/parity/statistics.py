"""Episode statistics against recorded ones: the same seeds and policies, run on the tasks of this package."""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from scipy import stats
from tests.parity.criteria import Finding, at_least, at_most
from tests.parity.policies import POLICIES, noise_seed
from tests.parity.recordings import STATISTICS, Recording

from steingate.tasks.catalog import TaskSpec, find_task
from steingate.tasks.navigation import Navigation
from steingate.tasks.protocol import BatchTask
from steingate.tasks.velocity import Velocity

_STANDARD_ERRORS: Final = 3.5
_SMALLEST_P: Final = 1e-4
_PLANAR: Final = ("half_cheetah", "hopper", "walker2d")

# task, policy -> (share, limit) on the difference of returns of the same episode
_PAIRED: Final = {
    ("SafetyCarCircle1-v0", "scripted"): ((0.5, 0.05), (0.1, 1e-6)),
    ("SafetyPointCircle1-v0", "scripted"): ((1.0, 0.3),),
}

Results = dict[str, npt.NDArray[np.float64]]


def judge_statistics(recording: Recording, threads: int, episodes: int | None) -> list[Finding]:
    """Return the findings of criterion E for one file of episode statistics.

    Parameters
    ----------
    recording : Recording
        A ``stats`` file.
    threads : int
        Threads for the engine.
    episodes : int or None
        Run only the first so many episodes.
    """
    spec = find_task(recording.env_id)
    seeds = [int(seed) for seed in recording["seed"][:episodes]]
    findings: list[Finding] = []
    for policy in POLICIES:
        if f"{policy}/return" not in recording.arrays:
            continue
        ours = run_episodes(spec, policy, seeds, threads)
        for name in STATISTICS:
            theirs = recording[f"{policy}/{name}"].astype(np.float64)
            findings += _compare(f"E {policy} {name}", ours[name], theirs)
        gaps = np.abs(ours["return"] - recording[f"{policy}/return"][: len(seeds)])
        for share, limit in _PAIRED.get((spec.env_id, policy), ()):
            findings += at_most(f"E {policy} return, same episode", gaps, limit, share)
    return findings


def run_episodes(spec: TaskSpec, policy: str, seeds: list[int], threads: int) -> Results:
    """Return the statistics of one whole episode per seed, each an array (E,).

    Parameters
    ----------
    spec : TaskSpec
        The task.
    policy : str
        ``"uniform"`` or ``"scripted"``.
    seeds : list of int
        Reset seeds, for the reference layout stream.
    threads : int
        Threads for the engine.
    """
    count = len(seeds)
    act = POLICIES[policy](spec, [noise_seed(seed) for seed in seeds])
    task: BatchTask = (Velocity if spec.family == "velocity" else Navigation)(
        spec, count, threads=threads, layout_stream="reference"
    )
    task.reset(np.arange(count, dtype=np.int32), seeds)
    results = {name: np.zeros(count) for name in (*STATISTICS, "length")}
    alive = np.ones(count, dtype=np.bool_)
    place = _places(task, spec, count)
    for step in range(spec.max_episode_steps):
        task.step(np.ascontiguousarray(act(step, task.out.obs)))
        before, place = place, _places(task, spec, count)
        results["return"] += np.where(alive, task.out.reward, 0.0)
        results["cost"] += np.where(alive, task.out.cost, 0.0)
        results["goals"] += alive & task.out.goal_met
        results["distance"] += np.where(alive, np.linalg.norm(place - before, axis=1), 0.0)
        results["length"] += alive
        alive &= ~task.out.terminated
        if not alive.any():
            break
    task.close()
    return results


def _places(task: BatchTask, spec: TaskSpec, count: int) -> npt.NDArray[np.float64]:
    """Return the positions (E, 2) whose path is the distance; planar robots move along x only."""
    places = np.array([task.scene(i)["qpos"][:2] for i in range(count)])
    if spec.agent in _PLANAR:
        places[:, 1] = 0.0
    return places


def _compare(criterion: str, ours: npt.NDArray[Any], theirs: npt.NDArray[Any]) -> list[Finding]:
    """Return the findings on the difference of means, in standard errors, and on the distributions."""
    spread = math.sqrt(ours.var(ddof=1) / ours.size + theirs.var(ddof=1) / theirs.size)
    gap = abs(float(ours.mean() - theirs.mean()))
    errors = gap / spread if spread > 0.0 else (0.0 if gap == 0.0 else math.inf)
    p_value = float(stats.ks_2samp(ours, theirs, method="asymp").pvalue)
    return [
        Finding(
            f"{criterion}: mean, in standard errors", errors, _STANDARD_ERRORS, errors <= _STANDARD_ERRORS
        ),
        *at_least(f"{criterion}: distribution, Kolmogorov-Smirnov p", p_value, _SMALLEST_P),
    ]
