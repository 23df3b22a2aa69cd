"""Loading the policy of a run: equal to the trained network, and unusable checkpoints are named."""

import shutil
import subprocess
import sys

import numpy as np
import pytest

from steingate.algorithms.common.jax_setup import configure

configure()

from tests.training import probes  # noqa: E402
from tests.training.fakes import normalize  # noqa: E402
from tests.training.runs_of_probes import tiny  # noqa: E402

from steingate import evaluate, export_policy, load_policy  # noqa: E402
from steingate.algorithms.base import EnvParams  # noqa: E402
from steingate.algorithms.common.networks import forward  # noqa: E402  (JAX is set up first)
from steingate.envs.make import make_vec  # noqa: E402
from steingate.errors import RunError  # noqa: E402
from steingate.policies.lidar_features import LidarFeatures  # noqa: E402
from steingate.policies.load import policy_arrays  # noqa: E402
from steingate.policies.normalizer import Stats  # noqa: E402
from steingate.policies.policy import Policy  # noqa: E402
from steingate.storage.checkpoint import checkpoint_files, latest_checkpoint  # noqa: E402
from steingate.training.environment import make_envs  # noqa: E402
from steingate.training.runner import train  # noqa: E402
from steingate.training.seeding import evaluation_seeds  # noqa: E402


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return train(tiny(tmp_path_factory.mktemp("runs")), quiet=True)


@pytest.fixture
def copy(run, tmp_path):
    shutil.copytree(run, tmp_path / "copy")
    return tmp_path / "copy"


@pytest.mark.parametrize("normalized", [True, False])
def test_the_policy_is_the_trained_network(run, normalized):
    checkpoint = latest_checkpoint(run / "checkpoints")
    tree, obs = (checkpoint.tree, np.random.default_rng(0).normal(size=(20, 3)) * [1.0, 5.0, 1.0] + [0.0, 5.0, 7.0])
    stats = Stats(tree["stats"]["count"], tree["stats"]["mean"], tree["stats"]["m2"])
    policy = Policy(policy_arrays(checkpoint._replace(tree={**tree, "normalize": normalized})))
    inputs = normalize(stats, obs) if normalized else obs
    expected = np.clip(np.asarray(forward(tree["policy"], inputs.astype(np.float32))), -1.0, 1.0)
    np.testing.assert_allclose(policy(obs), 2.0 * expected, rtol=1e-5, atol=1e-6)  # the range is ±2
    np.testing.assert_allclose(policy(obs[3]), 2.0 * expected[3], rtol=1e-5, atol=1e-6)


def test_loading_needs_no_learner_and_no_simulator(run):
    code = (
        "import sys, steingate\n"
        "policy = steingate.load_policy(sys.argv[1], 'last')\n"
        "print(policy([0.0, 1.0, 7.0]).shape)\n"
        "print([name for name in ('jax', 'mujoco', 'gymnasium', 'numba', 'scipy') if name in sys.modules])\n"
    )
    out = subprocess.run([sys.executable, "-c", code, run], capture_output=True, text=True, check=True)
    assert out.stdout == "(2,)\n[]\n"


def test_damaged_and_foreign_checkpoints_are_skipped_with_a_warning(copy, tmp_path):
    from steingate.training.play import load_player

    _, newest = checkpoint_files(copy / "checkpoints")[-1]
    newest.write_bytes(b"\0" * 100)
    with pytest.warns(UserWarning, match=newest.name):
        assert load_policy(copy, "last").about["epoch"] == 4
    other = train(tiny(tmp_path / "other", seed=1), quiet=True)
    newest.write_bytes((other / "checkpoints" / newest.name).read_bytes())
    with pytest.warns(UserWarning, match=f"{newest.name} does not belong to this run"):
        assert load_policy(copy, "last").about["epoch"] == 4
    warnings = []
    assert load_player(copy, warnings.append, "last").epoch == 4
    assert len(warnings) == 1


@pytest.mark.parametrize(
    "change",
    [
        lambda tree: tree.pop("policy"),
        lambda tree: tree["policy"].update(log_std=np.zeros(5, np.float32)),
        lambda tree: tree["policy"].update(w=tree["policy"]["w"][:-1]),
        lambda tree: tree.update(action=3),
        lambda tree: tree["policy"]["w"].__setitem__(0, [[1e308]]),  # infinite as float32
        lambda tree: tree["policy"]["log_std"].fill(np.nan),
        lambda tree: tree.update(lidar_features=[1, 2]),
        lambda tree: tree.update(lidar_features=LidarFeatures((7,), (2.0,))._asdict()),
        lambda tree: tree["stats"].update(m2=np.full_like(tree["stats"]["m2"], np.inf)),
    ],
)
def test_unusable_policies_are_refused(run, change):
    checkpoint = latest_checkpoint(run / "checkpoints")
    change(checkpoint.tree)
    with pytest.raises(RunError, match="holds no usable policy"):
        policy_arrays(checkpoint)


def test_exported_policies_are_loaded_too(run, tmp_path):
    policy = load_policy(run, "last")
    file = export_policy(policy, tmp_path / "policy.npz")[0]
    assert load_policy(file).about == policy.about
    with pytest.raises(RunError, match=r"none\.npz"):
        load_policy(tmp_path / "none.npz")


def test_lidar_features_and_safety_state_are_those_of_training(tmp_path):
    cfg = tiny(tmp_path, algo="allowance", env="SafetyPointCircle1-v0", total_steps=160)
    path = train(cfg, quiet=True)
    policy, tree = load_policy(path, "last"), latest_checkpoint(path / "checkpoints").tree
    robot = Policy.load(export_policy(policy, tmp_path / "policy.npz")[0])
    assert (policy.obs_dim, policy.array("rings").tolist(), policy.array("compass").tolist()) == (28, [12], [9, 10])
    stats = Stats(tree["stats"]["count"], tree["stats"]["mean"], tree["stats"]["m2"])
    envs = make_envs(cfg, params=EnvParams(cost_budget_fraction=0.5))
    plain = make_vec(cfg.env, cfg.num_envs)
    inputs, obs = envs.reset(seed=5)[0], plain.reset(seed=5)[0]
    known = stats.mean.size
    for _ in range(20):
        seen = np.column_stack([normalize(stats, inputs[:, :known]), inputs[:, known:]]).astype(np.float32)
        action = np.clip(np.asarray(forward(tree["policy"], seen), np.float64), -1.0, 1.0)
        np.testing.assert_allclose(policy(obs), action, atol=1e-5)
        np.testing.assert_allclose(robot(obs), action, atol=1e-5)
        inputs, obs, info = envs.step(action)[0], *plain.step(action)[::4]
        for each in (policy, robot):
            each.observe(info["cost"])
    envs.close()
    plain.close()


@pytest.mark.parametrize(
    ("algo", "variant"), [("trpo-saute", "corrected"), ("trpo-simmer", "published"), ("cvar-cpo", "corrected")]
)
def test_episodes_of_a_policy_with_a_safety_state_are_those_of_evaluate(tmp_path, algo, variant):
    path = train(tiny(tmp_path, algo=algo, variant=variant), quiet=True)
    found, policy, env = evaluate(path, 6, policy="last"), load_policy(path, "last"), probes.Walk()
    for seed, cost, ret in zip(evaluation_seeds(0, 6), found.episodes.cost, found.episodes.ret, strict=True):
        (obs, _), total, earned, ended = env.reset(seed=seed), 0.0, 0.0, False
        policy.reset()
        while not ended:
            obs, reward, terminated, truncated, info = env.step(policy(obs))
            policy.observe(info["cost"])
            total, earned, ended = total + info["cost"], earned + reward, terminated or truncated
        assert (total, earned) == pytest.approx((cost, ret), rel=1e-4)
    with pytest.raises(ValueError, match=r"call policy\.observe"):
        policy(obs), policy(obs)
