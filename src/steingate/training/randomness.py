"""Where random numbers come from: one independent stream for each (seed, epoch, purpose).

Nothing is carried from epoch to epoch, so a resumed run draws what an unbroken one would have drawn. For the
same reason the environments get new reset seeds every epoch.
"""

from enum import IntEnum

import numpy as np
import numpy.typing as npt


class Purpose(IntEnum):
    """What a stream is for. The numbers are part of what a seed means: never reuse or reorder them."""

    POLICY = 0
    REWARD_CRITIC = 1
    COST_CRITIC = 2
    ACTIONS = 3
    FIT = 4
    EVALUATION = 5
    TEST = 6  # of a candidate while training
    FINAL_TEST = 7  # at the end of training


def stream(seed: int, epoch: int, purpose: Purpose) -> np.random.Generator:
    """Return the generator of one purpose in one epoch."""
    return np.random.Generator(
        np.random.Philox(np.random.SeedSequence(seed, spawn_key=(epoch, int(purpose))))
    )


def epoch_seeds(seed: int, epoch: int, num_envs: int) -> list[int]:
    """Return one reset seed below 2**32 for each environment, by (seed, epoch, its index)."""
    return [int(np.random.SeedSequence([seed, epoch, i]).generate_state(1)[0]) for i in range(num_envs)]


def trial_seed(seed: int, purpose: Purpose, test: int, episode: int) -> int:
    """Return the reset seed of one episode of one test, by (seed, purpose, number of the test, episode)."""
    key = np.random.SeedSequence(seed, spawn_key=(episode, test, int(purpose)))
    return int(key.generate_state(1)[0])


def action_noise(
    seed: int, epoch: int, shape: tuple[int, ...], discrete: bool = False
) -> npt.NDArray[np.float32]:
    """Return the random numbers of one epoch's actions, (T, E, a): standard normal, or Gumbel's for choices.

    The choice whose logit plus Gumbel number is largest is each one with its softmax probability.
    """
    if discrete:
        return stream(seed, epoch, Purpose.ACTIONS).gumbel(size=shape).astype(np.float32)
    return stream(seed, epoch, Purpose.ACTIONS).standard_normal(shape, dtype=np.float32)
