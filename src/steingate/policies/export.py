"""Policies for other machines: a NumPy file with its own reader, and ONNX."""

import io
import json
from pathlib import Path
from typing import Any

import numpy as np

from steingate.errors import InputError
from steingate.policies import numpy_policy as robot
from steingate.policies.lidar_features import LidarFeatures
from steingate.policies.normalizer import CLIP
from steingate.policies.policy import Policy
from steingate.storage.files import replace_file

FORMATS = (".npz", ".onnx")
_TESTS = 16  # stored observations


def export_policy(policy: Policy, file: str | Path, about: dict[str, Any] | None = None) -> list[Path]:
    """Write a policy's mean action for use without this package; return the files.

    Parameters
    ----------
    policy
        What to write.
    file
        ``NAME.npz`` writes the numbers, and ``NAME.py`` beside them, which needs NumPy alone to read and use
        them. ``NAME.onnx`` writes an ONNX graph from observations (n, d) to actions (n, a), both float32; to
        integers (n,) where actions are choices.
    about
        Anything worth knowing, as JSON types.

    Examples
    --------
    >>> import steingate
    >>> run = steingate.load("runs/steingate/SafetyPointGoal1-v0/seed-0")  # doctest: +SKIP
    >>> steingate.export_policy(run.policy, "robot/policy.npz")  # doctest: +SKIP
    [PosixPath('robot/policy.npz'), PosixPath('robot/policy.py')]
    """
    target = Path(file)
    if target.suffix not in FORMATS:
        raise InputError(f"A policy cannot be written to {str(file)!r}: end the name with .npz or .onnx.")
    target.parent.mkdir(parents=True, exist_ok=True)
    if target.suffix == ".onnx":
        from steingate.policies.onnx import onnx_file

        replace_file(target, onnx_file(policy, about or {}))
        return [target]
    content = io.BytesIO()
    np.savez(content, **_parts(policy, about or {}))
    replace_file(target, content.getvalue())
    reader = target.with_suffix(".py")
    replace_file(reader, Path(robot.__file__).read_bytes())
    robot.RobotPolicy(target)  # it must load, and give the actions of the policy
    return [target, reader]


def _parts(policy: Policy, about: dict[str, Any]) -> dict[str, Any]:
    """Return what ``robot.RobotPolicy`` reads; what a policy does not have is empty."""
    none = np.zeros(0)
    safety_state, choice = policy.safety_state, policy.choice
    lidar = policy.lidar_features or LidarFeatures()
    seen = _test_observations(policy)
    layers = {f"w{i}": w for i, w in enumerate(policy.weights)}
    layers |= {f"b{i}": b for i, b in enumerate(policy.biases)}
    return {
        "format": np.array(robot.FORMAT),
        "about": np.array(json.dumps(about)),
        "layers": np.array(len(policy.weights)),
        **layers,
        "log_std": policy.log_std,
        "obs_mean": none if policy.obs_mean is None else policy.obs_mean,
        "obs_std": none if policy.obs_std is None else policy.obs_std,
        "obs_clip": np.array(CLIP),
        "shift": policy.shift,
        "scale": policy.scale,
        "indices": np.array(lidar.indices, np.int64),
        "powers": np.array(lidar.powers, np.float64),
        "rings": np.array(lidar.rings, np.int64),
        "bins": np.array(lidar.bins),
        "compass": np.array(lidar.compass, np.int64),
        "velocity": np.array(lidar.velocity, np.int64),
        "safety_state": none if safety_state is None else np.array(safety_state.to_list()),
        "choice": none if choice is None else np.array([choice.choices, choice.start], np.int64),
        "test_obs": seen,
        "test_actions": np.asarray(policy(seen), np.float64),
    }


def _test_observations(policy: Policy) -> np.ndarray:
    """Return observations like those of training, some of them far out."""
    rng = np.random.default_rng(0)
    seen = rng.normal(size=(_TESTS, policy.obs_dim)) * np.geomspace(0.1, 10.0, _TESTS)[:, None]
    if policy.obs_mean is not None and policy.obs_std is not None:
        known = min(policy.obs_mean.size, policy.obs_dim - (policy.safety_state is not None))
        seen[:, :known] = policy.obs_mean[:known] + policy.obs_std[:known] * seen[:, :known]
    return seen
