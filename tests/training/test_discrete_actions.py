"""Discrete actions: rollouts, whole runs, and learning on tasks with known optima."""

import numpy as np
import pytest
from tests.training.discrete_tasks import Bandit, Ring, best_return
from tests.training.runs_of_probes import facts, tiny

import steingate
from steingate.algorithms import ALGORITHMS
from steingate.algorithms.common.networks import forward, init_policy, log_prob
from steingate.envs.make import make_vec
from steingate.policies.normalizer import init_stats
from steingate.storage.tables import read_progress
from steingate.training.config import make_config
from steingate.training.evaluate import evaluate
from steingate.training.rollout import collect
from steingate.training.rollout_kernels import OFF
from steingate.training.runner import resume, train
from steingate.training.seeding import action_noise

BANDIT, RING = "tests.training.discrete_tasks:Bandit", "tests.training.discrete_tasks:Ring"


def rollout_of(noise):
    """Return a policy's rollout in ``Bandit`` and its logits (N, 2)."""
    envs = make_vec(Bandit, noise.shape[1])
    policy = init_policy(np.random.default_rng(1), 1, 2, (4,), discrete=True)
    rollout, _ = collect(envs, policy, init_stats(1), noise, mode=OFF, seeds=range(noise.shape[1]))
    return policy, rollout, np.asarray(forward(policy, rollout.obs[:-1].reshape(-1, 1)), np.float64)


def test_actions_are_sampled_with_the_probabilities_of_the_policy():
    policy, rollout, logits = rollout_of(action_noise(2, 0, (1000, 4, 2), discrete=True))
    act = rollout.act.reshape(-1, 1)
    assert set(np.unique(act)) == {0.0, 1.0}
    np.testing.assert_array_equal(rollout.rewards[:, 0], rollout.act[:, :, 0])
    expected = log_prob(policy, rollout.obs[:-1].reshape(-1, 1), act)
    np.testing.assert_allclose(rollout.logp.ravel(), expected, atol=2e-6)
    p = np.exp(logits[:, 1]) / np.exp(logits).sum(axis=1)
    assert abs(act.sum() - p.sum()) < 4.0 * np.sqrt(np.sum(p * (1.0 - p)))


def test_without_noise_the_most_probable_action_is_taken():
    _, rollout, logits = rollout_of(np.zeros((20, 3, 2), np.float32))
    np.testing.assert_array_equal(rollout.act.ravel(), logits.argmax(axis=1))


def test_a_run_is_resumed_loaded_and_evaluated(tmp_path):
    whole = train(tiny(tmp_path / "a", env=BANDIT, algo="cpo", total_steps=240), quiet=True)
    part = train(tiny(tmp_path / "b", env=BANDIT, algo="cpo", total_steps=160), quiet=True)
    resume(part, quiet=True, total_steps=240)
    assert facts(whole)["progress"] == facts(part)["progress"]
    assert facts(whole)["episodes"] == facts(part)["episodes"]
    policy = steingate.load_policy(whole, "last")
    assert policy.array("discrete").tolist() == [2, 3]
    batch = np.linspace(0.0, 1.0, 10)[:, None]
    assert [policy(row) for row in batch] == policy(batch).tolist()
    assert set(policy.sample(np.tile(batch, (20, 1)), np.random.default_rng(0))) <= {3, 4}
    # The most probable actions of the ten steps of an episode, by the stored policy.
    assert evaluate(whole, 1, policy="last").episodes.ret[0] == sum(policy(np.array([t / 10])) - 3 for t in range(10))
    sampled = evaluate(whole, 8, sample=True, policy="last").episodes
    np.testing.assert_array_equal(sampled.ret, sampled.cost)


def learned(tmp_path, env, algo, limit, epochs, **settings):
    """Return the mean return and cost of the last fifth of a run."""
    own = {"total_steps": epochs * 960, "steps_per_epoch": 960, "num_envs": 4, "hidden": (16,), **settings}
    given = {"env": env, "algo": algo, "cost_limit": limit, "out": str(tmp_path), "workers": 1}
    rows = read_progress(train(make_config({**given, "certify.enabled": False, **own}), quiet=True))
    return tuple(float(np.mean(rows[f"Train/Ep{name}"][-epochs // 5 :])) for name in ("Ret", "Cost"))


def test_without_a_limit_the_better_action_is_learned(tmp_path):
    ret, cost = learned(tmp_path, BANDIT, "trpo", 5.0, epochs=15, max_kl=0.05)
    assert ret > 9.0
    assert cost == ret


@pytest.mark.slow
@pytest.mark.parametrize("algo", ALGORITHMS)
def test_every_algorithm_trains(tmp_path, algo):
    run = train(tiny(tmp_path, env=RING, algo=algo, total_steps=240), quiet=True)
    assert len(read_progress(run)["Train/EpRet"]) == 3
    assert evaluate(run, 2, policy="last").episodes.length.tolist() == [12, 12]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("algo", "settings", "reached"),
    [
        # While m is large the unsafe action pays; the policy must not become too certain of it before m falls.
        *(("allowance", {"max_kl": 0.03, "seed": seed}, 0.7) for seed in range(6)),
        ("cpo", {"max_kl": 0.03}, 0.9),
        ("ppo-lag", {"ppo.lr": 3e-3, "adam.lr": 0.1}, 0.6),
        ("focops", {"ppo.lr": 3e-3, "adam.lr": 0.1}, 0.6),
        ("steingate", {"max_kl": 0.03}, 0.5),
        ("allowance-ppo", {"ppo.lr": 3e-3}, 0.5),
    ],
)
def test_the_best_return_within_the_limit_is_approached(tmp_path, algo, settings, reached):
    limit = 3.0
    best, unconstrained = best_return(limit), best_return(float(Ring.length))
    assert best < 0.8 * unconstrained
    ret, cost = learned(tmp_path, RING, algo, limit, epochs=80, **settings)
    assert cost < 1.1 * limit
    assert reached * best < ret < 1.05 * best
