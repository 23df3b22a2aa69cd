"""Random number streams: an independent one for each (seed, epoch, purpose), so resumed runs draw the same numbers."""

from enum import IntEnum

import numpy as np
import numpy.typing as npt


class Purpose(IntEnum):
    """Purpose of a stream. The numbers are part of the meaning of a seed: never reuse or reorder them."""

    POLICY = 0  # initial weights
    REWARD_CRITIC = 1
    COST_CRITIC = 2
    ACTIONS = 3  # action noise of training
    FIT = 4  # minibatch order of the critics
    EVALUATION = 5
    TEST = 6  # certification tests during training
    FINAL_TEST = 7  # certification tests at the end of training
    RETURN = 8  # episodes that estimate the return of the certified policy


def stream(seed: int, epoch: int, purpose: Purpose) -> np.random.Generator:
    """Return the generator of one purpose in one epoch."""
    return np.random.Generator(np.random.Philox(np.random.SeedSequence(seed, spawn_key=(epoch, int(purpose)))))


def epoch_seeds(seed: int, epoch: int, num_envs: int) -> list[int]:
    """Return one reset seed below 2**32 for each environment of a training epoch."""
    return [int(np.random.SeedSequence([seed, epoch, i]).generate_state(1)[0]) for i in range(num_envs)]


def evaluation_seeds(seed: int, episodes: int, number: int = 1) -> list[int]:
    """Return one reset seed per episode of evaluation ``number``; a longer list begins with the shorter one."""
    return [certification_seed(seed, Purpose.EVALUATION, number, i) for i in range(episodes)]


def certification_seed(seed: int, purpose: Purpose, test: int, episode: int) -> int:
    """Return the reset seed of one episode of certification test number ``test``."""
    key = (episode, test, int(purpose))
    return int(np.random.SeedSequence(seed, spawn_key=key).generate_state(1)[0])


def action_noise(seed: int, epoch: int, shape: tuple[int, ...], discrete: bool = False) -> npt.NDArray[np.float32]:
    """Return the action noise (T, E, a) of one epoch: standard normal, or Gumbel for discrete actions.

    The argmax of logits plus Gumbel noise is a sample of their softmax distribution.
    """
    rng = stream(seed, epoch, Purpose.ACTIONS)
    return rng.gumbel(size=shape).astype(np.float32) if discrete else rng.standard_normal(shape, dtype=np.float32)
