"""A grid of short runs on a probe environment, slowed down so that there is time to kill them."""

from steingate.experiments.grid import Sizes

SIZES = Sizes(total_steps=80 * 80, steps_per_epoch=80, num_envs=4, seeds=(0, 1), checkpoint_every=4)
OPTIONS = {"cost_limit": 4.0, "hidden": (8, 8), "vf_epochs": 2, "vf_batch_size": 32, "cg_iters": 4}


def grid(sizes):
    """Return one run per seed."""
    return sizes.runs("tests.training.probes:Walk", "steingate", env_options={"pause": 0.001}, **OPTIONS)
