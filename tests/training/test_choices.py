"""Discrete actions: collection, learning what is known to be best, and everything a run is used for."""

import numpy as np
import pytest
from steingate.algorithms.common.heads import log_prob
from tests.training.choices import Arms, Ring, best_return
from tests.training.runs_of_probes import facts, tiny

import steingate
from steingate.algorithms import METHODS
from steingate.algorithms.common.networks import init_policy, mean
from steingate.algorithms.cpo import CPO
from steingate.envs.make import make_vec
from steingate.errors import InputError
from steingate.policies.normalizer import init_stats
from steingate.runs import read_progress
from steingate.training.config import make_config
from steingate.training.evaluate import evaluate
from steingate.training.rollout import collect
from steingate.training.rollout_kernels import OFF
from steingate.training.runner import resume, train
from steingate.training.seeding import action_noise

ARMS, RING = "tests.training.choices:Arms", "tests.training.choices:Ring"


def arms(noise, choices=2):
    envs = make_vec(Arms, noise.shape[1])
    policy = init_policy(np.random.default_rng(1), 1, choices, (4,), discrete=True)
    rollout, _ = collect(envs, policy, init_stats(1), noise, mode=OFF, seeds=range(noise.shape[1]))
    return policy, rollout


def test_log_probabilities_and_rewards_belong_to_the_choices():
    policy, rollout = arms(action_noise(0, 0, (50, 4, 2), discrete=True))
    seen, act = rollout.obs[:-1].reshape(-1, 1), rollout.act.reshape(-1, 1)
    np.testing.assert_allclose(rollout.logp.ravel(), log_prob(policy, seen, act), atol=2e-6)
    assert set(np.unique(act)) == {0.0, 1.0}
    np.testing.assert_array_equal(rollout.rewards[:, 0], rollout.act[:, :, 0])


def test_the_noise_draws_each_choice_with_its_probability():
    policy, rollout = arms(action_noise(2, 0, (1000, 4, 2), discrete=True))
    logits = np.asarray(mean(policy, rollout.obs[:-1].reshape(-1, 1)), np.float64)
    p = np.exp(logits[:, 1]) / np.exp(logits).sum(axis=1)
    deviation = np.sqrt(np.sum(p * (1.0 - p)))
    assert abs(rollout.act.sum() - p.sum()) < 4.0 * deviation


def test_no_noise_takes_the_likeliest_choice():
    policy, rollout = arms(np.zeros((20, 3, 2), np.float32))
    logits = np.asarray(mean(policy, rollout.obs[:-1].reshape(-1, 1)))
    np.testing.assert_array_equal(rollout.act.ravel(), logits.argmax(axis=1))


def test_a_run_with_choices_is_resumed_loaded_and_evaluated(tmp_path):
    whole = train(tiny(tmp_path / "a", env=ARMS, algo="cpo", total_steps=240), quiet=True)
    part = train(tiny(tmp_path / "b", env=ARMS, algo="cpo", total_steps=160), quiet=True)
    resume(part, quiet=True, total_steps=240)
    assert facts(whole)["progress"] == facts(part)["progress"]
    assert facts(whole)["episodes"] == facts(part)["episodes"]
    policy = steingate.load_policy(whole)
    assert policy.array("discrete").tolist() == [2, 3]
    assert policy.act_dim == 1
    batch = np.linspace(0.0, 1.0, 10)[:, None]
    assert [policy(row) for row in batch] == policy(batch).tolist()
    assert set(policy.sample(np.tile(batch, (20, 1)), np.random.default_rng(0))) <= {3, 4}
    # The likeliest arms over the ten steps of an episode, as the stored policy sees them without noise.
    steps = np.arange(10)[:, None] / 10
    assert evaluate(whole, 1).episodes.ret[0] == sum(policy(row) - 3 for row in steps)
    drawn = evaluate(whole, 8, sample=True).episodes
    np.testing.assert_array_equal(drawn.ret, drawn.cost)


def test_a_method_for_continuous_actions_alone_is_refused(tmp_path):
    class Continuous(CPO):
        takes_choices = False

    cfg = make_config({"env": ARMS, "algo": Continuous(), "out": str(tmp_path)})
    with pytest.raises(InputError, match=r"needs continuous actions, and those of .*Arms are discrete"):
        train(cfg, quiet=True)
    assert not list(tmp_path.iterdir())


def learned(tmp_path, env, algo, limit, epochs=40, **settings):
    """Mean return and cost of the last fifth of a run."""
    own = {"total_steps": epochs * 960, "steps_per_epoch": 960, "num_envs": 4, "hidden": (16,), **settings}
    cfg = make_config({"env": env, "algo": algo, "cost_limit": limit, "out": str(tmp_path), "workers": 1, **own})
    rows = read_progress(train(cfg, quiet=True))
    return tuple(float(np.mean(rows[f"Train/Ep{name}"][-epochs // 5 :])) for name in ("Ret", "Cost"))


def test_reward_alone_takes_the_better_arm(tmp_path):
    ret, cost = learned(tmp_path, ARMS, "trpo", 5.0, epochs=15, max_kl=0.05)
    assert ret > 9.0
    assert cost == ret


@pytest.mark.slow
@pytest.mark.parametrize("algo", METHODS)
def test_every_method_takes_choices(tmp_path, algo):
    run = train(tiny(tmp_path, env=RING, algo=algo, total_steps=240), quiet=True)
    rows = read_progress(run)
    assert len(rows["Train/EpRet"]) == 3
    assert evaluate(run, 2).episodes.length.tolist() == [12, 12]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("algo", "settings", "reached"),
    [
        # While m is large the unsafe choice pays; it must not be too certain of it when m falls.
        *(("allowance", {"max_kl": 0.03, "seed": seed}, 0.7) for seed in range(6)),
        ("cpo", {"max_kl": 0.03}, 0.9),
        ("ppo-lag", {"clipped.learning_rate": 3e-3, "ascent.rate": 0.1}, 0.6),
        ("focops", {"clipped.learning_rate": 3e-3, "ascent.rate": 0.1}, 0.6),
        ("steingate", {"max_kl": 0.03}, 0.5),
        ("allowance-ppo", {"clipped.learning_rate": 3e-3}, 0.5),
    ],
)
def test_the_best_return_within_the_limit_is_approached(tmp_path, algo, settings, reached):
    limit = 3.0
    best, free = best_return(limit), best_return(float(Ring.length))
    assert best < 0.8 * free  # the limit matters
    ret, cost = learned(tmp_path, RING, algo, limit, epochs=80, **settings)
    assert cost < 1.1 * limit
    assert reached * best < ret < 1.05 * best


@pytest.mark.slow
@pytest.mark.parametrize("algo", ["cpo", "steingate"])
def test_a_pole_is_balanced_on_the_left(tmp_path, algo):
    cost = {"cost": "tests.training.choices:pole_cost"}
    sizes = {"steps_per_epoch": 2000, "total_steps": 120_000, "num_envs": 4, "max_kl": 0.02}
    own = {"env": "CartPole-v1", "env_options": cost, "cost_limit": 10.0, "workers": 1, "out": str(tmp_path)}
    run = train(make_config({**own, **sizes, "algo": algo}), quiet=True)
    found = evaluate(run, 40, sample=True).episodes
    assert found.ret.mean() > 200.0  # of 500; a random policy balances for about 22 steps
    assert found.cost.mean() < 15.0
