"""A trained policy with NumPy alone: what a checkpoint says, as a function from observations to actions."""

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from steingate.errors import InputError, RunError
from steingate.gates.account import Extra
from steingate.normaliser import CLIP, Stats, std
from steingate.runs import Checkpoint, newest_checkpoint, read_config

Array = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Policy:
    """A Gaussian policy with its frozen observation statistics; call it with observations to get actions.

    Attributes
    ----------
    weights, biases : layers of the tanh network for the mean; a weight has shape (in, out)
    log_std : logarithm of the standard deviation of each action
    obs_mean, obs_std : what observations are centred and scaled by, then clipped to ±5; None for raw ones
    shift, scale : a_env = shift + scale * a takes the policy's [-1, 1] to the range of the task
    extra : for a policy that also sees what the episode has spent, how to keep that number, else None.
        It is the last of an observation: ``extra.start`` at the start of an episode, and after each step
        ``extra.following(number, cost)``.
    """

    weights: tuple[npt.NDArray[np.float32], ...]
    biases: tuple[npt.NDArray[np.float32], ...]
    log_std: npt.NDArray[np.float32]
    obs_mean: Array | None
    obs_std: Array | None
    shift: Array
    scale: Array
    extra: Extra | None = None

    @property
    def obs_dim(self) -> int:
        """Length of an observation."""
        return int(self.weights[0].shape[0])

    @property
    def act_dim(self) -> int:
        """Length of an action."""
        return int(self.log_std.size)

    def __call__(self, obs: npt.ArrayLike) -> Array:
        """Return the mean action for one observation (d,) or a batch (n, d), in the units of the task."""
        return self.shift + self.scale * self._mean(obs)

    def sample(self, obs: npt.ArrayLike, rng: np.random.Generator) -> Array:
        """Return a random action, as during training, in the units of the task."""
        mean = self._mean(obs)
        noise = rng.standard_normal(mean.shape)
        return self.shift + self.scale * (mean + np.exp(self.log_std.astype(np.float64)) * noise)

    def _mean(self, obs: npt.ArrayLike) -> Array:
        raw = np.asarray(obs, np.float64)
        if raw.ndim in (1, 2) and self.extra is not None and raw.shape[-1] == self.obs_dim - 1:
            raise InputError(
                f"This policy also sees what the episode has spent: append that number to the "
                f"{raw.shape[-1]} of the task ({self.extra.start:g} at first, then "
                "policy.extra.following(number, cost))."
            )
        if raw.ndim not in (1, 2) or raw.shape[-1] != self.obs_dim:
            raise InputError(
                f"The policy got observations of shape {raw.shape}: ({self.obs_dim},) or a batch is expected."
            )
        if not np.isfinite(raw).all():
            raise InputError("The policy got an observation that is not finite (NaN or infinity).")
        if self.obs_mean is not None and self.obs_std is not None:
            known = self.obs_mean.size
            seen = np.clip((raw[..., :known] - self.obs_mean) / self.obs_std, -CLIP, CLIP)
            raw = np.concatenate([seen, raw[..., known:]], axis=-1)
        hidden = raw.astype(np.float32)
        for weight, bias in zip(self.weights[:-1], self.biases[:-1], strict=True):
            hidden = np.tanh(hidden @ weight + bias)
        return (hidden @ self.weights[-1] + self.biases[-1]).astype(np.float64)


@dataclass(frozen=True, eq=False)
class Loaded:
    """What ``load`` finds in a run folder."""

    path: Path
    config: dict[str, Any]
    epoch: int
    policy: Policy


def load(path: str | Path, warn: Callable[[str], None] = warnings.warn) -> Loaded:
    """Return the newest policy of a run folder with its configuration; needs neither JAX nor the simulator.

    Parameters
    ----------
    path
        A run folder.
    warn
        Called with a sentence about each damaged or foreign checkpoint that was passed over for an older one.
    """
    checkpoint = policy_checkpoint(path, warn)
    policy = policy_from(checkpoint.tree, str(checkpoint.path))
    return Loaded(Path(path), read_config(path), checkpoint.epoch, policy)


def policy_checkpoint(path: str | Path, warn: Callable[[str], None]) -> Checkpoint:
    """Return the newest checkpoint of a run folder that holds a policy."""
    checkpoint = newest_checkpoint(path, warn, lambda found: policy_from(found.tree, str(found.path)))
    if checkpoint is None:
        raise RunError(f"{path} has no checkpoint yet; train it for an epoch first.")
    return checkpoint


def policy_from(tree: dict[str, Any], name: str) -> Policy:
    """Return the policy in a checkpoint's tree; ``name`` is for the error if its parts do not fit."""
    try:
        params, stats, action = tree["policy"], tree["stats"], tree["action"]
        weights = tuple(np.asarray(w, np.float32) for w in params["w"])
        biases = tuple(np.asarray(b, np.float32) for b in params["b"])
        log_std = np.asarray(params["log_std"], np.float32)
        shift, scale = np.asarray(action["shift"], np.float64), np.asarray(action["scale"], np.float64)
        count, mean, m2 = int(stats["count"]), np.asarray(stats["mean"]), np.asarray(stats["m2"])
        normalised = bool(tree["normalise"]) and count > 1
        extra = None if tree.get("extra") is None else Extra(*tree["extra"])
    except (KeyError, TypeError, ValueError) as error:
        raise RunError(f"Checkpoint {name} holds no policy of this package.") from error
    sizes = [mean.size + (extra is not None), *(bias.size for bias in biases)]
    layers = [weight.shape for weight in weights] == list(pairwise(sizes))
    actions = sizes[-1] == log_std.size == shift.size == scale.size
    if not (weights and layers and actions and mean.shape == m2.shape):
        raise RunError(f"Checkpoint {name} holds a policy whose parts do not fit together.")
    centre, spread = (mean, std(Stats(count, mean, m2))) if normalised else (None, None)
    return Policy(weights, biases, log_std, centre, spread, shift, scale, extra)
