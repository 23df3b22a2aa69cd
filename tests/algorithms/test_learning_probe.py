"""A bandit whose best feasible action is known, trained with the learner's pieces alone.

Every episode is one step: reward -(a - 2)^2, cost max(a, 0). Without a limit the best mean action is 2. Under
a limit of 1 on the mean cost it is 1.
"""

import numpy as np
import pytest
from steingate.algorithms.common.advantages import center, close_paths, gae, standardize
from steingate.algorithms.common.base import Algorithm, Batch, first_bad
from steingate.algorithms.common.heads import log_prob
from steingate.algorithms.common.recipe import Setup
from steingate.algorithms.common.sizes import CriticFit, TrustRegion
from steingate.gates.base import Episodes
from steingate.gates.mean import open_gate

from steingate.algorithms.common.critics import fit_critic, init_adam, minibatch_order
from steingate.algorithms.common.networks import init_critic, init_policy, mean, value
from steingate.algorithms.common.trust_region import trust_region_step
from steingate.algorithms.cpo import CPO
from steingate.algorithms.steingate import SteinGate

SAMPLES = 400
FIT = CriticFit(learning_rate=1e-2)


def train(algorithm, epochs, seed=0):
    """Mean action, mean cost and share of episodes over the limit of 1, per epoch."""
    rng = np.random.default_rng(seed)
    policy = init_policy(rng, 1, 1, (8,))
    critics = [init_critic(rng, 1, (8,)) for _ in range(2)]
    adams = [init_adam(critic) for critic in critics]
    gate_state, step_state = algorithm.gate.init(), algorithm.step.init(policy)
    obs = np.ones((SAMPLES, 1), np.float32)
    done = np.ones((1, SAMPLES), bool)
    history = []
    for _ in range(epochs):
        mu = np.asarray(mean(policy, obs))
        act = (mu + np.exp(policy["log_std"]) * rng.normal(size=mu.shape)).astype(np.float32)
        reward, cost = -((act[:, 0] - 2.0) ** 2), np.maximum(act[:, 0], 0.0)
        advantages, targets = [], []
        for critic, signal in zip(critics, (reward, cost), strict=True):
            ends, bootstrap = close_paths(done, ~done, np.zeros((1, SAMPLES)), np.zeros(SAMPLES))
            advantage, target = gae(signal[None], np.asarray(value(critic, obs))[None], ends, bootstrap)
            advantages.append(advantage[0])
            targets.append(target[0].astype(np.float32))
        logp = np.asarray(log_prob(policy, obs, act))
        adv, cost_adv = standardize(advantages[0]), center(advantages[1])
        batch = Batch(obs, act, logp, adv.astype(np.float32), cost_adv.astype(np.float32))
        episodes = Episodes(cost.astype(np.float64), reward.astype(np.float64), np.ones(SAMPLES, np.int64))
        decision, gate_state, _, *_ = algorithm.gate.decide(gate_state, episodes)
        policy, step_state, log = algorithm.step.move(step_state, policy, batch, decision)
        assert first_bad({**log, "policy": policy}) is None
        order = minibatch_order(rng, SAMPLES, 1)
        for index, target in enumerate(targets):
            critics[index], adams[index], _ = fit_critic(critics[index], adams[index], obs, target, order, FIT)
        history.append((float(mu.mean()), float(cost.mean()), float((cost > 1.0).mean())))
    return np.array(history), critics, (reward, cost)


def test_without_a_limit_the_best_action_is_found():
    history, critics, signals = train(Algorithm(open_gate(), trust_region_step(TrustRegion())), 60)
    assert history[-5:, 0].mean() == pytest.approx(2.0, abs=0.1)
    for critic, signal in zip(critics, signals, strict=True):
        found = float(value(critic, np.ones((1, 1), np.float32))[0])
        assert found == pytest.approx(float(signal.mean()), abs=0.3)


def test_cpo_finds_the_best_feasible_action():
    history, _, _ = train(CPO().build(Setup(limit=1.0, window=SAMPLES)), 80)
    assert history[-10:, 0].mean() == pytest.approx(1.0, abs=0.1)
    assert history[-10:, 1].mean() == pytest.approx(1.0, abs=0.05)


def test_steingate_keeps_the_tail_under_the_limit_and_still_earns():
    history, _, _ = train(SteinGate().build(Setup(limit=1.0)), 80)
    assert history[-20:, 2].mean() <= 0.15
    assert 0.4 < history[-20:, 0].mean() < 1.0
