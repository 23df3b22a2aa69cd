"""Criterion E: statistics of whole episodes with the recorded seeds and policies."""

import math

import numpy as np
from scipy import stats
from tests.parity.recordings import STATISTICS, Array, Recording, at_most

from steingate.tasks.catalog import CIRCLE_RADIUS, LIDAR_BINS, TaskSpec, find_task
from steingate.tasks.navigation import Navigation
from steingate.tasks.velocity import Velocity

MAX_STANDARD_ERRORS = 3.5  # of the difference of means
MIN_P_VALUE = 1e-4  # of the Kolmogorov-Smirnov test
FIRST_SEED = 20000  # reset seed of the first recorded episode
PLANAR = ("half_cheetah", "hopper", "walker2d")  # robots that move along x only

# (task, policy) -> (fraction, limit) for differences of the returns of the same episode
SAME_EPISODE_LIMITS = {
    ("SafetyCarCircle1-v0", "scripted"): ((0.5, 0.05), (0.1, 1e-6)),
    ("SafetyPointCircle1-v0", "scripted"): ((1.0, 0.3),),
}


def check_statistics(recording: Recording, threads: int, episodes: int | None) -> list[str]:
    """Return the failures on one file of episode statistics, for its first episodes or all."""
    spec = find_task(recording.env_ids[0])
    seeds = [int(seed) for seed in recording["seed"][:episodes]]
    failures: list[str] = []
    for policy in ("uniform", "scripted"):
        if f"{policy}/return" not in recording.arrays:
            continue
        ours = run_episodes(spec, policy, seeds, threads)
        for name in STATISTICS:
            failures += _compare(f"E {policy} {name}", ours[name], recording[f"{policy}/{name}"].astype(float))
        gaps = np.abs(ours["return"] - recording[f"{policy}/return"][: len(seeds)])
        for fraction, limit in SAME_EPISODE_LIMITS.get((spec.env_id, policy), ()):
            failures += at_most(f"E {policy} return, same episode", gaps, limit, fraction)
    return failures


def _compare(criterion: str, ours: Array, theirs: Array) -> list[str]:
    """Return the failures on the difference of means and on the distributions."""
    spread = math.sqrt(ours.var(ddof=1) / ours.size + theirs.var(ddof=1) / theirs.size)
    gap = abs(float(ours.mean() - theirs.mean()))
    errors = gap / spread if spread > 0.0 else (0.0 if gap == 0.0 else math.inf)
    p_value = float(stats.ks_2samp(ours, theirs, method="asymp").pvalue)
    return [
        *at_most(f"{criterion}: difference of means in standard errors", errors, MAX_STANDARD_ERRORS),
        *at_most(
            f"{criterion}: -log of the Kolmogorov-Smirnov p", -math.log(max(p_value, 1e-300)), -math.log(MIN_P_VALUE)
        ),
    ]


def run_episodes(spec: TaskSpec, policy: str, seeds: list[int], threads: int) -> dict[str, Array]:
    """Return the statistics of one whole episode per reset seed (reference layout stream), arrays (E,)."""
    count = len(seeds)
    act = (Uniform if policy == "uniform" else Scripted)(spec, [13 * FIRST_SEED + s - FIRST_SEED for s in seeds])
    family = Velocity if spec.family == "velocity" else Navigation
    task = family(spec, count, threads=threads, layout_stream="reference")
    task.reset(np.arange(count, dtype=np.int32), seeds)
    results = {name: np.zeros(count) for name in (*STATISTICS, "length")}
    alive = np.ones(count, dtype=np.bool_)
    position = _positions(task, spec, count)
    for step in range(spec.max_episode_steps):
        task.step(np.ascontiguousarray(act(step, task.out.obs)))
        before, position = position, _positions(task, spec, count)
        results["return"] += np.where(alive, task.out.reward, 0.0)
        results["cost"] += np.where(alive, task.out.cost, 0.0)
        results["goals"] += alive & task.out.goal_met
        results["distance"] += np.where(alive, np.linalg.norm(position - before, axis=1), 0.0)
        results["length"] += alive
        alive &= ~task.out.terminated
        if not alive.any():
            break
    return results


def _positions(task: Navigation | Velocity, spec: TaskSpec, count: int) -> Array:
    """Return the positions (E, 2) of the robots."""
    positions = np.array([task.scene(i)["qpos"][:2] for i in range(count)])
    if spec.agent in PLANAR:
        positions[:, 1] = 0.0
    return positions


class Uniform:
    """Actions drawn uniformly from the action box, one noise seed per episode."""

    def __init__(self, spec: TaskSpec, seeds: list[int]) -> None:
        shape = (spec.max_episode_steps, spec.action_size)
        noise = [np.random.default_rng(seed).uniform(-1.0, 1.0, shape) for seed in seeds]
        # Gymnasium stores action bounds in single precision
        self._actions = np.stack(noise, axis=1) * float(np.float32(spec.action_bound))

    def __call__(self, step: int, obs: Array) -> Array:
        """Return the actions (E, a) of a step, counted from 0."""
        return np.asarray(self._actions[step])


class Scripted:
    """Navigator that follows the first lidar block, with Gaussian noise, one noise seed per episode."""

    def __init__(self, spec: TaskSpec, seeds: list[int]) -> None:
        self.spec = spec
        shape = (spec.max_episode_steps, 2)
        self._noise = np.stack([np.random.default_rng(seed).standard_normal(shape) for seed in seeds], axis=1)
        centers = (np.arange(LIDAR_BINS) + 0.5) * 2 * math.pi / LIDAR_BINS
        self._cos, self._sin = np.cos(centers), np.sin(centers)

    def __call__(self, step: int, obs: Array) -> Array:
        """Return the actions (E, 2) of a step, counted from 0, for observations (E, d)."""
        noise = self._noise[step]
        bearing = self._bearing(obs)
        if self.spec.agent == "point":
            error = _wrap(bearing)
            speed = 1.0 if self.spec.family == "circle" else 0.6
            thrust = np.clip(0.2 * (speed * np.cos(error) - obs[:, 3]), -0.05, 0.05) + 0.015 * noise[:, 0]
            turn = 2.0 * error / math.pi + 0.3 * noise[:, 1]
            actions = np.stack([thrust, turn], axis=1)
        else:
            error = _wrap(bearing + math.pi / 2)
            drive = 0.012 * np.cos(error)
            turn = np.clip(0.012 * error, -0.015, 0.015)
            actions = np.stack([drive + turn, drive - turn], axis=1) + 0.006 * noise
        return np.asarray(np.clip(actions, -1.0, 1.0))

    def _bearing(self, obs: Array) -> Array:
        """Return the direction of the target in the agent's frame; a constant if the lidar sees nothing."""
        lidar = obs[:, self.spec.sensors : self.spec.sensors + LIDAR_BINS]
        bearing = np.arctan2(lidar @ self._sin, lidar @ self._cos)
        if self.spec.family == "circle":
            distance = self.spec.lidar_range * (1.0 - lidar.max(axis=1))
            bearing += np.clip(1.5 * (distance - CIRCLE_RADIUS), -1.2, 1.2) - math.pi / 2
        lost = 0.3 if self.spec.agent == "point" else 0.3 - math.pi / 2
        return np.where(lidar.sum(axis=1) <= 1e-9, lost, bearing)


def _wrap(angle: Array) -> Array:
    """Return angles in [-pi, pi)."""
    return (angle + math.pi) % (2 * math.pi) - math.pi
