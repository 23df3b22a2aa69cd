"""Stable-Baselines3: watch the cost while training, certify the policy, keep the best certified one.

Needs ``pip install 'steingate[sb3]'``. Any SB3 algorithm will do, as long as its environments put the cost of
each step into ``info["cost"]``.
"""

import json
import os
from collections.abc import Callable
from math import pi
from pathlib import Path
from typing import Any

from steingate.errors import InputError, needs
from steingate.monitoring.certify import Verdict, play, until_certified
from steingate.monitoring.episodes import EpisodeCosts, step_cost
from steingate.monitoring.monitor import Monitor
from steingate.storage.files import replace_file, writing

with needs("steingate.integrations.sb3"):
    from stable_baselines3.common.callbacks import BaseCallback

SAVED = "best_certified"


class CertifyCallback(BaseCallback):
    """Logs return, cost, bound and certificate, and keeps the best policy that is certified.

    Every ``every`` steps the policy is frozen and run in ``eval_env`` with a monitor of its own, for only as
    many episodes as it takes. Each such test is a chance to be wrong, so the k-th gets 6 / (pi k)^2 of
    ``delta``: with probability 1 - ``delta`` no certificate that this callback ever gives is wrong. With
    ``spend=False`` each is wrong with probability ``delta`` by itself.

    Parameters
    ----------
    eval_env
        One Gymnasium environment with ``info["cost"]``, apart from those that train.
    limit, budget, delta
        Those of the ``Monitor``.
    every
        Training steps between tests.
    max_episodes
        Most episodes of one test.
    save_path
        Folder for ``best_certified.zip`` (the model) and ``best_certified.json`` (its numbers), if wanted.
    stop_when_certified
        End training at the first certificate.
    deterministic
        Test the mean action instead of samples.
    spend
        Divide ``delta`` over the tests.
    seed
        Decides the episodes of the tests.
    verbose
        1 prints a sentence after each test.
    """

    def __init__(
        self,
        eval_env: Any,
        *,
        limit: float = 25.0,
        budget: float = 0.1,
        delta: float = 0.05,
        every: int = 10_000,
        max_episodes: int = 200,
        save_path: str | Path | None = None,
        stop_when_certified: bool = False,
        deterministic: bool = True,
        spend: bool = True,
        seed: int = 0,
        verbose: int = 0,
    ) -> None:
        super().__init__(verbose)
        Monitor(limit, budget, delta)  # refuses impossible settings before training begins
        if every < 1:
            raise InputError(f"every is {every}: give a positive number of steps.")
        self.eval_env, self.limit, self.budget, self.delta = eval_env, limit, budget, delta
        self.every, self.max_episodes = every, max_episodes
        self.save_path = None if save_path is None else Path(save_path)
        self.stop_when_certified, self.deterministic, self.spend = stop_when_certified, deterministic, spend
        self.seed = seed
        self.tests = 0
        self.verdict: Verdict | None = None
        self.best_return: float | None = None
        self._tested_at = 0
        self._costs: list[float] = []
        self._episodes: EpisodeCosts | None = None

    def _on_step(self) -> bool:
        infos, dones = self.locals["infos"], self.locals["dones"]
        if self._episodes is None:
            self._episodes = EpisodeCosts(len(infos))
        self._costs += self._episodes.add([step_cost(info.get("cost")) for info in infos], dones)
        if self.num_timesteps - self._tested_at < self.every:
            return True
        verdict = self.test()
        return not (verdict.certified and self.stop_when_certified)

    def _on_rollout_end(self) -> None:
        if self._costs:
            over = sum(cost > self.limit for cost in self._costs) / len(self._costs)
            self.logger.record("rollout/ep_cost_mean", sum(self._costs) / len(self._costs))
            self.logger.record("rollout/ep_over_limit", over)
            self._costs = []

    def _on_training_end(self) -> None:
        if self.num_timesteps > self._tested_at:
            self.test()

    def test(self) -> Verdict:
        """Run the present policy until it is certified or shown unsafe; log, save, and return the verdict."""
        self.tests += 1
        self._tested_at = self.num_timesteps
        share = 6.0 / (pi * self.tests) ** 2 if self.spend else 1.0
        monitor = Monitor(self.limit, self.budget, self.delta * share)
        costs: list[float] = []
        returns: list[float] = []

        def episodes() -> Any:
            for cost, ret in play(self._policy(), self.eval_env, self.seed + self.tests):
                costs.append(cost)
                returns.append(ret)
                yield cost

        verdict = until_certified(episodes(), monitor, self.max_episodes)
        numbers = {
            "return": sum(returns) / len(returns),
            "cost": sum(costs) / len(costs),
            "bound": verdict.bound,
            "certified": float(verdict.certified),
            "episodes": verdict.episodes,
            "delta": monitor.delta,
        }
        for name, value in numbers.items():
            self.logger.record(f"certify/{name}", value)
        self.verdict = verdict
        if verdict.certified and (self.best_return is None or numbers["return"] > self.best_return):
            self.best_return = numbers["return"]
            self._save(numbers)
        if self.verbose:
            print(f"step {self.num_timesteps}: {verdict.sentence}")
        return verdict

    def _policy(self) -> Callable[[Any], Any]:
        """Return the model as a function, with the observation statistics it was trained with."""
        normalizer = self.model.get_vec_normalize_env()

        def act(obs: Any) -> Any:
            seen = obs if normalizer is None else normalizer.normalize_obs(obs)
            return self.model.predict(seen, deterministic=self.deterministic)[0]

        return act

    def _save(self, numbers: dict[str, float]) -> None:
        if self.save_path is None:
            return
        target = self.save_path / f"{SAVED}.zip"
        temporary = self.save_path / f".{SAVED}.tmp.zip"
        with writing(target):
            self.save_path.mkdir(parents=True, exist_ok=True)
            self.model.save(temporary)
            os.replace(temporary, target)
        record = {"step": self.num_timesteps, **numbers}
        replace_file(self.save_path / f"{SAVED}.json", json.dumps(record, indent=2).encode() + b"\n")
