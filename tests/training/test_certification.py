"""Tests of a policy on made-up tasks whose chance of a costly episode is known."""

import gymnasium
import numpy as np
import pytest
from gymnasium.spaces import Box
from tests.training.runs_of_probes import tiny

from steingate.envs.make import make_vec
from steingate.monitoring.monitor import Monitor
from steingate.policies.normalizer import init_stats
from steingate.training.certification import certify_checkpoint, delta_for_test, min_episodes
from steingate.training.evaluate import make_player
from steingate.training.rollout import RolloutStoppedError

PARAMS = {"w": (np.zeros((1, 1), np.float32),), "b": (np.zeros(1, np.float32),), "log_std": np.zeros(1)}


class Chance(gymnasium.Env):
    """Episodes of three steps; one costs 10 with the given chance, decided by its seed, and else 1."""

    def __init__(self, chance=0.0, length=3, cheap=1.0):
        self.observation_space, self.action_space = Box(-1.0, 1.0, (1,)), Box(-1.0, 1.0, (1,))
        self.chance, self.length, self.cheap = chance, length, cheap

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.t, self.unlucky = 0, self.np_random.random() < self.chance
        return np.zeros(1), {}

    def step(self, action):
        self.t += 1
        first = self.t == 1
        cost = (10.0 if self.unlucky else self.cheap) if first else 0.0
        return np.zeros(1), 2.0, False, self.t >= self.length, {"cost": cost}


def tried(tmp_path, chance, seed=0, stop=lambda: False, **changes):
    given = {"budget": 0.1, "delta": 0.05, "max_episodes": 300, "longest": 3, **changes}
    env = {name: given.pop(name) for name in ("length", "cheap") if name in given}
    envs = make_vec(lambda: Chance(chance, **env), 4, copy=False)
    player = make_player(tiny(tmp_path), 7, PARAMS, init_stats(1), 1.0)  # the limit is 4
    return certify_checkpoint(envs, player, seeds=lambda i: 1000 * seed + i, stop=stop, **given)


def test_a_policy_that_never_costs_takes_the_fewest_episodes(tmp_path):
    trial, steps = tried(tmp_path, 0.0)
    assert trial.certified
    assert trial.episodes == min_episodes(0.1, 0.05) == 36
    assert (trial.violations, trial.ret, trial.cost, trial.epoch) == (0, 6.0, 1.0, 7)
    assert trial.bound <= 0.1
    assert steps == 36 * 3


def test_a_policy_that_always_costs_is_given_up_soon(tmp_path):
    trial, _ = tried(tmp_path, 1.0)
    assert not trial.certified
    assert trial.violations == trial.episodes < 10


def test_a_test_without_hope_ends(tmp_path):
    trial, _ = tried(tmp_path, 1.0, max_episodes=36, delta=0.05)
    assert trial.episodes == 1  # one over the limit, and 35 more could not make up for it


def test_the_count_is_the_monitors(tmp_path):
    trial, _ = tried(tmp_path, 0.03, seed=4)
    monitor = Monitor(4.0, 0.1, 0.05)
    for i in range(trial.episodes):
        env = Chance(0.03)
        env.reset(seed=4000 + i)
        monitor.update(10.0 if env.unlucky else 1.0)
    assert (trial.violations, trial.bound, trial.certified) == (
        monitor.violations,
        monitor.bound,
        monitor.certified,
    )
    assert trial.certified
    assert trial.violations > 0


def test_wrong_certificates_are_as_rare_as_promised(tmp_path):
    found = [tried(tmp_path, 0.1, seed=seed, delta=0.2, max_episodes=120)[0].certified for seed in range(120)]
    assert sum(found) <= 36  # the chance of more is below 2e-3 if each is wrong with probability 0.2


def test_negative_costs_are_within_the_limit(tmp_path):
    trial, _ = tried(tmp_path, 0.0, cheap=-2.0)
    assert trial.certified
    assert trial.cost == -2.0


def test_an_episode_without_end_ends_the_test(tmp_path):
    trial, _ = tried(tmp_path, 0.0, length=10**9)
    assert not trial.certified
    assert trial.episodes == 0
    assert "had not ended after 1000 steps" in trial.reason


def test_a_stopped_test_says_so(tmp_path):
    with pytest.raises(RolloutStoppedError):
        tried(tmp_path, 0.0, stop=lambda: True)


def test_the_tests_share_delta():
    assert sum(delta_for_test(k, 0.05) for k in range(1, 100_000)) == pytest.approx(0.05, rel=1e-4)
    assert delta_for_test(2, 0.05) == pytest.approx(delta_for_test(1, 0.05) / 4)
