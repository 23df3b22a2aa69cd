import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

from steingate.algorithms.common.jax_setup import configure

configure()

from tests.training.runs_of_probes import tiny  # noqa: E402

from steingate.algorithms.common.networks import mean  # noqa: E402  (JAX is set up first)
from steingate.errors import InputError, RunError  # noqa: E402
from steingate.gates.sight import Sight  # noqa: E402
from steingate.policies.normalizer import Stats, normalize  # noqa: E402
from steingate.policies.policy import load, policy_from  # noqa: E402
from steingate.runs import latest_checkpoint  # noqa: E402
from steingate.storage.checkpoint import checkpoint_files  # noqa: E402
from steingate.training.runner import train  # noqa: E402


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return train(tiny(tmp_path_factory.mktemp("runs")), quiet=True)


def test_the_numpy_policy_is_the_trained_one(run):
    loaded = load(run, "last")
    tree = latest_checkpoint(run / "checkpoints").tree
    obs = np.random.default_rng(0).normal(size=(20, 3)) * [1.0, 5.0, 1.0] + [0.0, 5.0, 7.0]
    stats = Stats(tree["stats"]["count"], tree["stats"]["mean"], tree["stats"]["m2"])
    expected = 2.0 * np.asarray(mean(tree["policy"], normalize(stats, obs).astype(np.float32)))  # range is ±2
    np.testing.assert_allclose(loaded.policy(obs), expected, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(loaded.policy(obs[3]), expected[3], rtol=1e-5, atol=1e-6)
    assert (loaded.epoch, loaded.policy.obs_dim, loaded.policy.act_dim) == (6, 3, 2)
    assert loaded.config["config"]["num_envs"] == 4


def test_samples_scatter_around_the_mean_and_are_clipped_as_in_training(run):
    policy = load(run, "last").policy
    obs = np.array([0.1, 2.0, 7.0])
    mean = policy(obs) / 2.0  # the range is ±2, and this mean lies inside
    assert (np.abs(mean) < 1.0).all()
    drawn, free = [], []
    for seed in range(4000):
        drawn.append(policy.sample(obs, np.random.default_rng(seed)))
        noise = np.random.default_rng(seed).standard_normal(2)
        free.append(2.0 * (mean + np.exp(policy.log_std.astype(np.float64)) * noise))
    np.testing.assert_allclose(drawn, np.clip(free, -2.0, 2.0), rtol=1e-12)
    assert np.abs(free).max() > 4.0


def test_actions_stay_in_the_box(run):
    policy = load(run, "last").policy
    wide = replace(policy, biases=(*policy.biases[:-1], np.array([50.0, -50.0], np.float32)))
    np.testing.assert_array_equal(wide(np.zeros(3)), [2.0, -2.0])
    assert repr(policy) == "Policy(3 observations -> 2 actions, hidden 8-8)"


def test_loading_needs_no_learner_and_no_simulator(run):
    code = (
        "import sys, steingate\n"
        "policy = steingate.load(sys.argv[1], 'last').policy\n"
        "print(policy([0.0, 1.0, 7.0]).shape)\n"
        "print([name for name in ('jax', 'mujoco', 'gymnasium', 'numba', 'scipy') if name in sys.modules])\n"
    )
    out = subprocess.run([sys.executable, "-c", code, run], capture_output=True, text=True, check=True)
    assert out.stdout == "(2,)\n[]\n"


def test_bad_observations_are_named(run):
    policy = load(run, "last").policy
    with pytest.raises(InputError, match=r"shape \(4,\): \(3,\) or a batch"):
        policy(np.zeros(4))
    with pytest.raises(InputError, match="not finite"):
        policy([0.0, np.nan, 0.0])


def test_a_damaged_newest_checkpoint_is_passed_over_with_a_warning(run, tmp_path):
    import shutil

    copy = tmp_path / "copy"
    shutil.copytree(run, copy)
    _, newest = checkpoint_files(copy / "checkpoints")[-1]
    newest.write_bytes(b"\0" * 100)
    with pytest.warns(UserWarning, match=newest.name):
        assert load(copy, "last").epoch == 4


def test_another_runs_checkpoint_is_passed_over_with_a_warning(run, tmp_path):
    import shutil

    from steingate.training.play import load_player

    copy = tmp_path / "copy"
    shutil.copytree(run, copy)
    _, newest = checkpoint_files(copy / "checkpoints")[-1]
    other = train(tiny(tmp_path / "other", seed=1), quiet=True)
    newest.write_bytes((other / "checkpoints" / newest.name).read_bytes())
    with pytest.warns(UserWarning, match=f"{newest.name} does not belong to this run"):
        assert load(copy, "last").epoch == 4
    said = []
    assert load_player(copy, said.append, "last").epoch == 4
    assert len(said) == 1


@pytest.mark.parametrize(
    "break_it",
    [
        lambda tree: tree.pop("policy"),
        lambda tree: tree["policy"].pop("log_std"),
        lambda tree: tree["policy"].update(log_std=np.zeros(5, np.float32)),
        lambda tree: tree["policy"].update(w=tree["policy"]["w"][:-1]),
        lambda tree: tree["stats"].update(mean=np.zeros(9)),
        lambda tree: tree.update(action=3),
        lambda tree: tree.update(stats={"count": "many"}),
        lambda tree: tree["policy"]["w"].__setitem__(0, [[1e308]]),  # infinite as a short float
        lambda tree: tree["policy"]["b"].__setitem__(0, 10**400),
        lambda tree: tree["policy"]["log_std"].fill(np.nan),
        lambda tree: tree.update(sight=[1, 2]),
        lambda tree: tree.update(sight=Sight((7,), (2.0,)).plain()),
        lambda tree: tree.update(nearness=[[0], [2.0], [3.0]]),
        lambda tree: tree["stats"].update(m2=np.full_like(tree["stats"]["m2"], np.inf)),
    ],
)
def test_parts_that_do_not_fit_are_refused(run, break_it):
    tree = latest_checkpoint(run / "checkpoints").tree
    break_it(tree)
    with pytest.raises(RunError, match="Checkpoint here holds"):
        policy_from(tree, "here")


def test_powers_under_their_former_name_are_read_and_what_adds_nothing_is_none(run):
    tree = latest_checkpoint(run / "checkpoints").tree
    assert policy_from({**tree, "nearness": [[1], [4.0]]}, "here").sight == Sight((1,), (4.0,))
    assert policy_from({**tree, "sight": Sight((), (4.0,)).plain()}, "here").sight is None


def test_raw_observations_stay_raw(run):
    tree = latest_checkpoint(run / "checkpoints").tree
    policy = policy_from({**tree, "normalize": False}, "here")
    obs = np.array([0.3, 2.0, 7.0])
    np.testing.assert_allclose(
        policy(obs), 2.0 * np.asarray(mean(tree["policy"], obs.astype(np.float32))), rtol=1e-5
    )
