"""Costs with equal means and different tails: what algorithms decide and learn; optima are in test_learning.py."""

import numpy as np
import pytest
from tests.training.vector_probes import Gamble

from steingate.algorithms import ALGORITHMS
from steingate.algorithms.base import EnvParams, Episodes, Mode, RunContext
from steingate.algorithms.common.networks import init_policy
from steingate.envs.wrappers import SafetyStateWrapper
from steingate.settings import option_names
from steingate.training.background import InlineExecutor
from steingate.training.config import make_config
from steingate.training.epoch import run_epoch
from steingate.training.state import first_state

UNCONSTRAINED = ("trpo", "ppo")
TAIL = ("steingate", "steingate-ppo", "cvar-cpo", "evo")
SAFETY_STATE = ("trpo-saute", "ppo-saute", "trpo-simmer", "ppo-simmer")
MEAN = ("cpo", "pcpo", "crpo", "p3o")
LAGRANGIAN = ("trpo-lag", "ppo-lag", "rcpo", "focops", "cup")


def learn(probe, algo, limit, epochs, num_envs, options=None, **changes):
    """Return the rows of progress of a run on a vector probe."""
    if "ppo.lr" in option_names(ALGORITHMS[algo]()):
        options = {"ppo.lr": 1e-2, "ppo.epochs": 10, **(options or {})}
    if algo in SAFETY_STATE:
        options = {"env_options": {"max_episode_steps": probe.length}, **(options or {})}
    steps = num_envs * probe.length
    sizes = {"num_envs": num_envs, "steps_per_epoch": steps, "total_steps": steps * epochs, "hidden": (8,)}
    given = {"env": "probe", "algo": algo, "cost_limit": limit, "vf_lr": 1e-2}
    cfg = make_config({**given, **sizes, **(options or {}), **changes})
    algorithm, envs = cfg.algo, probe(num_envs)
    if algorithm.safety_state(cfg.context, EnvParams()) is not None:
        envs = SafetyStateWrapper(envs, algorithm, cfg.context)
    state, rows = first_state(cfg, algorithm, envs), []
    for _ in range(epochs):
        state, report = run_epoch(algorithm, cfg, state, envs, InlineExecutor())
        rows.append(report.row)
    return rows


def late(rows, name, last=20):
    return float(np.mean([row[name] for row in rows[-last:]]))


@pytest.mark.parametrize("variant", ["corrected", "published"])
@pytest.mark.parametrize("algo", [*UNCONSTRAINED, *MEAN, *TAIL[:3], *SAFETY_STATE, *LAGRANGIAN])  # EVO needs a rollout
def test_only_tail_methods_react_to_a_tail_with_the_same_mean(algo, variant):
    """Costs of 18 in every episode, or 60 with probability 0.3: the same mean, below the limit of 25."""
    algorithm, context = ALGORITHMS[algo](variant=variant), RunContext(cost_limit=25.0)

    def accepts(costs):
        episodes = Episodes(np.array(costs), np.zeros(len(costs)), np.full(len(costs), 100, np.int64))
        state = algorithm.init(context, init_policy(np.random.default_rng(0), 1, 1, (4,)))
        state, first = algorithm.decide(context, state, episodes)
        state, second = algorithm.decide(context, state, episodes)
        objective = first.objective
        falls = second.objective.lagrange_multiplier <= objective.lagrange_multiplier
        full = algorithm.env_params(context, state).cost_budget_fraction == 1.0
        return objective.mode != Mode.RECOVER and objective.cost_slack >= 0 and falls and full

    assert accepts([18.0] * 40)
    assert accepts([60.0] * 12 + [0.0] * 28) == (algo not in TAIL)


@pytest.mark.parametrize(
    ("algo", "options", "gambles"),
    [
        ("cpo", {}, True),
        # With a tail of 0.1 the gradient would vanish: CVaR is 60 until fewer than a tenth of the episodes cost 60.
        ("cvar-cpo", {"tail": 0.4}, False),
        ("steingate", {"recovery": "tail"}, False),
        ("trpo-saute", {}, False),
    ],
)
def test_only_mean_methods_learn_to_gamble(algo, options, gambles):
    """The gamble pays more at the same mean cost, but violates the limit with probability 0.3."""
    rows = learn(Gamble, algo, 25.0, 60, 200, options, max_kl=0.02)
    probability = late(rows, "Train/ViolationRate", 10) / 0.3
    assert (probability > 0.8) if gambles else (probability < 0.45)
