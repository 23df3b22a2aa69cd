"""Small learning problems for the tests of steps."""

import numpy as np
from steingate.algorithms.common.base import Batch
from steingate.algorithms.common.heads import log_prob

from steingate.algorithms.common.networks import init_policy, mean


def problem(samples=300, obs_dim=3, act_dim=2, hidden=(5, 4), seed=0):
    """A policy and a batch it collected; action 0 pays where the observation is positive, action 1 costs."""
    rng = np.random.default_rng(seed)
    params = init_policy(rng, obs_dim, act_dim, hidden)
    params["log_std"] = np.linspace(-0.3, 0.2, act_dim).astype(np.float32)
    obs = rng.normal(size=(samples, obs_dim)).astype(np.float32)
    noise = rng.normal(size=(samples, act_dim))
    act = (np.asarray(mean(params, obs)) + np.exp(params["log_std"]) * noise).astype(np.float32)
    adv = act[:, 0] * obs[:, 0]
    cost_adv = 0.05 * act[:, 1] + 0.02 * act[:, 0] * obs[:, 0]
    return params, Batch(
        obs,
        act,
        np.asarray(log_prob(params, obs, act)),
        ((adv - adv.mean()) / adv.std()).astype(np.float32),
        (cost_adv - cost_adv.mean()).astype(np.float32),
    )
