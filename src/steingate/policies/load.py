"""Loading the policy of a run folder; needs neither JAX nor the simulator."""

import hashlib
import io
import json
import os
import warnings
from collections.abc import Callable
from contextlib import suppress
from os import PathLike
from pathlib import Path
from typing import Any, Literal

import numpy as np

from steingate.errors import InputError, RunError
from steingate.escaping import printable
from steingate.policies.lidar_features import LidarFeatures
from steingate.policies.normalizer import CLIP, STD_FLOOR
from steingate.policies.policy import Policy
from steingate.policies.zoo import run_folder
from steingate.runs import (
    certified_checkpoint,
    is_edited,
    load_certification,
    newest_checkpoint,
    read_config,
    read_evidence,
)
from steingate.storage.checkpoint import Checkpoint
from steingate.storage.files import read_regular

Which = Literal["certified", "last"]
_MAX_BYTES = 64 << 20  # of a file of an evidence bundle


def load_policy(
    path: str | PathLike[str], policy: Which | None = None, warn: Callable[[str], None] = warnings.warn
) -> Policy:
    """Return a policy of a run, the zoo or an evidence bundle, or one that was exported with NumPy.

    Parameters
    ----------
    path
        A run, a run folder, a name of ``steingate zoo`` such as ``"zoo:SafetyPointGoal1-v0"``, the folder of an
        evidence bundle, or an exported ``.npz`` file.
    policy
        ``"certified"`` for the certified checkpoint, an error if there is none; ``"last"`` for the newest
        checkpoint. By default the certified one, or the last one with a warning.
    warn
        Called with that warning, and with a sentence for each damaged or foreign file that was skipped.

    Examples
    --------
    >>> steingate.load_policy("runs/allowance/SafetyPointGoal1-v0/seed-0")  # doctest: +SKIP
    Policy(60 observations and a safety state -> 2 actions, hidden 64-64)
    """
    name, path = os.fspath(path), run_folder(path)
    if path.suffix == ".npz":
        try:
            return Policy.load(path)
        except (OSError, ValueError) as error:
            raise RunError(str(error)) from error
    evidence = read_evidence(path)
    if evidence is not None:
        return _bundled_policy(path, evidence, policy, warn)
    record = read_config(path)
    if is_edited(record):
        raise RunError(f"{path}/config.json was changed after the run was started; restore it.")
    checkpoint, chosen = choose_checkpoint(path, policy, warn)
    found, certification = Policy(policy_arrays(checkpoint)), None
    with suppress(RunError):  # part of the warning
        certification = load_certification(path)
    found.about = {
        "run": name,
        "checkpoint": chosen,
        "epoch": checkpoint.epoch,
        **{name: record["config"].get(name) for name in ("env", "algo", "seed", "cost_limit")},
        "sha256": found.sha256,
        "certified": chosen == "certified",
        "certification": certification and certification["sentence"],
    }
    return found


def _bundled_policy(folder: Path, evidence: dict[str, Any], which: Which | None, warn: Callable[[str], None]) -> Policy:
    """Return the policy of an evidence bundle; RunError unless it is the one that was tested."""
    file = folder / "policy.npz"
    try:
        content = read_regular(file, _MAX_BYTES)
        if evidence["files"]["policy.npz"] != hashlib.sha256(content).hexdigest():
            raise RunError(f"{file} was changed: its SHA-256 is not the one in evidence.json.")
        found = Policy.load(io.BytesIO(content))
        if evidence["policy"]["sha256"] != found.sha256:
            raise RunError(f"{file} holds another policy than the one that was tested.")
        certification = printable(str(evidence["claim"]["sentence"]), 500)
        established = evidence["claim"]["established"] is True
    except (KeyError, TypeError, ValueError):
        raise RunError(f"{folder} is a damaged evidence bundle: run `steingate evidence verify {folder}`.") from None
    if not established and which == "certified":
        raise RunError(f"{folder} holds no certified policy. {certification}")
    if not established and which is None:
        warn(f"The policy of {folder} is not certified. {certification}")
    found.about |= {"sha256": found.sha256, "certified": established, "certification": certification}
    return found


def choose_checkpoint(path: Path, which: Which | None, warn: Callable[[str], None]) -> tuple[Checkpoint, Which]:
    """Return the checkpoint that ``load_policy`` takes, and which one it is."""
    if which not in (None, "certified", "last"):
        raise InputError(f"The policy is {which!r}: 'certified' or 'last' is expected.")
    reason = ""
    if which != "last":
        try:
            found, certification = certified_checkpoint(path), load_certification(path)
            if found is not None:
                _check_certified(found, certification)
                return found, "certified"
            certify = read_config(path)["config"].get("certify")
            if isinstance(certify, dict) and certify.get("enabled") is False:
                reason = "Certification is disabled (certify.enabled)."
            elif certification is None:
                reason = "Certification did not finish; `steingate resume` completes it."
            else:
                reason = "Training certified no policy."
        except RunError as error:
            reason = str(error)
    if which == "certified":
        raise RunError(f"{path} has no certified policy that can be used. {reason}")
    last = newest_checkpoint(path, warn, policy_arrays)
    if last is None:
        raise RunError(f"{path} has no checkpoint yet; train it for an epoch first.")
    if which is None:
        warn(f"This is the last policy of {path}. {reason}")
    return last, "last"


def _check_certified(found: Checkpoint, certification: dict[str, Any] | None) -> None:
    """Raise RunError unless the file holds a passed test of its policy, and ``certification.json`` names both."""
    test, named = found.tree.get("test"), (certification or {}).get("policy")
    if not isinstance(test, dict) or test.get("certified") is not True:
        raise RunError(f"{found.path} holds no certification test, so it is not certified.")
    if test.get("sha256") != Policy(policy_arrays(found)).sha256:
        raise RunError(f"{found.path} holds another policy than the one that was tested.")
    if not isinstance(named, dict) or {key: named.get(key) for key in test} != test:
        run = found.path.parent
        raise RunError(f"{run}/certification.json does not name this policy; `steingate resume {run}` checks both.")


def policy_arrays(checkpoint: Checkpoint) -> dict[str, Any]:
    """Return the arrays of the policy in a checkpoint (see ``Policy``); RunError if it holds none."""
    tree = checkpoint.tree
    try:
        with np.errstate(over="ignore", invalid="ignore"):  # infinite numbers and NaN are refused
            network, action = tree["policy"], tree["action"]
            mean, m2 = (np.asarray(tree["stats"][name], np.float64) for name in ("mean", "m2"))
            seen = int(tree["stats"]["count"])
            arrays: dict[str, Any] = {f"w{i}": np.asarray(w, np.float32) for i, w in enumerate(network["w"])}
            arrays |= {f"b{i}": np.asarray(b, np.float32) for i, b in enumerate(network["b"])}
            if "discrete" in action:
                arrays["discrete"] = np.asarray(action["discrete"])
            else:
                arrays["log_std"] = np.asarray(network["log_std"], np.float32)
                arrays |= {name: np.asarray(action[name], np.float64) for name in ("shift", "scale")}
        if mean.shape != m2.shape:
            raise ValueError("the statistics of the observations differ in length")
        if tree["normalize"] and seen > 1:
            std = np.maximum(np.sqrt(m2 / (seen - 1)), STD_FLOOR)
            arrays |= {"obs_mean": mean, "obs_std": std, "obs_clip": np.array(CLIP)}
        if tree.get("safety_state") is not None:
            arrays["safety_state"] = np.asarray(tree["safety_state"], np.float64)
        if tree.get("layout") is not None:
            arrays["layout"] = np.frombuffer(json.dumps(tree["layout"]).encode(), np.uint8)
        if tree.get("lidar_features") is not None:
            for name in LidarFeatures._fields:
                arrays[name] = np.array(tree["lidar_features"][name], np.float64 if name == "powers" else np.int64)
        Policy(arrays)
    except (KeyError, TypeError, ValueError, OverflowError, AttributeError, IndexError) as error:
        raise RunError(f"Checkpoint {checkpoint.path} holds no usable policy ({error}).") from error
    return arrays
