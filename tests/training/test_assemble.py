"""From a configuration to its algorithm and its environments."""

import numpy as np
import pytest
from tests.training.fakes import Told, Unsaved, small

from steingate.algorithms.cpo import CPO
from steingate.envs import make as envs_make
from steingate.envs.safety_state import Augmented
from steingate.errors import InputError
from steingate.gates.base import Episodes, Mode
from steingate.training.assemble import build_algorithm, check_carry, make_envs, saved_env
from steingate.training.config import make_config
from steingate.training.environment import Saved, ShowsBudget


@pytest.fixture
def made(monkeypatch):
    """What environments are asked for; each is a :class:`Told`."""
    asked = []

    def make_vec(env, num_envs, **options):
        asked.append((env, num_envs, options))
        return Told()

    monkeypatch.setattr(envs_make, "make_vec", make_vec)
    return asked


class TestAlgorithm:
    def test_limit_window_and_variant_reach_the_gate(self):
        episodes = Episodes(np.array([1.0, 2.0, 9.0]), np.zeros(3), np.array([10, 10, 10]))
        cfg = small("cpo", cost_limit=5.0, window=2)
        algo = build_algorithm(cfg)
        decision = algo.gate.decide(algo.gate.init(), episodes).decision
        assert decision.mode == Mode.BALANCE
        assert decision.slack == pytest.approx((5.0 - 5.5) / 10)
        published = build_algorithm(small("cpo", cost_limit=5.0, window=2, variant="published"))
        assert published.gate.decide(published.gate.init(), episodes).decision.slack == pytest.approx(-0.5)

    def test_seed_epochs_and_length_reach_the_recipe(self, monkeypatch):
        told = []
        monkeypatch.setattr(CPO, "build", lambda self, setup: told.append((self, setup)))
        cfg = small("cpo", seed=9, env_options={"max_episode_steps": 50})
        build_algorithm(cfg)
        recipe, setup = told[0]
        assert recipe == cfg.recipe
        assert setup == cfg.setup
        assert (setup.seed, setup.epochs, setup.length) == (9, 3, 50)

    def test_a_budget_is_discounted_over_the_tasks_episodes(self):
        for length in (50, 100):
            cfg = small("trpo-saute", env_options={"max_episode_steps": length}, budget_discount=0.9)
            expected = 4.0 * (1.0 - 0.9**length) / (0.1 * length)
            assert build_algorithm(cfg).account.seen.budget == pytest.approx(expected)


class TestEnvironments:
    def test_the_configuration_decides(self, made):
        cfg = small("cpo", env="a:B", threads=3, env_options={"limit": 7})
        make_envs(cfg, build_algorithm(cfg))
        make_envs(cfg, build_algorithm(cfg), num_envs=5, render=True)
        assert made[0] == ("a:B", 2, {"copy": False, "workers": None, "threads": 3, "limit": 7})
        assert made[1] == (
            "a:B",
            5,
            {"copy": False, "workers": None, "threads": 3, "limit": 7, "render": True},
        )

    def test_without_threads_the_environment_decides(self, made):
        cfg = small("cpo", env_options={"copy": True})
        make_envs(cfg, build_algorithm(cfg))
        assert made[0][2] == {"copy": True, "workers": None}

    def test_an_account_is_shown_with_the_share_that_is_asked_for(self, made):
        cfg = small("trpo-saute")
        algo = build_algorithm(cfg)
        whole, part = make_envs(cfg, algo), make_envs(cfg, algo, budget=0.25)
        assert isinstance(part, Augmented)
        assert isinstance(part, ShowsBudget)
        assert part.account is algo.account
        assert whole.reset(seed=0)[0][0, -1] == 1.0
        assert part.reset(seed=0)[0][0, -1] == 0.25
        plain = make_envs(small("cpo"), build_algorithm(small("cpo")))
        assert isinstance(plain, Told)
        assert not isinstance(plain, ShowsBudget)


class TestCarrying:
    def test_environments_that_cannot_be_saved_are_refused_only_if_they_must_be(self):
        check_carry(small(), Unsaved())
        with pytest.raises(
            InputError, match="carry_episodes needs an environment that can be saved, and told"
        ):
            check_carry(small(carry_episodes=True), Unsaved())
        envs = Told()
        check_carry(small(carry_episodes=True), envs)
        assert envs.of("reset") == [0]

    def test_what_can_be_saved(self):
        envs = Told()
        assert isinstance(envs, Saved)
        assert saved_env(envs) is envs
        with pytest.raises(AttributeError):
            saved_env(Unsaved())

    def test_an_account_around_one_that_cannot_be_saved_is_refused_too(self):
        cfg = small("trpo-saute", carry_episodes=True)
        with pytest.raises(InputError, match="has no snapshot"):
            check_carry(cfg, Augmented(Unsaved(), build_algorithm(cfg).account))


def test_what_is_shown_besides_reaches_the_environments_beneath_an_account():
    plain, near, allowed = {"algo": "cpo"}, {"algo": "cpo", "near": "4,12"}, {"algo": "allowance"}
    placed = {"algo": "cpo", "places": "true"}
    for given, numbers in ((plain, 60), (near, 156), (placed, 74), (allowed, 219)):
        cfg = make_config({"env": "SafetyPointGoal1-v0", "num_envs": 2, **given})
        envs = make_envs(cfg, build_algorithm(cfg), threads=1)
        assert envs.single_observation_space.shape == envs.reset(seed=0)[0].shape[1:] == (numbers,)
        envs.close()
