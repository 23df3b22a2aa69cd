"""``contract.json``: the interface of a policy: shapes, order, units, normalization, bounds and rate."""

from math import isfinite
from typing import Any

from steingate.policies.policy import Policy
from steingate.tasks.catalog import LIDAR_BINS, TASKS, TaskSpec

_SENSORS = (
    ("accelerometer", 3, "m/s^2"), ("velocimeter", 3, "m/s"), ("gyro", 3, "rad/s"), ("magnetometer", 3, "1"),
)  # fmt: skip
_CLIPPED = "clip((x - obs_mean) / obs_std, -obs_clip, obs_clip), with the arrays of policy.npz"
_UPDATE = "start at a reset; after every step max((state - cost / scale) / discount, floor)"
_CAR = (("angular velocity of the rear ball", 3, "rad/s"), ("rotation matrix of the rear ball, by rows", 9, "1"))


def contract(policy: Policy, env: str, env_options: dict[str, Any]) -> dict[str, Any]:
    """Return the content of ``contract.json``; what is unknown is null and listed in ``unknown``."""
    task = TASKS.get(env.removeprefix("steingate/"))
    steps = env_options.get("max_episode_steps") or (task and task.max_episode_steps)
    discrete = policy.array("discrete")
    shift, scale = policy.array("shift"), policy.array("scale")
    if discrete.size:
        first = int(discrete[1])
        action: dict[str, Any] = {"kind": "discrete", "first": first, "last": first + int(discrete[0]) - 1}
    else:
        low, high = (shift - scale).tolist(), (shift + scale).tolist()
        action = {"kind": "continuous", "shape": [policy.act_dim], "dtype": "float64", "low": low, "high": high}
        action["units"] = "controls of the simulated actuators" if task else None
    mean, state = policy.array("obs_mean"), None
    if policy.has_safety_state:
        values = policy.array("safety_state").tolist()  # JSON has no infinities
        named = zip(("start", "scale", "discount", "floor"), values, strict=True)
        state = {name: value if isfinite(value) else str(value) for name, value in named}
    components = _components(task) if task else None
    found: dict[str, Any] = {
        "environment": env,
        "observation": {"shape": [policy.obs_dim], "dtype": "float64", "components": components},
        "action": action,
        "normalization": f"first {mean.size} inputs of the network: {_CLIPPED}" if mean.size else "none",
        "safety_state": state,
        "safety_state_update": _UPDATE if state else None,
        "cost": task.cost_text if task else None,
        "time_step_s": task.period if task else None,
        "rate_hz": 1.0 / task.period if task else None,
        "max_episode_steps": steps,
        "calls": ["reset() before an episode", "action = policy(observation)", "observe(cost) after every step"],
        "load": "steingate.load_policy(FOLDER)",
    }  # fmt: skip
    unknown = [] if components else ["order and units of the observation"]
    unknown += [] if action.get("units", True) else ["units of the actions"]
    unknown += [] if task else ["time step", "what costs"]
    return {**found, "unknown": unknown}


def _components(task: TaskSpec) -> list[dict[str, Any]] | None:
    """Return name, first and last index, and unit of each part of an observation of a Goal or Circle task."""
    if task.family == "velocity":
        return None
    parts = [*_SENSORS, *(_CAR if task.agent == "car" else ())]
    lidar = f"1 - distance / {task.lidar_range:g} m, at least 0"
    parts += [(f"lidar of {kind}, counter-clockwise from the robot's x axis", LIDAR_BINS, lidar) for kind in task.lidar]
    rows, first = [], 0
    for name, size, unit in parts:
        rows.append({"name": name, "first": first, "last": first + size - 1, "unit": unit})
        first += size
    return rows
