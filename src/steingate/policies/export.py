"""Policies for other machines: a NumPy file with its reader, and ONNX."""

import io
import json
from pathlib import Path

import numpy as np

from steingate.errors import InputError
from steingate.policies import policy as reader
from steingate.policies.policy import Policy
from steingate.storage.files import read_regular, replace_file


def export_policy(policy: Policy, file: str | Path) -> list[Path]:
    """Write the mean action of a policy for use without steingate; return the files.

    ``NAME.npz`` is a file with the arrays, and gets a ``policy.py`` beside it, which reads and runs them with NumPy.
    ``NAME.onnx`` is an ONNX graph from ``observation`` (n, d) to ``action``: (n, a), or integers (n,) for discrete
    actions. A policy that observes the cost of the episode so far has a second input (n, 1): ``accumulated_cost``, or
    ``safety_state`` if costs are discounted (Sauté, Simmer).

    Examples
    --------
    >>> steingate.export_policy(policy, "robot/policy.npz")  # doctest: +SKIP
    [PosixPath('robot/policy.npz'), PosixPath('robot/policy.py')]
    """
    target = Path(file)
    if target.suffix not in (".npz", ".onnx"):
        raise InputError(f"A policy cannot be written to {str(file)!r}: end the name with .npz or .onnx.")
    code, reading = target.with_name("policy.py"), Path(reader.__file__).read_bytes()
    if target.suffix == ".npz" and code.exists() and read_regular(code) != reading:
        raise InputError(f"{code} exists and is another file: move it, or export to another folder.")
    target.parent.mkdir(parents=True, exist_ok=True)
    if target.suffix == ".onnx":
        from steingate.policies.onnx import onnx_file

        replace_file(target, onnx_file(policy))
        return [target]
    replace_file(target, npz_bytes(policy))
    replace_file(code, reading)
    Policy.load(target)  # it must load, and give the same actions
    return [target, code]


def npz_bytes(policy: Policy) -> bytes:
    """Return the content of an ``.npz`` file with the policy; see ``Policy.load``.

    It holds actions for four observations (with a safety state) like those of training, some of them far out.
    """
    inputs = np.random.default_rng(0).normal(size=(4, policy.obs_dim + policy.has_safety_state))
    inputs *= np.geomspace(0.1, 10.0, 4)[:, None]
    d = min(policy.array("obs_mean").size, policy.obs_dim)
    inputs[:, :d] = policy.array("obs_mean")[:d] + policy.array("obs_std")[:d] * inputs[:, :d]
    content = io.BytesIO()
    np.savez_compressed(
        content,
        **policy.arrays,
        format=np.array(reader.FORMAT),
        about=np.array(json.dumps(policy.about)),
        test_inputs=inputs,
        test_actions=np.asarray(policy._action(policy._outputs(inputs)), np.float64),
    )
    return content.getvalue()
