"""From a configuration to its algorithm and its environments."""

import pytest
from tests.training.fakes import FakeEnv, RestorableEnv, small

from steingate.envs.wrappers import SafetyStateWrapper
from steingate.errors import InputError
from steingate.training.config import make_config
from steingate.training.environment import make_envs, require_snapshots


class TestEnvironments:
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
        require_snapshots(cfg, SafetyStateWrapper(FakeEnv(), cfg.algo, cfg.context))
