"""Short runs on a probe, slowed down so that there is time to kill them; given to bench as a user's grid."""

from steingate.experiments.grid import Sizes

SIZES = Sizes(total_steps=80 * 80, steps_per_epoch=80, num_envs=4, seeds=(0, 1), checkpoint_every=4)
SETTINGS = {
    "cost_limit": 4.0, "hidden": (8, 8), "critic_passes": 2, "critic_batch": 32, "cg_iters": 4,
}  # fmt: skip


def grid(sizes):
    """One run per seed."""
    pause = {"env_options": {"pause": 0.001}}
    return sizes.runs(["tests.training.probes:Walk"], ["steingate"], **SETTINGS, **pause)
