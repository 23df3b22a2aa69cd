"""Every algorithm on a bandit whose best action is known.

An episode is one step with reward 4 - (a - 2)^2 and cost limit * max(a, 0). Without a constraint the best action is 2;
if the mean cost must not exceed the limit it is 1; if few episodes may exceed it, it is below 1 by the spread of the
actions.
"""

from types import SimpleNamespace

import numpy as np
import pytest

from steingate.algorithms import ALGORITHMS, make_algorithm
from steingate.algorithms.base import Episodes, RunContext, Trajectories
from steingate.algorithms.common.critics import fit_critics, init_critics
from steingate.algorithms.common.networks import compiled_log_prob, forward, init_policy
from steingate.training.rollout import Carry, Rollout
from steingate.training.rollout_kernels import TERMINATED
from steingate.training.targets import compute_targets

SAMPLES = 400
TRUST_REGION = {"vf_epochs": 1, "vf_lr": 1e-2}
PID = {"multiplier": "pid", "pid.smoothing": 0.0, "pid.kd": 0.0}
MINIBATCH = {"ppo.epochs": 5, "ppo.batch_size": 100, "ppo.lr": 1e-2, "ppo.lr_decay": False, "vf_lr": 1e-2}


def train(name, epochs, limit=4.0, **options):
    """Return mean action, mean cost, violation rate and metrics of the gate in each epoch."""
    shared = MINIBATCH if hasattr(ALGORITHMS[name](), "ppo") else TRUST_REGION
    algorithm = make_algorithm(name, options={**shared, **options})
    context = RunContext(limit, SAMPLES, episode_length=1, epochs=epochs, num_envs=SAMPLES)
    rng = np.random.default_rng(0)
    safety = algorithm.safety_state(context, algorithm.env_params(context, algorithm.init(context, _policy(rng, 1))))
    obs_dim = 1 if safety is None else 2
    policy = _policy(rng, obs_dim)
    state, critics = algorithm.init(context, policy), init_critics(rng, rng, obs_dim, (8,))
    finished_at = np.column_stack([np.zeros(SAMPLES, np.int64), np.arange(SAMPLES)])
    history = []
    for _ in range(epochs):
        params = algorithm.env_params(context, state)
        safety = algorithm.safety_state(context, params)
        obs = np.ones((2, SAMPLES, obs_dim), np.float32)
        if safety is not None:
            obs[..., 1] = safety.start
        mean = np.asarray(forward(policy, obs[0]))
        act = (mean + np.exp(policy["log_std"]) * rng.normal(size=mean.shape)).astype(np.float32)
        logp = np.asarray(compiled_log_prob(policy, obs[0], act))[None]
        reward = 4.0 - (act[:, 0].astype(np.float64) - 2.0) ** 2
        cost = limit * np.maximum(act[:, 0].astype(np.float64), 0.0)
        z = np.zeros(SAMPLES) if safety is None else safety.next(np.full(SAMPLES, safety.start), cost)
        shaped = algorithm.shape_reward(context, params, z, reward, cost)
        rollout = Rollout(
            obs=obs, act=act[None], logp=logp, rewards=np.stack([shaped, cost])[None],
            ends=np.full((1, SAMPLES), TERMINATED, np.uint8), finals=np.zeros((0, obs_dim), np.float32),
            final_at=np.zeros(0, np.int64), episodes=Episodes(cost, reward, np.ones(SAMPLES, np.int64)),
            finished_at=finished_at, carry=Carry(obs[1], np.zeros((SAMPLES, 3))),
        )  # fmt: skip
        seen = Trajectories(obs[:1], act[None], logp, finished_at)
        state = algorithm.record_rollout(context, state, policy, seen)
        state, output = algorithm.decide(context, state, rollout.episodes)
        batch, targets, _ = compute_targets(rollout, critics, algorithm, context, state)
        state, policy, metrics = algorithm.update(context, state, policy, batch, output.objective)
        assert np.isfinite(list(metrics.values())).all()
        passes = algorithm.critics.vf_epochs or algorithm.update_epochs(state)
        critics = fit_critics(critics, batch.obs, targets, algorithm.critics, rng, weight=batch.weight, epochs=passes)
        history.append((float(mean.mean()), float(cost.mean()), float((cost > limit).mean()), output.metrics))
    action, cost, violations, metrics = zip(*history, strict=True)
    return SimpleNamespace(
        action=np.array(action), cost=np.array(cost), violations=np.array(violations), metrics=metrics
    )


def _policy(rng, obs_dim):
    return init_policy(rng, obs_dim, 1, (8,))


UNCONSTRAINED = ["trpo", "ppo"]
MEAN_COST = {
    "cpo": {},
    "pcpo": {},
    "p3o": {},
    "trpo-lag": {"adam.lr": 0.1},
    "ppo-lag": {**PID, "limit": 20.0, "pid.kp": 0.3, "pid.ki": 0.004, "ppo.lr": 3e-3},
    "focops": {**PID, "limit": 20.0, "pid.kp": 0.3, "pid.ki": 0.004, "ppo.lr": 3e-3},
    "cup": {**PID, "limit": 20.0, "pid.kp": 0.02, "pid.ki": 0.0004, "ppo.lr": 3e-3},
    "rcpo": {**PID, "pid.kp": 0.2, "pid.ki": 0.01},
}
TAIL = {"cvar-cpo": ("CVaR", 0.02, 0.1), "evo": ("ExtremeCost", 0.01, 0.05)}  # a 97.5 % quantile
FEW_VIOLATIONS = {  # largest violation rate, smallest mean action
    **dict.fromkeys(("steingate", "steingate-ppo"), (0.15, 0.4)),
    **dict.fromkeys(("trpo-saute", "ppo-saute", "trpo-simmer", "ppo-simmer"), (0.05, 0.6)),
    "allowance": (0.05, 0.1),
    "allowance-ppo": (0.1, 0.1),
}
FAST = {"allowance", "trpo", "cpo", "ppo-lag", "steingate", "trpo-saute"}  # the others are marked slow


def probes(names):
    return [name if name in FAST else pytest.param(name, marks=pytest.mark.slow) for name in names]


def test_every_algorithm_is_probed():
    assert {*UNCONSTRAINED, *MEAN_COST, *TAIL, *FEW_VIOLATIONS, "crpo"} == set(ALGORITHMS)


@pytest.mark.parametrize("name", probes(UNCONSTRAINED))
def test_without_a_constraint_the_best_action_is_found(name):
    assert train(name, 60).action[-5:].mean() == pytest.approx(2.0, abs=0.1)


@pytest.mark.parametrize("name", probes(MEAN_COST))
def test_the_best_action_with_a_limit_on_the_mean_cost(name):
    options = MEAN_COST[name]
    history = train(name, 80, **options)
    assert history.action[-30:].mean() == pytest.approx(1.0, abs=0.1)
    assert history.cost[-30:].mean() == pytest.approx(options.get("limit", 4.0), rel=0.1)


@pytest.mark.slow
def test_crpo_ends_at_the_limit_plus_its_tolerance():
    assert train("crpo", 60, tolerance=1.0).cost[-20:].mean() == pytest.approx(5.0, rel=0.05)


@pytest.mark.parametrize("name", probes(TAIL))
def test_the_tail_statistic_ends_at_the_limit(name):
    metric, least, most = TAIL[name]
    history = train(name, 80)
    assert np.mean([row[f"Gate/{metric}"] for row in history.metrics[-20:]]) == pytest.approx(4.0, rel=0.1)
    assert least <= history.violations[-20:].mean() <= most


@pytest.mark.parametrize("name", probes(FEW_VIOLATIONS))
def test_few_episodes_violate_the_limit_and_reward_is_earned(name):
    most, least = FEW_VIOLATIONS[name]
    history = train(name, 80, **({"ppo.lr": 3e-3} if name == "allowance-ppo" else {}))
    assert history.violations[-20:].mean() <= most
    assert least < history.action[-20:].mean() < 1.0
