"""The NumPy policy, its file and its ONNX graph: equal actions, safety state, refusal of damaged files."""

import json
import subprocess
import sys
from itertools import pairwise

import numpy as np
import pytest
from scipy.special import softmax
from scipy.stats import chisquare

from steingate.errors import InputError, MissingExtraError
from steingate.policies.export import export_policy
from steingate.policies.lidar_features import LidarFeatures
from steingate.policies.policy import Policy
from steingate.policies.safety_state import SafetyState

SCALE = np.array([3.0, 0.5])


def make_policy(obs=3, hidden=(5, 4), state=None, lidar=None, normalized=True, discrete=False, scale=SCALE):
    rng = np.random.default_rng(1)
    inside = obs if lidar is None else lidar(np.zeros(obs)).size
    sizes = [inside + (state is not None), *hidden, 2]
    arrays = {f"w{i}": rng.normal(size=pair).astype(np.float32) for i, pair in enumerate(pairwise(sizes))}
    arrays |= {f"b{i}": rng.normal(size=size).astype(np.float32) for i, size in enumerate(sizes[1:])}
    if normalized:
        arrays |= {"obs_mean": rng.normal(size=inside), "obs_std": 0.1 + rng.random(inside), "obs_clip": np.array(5.0)}
    if discrete:
        arrays["discrete"] = np.array([2, 5])
    else:
        arrays |= {"log_std": np.log([0.5, 2.0]), "shift": np.array([1.0, -2.0]), "scale": scale}
    if state is not None:
        arrays["safety_state"] = np.array(state[:4])
    if lidar is not None:
        arrays |= {name: np.array(value) for name, value in lidar._asdict().items()}
    return Policy(arrays, {"env": "here"})


KINDS = {
    "plain": {},
    "raw": {"normalized": False},
    "linear": {"hidden": ()},
    "discrete": {"discrete": True},
    "budget": {"state": SafetyState(1.0, 10.0, 0.9)},
    "powers": {"lidar": LidarFeatures((0, 2), (2.0, 4.0))},
    "positions": {
        "obs": 20,
        "lidar": LidarFeatures((4, 5), (2.0,), (4, 12), 8, (1, 2), (3, 0)),
        "state": SafetyState(0.0, 10.0, 1.0, -0.5),
    },
    "compass": {"obs": 20, "lidar": LidarFeatures(rings=(4,), compass=(0, 1))},
    "rings": {"obs": 20, "lidar": LidarFeatures(rings=(4,))},
}


def observations(policy, count):
    """Observations with some empty rings, and some without a direction."""
    rng = np.random.default_rng(2)
    obs = rng.normal(size=(count, policy.obs_dim)) * 2.0
    for first in policy.array("rings"):
        ring = obs[:, first : first + int(policy.array("bins"))]
        ring[:] = 0.95 * rng.random(ring.shape) * (rng.random(ring.shape) < 0.3)
        ring[:5] = 0.0
    obs[3:8, policy.array("compass").astype(int)] = 0.0
    return obs


def expected(kind, obs, z):
    """The mean action written out for one observation and safety state."""
    policy, lidar, state = make_policy(**kind), kind.get("lidar"), kind.get("state")
    values = obs if lidar is None else lidar(obs)
    if policy.array("obs_mean").size:
        values = np.clip((values - policy.array("obs_mean")) / policy.array("obs_std"), -5.0, 5.0)
    values = values if state is None else np.append(values, z)
    for weight, bias in policy.layers[:-1]:
        values = np.tanh(values @ weight + bias)
    values = values @ policy.layers[-1][0] + policy.layers[-1][1]
    if kind.get("discrete"):
        return 5 + int(values.argmax())
    return policy.array("shift") + SCALE * np.clip(values, -1.0, 1.0)


@pytest.mark.parametrize("kind", KINDS)
def test_actions_of_the_policy_and_its_file(tmp_path, kind):
    policy, state = make_policy(**KINDS[kind]), KINDS[kind].get("state")
    files = export_policy(policy, tmp_path / "robot" / "weights.npz")
    assert [file.name for file in files] == ["weights.npz", "policy.py"]
    stored = Policy.load(files[0])
    assert (stored.about, stored.obs_dim) == ({"env": "here"}, KINDS[kind].get("obs", 3))
    z = None if state is None else state.start
    for obs in observations(policy, 20):
        action = policy(obs)
        np.testing.assert_allclose(action, expected(KINDS[kind], obs, z), rtol=1e-4, atol=1e-5)
        np.testing.assert_array_equal(stored(obs), action)
        policy.observe(1.5)
        stored.observe(1.5)
        z = None if state is None else state.next(z, 1.5)


def test_the_safety_state_follows_reset_and_observe_in_a_batch():
    policy = make_policy(state=SafetyState(1.0, 10.0, 0.9, -2.0))
    obs = np.zeros((3, 3))
    policy.reset()
    policy(obs)
    policy.observe([1.0, 2.0, 100.0])
    np.testing.assert_allclose(policy.z, [1.0, 0.8 / 0.9, -2.0])
    policy.reset(ended=[False, True, False])
    np.testing.assert_allclose(policy.z, [1.0, 1.0, -2.0])
    assert policy(obs).shape == (3, 2)


def test_a_forgotten_observe_or_reset_is_an_error_at_the_second_step():
    policy = make_policy(state=SafetyState(1.0, 10.0))
    policy(np.zeros(3))
    with pytest.raises(ValueError, match=r"call policy.observe\(cost\) after every step"):
        policy(np.zeros(3))
    policy.reset()
    policy(np.zeros(3))
    plain = make_policy()
    assert np.array_equal(plain(np.zeros(3)), plain(np.zeros(3)))  # not needed


def test_samples_are_clipped_normal_numbers():
    policy, obs = make_policy(hidden=()), np.array([0.1, 0.5, 0.2])
    outputs = policy._outputs(obs)
    drawn = [policy.sample(obs, np.random.default_rng(seed)) for seed in range(2000)]
    noise = [np.random.default_rng(seed).standard_normal(2) for seed in range(2000)]
    free = np.clip(outputs + np.array([0.5, 2.0]) * noise, -1.0, 1.0)
    np.testing.assert_allclose(drawn, np.array([1.0, -2.0]) + SCALE * free, rtol=1e-6)


def test_discrete_samples_have_their_probabilities():
    policy, obs = make_policy(hidden=(), discrete=True), np.array([0.4, 0.0, 0.0])
    drawn = policy.sample(np.tile(obs, (20_000, 1)), np.random.default_rng(5))
    p = softmax(policy._outputs(obs))
    assert 0.05 < p[0] < 0.95
    assert chisquare(np.bincount(drawn - 5, minlength=2), 20_000 * p).pvalue > 1e-3


def test_the_exported_file_needs_numpy_alone(tmp_path):
    export_policy(make_policy(), tmp_path / "policy.npz")
    code = (
        "import sys; sys.path[:0] = sys.argv[1:]\n"
        "from policy import Policy\n"
        "print(Policy.load('policy.npz')([0.0, 1.0, 2.0]).tolist())\n"
        "print([name for name in sys.modules if name.startswith('steingate')])\n"
    )
    site = str(next(p for p in sys.path if p.endswith("site-packages")))
    command = [sys.executable, "-S", "-c", code, ".", site]
    out = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert out.stdout.splitlines() == [str(make_policy()([0.0, 1.0, 2.0]).tolist()), "[]"]


def change(file, **arrays):
    with np.load(file) as stored:
        whole = {name: stored[name] for name in stored.files}
    np.savez(file, **{**whole, **arrays})


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"format": np.array("other")}, "its format is not"),
        ({"w1": np.zeros((5, 4), np.float32)}, "it does not give the actions"),
        ({"b0": np.full(5, np.nan, np.float32)}, "b0 that is not finite"),
        ({"indices": np.array([7])}, "do not fit together"),
        ({"shift": np.array([{"a": 1}], dtype=object)}, "pickle"),
    ],
)
def test_damaged_files_are_refused(tmp_path, arrays, message):
    file = export_policy(make_policy(), tmp_path / "policy.npz")[0]
    change(file, **arrays)
    with pytest.raises(ValueError, match=message):
        Policy.load(file)


def test_wrong_observations_and_names_are_refused(tmp_path):
    policy = make_policy()
    with pytest.raises(ValueError, match=r"shape \(4,\): \(3,\)"):
        policy(np.zeros(4))
    with pytest.raises(ValueError, match="not finite"):
        policy([0.0, np.inf, 0.0])
    with pytest.raises(InputError, match=r"\.npz or \.onnx"):
        export_policy(policy, tmp_path / "policy.pkl")


def test_onnx_without_its_package_names_the_extra(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "onnx", None)
    monkeypatch.delitem(sys.modules, "steingate.policies.onnx", raising=False)
    with pytest.raises(MissingExtraError, match=r"\[onnx\]'"):
        export_policy(make_policy(), tmp_path / "policy.onnx")


@pytest.mark.parametrize("kind", KINDS)
def test_the_onnx_graph_gives_the_same_actions(tmp_path, kind):
    reference = pytest.importorskip("onnx.reference")
    policy = make_policy(**KINDS[kind], scale=2.0 * SCALE)
    file = export_policy(policy, tmp_path / "policy.onnx")[0]
    graph = reference.ReferenceEvaluator(str(file))
    obs = observations(policy, 50).astype(np.float32)
    inputs = {"observation": obs}
    state = KINDS[kind].get("state")
    if state is not None and state.discount == 1.0:
        costs = np.linspace(0.0, 20.0, 50)
        policy.z = state.start + np.zeros(50)
        policy.observe(0.25 * costs)
        policy.observe(0.75 * costs)
        inputs["accumulated_cost"] = costs[:, None].astype(np.float32)
    elif state is not None:
        policy.z = np.linspace(-1.0, 1.0, 50)
        inputs["safety_state"] = policy.z[:, None].astype(np.float32)
    (found,) = graph.run(["action"], inputs)
    actions = policy(obs)
    np.testing.assert_allclose(found, actions, rtol=1e-4, atol=1e-4)
    assert found.shape == np.shape(actions)
    assert len(np.unique(found, axis=0)) > 1
    stored = {entry.key: json.loads(entry.value) for entry in graph.proto_.metadata_props}
    assert stored["about"] == {"env": "here"}
    assert [entry.name for entry in graph.proto_.graph.input] == list(inputs)
    assert stored.keys() == {"about", *inputs} - {"observation"}
