"""Monitor wrappers: every autoreset mode counts the same episodes as a direct count."""

import gymnasium
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode, SyncVectorEnv

from steingate import InputError, Monitor, Monitors
from steingate.envs.make import make_vec
from steingate.envs.monitoring import MonitorVectorWrapper, MonitorWrapper


class Spend(gymnasium.Env):
    """Costs 1 per step and 20 at the end of an episode; the length is random."""

    observation_space = gymnasium.spaces.Box(-1, 1, (1,))
    action_space = gymnasium.spaces.Box(-1, 1, (1,))
    log: list = []  # noqa: RUF012

    def __init__(self, key="cost"):
        self.key = key

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.left, self.total = int(self.np_random.integers(1, 8)), 0.0
        return np.zeros(1, np.float32), {}

    def step(self, action):
        self.left -= 1
        cost = 1.0 + (20.0 if self.left == 0 else 0.0)
        self.total += cost
        if self.left == 0:
            Spend.log.append(self.total)
        return np.zeros(1, np.float32), 0.0, self.left == 0, False, {self.key: cost}


def test_one_environment():
    Spend.log = []
    monitor = Monitor(limit=25)
    env = MonitorWrapper(Spend(), monitor)
    env.reset(seed=0)
    seen = []
    for _ in range(300):
        *_, terminated, truncated, info = env.step(env.action_space.sample())
        assert ("monitor" in info) == (terminated or truncated)
        if terminated:
            seen.append(info["monitor"])
            env.reset()
    assert [numbers["episodes"] for numbers in seen] == list(range(1, len(seen) + 1))
    exact = Monitor(limit=25)
    exact.update_many(Spend.log)
    assert monitor.state_dict() == exact.state_dict()
    assert seen[-1]["bound"] == exact.bound


@pytest.mark.parametrize("mode", [AutoresetMode.SAME_STEP, AutoresetMode.NEXT_STEP])
def test_every_episode_counts_once_in_both_autoreset_modes(mode):
    Spend.log = []
    monitor = Monitor(limit=25)
    envs = MonitorVectorWrapper(SyncVectorEnv([Spend] * 4, autoreset_mode=mode), monitor)
    envs.reset(seed=1)
    for _ in range(200):
        *_, info = envs.step(np.zeros((4, 1), np.float32))
        assert ("monitor" in info) == (info.get("monitor") is not None)
    finished = len(Spend.log)
    assert finished - 8 <= monitor.episodes <= finished
    assert monitor.max_cost == max(Spend.log)
    # Episode costs are uniform on 21..27; 26 and 27 exceed the limit.
    assert monitor.violations / monitor.episodes == pytest.approx(2 / 7, abs=0.12)


def test_native_tasks_and_explicit_resets():
    monitor = Monitor(limit=25)
    envs = make_vec("SafetyPointCircle1-v0", 2, max_episode_steps=20)
    watched = MonitorVectorWrapper(envs, monitor)
    watched.reset(seed=0)
    total = np.zeros(2)
    for _ in range(20):
        *_, info = watched.step(np.ones((2, 2)))
        total += info["cost"]
    exact = Monitor(limit=25)
    exact.update_many(total)
    assert monitor.state_dict() == exact.state_dict()
    for _ in range(5):
        watched.step(np.ones((2, 2)))
    watched.reset(seed=1)  # discards both episodes
    for _ in range(20):
        watched.step(np.zeros((2, 2)))
    assert monitor.episodes == 4
    watched.close()


def test_named_costs_and_missing_ones():
    env = MonitorWrapper(Spend("fuel"), Monitors({"fuel": 25}))
    env.reset(seed=0)
    while True:
        *_, terminated, _, info = env.step(None)
        if terminated:
            break
    assert "bound/fuel" in info["monitor"]
    wrong = MonitorWrapper(Spend("fuel"), Monitor(25))
    wrong.reset(seed=0)
    with pytest.raises(InputError, match="cost"):
        wrong.step(None)
    batch = MonitorVectorWrapper(SyncVectorEnv([lambda: Spend("fuel")] * 2), Monitor(25))
    batch.reset(seed=0)
    with pytest.raises(InputError, match="gives no finite info"):
        batch.step(np.zeros((2, 1), np.float32))
