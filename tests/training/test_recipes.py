"""Every recipe through the whole trainer: stop and resume, evaluation, the policy without the trainer."""

from dataclasses import replace

import numpy as np
import pytest
from steingate.algorithms.common.recipe import FirstOrder
from steingate.training.batch import tail_costs
from tests.training.runs_of_probes import facts, tiny

from steingate.algorithms import METHODS
from steingate.envs.vector_env import AdapterVectorEnv
from steingate.policies.load import load_policy
from steingate.runs import latest_checkpoint, read_progress
from steingate.training import loop
from steingate.training.config_file import load_run_config
from steingate.training.evaluate import load_player
from steingate.training.runner import resume, train

CLIPPED = {"clipped.passes": 3, "clipped.batch_size": 16}
RUNS = [
    *((name, "corrected", {}) for name in METHODS),
    *((name, "published", {}) for name in ("trpo-simmer", "evo")),
    ("steingate", "corrected", {"recovery": "tail"}),
    ("trpo-lag", "corrected", {"multiplier": "pid"}),
]


class Killed(BaseException):
    """Nothing in the package catches this."""


def run_of(out, name, variant, options, **changes):
    if issubclass(METHODS[name], FirstOrder):
        options = {**CLIPPED, **options}
    return tiny(out, algo=name, variant=variant, total_steps=400, **options, **changes)


def killed(cfg, monkeypatch, epochs):
    """Start a run and end it without warning after some epochs."""
    real, left = loop.run_epoch, iter(range(epochs))

    def run_epoch(*args):
        if next(left, None) is None:
            raise Killed
        return real(*args)

    with monkeypatch.context() as patch:
        patch.setattr(loop, "run_epoch", run_epoch)
        with pytest.raises(Killed):
            train(cfg, quiet=True)


@pytest.mark.parametrize(("name", "variant", "options"), RUNS)
def test_a_killed_and_resumed_run_equals_an_unbroken_one(tmp_path, monkeypatch, name, variant, options):
    whole = run_of(tmp_path / "whole", name, variant, options, overlap=False)
    broken = run_of(tmp_path / "broken", name, variant, options)
    expected = facts(train(whole, quiet=True))
    killed(broken, monkeypatch, 3)
    saved = latest_checkpoint(broken.path / "checkpoints")
    assert saved.epoch == 2
    resume(broken.path, quiet=True)
    assert facts(broken.path) == expected
    assert "nan" not in (broken.path / "progress.csv").read_text().lower()


@pytest.mark.parametrize("name", ["evo", "trpo-simmer", "cvar-cpo", "allowance"])
def test_so_does_one_whose_episodes_outlive_epochs(tmp_path, monkeypatch, name):
    settings = {"carry_episodes": True, "env_options": {"limit": 50, "out": 9.0}}
    whole = run_of(tmp_path / "whole", name, "corrected", {}, overlap=False, **settings)
    broken = run_of(tmp_path / "broken", name, "corrected", {}, **settings)
    expected = facts(train(whole, quiet=True))
    killed(broken, monkeypatch, 3)
    resume(broken.path, quiet=True)
    assert facts(broken.path) == expected


def test_states_that_matter_are_in_the_checkpoint(tmp_path):
    tree = {}
    for name in ("trpo-lag", "trpo-simmer", "evo", "ppo"):
        path = train(run_of(tmp_path, name, "corrected", {}), quiet=True)
        tree[name] = latest_checkpoint(path / "checkpoints").tree
    assert tree["trpo-lag"]["gate"][1][1] == 5
    assert 0.0 < tree["trpo-simmer"]["budget"] < 1.0
    assert tree["trpo-simmer"]["gate"][1] > 0.0
    steps, lengths, _ = tree["evo"]["memory"]
    assert lengths.sum() == len(steps[0])
    assert len(lengths) == len(tree["evo"]["gate"][0][0]) <= 50
    adam, epoch, _ = tree["ppo"]["step"]
    assert epoch == 5
    assert adam[0] > 0


def test_first_order_runs_decay_their_rate_and_critics_repeat_their_passes(tmp_path):
    stopped = {
        "clipped.passes": 6,
        "clipped.batch_size": 16,
        "clipped.max_kl": 0.003,
        "clipped.learning_rate": 0.01,
    }
    counts = {}
    for given in (None, 2):
        cfg = tiny(tmp_path / str(given), algo="ppo", total_steps=400, critic_passes=given, **stopped)
        path = train(cfg, quiet=True)
        progress = read_progress(path)
        np.testing.assert_allclose(progress["Step/LearningRate"], 0.01 * (1.0 - np.arange(5) / 5), rtol=1e-6)
        counts[given] = sum(progress["Step/Passes"])
        per_pass = -(-cfg.steps_per_epoch // cfg.algo.critic_batch)
        adam = latest_checkpoint(path / "checkpoints").tree["critics"][1]
        assert adam[0] == per_pass * (counts[None] if given is None else 2 * 5)
        assert load_run_config(path).algo.critic_passes == given
    assert counts[None] < 6 * 5


def test_evaluation_starts_with_the_share_that_training_reached(tmp_path):
    strong = {"controller.proportional": 1.0, "controller.smoothing": 0.0}
    for variant in ("corrected", "published"):
        path = train(run_of(tmp_path, "trpo-simmer", variant, strong), quiet=True)
        player = load_player(path, print, "last")
        reached = latest_checkpoint(path / "checkpoints").tree["budget"]
        assert reached < 1.0
        assert player.budget == (reached if variant == "corrected" else 1.0)
        assert load_policy(path, "last").z == pytest.approx(player.budget)
        path.rename(tmp_path / variant)


def test_shaped_rewards_stay_out_of_the_statistics(tmp_path):
    """Both see the same actions in the first epoch, so the episodes agree although one reward is reshaped."""
    reshaped = {"length": 1, "budget_discount": 0.9, "unsafe_reward": -77.0}
    first = {}
    for name, options in (("trpo", {}), ("trpo-saute", reshaped)):
        constant = {"cost_limit": 0.01, "env": "tests.training.probes:Constant"}
        path = train(tiny(tmp_path, algo=name, total_steps=80, **constant, **options), quiet=True)
        first[name] = read_progress(path)
    assert first["trpo"]["Train/EpRet"] == first["trpo-saute"]["Train/EpRet"] == [10.0]
    assert first["trpo"]["Train/EpCost"] == first["trpo-saute"]["Train/EpCost"] == [5.0]


def test_the_added_number_is_never_normalized(tmp_path):
    path = train(run_of(tmp_path, "cvar-cpo", "corrected", {}), quiet=True)
    tree = latest_checkpoint(path / "checkpoints").tree
    assert len(tree["stats"]["mean"]) == 3
    assert tree["policy"]["w"][0].shape[0] == 4


def test_increments_of_a_tail_add_up_to_the_tail_of_the_episode():
    rng = np.random.default_rng(0)
    cost, ended = rng.exponential(size=(40, 3)), rng.random((40, 3)) < 0.2
    spent = np.array([0.5, 0.0, 2.0])
    parts = tail_costs(cost, ended, spent, lambda y: np.maximum(y - 1.0, 0.0) / 0.1)
    for env in range(3):
        total, summed, start = spent[env], 0.0, max(spent[env] - 1.0, 0.0) / 0.1
        for t in range(40):
            total, summed = total + cost[t, env], summed + parts[t, env]
            assert start + summed == pytest.approx(max(total - 1.0, 0.0) / 0.1)
            if ended[t, env]:
                total, summed, start = 0.0, 0.0, 0.0
    whole = tail_costs(cost, ended, None, lambda y: y)
    np.testing.assert_allclose(whole, cost)


def test_settings_of_the_algorithm_are_recorded(tmp_path):
    path = train(run_of(tmp_path, "ppo-saute", "corrected", {}), quiet=True)
    stored = load_run_config(path).algo
    assert (stored.critic_lr, stored.normalize_obs, stored.length) == (3e-4, True, 1000)
    native = tiny(tmp_path, algo="trpo-saute", env="SafetyPointCircle1-v0")
    assert (native.recipe.length, native.recipe.budget_discount) == (500, 0.9999)
    published = tiny(tmp_path, algo="trpo-saute", env="SafetyPointCircle1-v0", variant="published")
    assert published.recipe.length == 1000
    short = replace(native, env_options={"max_episode_steps": 77})
    assert short.recipe.length == 77
    assert replace(native, algo=native.recipe).recipe == native.recipe


def test_a_foreign_environment_can_be_augmented(tmp_path):
    cfg = run_of(tmp_path, "trpo-saute", "corrected", {})
    algo = loop.build_algorithm(cfg)
    envs = loop.make_envs(cfg, algo)
    assert isinstance(envs.envs, AdapterVectorEnv)
    assert envs.reset(seed=0)[0].shape == (4, 4)
