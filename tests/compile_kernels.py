"""Compile the numba kernels: ``python -m tests.compile_kernels``. ``make test`` runs it beside the type checker."""

import numpy as np

from steingate.algorithms.common.networks import init_policy
from steingate.envs.make import make_vec
from steingate.policies.normalizer import init_stats
from steingate.training.rollout import collect


def main() -> None:
    """Collect a short rollout in one task of every robot and family."""
    for name in ("SafetyCarGoal2-v0", "SafetyPointGoal2-v0", "SafetyCarCircle2-v0", "SafetyHopperVelocity-v1"):
        envs = make_vec(name, 2, copy=False, max_episode_steps=3)
        sizes = envs.single_observation_space.shape[0], envs.single_action_space.shape[0]
        policy = init_policy(np.random.default_rng(0), *sizes, (4,))
        noise = np.zeros((5, 2, sizes[1]), np.float32)
        collect(envs, policy, init_stats(sizes[0]), noise, seeds=[0, 1])
        envs.close()


if __name__ == "__main__":
    main()
