"""Certification tests of policies on made-up tasks whose violation probability is known."""

import gymnasium
import numpy as np
import pytest
from gymnasium.spaces import Box
from tests.training.runs_of_probes import tiny

from steingate.envs.make import make_vec
from steingate.monitoring.monitor import Monitor
from steingate.policies.normalizer import init_stats
from steingate.training.certification import (
    CertificationTest,
    certification_report,
    certify_checkpoint,
    min_episodes,
)
from steingate.training.play import make_player

PARAMS = {"w": (np.zeros((1, 1), np.float32),), "b": (np.zeros(1, np.float32),), "log_std": np.zeros(1)}


class Chance(gymnasium.Env):
    """Episodes of three steps; one costs 10 with the given chance, decided by its seed, and else 1."""

    def __init__(self, chance=0.0, length=3, cheap=1.0):
        self.observation_space, self.action_space = Box(-1.0, 1.0, (1,)), Box(-1.0, 1.0, (1,))
        self.chance, self.length, self.cheap = chance, length, cheap

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.t, self.unlucky = 0, self.np_random.random() < self.chance
        return self.np_random.random(1), {}

    def step(self, action):
        self.t += 1
        cost = (10.0 if self.unlucky else self.cheap) if self.t == 1 else 0.0
        return np.zeros(1), 2.0, False, self.t >= self.length, {"cost": cost}


def run_test(tmp_path, chance, seed=0, stop=lambda: False, **changes):
    given = {"budget": 0.1, "delta": 0.05, "max_episodes": 300, "longest": 3, **changes}
    env = {name: given.pop(name) for name in ("length", "cheap") if name in given}
    envs = make_vec(lambda: Chance(chance, **env), 4, copy=False)
    player = make_player(tiny(tmp_path), 7, PARAMS, init_stats(1), 1.0)  # the limit is 4
    return certify_checkpoint(envs, player, seeds=lambda i: 1000 * seed + i, stop=stop, **given)


def test_a_policy_without_violations_needs_the_fewest_episodes(tmp_path):
    test, steps = run_test(tmp_path, 0.0)
    assert test.certified
    assert test.episodes == min_episodes(0.1, 0.05) == 36
    assert (test.violations, test.mean_return, test.mean_cost, test.epoch) == (0, 6.0, 1.0, 7)
    assert test.bound <= 0.1
    assert steps == 36 * 3


def test_unsafe_and_hopeless_policies_are_given_up_soon(tmp_path):
    test, _ = run_test(tmp_path, 1.0)
    assert not test.certified
    assert test.violations == test.episodes < 10
    # one over the limit, and 35 more could not make up for it
    assert run_test(tmp_path, 1.0, max_episodes=36)[0].episodes == 1


def test_the_result_is_that_of_a_monitor(tmp_path):
    test, _ = run_test(tmp_path, 0.03, seed=4)
    monitor = Monitor(4.0, 0.1, 0.05)
    for i in range(test.episodes):
        env = Chance(0.03)
        env.reset(seed=4000 + i)
        monitor.update(10.0 if env.unlucky else 1.0)
    assert (test.violations, test.bound) == (monitor.violations, monitor.bound)
    assert test.certified == monitor.certified
    assert test.certified
    assert test.violations > 0


def test_wrong_certificates_are_as_rare_as_promised(tmp_path):
    found = [run_test(tmp_path, 0.1, seed, delta=0.2, max_episodes=120)[0].certified for seed in range(120)]
    assert sum(found) <= 36  # the chance of more is below 2e-3 if each is wrong with probability 0.2


class Deaf(Chance):
    """The seed has no effect: all environments go through the same episodes."""

    def __init__(self):
        super().__init__(0.0)
        self.rng = np.random.default_rng(0)

    def reset(self, *, seed=None, options=None):
        return super().reset(seed=int(self.rng.integers(2**31)))


@pytest.mark.parametrize(("num_envs", "certified"), [(4, False), (1, True)])
def test_an_environment_that_ignores_its_seed_is_reported_and_not_certified(tmp_path, num_envs, certified):
    player = make_player(tiny(tmp_path), 7, PARAMS, init_stats(1), 1.0)
    given = {"budget": 0.1, "delta": 0.05, "seeds": range(500).__getitem__, "max_episodes": 300, "longest": 3}
    test, _ = certify_checkpoint(make_vec(Deaf, num_envs, copy=False), player, **given)
    assert test.certified == certified  # one environment alone gives different episodes
    assert certified or "episodes repeat although their seeds differ" in test.failure
    fixed, _ = certify_checkpoint(make_vec(lambda: Fixed(0.0), num_envs, copy=False), player, **given)
    assert not fixed.certified


class Fixed(Chance):
    """Every episode is the same."""

    def reset(self, *, seed=None, options=None):
        return super().reset(seed=0)


def test_negative_costs_are_within_the_limit(tmp_path):
    test, _ = run_test(tmp_path, 0.0, cheap=-2.0)
    assert test.certified
    assert test.mean_cost == -2.0


def test_an_endless_episode_ends_the_test(tmp_path):
    test, _ = run_test(tmp_path, 0.0, length=10**9)
    assert (test.certified, test.episodes) == (False, 0)
    assert "had not ended after 1000 steps" in test.failure


def made(epoch, violations, bound, certified, failure=""):
    return CertificationTest(epoch, 40, violations, 3.0, 1.0, bound, 0.01, certified, failure, 0.1, 4.0, 7, 1)


SAFE, UNSAFE = made(6, 0, 0.093, True), made(6, 20, 0.7, False)


@pytest.mark.parametrize(
    ("best", "tests", "finished", "failure", "sentence"),
    [
        (
            SAFE, [made(6, 0, 0.093, True)], True, "",
            "Certified for 10 %: the last policy (step 480), without exploration noise: 0 of 40 episodes cost "
            "more than 4 (0.0 %); with 95 % confidence at most 9.3 % do. "
            "Mean return in 100 other fresh episodes: 2.75 ± 0.12.",
        ),
        (
            made(2, 1, 0.1, True), [UNSAFE], True, "",
            "Certified for 10 %: the policy of step 160, without exploration noise: 1 of 40 episodes cost more "
            "than 4 (2.5 %); with 95 % confidence at most 10.0 % do. Mean return in 100 other fresh episodes: "
            "2.75 ± 0.12. The last policy is not certified: 20 of 40 episodes cost more than 4 (50.0 %); with 95 % "
            "confidence at most 70.0 % do.",
        ),
        (
            None, [UNSAFE, made(0, 6, 0.2, False)], True, "",
            "Not certified for 10 %: the last policy (step 480), without exploration noise: 20 of 40 episodes cost "
            "more than 4 (50.0 %); with 95 % confidence at most 70.0 % do. No other policy is certified, either. "
            "Train longer, or accept a higher risk (--certify.budget).",
        ),
        (
            made(2, 0, 0.09, True), [], False, "",
            "Certified for 10 %: the policy of step 160, without exploration noise: 0 of 40 episodes cost more "
            "than 4 (0.0 %); with 95 % confidence at most 9.0 % do. Training is not finished.",
        ),
        (
            None, [], True, "no episode ended during training",
            "Not certified for 10 %: no episode ended during training.",
        ),
    ],
)  # fmt: skip
def test_the_report_says_which_policy_is_certified_and_what_to_do(tmp_path, best, tests, finished, failure, sentence):
    fresh = {"episodes": 100, "return": 2.75, "return_error": 0.125}
    report = certification_report(
        tiny(tmp_path), 6, best, tests, finished, (3, 1), failure, fresh if finished else None
    )
    assert report["sentence"] == sentence
    assert report["certified"] == (best is not None)
    assert (report["shift"] or {}).get("total_variation", -1) == pytest.approx(0.1 - best.bound if best else -1)
