"""Stable-Baselines3 callback: log episode costs, certify the policy, save the best certified one.

Needs the extra ``sb3``. It works with every SB3 algorithm whose environments put the cost of
each step into ``info["cost"]``.
"""

import hashlib
import json
import os
import sys
from collections.abc import Callable, Iterator
from math import inf, pi
from pathlib import Path
from typing import Any

import numpy as np

from steingate.errors import InputError, needs
from steingate.monitoring.episodes import EpisodeCosts, run_episodes, step_cost, update_until_decided
from steingate.monitoring.monitor import Monitor
from steingate.storage.files import replace_file, writing

with needs("steingate.integrations.sb3"):
    from stable_baselines3.common.callbacks import BaseCallback

NAME = "best_certified"
TESTS = "steingate_tests"  # attribute of a model: number of tests so far; SB3 saves and loads it with the model


class CertifyCallback(BaseCallback):
    """Tests the policy on fresh episodes every ``eval_freq`` steps, and saves the best certified one.

    A test runs episodes in ``eval_env`` until a ``Monitor`` certifies the policy or shows that it is unsafe.
    Test k of a model has the error probability 6 / (pi k)^2 ``delta``, so that with probability at least
    1 - ``delta`` all certificates of this model are right. The model stores k, so the count goes on in later
    calls of ``learn``, with a new callback, and after loading. Logs ``rollout/ep_cost_mean`` and
    ``rollout/violation_rate``, and ``certify/*`` after each test.

    Parameters
    ----------
    eval_env
        One Gymnasium environment with ``info["cost"]``, separate from those for training.
    limit, budget, delta
        Cost limit, accepted violation probability, and error probability; see ``Monitor``.
    eval_freq, max_episodes
        Training steps between tests, and the maximum number of episodes of one test.
    save_path
        Folder for ``best_certified.zip`` (the model), ``best_certified_vecnormalize.pkl`` (the statistics of a
        ``VecNormalize``, for ``VecNormalize.load``; without them the model is another policy) and
        ``best_certified.json`` (numbers, and the SHA-256 of the other files).
    stop_when_certified
        Stop training at the first certificate.
    deterministic
        Test deterministic actions instead of samples.
    seed
        Seed of the test episodes; those of each test depend on (seed, k), with no seed in common.
    verbose
        1 prints the result of each test.
    """

    def __init__(
        self,
        eval_env: Any,
        *,
        limit: float,
        budget: float = 0.1,
        delta: float = 0.05,
        eval_freq: int = 10_000,
        max_episodes: int = 200,
        save_path: str | Path | None = None,
        stop_when_certified: bool = False,
        deterministic: bool = True,
        seed: int = 0,
        verbose: int = 0,
    ) -> None:
        super().__init__(verbose)
        Monitor(limit, budget, delta)  # validates the settings before training begins
        if eval_freq < 1:
            raise InputError(f"eval_freq must be a positive number of steps, got {eval_freq}.")
        self.eval_env, self.limit, self.budget, self.delta = eval_env, limit, budget, delta
        self.eval_freq, self.max_episodes = eval_freq, max_episodes
        self.save_path = None if save_path is None else Path(save_path)
        self.stop_when_certified, self.deterministic, self.seed = stop_when_certified, deterministic, seed
        self.result: Monitor | None = None
        self.best_return = -inf
        self._tested_at = 0
        self._costs: list[float] = []
        self._episodes: EpisodeCosts | None = None

    def _on_training_start(self) -> None:
        self._tested_at = self.model.num_timesteps
        if self._tested_at == 0:  # SB3 resets the environments unless it continues to count
            self._episodes = None

    def _on_step(self) -> bool:
        infos, dones = self.locals["infos"], self.locals["dones"]
        if self._episodes is None:
            self._episodes = EpisodeCosts(len(infos))
        self._costs += self._episodes.add([step_cost(info.get("cost")) for info in infos], dones)
        if self.num_timesteps - self._tested_at < self.eval_freq:
            return True
        return not (self.test().certified and self.stop_when_certified)

    def _on_rollout_end(self) -> None:
        if self._costs:
            self.logger.record("rollout/ep_cost_mean", np.mean(self._costs))
            self.logger.record("rollout/violation_rate", np.mean(np.array(self._costs) > self.limit))
            self._costs = []

    def _on_training_end(self) -> None:
        if self.num_timesteps > self._tested_at:
            self.test()

    def test(self) -> Monitor:
        """Test the current policy; log the numbers, save it if it is the best, and return the monitor."""
        number = int(getattr(self.model, TESTS, 0)) + 1
        setattr(self.model, TESTS, number)
        self._tested_at = self.num_timesteps
        monitor = Monitor(self.limit, self.budget, self.delta * 6.0 / (pi * number) ** 2)
        key = np.random.SeedSequence(self.seed, spawn_key=(number,))
        seed = int.from_bytes(key.generate_state(4).tobytes(), sys.byteorder)
        episodes: list[tuple[float, float]] = []  # cost and return

        def costs() -> Iterator[float]:
            for episode in run_episodes(self._policy(), self.eval_env, seed):
                episodes.append(episode)
                yield episode[0]

        update_until_decided(monitor, costs(), self.max_episodes)
        cost, ret = np.mean(episodes, axis=0).tolist()
        numbers = {
            "return": ret,
            "cost": cost,
            "bound": monitor.bound,
            "certified": float(monitor.certified),
            "episodes": monitor.episodes,
            "delta": monitor.delta,
        }
        for name, value in numbers.items():
            self.logger.record(f"certify/{name}", value)
        if monitor.certified and ret > self.best_return:
            self.best_return = ret
            self._save(numbers)
        if self.verbose:
            print(f"step {self.num_timesteps}: {monitor.summary}")
        self.result = monitor
        return monitor

    def _policy(self) -> Callable[[Any], Any]:
        """Return the model as a function of observations, with the normalization of a ``VecNormalize``."""
        normalizer = self.model.get_vec_normalize_env()

        def act(obs: Any) -> Any:
            obs = obs if normalizer is None else normalizer.normalize_obs(obs)
            return self.model.predict(obs, deterministic=self.deterministic)[0]

        return act

    def _save(self, numbers: dict[str, float]) -> None:
        if self.save_path is None:
            return
        normalizer = self.model.get_vec_normalize_env()
        files = {f"{NAME}.zip": self.model.save}
        if normalizer is not None:
            files[f"{NAME}_vecnormalize.pkl"] = normalizer.save
        digests = {}
        for name, save in files.items():
            target, temporary = self.save_path / name, self.save_path / f".tmp.{name}"
            with writing(target):
                self.save_path.mkdir(parents=True, exist_ok=True)
                save(temporary)
                digests[name] = hashlib.sha256(temporary.read_bytes()).hexdigest()
                os.replace(temporary, target)
        record = {"step": self.num_timesteps, "test": getattr(self.model, TESTS), **numbers, "sha256": digests}
        replace_file(self.save_path / f"{NAME}.json", json.dumps(record, indent=2).encode() + b"\n")
