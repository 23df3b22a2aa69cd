"""Environments that show what an episode has spent: one more number at the end of the observation."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
from gymnasium.spaces import Box
from gymnasium.vector.utils import batch_space

from steingate.envs.wrapper import VectorEnvWrapper
from steingate.errors import InputError
from steingate.gates.account import Account, Extra
from steingate.gates.base import Array


class Augmented(VectorEnvWrapper):
    """A vector environment with one more number in the observation, by ``account``.

    The number stays as it is where the rest of the observation is normalized. ``info["cost"]`` stays the
    original cost, ``info["original_reward"]`` is the original reward. Everything else (rendering, spaces of
    actions, attributes) is that of the environment inside.

    Parameters
    ----------
    envs : a vector environment with same-step autoreset and ``info["cost"]``
    account : what is seen, and what that does to the reward
    """

    def __init__(self, envs: Any, account: Account) -> None:
        super().__init__(envs)
        space = envs.single_observation_space
        self.account, self.share, self.worth = account, 1.0, 0.0
        self._seen = account.seen
        low, high = np.append(space.low, -np.inf), np.append(space.high, np.inf)
        self.single_observation_space = Box(low, high, dtype=np.float64)
        self.observation_space = batch_space(self.single_observation_space, self.num_envs)
        self.number = np.full(self.num_envs, self._seen.first(self.share, False))

    def set_budget(self, share: float, worth: float = 0.0) -> None:
        """Let episodes spend this share of the budget, and price what they spend by this worth."""
        if not 0.0 < share <= 1.0:
            raise InputError(f"The share of the budget is {share!r}: it must be above 0 and at most 1.")
        self.share, self.worth = float(share), float(worth)

    def reset(self, **options: Any) -> tuple[Array, dict[str, Any]]:
        """Start new episodes and return what they show."""
        obs, info = self.envs.reset(**options)
        mask = (options.get("options") or {}).get("reset_mask")
        self.number[slice(None) if mask is None else np.asarray(mask)] = self._seen.first(self.share, False)
        return self._shown(obs), info

    def step(
        self, actions: Any
    ) -> tuple[Array, Array, npt.NDArray[np.bool_], npt.NDArray[np.bool_], dict[str, Any]]:
        """Step every environment once."""
        obs, reward, terminated, truncated, info = self.envs.step(actions)
        self.number = self._seen.following(self.number, info["cost"], self.share)
        info["original_reward"] = reward
        rule = self.account.reward
        shaped = reward if rule is None else rule(self.number, reward, info["cost"], self.share, self.worth)
        ended = terminated | truncated
        if ended.any():
            last = self.number
            self.number = np.where(ended, self._seen.first(self.share, True), last)
            if "final_obs" in info:
                shown = last if self._seen.true_at_end else self.number
                info["final_obs"] = np.column_stack([info["final_obs"], shown])
        return self._shown(obs), shaped, terminated, truncated, info

    def snapshot(self) -> dict[str, npt.NDArray[Any]]:
        """Return the whole state, if the environment inside can."""
        own = {"budget/number": self.number.copy(), "budget/share": np.array(self.share)}
        return {**super().snapshot(), **own}

    def restore(self, snapshot: Mapping[str, npt.NDArray[Any]]) -> Array:
        """Return the observations that were current at a snapshot after going back to it."""
        inner = {name: value for name, value in snapshot.items() if not name.startswith("budget/")}
        obs = self.envs.restore(inner)
        self.number = np.array(snapshot["budget/number"], np.float64)
        self.share = float(snapshot["budget/share"])
        return self._shown(obs)

    def extra(self) -> Extra:
        """Return how the number is kept, for a policy that acts without this wrapper."""
        return self._seen.extra(self.share)

    def _shown(self, obs: Array) -> Array:
        return np.column_stack([obs, self.number])
