"""What is odd about the episodes of a task, told once, in the same words for every method."""

import numpy as np
import numpy.typing as npt

from steingate.training.config import RunConfig
from steingate.training.state import TrainState


def episode_notes(cfg: RunConfig, before: TrainState, costs: npt.NDArray[np.float64]) -> tuple[str, ...]:
    """Return a sentence for each thing about an epoch's episodes that the user should mend.

    Parameters
    ----------
    cfg
        The run.
    before
        The state before the epoch; what was told then is not told again.
    costs
        Those of the episodes that finished in the epoch.
    """
    notes = []
    if before.epoch == 0 and len(costs) == 0:
        notes.append(_none_finished(cfg))
    known = before.window[:, 1]
    if (costs < 0.0).any() and not (known < 0.0).any():
        notes.append(below_zero(cfg, costs))
    return tuple(notes)


def below_zero(cfg: RunConfig, costs: npt.NDArray[np.float64]) -> str:
    """Return what is to be known of costs some of which are negative."""
    return (
        f"An episode of {cfg.env} cost {costs.min():g}: costs below 0 make up for violations in the same "
        "episode, and gates and certificates take such an episode as free; give costs of 0 or more, and "
        "put what is good into the reward."
    )


def _none_finished(cfg: RunConfig) -> str:
    steps = f"{cfg.horizon} steps of each environment"
    if cfg.time_limit is None:
        why = f"no episode has finished within {steps}, and {cfg.env} states no time limit"
        advice = "give it one, such as --env-options max_episode_steps=200"
    else:
        why = f"no episode has finished: one may take {cfg.time_limit} steps, and an epoch has {steps}"
        advice = f"give --steps-per-epoch {cfg.time_limit * cfg.num_envs} or more, or --carry-episodes"
    return (
        f"{why[0].upper()}{why[1:]}. Without finished episodes nothing is known about their cost, so no "
        f"method can hold the limit: {advice}."
    )
