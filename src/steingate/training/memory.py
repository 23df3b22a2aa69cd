"""Whether a run can fit into this machine: asked before memory is taken."""

import os

from steingate.errors import InputError
from steingate.tasks.catalog import TASKS
from steingate.training.config import RunConfig

PER_ENV = 2500  # bytes; the smallest of the native tasks, and less than any environment written in Python
PER_STEP = 40  # beside observation and action: reward, cost, values, advantages, returns


def require_memory(cfg: RunConfig, num_envs: int | None = None) -> None:
    """Refuse sizes that need more memory than the machine has, by a low estimate.

    Parameters
    ----------
    cfg
        The run.
    num_envs
        Another number of environments, which then only play.
    """
    has = machine_bytes()
    needs = (num_envs or cfg.num_envs) * PER_ENV
    if num_envs is None:
        task = TASKS.get(cfg.env.removeprefix("steingate/"))
        width = 2 if task is None else task.observation_size + task.action_size
        needs += cfg.steps_per_epoch * (4 * width + PER_STEP)
    if has is not None and needs > has:
        raise InputError(
            f"num_envs is {num_envs or cfg.num_envs} and steps_per_epoch {cfg.steps_per_epoch}: that takes "
            f"at least {needs / 2**30:.3g} GiB of memory, and this machine has {has / 2**30:.3g}; lower them."
        )


def machine_bytes() -> int | None:
    """Return the memory of this machine; None where the system does not say."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):  # Windows has no such call
        return None
