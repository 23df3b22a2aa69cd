"""Time of the whole ``VectorEnv.step`` over bare engine steps of the full model, task by task.

Run ``python benchmarks/bench_envs.py [--quick] [IDS...]``; the table also goes to results/bench_envs.csv.
Both sides use the same number of simulations, threads and substeps and random actions. The engine side has
the original's model with every body and the engine's default options; our side includes observation, reward,
cost and automatic resets. Rounds of both sides alternate and each side counts its fastest, so that other load
on the machine disturbs the ratio little; the spread is that of the ratios within single rounds. The table
also says which share of our steps went through the engine, in part or whole, over 32 episodes.
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

IDS = [
    *(f"Safety{agent}{task}-v0" for agent in ("Point", "Car") for task in ("Goal1", "Goal2", "Circle1", "Circle2")),
    "SafetyHalfCheetahVelocity-v1",
    "SafetyAntVelocity-v1",
]
THREADS = 2
# the original's microseconds per step on one core, random actions, with and without resets
ORIGINAL = {
    "SafetyPointGoal1-v0": (1760, 782),
    "SafetyPointCircle1-v0": (3240, 206),
    "SafetyCarGoal1-v0": (2395, 767),
    "SafetyCarCircle1-v0": (3077, 549),
}


# ratios to reach, with 8 and with 32 simulations
BARS = {
    "SafetyPointGoal1-v0": (0.07, 0.04),
    "SafetyPointGoal2-v0": (0.02, 0.02),
    "SafetyPointCircle1-v0": (0.2, 0.09),
    "SafetyPointCircle2-v0": (0.2, 0.09),
    "SafetyCarGoal1-v0": (0.35, 0.35),
    "SafetyCarGoal2-v0": (0.15, 0.15),
    "SafetyCarCircle1-v0": (0.12, 0.12),
    "SafetyCarCircle2-v0": (0.12, 0.12),
}
OTHERS = (1.4, 1.25)


def limit(task: TaskSpec, num_envs: int) -> float:
    """Return the ratio to reach."""
    few, many = BARS.get(task.env_id, OTHERS)
    return few if num_envs < 32 else many


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
    """Return a function that gives the seconds of one round of bare engine steps."""
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


def whole_round(task: TaskSpec, num_envs: int, actions: np.ndarray) -> Callable[[], float]:
    """Return a function that gives the seconds of one round of our steps."""
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


def engine_share(task: TaskSpec) -> float:
    """Return the share of steps that went through the engine, in per cent, over 32 episodes."""
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
    """Return the median microseconds of resetting one of eight environments."""
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
    bare, whole = bare_round(task, num_envs, actions), whole_round(task, num_envs, actions)
    times = np.array([(bare(), whole()) for _ in range(rounds)]) / steps / num_envs * 1e6
    engine, ours = times.min(axis=0)
    single = times[:, 1] / times[:, 0]
    with_resets, without = ORIGINAL.get(task.env_id, ("", ""))
    goal = limit(task, num_envs)
    return {
        "task": task.env_id,
        "envs": num_envs,
        "engine_us": round(engine, 2),
        "ours_us": round(ours, 2),
        "ratio": round(ours / engine, 3),
        "ratio_low": round(single.min(), 3),
        "ratio_high": round(single.max(), 3),
        "rounds": rounds,
        "to_reach": goal,
        "reached": ours / engine <= goal,
        "engine_share": round(engine_share(task), 2),
        "steps_per_s": round(1e6 / ours),
        "reset_us": round(reset_time(task)),
        "original_us": with_resets,
        "original_without_resets_us": without,
    }


def main() -> None:
    """Measure, print and write the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("ids", nargs="*", default=IDS)
    parser.add_argument("--quick", action="store_true", help="a seventh of the work")
    parser.add_argument("--out", type=Path, default=Path("results/bench_envs.csv"))
    options = parser.parse_args()
    rounds, steps = (5, 30) if options.quick else (7, 150)
    rows = []
    widths = {"task": -31, "envs": 5, "engine us": 11, "ours us": 9, "ratio": 7, "spread": 14, "reach": 6}
    widths |= {"in engine": 11, "steps/s": 10}
    print("".join(f"{name:{'<' if w < 0 else '>'}{abs(w)}}" for name, w in widths.items()), "reset us")
    for env_id in options.ids:
        for num_envs in (8, 32):
            row = measure(TASKS[env_id], num_envs, rounds, steps)
            rows.append(row)
            original = f"   (original: {row['original_us']} us a step with resets)" if row["original_us"] else ""
            spread, share = f"{row['ratio_low']}-{row['ratio_high']}", f"{row['engine_share']} %"
            print(
                f"{env_id:31}{num_envs:5}{row['engine_us']:11}{row['ours_us']:9}{row['ratio']:7}{spread:>14}"
                f"{row['to_reach']:6}{share:>11}{row['steps_per_s']:10}{row['reset_us']:9}{original}",
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
