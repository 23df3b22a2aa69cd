"""Both critics with their optimizers: first values, and one epoch's fit."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from steingate.algorithms.common.base import Params, first_bad
from steingate.algorithms.common.critics import Adam, fit_critic, init_adam, minibatch_order
from steingate.algorithms.common.networks import init_critic
from steingate.errors import RunError
from steingate.training.config import RunConfig
from steingate.training.seeding import Purpose, stream


class Critics(NamedTuple):
    """Parameters and optimizer of the reward and the cost critic."""

    reward: Params
    reward_adam: Adam
    cost: Params
    cost_adam: Adam

    @property
    def params(self) -> tuple[Params, Params]:
        """Parameters of both."""
        return self.reward, self.cost


def init_critics(cfg: RunConfig, obs_dim: int) -> Critics:
    """Return the critics before the first epoch."""
    reward = init_critic(stream(cfg.seed, 0, Purpose.REWARD_CRITIC), obs_dim, cfg.algo.hidden)
    cost = init_critic(stream(cfg.seed, 0, Purpose.COST_CRITIC), obs_dim, cfg.algo.hidden)
    return Critics(reward, init_adam(reward), cost, init_adam(cost))


def fit_critics(
    critics: Critics,
    obs: npt.NDArray[np.float32],
    targets: npt.NDArray[np.float32],
    cfg: RunConfig,
    epoch: int,
    weight: npt.NDArray[np.float32] | None = None,
    passes: int | None = None,
    uses_cost: bool = True,
) -> Critics:
    """Return both critics fitted to the targets (2, N) of one epoch; what is not finite raises an error.

    ``weight`` (N,) says how often each sample counts. ``passes`` replaces the configured number where it
    changes from epoch to epoch; each is then a call of its own, so that no new shape is compiled. Without
    ``uses_cost`` the cost critic stays as it is.
    """
    fit = cfg.algo.critic_fit
    count = (cfg.algo.critic_passes or 0) if passes is None else passes
    order = minibatch_order(stream(cfg.seed, epoch, Purpose.FIT), len(obs), count)
    parts = [order] if passes is None else np.split(order, passes) if passes else []
    reward, reward_adam, cost, cost_adam = critics
    for part in parts:
        reward, reward_adam, _ = fit_critic(reward, reward_adam, obs, targets[0], part, fit, weight)
        if uses_cost:
            cost, cost_adam, _ = fit_critic(cost, cost_adam, obs, targets[1], part, fit, weight)
    bad = first_bad({"the reward critic": reward, "the cost critic": cost})
    if bad is not None:
        raise RunError(
            f"Training on {cfg.env} stopped after epoch {epoch} (step {(epoch + 1) * cfg.steps_per_epoch}): "
            f"{bad} is not finite; the state before that epoch is saved."
        )
    return Critics(reward, reward_adam, cost, cost_adam)
