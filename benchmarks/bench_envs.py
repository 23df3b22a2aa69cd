"""Time of ``VectorEnv.step`` of the native tasks, relative to bare MuJoCo steps of the full model.

``python benchmarks/bench_envs.py [--quick] [TASK...]`` writes results/bench_envs.csv. Both use the same number of
simulations, threads and substeps, and random actions. MuJoCo steps the original's model with every body and default
options; our steps include observation, reward, cost and automatic resets. Rounds of both alternate and each counts
its fastest, so the ratio depends little on other load; low and high are ratios of single rounds. ``mujoco_percent``
is the percentage of our steps that MuJoCo computes, in part or whole, over 32 episodes.
"""

from __future__ import annotations

import argparse
import csv
import time
from collections.abc import Callable
from pathlib import Path

import mujoco
import mujoco.batch
import numpy as np

from steingate.tasks.catalog import CIRCLE_RADIUS, GOAL_RADIUS, HAZARD_RADIUS, TASKS, TaskSpec
from steingate.tasks.environments import SafetyVectorEnv
from steingate.tasks.mujoco_handoff import CLOSED_FORM
from steingate.tasks.navigation_models import world_xml
from steingate.tasks.velocity import load_robot

TASK_IDS = [
    *(f"Safety{agent}{task}-v0" for agent in ("Point", "Car") for task in ("Goal1", "Goal2", "Circle1", "Circle2")),
    "SafetyHalfCheetahVelocity-v1",
    "SafetyAntVelocity-v1",
]
THREADS = 2
# Microseconds per step of the original on one core with random actions: with and without resets
ORIGINAL = {
    "SafetyPointGoal1-v0": (1760, 782),
    "SafetyPointCircle1-v0": (3240, 206),
    "SafetyCarGoal1-v0": (2395, 767),
    "SafetyCarCircle1-v0": (3077, 549),
}


# Largest ratio accepted with 8 and with 32 environments
TARGETS = {
    "SafetyPointGoal1-v0": (0.07, 0.04),
    "SafetyPointGoal2-v0": (0.02, 0.02),
    "SafetyPointCircle1-v0": (0.2, 0.09),
    "SafetyPointCircle2-v0": (0.2, 0.09),
    "SafetyCarGoal1-v0": (0.35, 0.35),
    "SafetyCarGoal2-v0": (0.15, 0.15),
    "SafetyCarCircle1-v0": (0.12, 0.12),
    "SafetyCarCircle2-v0": (0.12, 0.12),
}
OTHER_TARGETS = (1.4, 1.25)


def full_model(task: TaskSpec) -> mujoco.MjModel:
    """Return the model with every body of the original and its options."""
    if task.family == "velocity":
        model = load_robot(task.agent)
        model.opt.disableflags = 0
        return model
    spec = mujoco.MjSpec.from_string(world_xml(task, task.count("vases")))
    spec.option.tolerance, spec.option.disableflags = mujoco.MjOption().tolerance, 0
    for pair in list(spec.pairs):
        spec.delete(pair)
    cylinder, box = mujoco.mjtGeom.mjGEOM_CYLINDER, mujoco.mjtGeom.mjGEOM_BOX
    shapes = {
        "goal": (cylinder, (GOAL_RADIUS, GOAL_RADIUS / 2, 0.0), GOAL_RADIUS / 2 + 0.01),
        "hazards": (cylinder, (HAZARD_RADIUS, 0.01, 0.0), 0.02),
        "circle": (cylinder, (CIRCLE_RADIUS, 0.01, 0.0), 0.01),
        "sigwalls": (box, (0.05, 3.5, 0.3), 0.25),
    }
    for group in task.objects:
        for i in range(group.count if group.kind in shapes else 0):
            kind, size, height = shapes[group.kind]
            x, y = group.fixed[i] if group.fixed else (0.0, 0.0)
            turned = group.kind == "sigwalls" and x == 0.0
            body = spec.worldbody.add_body(pos=(x, y, height), euler=(0.0, 0.0, np.pi / 2 if turned else 0.0))
            body.add_geom(type=kind, size=size, contype=0, conaffinity=0)
    return spec.compile()


def bare_round(task: TaskSpec, num_envs: int, actions: np.ndarray) -> Callable[[], float]:
    """Return a function that times one round of bare MuJoCo steps."""
    model = full_model(task)
    batch = mujoco.batch.Batch(model, num_envs, THREADS, persistent=True)
    qpos, ctrl = batch.bind("qpos"), batch.bind("ctrl")
    env = SafetyVectorEnv(task.env_id, num_envs, threads=THREADS, physics="mujoco")

    def run() -> float:
        env.reset(seed=0)
        batch.reset(stage=0)
        scenes = [env.scene(i) for i in range(num_envs)]
        for row, scene in zip(qpos, scenes, strict=True):
            row[: scene["qpos"].size] = scene["qpos"]
            if task.count("vases"):
                row[scene["qpos"].size :] = scene["vases"].ravel()
        start = time.perf_counter()
        for action in actions:
            ctrl[:] = action
            batch.step(None, task.substeps)
        return time.perf_counter() - start

    return run


def env_round(task: TaskSpec, num_envs: int, actions: np.ndarray) -> Callable[[], float]:
    """Return a function that times one round of our steps."""
    env = SafetyVectorEnv(task.env_id, num_envs, threads=THREADS, copy=False)
    env.reset(seed=0)
    for action in actions[:20]:
        env.step(action)

    def run() -> float:
        start = time.perf_counter()
        for action in actions:
            env.step(action)
        return time.perf_counter() - start

    return run


def mujoco_percent(task: TaskSpec) -> float:
    """Return the percentage of steps that MuJoCo computes, over 32 episodes."""
    if task.family == "velocity":
        return 100.0
    env = SafetyVectorEnv(task.env_id, 32, threads=THREADS, copy=False)
    env.reset(seed=0)
    rng = np.random.default_rng(1)
    for _ in range(task.max_episode_steps):
        env.step(rng.uniform(-task.action_bound, task.action_bound, (32, task.action_size)))
    counts = env.simulation.step_counts
    return float(100.0 * (1.0 - counts[CLOSED_FORM] / counts.sum()))


def reset_time(task: TaskSpec) -> float:
    """Return the median time of resetting one of eight environments, in microseconds."""
    env = SafetyVectorEnv(task.env_id, 8, threads=THREADS)
    env.reset(seed=0)
    mask = np.zeros(8, bool)
    mask[3] = True
    times = []
    for _ in range(100):
        start = time.perf_counter()
        env.reset(options={"reset_mask": mask})
        times.append(time.perf_counter() - start)
    return float(np.median(times)) * 1e6


def measure(task: TaskSpec, num_envs: int, rounds: int, steps: int) -> dict[str, object]:
    """Return one row of the table."""
    rng = np.random.default_rng(0)
    bound = task.action_bound
    actions = rng.uniform(-bound, bound, (steps, num_envs, task.action_size))
    bare, ours_round = bare_round(task, num_envs, actions), env_round(task, num_envs, actions)
    times = np.array([(bare(), ours_round()) for _ in range(rounds)]) / steps / num_envs * 1e6
    engine, ours = times.min(axis=0)
    single = times[:, 1] / times[:, 0]
    with_resets, without = ORIGINAL.get(task.env_id, ("", ""))
    target = TARGETS.get(task.env_id, OTHER_TARGETS)[num_envs >= 32]
    return {
        "task": task.env_id,
        "envs": num_envs,
        "engine_us": round(engine, 2),
        "ours_us": round(ours, 2),
        "ratio": round(ours / engine, 3),
        "ratio_low": round(single.min(), 3),
        "ratio_high": round(single.max(), 3),
        "rounds": rounds,
        "target": target,
        "mujoco_percent": round(mujoco_percent(task), 2),
        "steps_per_s": round(1e6 / ours),
        "reset_us": round(reset_time(task)),
        "original_us": with_resets,
        "original_without_resets_us": without,
    }


def main() -> None:
    """Measure, print and write the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("tasks", nargs="*", default=TASK_IDS, metavar="TASK")
    parser.add_argument("--quick", action="store_true", help="a seventh of the work")
    parser.add_argument("--out", type=Path, default=Path("results/bench_envs.csv"))
    options = parser.parse_args()
    rounds, steps = (5, 30) if options.quick else (7, 150)
    rows = []
    widths = {"task": -31, "envs": 5, "engine us": 11, "ours us": 9, "ratio": 7, "spread": 14, "target": 7}
    widths |= {"MuJoCo": 9, "steps/s": 10}
    print("".join(f"{name:{'<' if w < 0 else '>'}{abs(w)}}" for name, w in widths.items()), "reset us")
    for env_id in options.tasks:
        for num_envs in (8, 32):
            row = measure(TASKS[env_id], num_envs, rounds, steps)
            rows.append(row)
            original = f"   (original: {row['original_us']} us a step with resets)" if row["original_us"] else ""
            spread, share = f"{row['ratio_low']}-{row['ratio_high']}", f"{row['mujoco_percent']} %"
            print(
                f"{env_id:31}{num_envs:5}{row['engine_us']:11}{row['ours_us']:9}{row['ratio']:7}{spread:>14}"
                f"{row['target']:7}{share:>9}{row['steps_per_s']:10}{row['reset_us']:9}{original}",
                flush=True,
            )
            write(options.out, rows)


def write(path: Path, rows: list[dict[str, object]]) -> None:
    """Write the rows measured so far."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, rows[0].keys())
        writer.writeheader()
        writer.writerows(rows)


if __name__ == "__main__":
    main()
