"""Exported policies act as the policy does, with NumPy alone, and refuse what is damaged."""

import json
import subprocess
import sys
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from steingate.errors import InputError, MissingExtraError
from steingate.gates.account import Extra
from steingate.gates.sight import Sight
from steingate.policies.action_distribution import Choice
from steingate.policies.export import export_policy
from steingate.policies.numpy_policy import RobotPolicy
from steingate.policies.policy import Policy


def made(obs=3, hidden=(5, 4), extra=None, sight=None, normalized=True):
    rng = np.random.default_rng(1)
    inside = obs + (0 if sight is None else sight.added)
    sizes = [inside + (extra is not None), *hidden, 2]
    weights = [rng.normal(size=pair).astype(np.float32) for pair in pairwise(sizes)]
    biases = [rng.normal(size=size).astype(np.float32) for size in sizes[1:]]
    mean, std = (rng.normal(size=inside), 0.1 + rng.random(inside)) if normalized else (None, None)
    scales = np.array([1.0, -2.0]), np.array([3.0, 0.5])
    return Policy(tuple(weights), tuple(biases), np.zeros(2, np.float32), mean, std, *scales, extra, sight)


KINDS = {
    "plain": {},
    "raw": {"normalized": False},
    "linear": {"hidden": ()},
    "account": {"extra": Extra(1.0, -0.1, 0.9)},
    "near": {"sight": Sight((0, 2), (2.0, 4.0))},
    "places": {
        "obs": 20,
        "sight": Sight((4, 5), (2.0,), (4, 12), 8, (1, 2), (3, 0)),
        "extra": Extra(1.0, -0.1, 1.0),
    },
    "resting": {"obs": 20, "sight": Sight(rings=(4,), compass=(0, 1))},
    "ahead": {"obs": 20, "sight": Sight(rings=(4,))},
    "both": {"sight": Sight((1,), (3.0,)), "extra": Extra(0.0, 0.04, 1.0)},
}


def seen_by(policy, count):
    """Observations with some things in sight, some rings empty, and some of them without a direction."""
    rng = np.random.default_rng(2)
    obs = rng.normal(size=(count, policy.obs_dim)) * 2.0
    sight = policy.sight or Sight()
    for first in sight.rings:
        ring = obs[:, first : first + sight.bins]
        ring[:] = 0.95 * rng.random(ring.shape) * (rng.random(ring.shape) < 0.3)
        ring[:5] = 0.0
    obs[3:8, list(sight.compass)] = 0.0
    return obs


@pytest.mark.parametrize("kind", KINDS)
def test_the_file_acts_as_the_policy(tmp_path, kind):
    policy, size = made(**KINDS[kind]), KINDS[kind].get("obs", 3)
    files = export_policy(policy, tmp_path / "robot" / "policy.npz", {"env": "here"})
    assert [file.name for file in files] == ["policy.npz", "policy.py"]
    robot = RobotPolicy(files[0])
    assert robot.about == {"env": "here"}
    assert (robot.obs_dim, robot.act_dim) == (size, 2)
    robot.start()
    number = None if policy.extra is None else policy.extra.start
    for obs in seen_by(policy, 20)[:, :size]:
        seen = obs if number is None else np.append(obs, number)
        np.testing.assert_allclose(robot(obs), policy(seen), rtol=1e-6, atol=1e-6)
        robot.spend(1.5)
        number = None if number is None else policy.extra.following(number, 1.5)
    batch = np.zeros((4, size))
    assert robot(batch).shape == (4, 2)
    assert (np.abs(robot(batch * 1e6) - policy.shift) <= policy.scale).all()


def test_the_reader_needs_numpy_alone(tmp_path):
    export_policy(made(), tmp_path / "policy.npz")
    code = (
        "import sys; from policy import RobotPolicy\n"
        "print(RobotPolicy('policy.npz')([0.0, 1.0, 2.0]).tolist())\n"
        "print([name for name in sys.modules if name.startswith('steingate')])\n"
    )
    command = [sys.executable, "-S", "-c", "import sys; sys.path[:0] = sys.argv[1:]\n" + code]
    site = str(next(p for p in sys.path if p.endswith("site-packages")))
    out = subprocess.run([*command, ".", site], cwd=tmp_path, capture_output=True, text=True, check=True)
    lines = out.stdout.splitlines()
    assert lines[0] == str(made()([0.0, 1.0, 2.0]).tolist())
    assert lines[1] == "[]"


def changed(file, **parts):
    with np.load(file) as found:
        whole = {name: found[name] for name in found.files}
    np.savez(file, **{**whole, **parts})


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ({"format": np.array("other")}, "not a policy of the format"),
        ({"w1": np.zeros((5, 4), np.float32)}, "does not give the actions"),
        ({"w1": np.zeros((5, 3), np.float32)}, "do not fit together"),
        ({"b0": np.full(5, np.nan, np.float32)}, "b0 that is not finite"),
        ({"shift": np.zeros(3)}, "do not fit together"),
    ],
)
def test_what_is_damaged_is_refused(tmp_path, parts, message):
    file = export_policy(made(), tmp_path / "policy.npz")[0]
    changed(file, **parts)
    with pytest.raises(ValueError, match=message):
        RobotPolicy(file)


def test_bad_observations_and_names_are_refused(tmp_path):
    robot = RobotPolicy(export_policy(made(), tmp_path / "policy.npz")[0])
    with pytest.raises(ValueError, match=r"shape \(4,\): \(3,\)"):
        robot(np.zeros(4))
    with pytest.raises(ValueError, match="not finite"):
        robot([0.0, np.inf, 0.0])
    with pytest.raises(InputError, match=r"\.npz or \.onnx"):
        export_policy(made(), tmp_path / "policy.pkl")


def test_pickles_are_never_read(tmp_path):
    file = export_policy(made(), tmp_path / "policy.npz")[0]
    changed(file, shift=np.array([{"a": 1}], dtype=object))
    with pytest.raises(ValueError, match="pickle"):
        RobotPolicy(file)


def test_onnx_without_its_package_names_the_extra(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(MissingExtraError, match=r"\[onnx\]'"):
        export_policy(made(), tmp_path / "policy.onnx")


@pytest.mark.parametrize("kind", [*KINDS, "choice"])
def test_the_onnx_graph_acts_as_the_policy(tmp_path, kind):
    onnx_reference = pytest.importorskip("onnx.reference")
    policy = made(**KINDS.get(kind, {}))
    if kind == "choice":
        none = np.zeros(0)
        policy = replace(policy, choice=Choice(2, 5), log_std=none.astype(np.float32), shift=none, scale=none)
    else:
        policy = replace(policy, scale=policy.scale * 2.0)
    file = export_policy(policy, tmp_path / "policy.onnx", {"env": "here"})[0]
    graph = onnx_reference.ReferenceEvaluator(str(file))
    obs = seen_by(policy, 50).astype(np.float32)
    (found,) = graph.run(["action"], {"obs": obs})
    np.testing.assert_allclose(found, policy(obs), rtol=1e-4, atol=1e-4)
    assert found.shape == np.asarray(policy(obs)).shape
    assert len(np.unique(found, axis=0)) > 1
    stored = {entry.key: json.loads(entry.value) for entry in graph.proto_.metadata_props}
    account = {} if policy.extra is None else {"account": policy.extra.plain()}
    assert stored == {"about": {"env": "here"}, **account}
