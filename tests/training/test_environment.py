"""From a configuration to its algorithm and its environments."""

import numpy as np
import pytest
from tests.training.fakes import FakeEnv, RestorableEnv, small

from steingate.algorithms.base import EnvParams, Episodes, Mode
from steingate.envs import make as envs_make
from steingate.envs.safety_state import SafetyStateWrapper
from steingate.errors import InputError
from steingate.training.config import make_config
from steingate.training.environment import build_algorithm, make_envs, require_snapshots


class TestAlgorithm:
    def test_limit_window_and_variant_reach_it(self):
        episodes = Episodes(np.array([1.0, 2.0, 9.0]), np.zeros(3), np.array([10, 10, 10]))
        for variant, slack in (("corrected", (5.0 - 5.5) / 10), ("published", -0.5)):
            cfg = small("cpo", cost_limit=5.0, window=2, variant=variant)
            algorithm = build_algorithm(cfg)
            _, output = algorithm.decide(cfg.context, algorithm.init(cfg.context, {}), episodes)
            assert output.objective.mode == Mode.BALANCE
            assert output.objective.cost_slack == pytest.approx(slack)


class TestEnvironments:
    @pytest.fixture
    def made(self, monkeypatch):
        """Return the arguments with which environments are made; each is a :class:`RestorableEnv`."""
        calls = []

        def make_vec(env, num_envs, **options):
            calls.append((env, num_envs, options))
            return RestorableEnv()

        monkeypatch.setattr(envs_make, "make_vec", make_vec)
        return calls

    def test_options_of_the_run_reach_them(self, made):
        cfg = small("cpo", env="a:B", threads=3, env_options={"limit": 7})
        make_envs(cfg)
        make_envs(cfg, num_envs=5, render=True)
        make_envs(small("cpo", env_options={"copy": True}))
        options = {"copy": False, "workers": None, "threads": 3, "limit": 7}
        assert made[:2] == [("a:B", 2, options), ("a:B", 5, {**options, "render": True})]
        assert made[2][2] == {"copy": True, "workers": None}  # the environment chooses the number of threads

    def test_a_safety_state_starts_with_the_given_budget(self, made):
        cfg = small("trpo-saute")
        whole, quarter = make_envs(cfg), make_envs(cfg, params=EnvParams(0.25))
        assert isinstance(whole, SafetyStateWrapper)
        assert whole.reset(seed=0)[0][0, -1] == 1.0
        assert quarter.reset(seed=0)[0][0, -1] == 0.25
        assert isinstance(make_envs(small("cpo")), RestorableEnv)

    @pytest.mark.parametrize(
        ("options", "size"),
        [
            ({"algo": "cpo"}, 60),
            ({"algo": "cpo", "lidar_powers": "4,12"}, 156),
            ({"algo": "cpo", "lidar_positions": "true"}, 74),
            ({"algo": "allowance"}, 219),  # features and the safety state
        ],
    )
    def test_size_of_the_observation(self, options, size):
        envs = make_envs(make_config({"env": "SafetyPointGoal1-v0", "num_envs": 2, "threads": 1, **options}))
        assert envs.single_observation_space.shape == envs.reset(seed=0)[0].shape[1:] == (size,)
        envs.close()


def test_carry_episodes_needs_snapshots():
    require_snapshots(small(), FakeEnv())
    require_snapshots(small(carry_episodes=True), RestorableEnv())
    with pytest.raises(InputError, match="carry_episodes needs an environment that can be saved, and fake"):
        require_snapshots(small(carry_episodes=True), FakeEnv())
    cfg = small("trpo-saute", carry_episodes=True)
    with pytest.raises(InputError, match="has no snapshot"):
        require_snapshots(cfg, SafetyStateWrapper(FakeEnv(), build_algorithm(cfg), cfg.context))
