"""The Stable-Baselines3 callback: with its documented interface, and with real models where installed."""

import hashlib
import importlib.util
import json
import sys
import types

import numpy as np
import pytest

from steingate import InputError

REAL = importlib.util.find_spec("stable_baselines3") is not None


class StandIn:
    """The part of BaseCallback's documented interface that a callback uses."""

    def __init__(self, verbose=0):
        self.verbose, self.n_calls, self.num_timesteps, self.locals = verbose, 0, 0, {}

    def init_callback(self, model):
        self.model, self.logger = model, model.logger

    def on_training_start(self):
        self.num_timesteps = self.model.num_timesteps
        self._on_training_start()

    def on_step(self):
        self.n_calls += 1
        self.num_timesteps = self.model.num_timesteps
        return self._on_step()

    def on_rollout_end(self):
        self._on_rollout_end()

    def on_training_end(self):
        self._on_training_end()


class Logger:
    def __init__(self):
        self.records = []

    def record(self, name, value):
        self.records.append((name, value))

    def of(self, name):
        return [value for key, value in self.records if key == name]


class Model:
    """A model with a given sequence of actions, one for each 100 steps of training."""

    normalizer = None

    def __init__(self, actions):
        self.actions, self.num_timesteps, self.logger, self.saved = actions, 0, Logger(), []

    def predict(self, obs, deterministic=True):
        return self.actions[min(self.num_timesteps // 100, len(self.actions) - 1)], None

    def get_vec_normalize_env(self):
        return self.normalizer

    def save(self, path):
        path.write_text(str(self.num_timesteps))
        self.saved.append(self.num_timesteps)

    def learn(self, steps, callback, envs=2):
        self.num_timesteps = 0
        callback.init_callback(self)
        callback.on_training_start()
        while self.num_timesteps < steps:
            for _ in range(10):
                self.num_timesteps += envs
                ended = self.num_timesteps % 20 == 0
                callback.locals = {"infos": [{"cost": 2.0}] * envs, "dones": np.full(envs, ended)}
                if not callback.on_step():
                    return
            callback.on_rollout_end()
        callback.on_training_end()


class Normalizer:
    def normalize_obs(self, obs):
        return obs

    def save(self, path):
        path.write_text("mean and variance")


class Task:
    """Five steps; the action is the cost and the reward."""

    def __init__(self):
        self.seeds = []

    def reset(self, seed=None):
        self.seeds.append(seed)
        self.left = 5
        return np.zeros(1), {}

    def step(self, action):
        self.left -= 1
        return np.zeros(1), float(action), self.left == 0, False, {"cost": float(action)}


@pytest.fixture
def callback_class(monkeypatch):
    """The callback with a stand-in base class, whether or not Stable-Baselines3 is installed."""
    base = types.ModuleType("stable_baselines3.common.callbacks")
    base.BaseCallback = StandIn
    for name in ("stable_baselines3", "stable_baselines3.common"):
        monkeypatch.setitem(sys.modules, name, types.ModuleType(name))
    monkeypatch.setitem(sys.modules, base.__name__, base)
    monkeypatch.delitem(sys.modules, "steingate.integrations.sb3", raising=False)
    module = importlib.import_module("steingate.integrations.sb3")
    yield module.CertifyCallback
    sys.modules.pop("steingate.integrations.sb3", None)


def test_the_best_certified_model_is_logged_and_saved(callback_class, tmp_path):
    # An episode costs five times the action; the limit is 25. The highest return is unsafe.
    model = Model([1.0, 4.0, 9.0, 3.0])
    model.normalizer = Normalizer()
    callback = callback_class(Task(), limit=25, eval_freq=100, max_episodes=300, save_path=tmp_path / "best")
    model.learn(400, callback)
    assert model.logger.of("certify/certified") == [1.0, 0.0, 1.0, 1.0]
    assert model.logger.of("certify/return") == [20.0, 45.0, 15.0, 15.0]
    assert model.logger.of("certify/cost") == model.logger.of("certify/return")
    assert model.saved == [100]
    files = {path.name: path.read_bytes() for path in (tmp_path / "best").iterdir()}
    stored = json.loads(files.pop("best_certified.json"))
    assert (stored["step"], stored["return"], stored["certified"]) == (100, 20.0, 1.0)
    assert files == {"best_certified.zip": b"100", "best_certified_vecnormalize.pkl": b"mean and variance"}
    assert stored["sha256"] == {name: hashlib.sha256(content).hexdigest() for name, content in files.items()}
    assert set(model.logger.of("rollout/ep_cost_mean")) == {20.0}
    assert set(model.logger.of("rollout/violation_rate")) == {0.0}


def test_delta_is_spent_once_over_all_calls_of_learn(callback_class):
    """The second call counts its steps from 0 again; a new callback continues the count of the model."""
    model = Model([1.0])
    callback = callback_class(Task(), limit=25, eval_freq=50, max_episodes=300)
    model.learn(100, callback)
    model.learn(100, callback)
    model.learn(100, callback_class(Task(), limit=25, eval_freq=50, max_episodes=300))
    spent = model.logger.of("certify/delta")
    assert spent == pytest.approx([0.05 * 6 / (np.pi * k) ** 2 for k in range(1, 7)])
    episodes = model.logger.of("certify/episodes")
    assert episodes == sorted(episodes)
    assert episodes[0] < episodes[-1]


def test_no_two_tests_share_a_seed(callback_class):
    """Not those of one training, nor those of trainings with other seeds; the same seed repeats."""
    seeds = []
    for seed in (0, 1, 2, 0):
        env = Task()
        Model([1.0]).learn(300, callback_class(env, limit=25, eval_freq=100, max_episodes=300, seed=seed))
        seeds.append(env.seeds)
    different = seeds[0] + seeds[1] + seeds[2]
    assert len(set(different)) == len(different) > 300
    assert seeds[3] == seeds[0]


def test_it_can_stop_training(callback_class, capsys):
    model = Model([9.0, 1.0])
    model.learn(1_000, callback_class(Task(), limit=25, eval_freq=60, stop_when_certified=True, verbose=1))
    assert model.num_timesteps == 120
    assert "Take this policy out of service" in capsys.readouterr().out


def test_wrong_settings_and_missing_costs_are_refused(callback_class):
    with pytest.raises(InputError, match="budget"):
        callback_class(Task(), limit=25, budget=3)
    with pytest.raises(InputError, match="eval_freq"):
        callback_class(Task(), limit=25, eval_freq=0)
    model = Model([1.0])
    callback = callback_class(Task(), limit=25)
    callback.init_callback(model)
    callback.locals = {"infos": [{}], "dones": [False]}
    with pytest.raises(InputError, match="info"):
        callback.on_step()


@pytest.mark.skipif(not REAL, reason="Stable-Baselines3 is not installed; make test-sb3 does")
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", ["PPO", "DQN"])
def test_with_real_models(tmp_path, name):
    import gymnasium
    import stable_baselines3
    import torch

    from steingate.integrations.sb3 import CertifyCallback

    torch.set_num_threads(1)

    class Tilt(gymnasium.Wrapper):
        def step(self, action):
            obs, reward, terminated, truncated, info = self.env.step(action)
            return obs, reward, terminated, truncated, {**info, "cost": float(abs(obs[2]) > 0.1)}

    def make():
        return Tilt(gymnasium.make("CartPole-v1", max_episode_steps=50))

    options = {"n_steps": 128} if name == "PPO" else {"learning_starts": 100}
    model = getattr(stable_baselines3, name)("MlpPolicy", make(), seed=0, device="cpu", **options)
    callback = CertifyCallback(make(), limit=30, eval_freq=500, max_episodes=100, save_path=tmp_path)
    model.learn(1_000, callback=callback)
    # On-policy algorithms complete their rollout; steps after the last test are followed by one more.
    assert model.steingate_tests == (3 if name == "PPO" else 2)
    assert callback.result.certified
    loaded = getattr(stable_baselines3, name).load(tmp_path / "best_certified.zip", device="cpu")
    assert loaded.predict(np.zeros(4, np.float32))[0] in (0, 1)
    assert json.loads((tmp_path / "best_certified.json").read_text())["certified"] == 1.0
    tests = model.steingate_tests
    model.learn(1_000, callback=callback)
    assert model.steingate_tests == 2 * tests


@pytest.mark.skipif(not REAL, reason="Stable-Baselines3 is not installed; make test-sb3 does")
@pytest.mark.filterwarnings("ignore")
def test_the_saved_files_are_the_certified_policy(tmp_path):
    """Training goes on after the certificate; the saved statistics are those of the test."""
    import gymnasium
    import torch
    from stable_baselines3 import PPO
    from stable_baselines3.common.vec_env import DummyVecEnv, VecNormalize

    from steingate.integrations.sb3 import CertifyCallback

    torch.set_num_threads(1)

    class Free(gymnasium.Wrapper):
        def step(self, action):
            return *self.env.step(action)[:4], {"cost": 0.0}

    def make():
        return Free(gymnasium.make("Pendulum-v1", max_episode_steps=50))

    points = np.random.default_rng(0).normal(size=(50, 3)).astype(np.float32)

    class Recorded(CertifyCallback):
        def test(self):
            monitor = super().test()
            act = self._policy()
            self.actions = [act(point) for point in points]
            self.stop_when_certified, self.eval_freq = False, 10**9
            return monitor

        def _on_training_end(self):
            pass

    envs = VecNormalize(DummyVecEnv([make]), norm_reward=False)
    model = PPO("MlpPolicy", envs, n_steps=64, seed=0, device="cpu")
    callback = Recorded(make(), limit=1, eval_freq=128, save_path=tmp_path)
    model.learn(1_000, callback=callback)
    normalizer = VecNormalize.load(tmp_path / "best_certified_vecnormalize.pkl", DummyVecEnv([make]))
    loaded = PPO.load(tmp_path / "best_certified.zip", device="cpu")
    assert loaded.steingate_tests == 1
    actions = [loaded.predict(normalizer.normalize_obs(point), deterministic=True)[0] for point in points]
    np.testing.assert_allclose(actions, callback.actions, atol=1e-6)
    with_later = [loaded.predict(envs.normalize_obs(point), deterministic=True)[0] for point in points]
    assert np.abs(np.subtract(with_later, callback.actions)).max() > 1e-4
