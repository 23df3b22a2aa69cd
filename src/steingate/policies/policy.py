"""A trained policy with NumPy alone: what a checkpoint says, as a function from observations to actions."""

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from steingate.errors import InputError, RunError
from steingate.policies.action_distribution import Choice
from steingate.policies.lidar_features import LidarFeatures
from steingate.policies.normalizer import CLIP, Stats, std
from steingate.policies.safety_state import SafetyState
from steingate.runs import (
    Checkpoint,
    certified_checkpoint,
    load_certification,
    newest_checkpoint,
    read_config,
)

Array = npt.NDArray[np.float64]
Which = Literal["certified", "last"]


@dataclass(frozen=True, eq=False)
class Policy:
    """A policy with its frozen observation statistics; call it with observations to get actions.

    Attributes
    ----------
    weights, biases : layers of the tanh network for the mean, or for logits; a weight has shape (in, out)
    log_std : logarithm of the standard deviation of each action; empty where actions are choices
    obs_mean, obs_std : what observations are centered and scaled by, then clipped to ±5; None for raw ones
    shift, scale : a_env = shift + scale * a takes the policy's [-1, 1] to the range of the task, to which
        actions are clipped as in training; empty for choices
    safety_state : constants of the safety state, the last component of an observation; None without one
    lidar_features : features that the policy computes from the observation; None without any
    choice : for a policy that chooses one of some actions, from which; actions are then integers, else None.
    """

    weights: tuple[npt.NDArray[np.float32], ...]
    biases: tuple[npt.NDArray[np.float32], ...]
    log_std: npt.NDArray[np.float32]
    obs_mean: Array | None
    obs_std: Array | None
    shift: Array
    scale: Array
    safety_state: SafetyState | None = None
    lidar_features: LidarFeatures | None = None
    choice: Choice | None = None

    @property
    def obs_dim(self) -> int:
        """Length of an observation."""
        return int(self.weights[0].shape[0]) - (0 if self.lidar_features is None else self.lidar_features.n_features)

    @property
    def act_dim(self) -> int:
        """Length of an action; 1 for a choice."""
        return int(self.log_std.size) if self.choice is None else 1

    def __call__(self, obs: npt.ArrayLike) -> Any:
        """Return the mean action for one observation (d,) or a batch (n, d), in the units of the task.

        Where actions are choices it is the most likely one: an integer, or (n,) of them.
        """
        if self.choice is not None:
            return self.choice.likeliest(self._mean(obs))
        return self._in_box(self._mean(obs))

    def sample(self, obs: npt.ArrayLike, rng: np.random.Generator) -> Any:
        """Return a random action, as during training, in the units of the task."""
        mean = self._mean(obs)
        if self.choice is not None:
            return self.choice.sample(mean, rng)
        noise = rng.standard_normal(mean.shape)
        return self._in_box(mean + np.exp(self.log_std.astype(np.float64)) * noise)

    def __repr__(self) -> str:
        hidden = "-".join(str(bias.size) for bias in self.biases[:-1]) or "none"
        account = " with a safety state" if self.safety_state is not None else ""
        return f"Policy({self.obs_dim} observations{account} -> {self.act_dim} actions, hidden {hidden})"

    def _in_box(self, action: Array) -> Array:
        """Return actions of the network in the units of the task, clipped to its range."""
        return self.shift + self.scale * np.clip(action, -1.0, 1.0)

    def _mean(self, obs: npt.ArrayLike) -> Array:
        raw = np.asarray(obs, np.float64)
        if raw.ndim in (1, 2) and self.safety_state is not None and raw.shape[-1] == self.obs_dim - 1:
            raise InputError(
                f"This policy has a safety state: append it to the "
                f"{raw.shape[-1]} of the task ({self.safety_state.start:g} at first, then "
                "policy.safety_state.next(z, cost) after each step)."
            )
        if raw.ndim not in (1, 2) or raw.shape[-1] != self.obs_dim:
            raise InputError(
                f"The policy got observations of shape {raw.shape}: ({self.obs_dim},) or a batch is expected."
            )
        if not np.isfinite(raw).all():
            raise InputError("The policy got an observation that is not finite (NaN or infinity).")
        if self.lidar_features is not None:
            own = raw.shape[-1] - (self.safety_state is not None)
            raw = np.concatenate([self.lidar_features(raw[..., :own]), raw[..., own:]], axis=-1)
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
    """What ``load`` finds in a run folder.

    Attributes
    ----------
    path, config : the folder and its ``config.json``
    epoch : policy updates before this policy
    policy : the policy
    which : "certified" or "last"
    certification : content of ``certification.json``, None if there is none; ``sentence`` summarizes it
    """

    path: Path
    config: dict[str, Any]
    epoch: int
    policy: Policy
    which: str
    certification: dict[str, Any] | None

    def __repr__(self) -> str:
        return f"Loaded({str(self.path)!r}, the {self.which} policy, after epoch {self.epoch}: {self.policy})"


def load(path: str | Path, policy: Which | None = None, warn: Callable[[str], None] = warnings.warn) -> Loaded:
    """Return a policy of a run folder with its configuration; needs neither JAX nor the simulator.

    Parameters
    ----------
    path
        A run folder.
    policy
        ``"certified"`` for the best one that fresh episodes have shown to be safe, an error where there is
        none; ``"last"`` for that of the newest checkpoint. By default the certified one, and the last with a
        warning where none is certified.
    warn
        Called with that warning, and with a sentence about each damaged or foreign file that was passed over.

    Examples
    --------
    >>> import steingate
    >>> loaded = steingate.load("runs/steingate/SafetyPointGoal1-v0/seed-0")  # doctest: +SKIP
    >>> loaded.which, loaded.policy(observation)  # doctest: +SKIP
    """
    checkpoint, which = chosen_checkpoint(path, policy, warn)
    found = policy_from(checkpoint.tree, str(checkpoint.path))
    return Loaded(Path(path), read_config(path), checkpoint.epoch, found, which, _verdict(path, warn))


def chosen_checkpoint(path: str | Path, which: Which | None, warn: Callable[[str], None]) -> tuple[Checkpoint, Which]:
    """Return the checkpoint that holds the policy asked for, as ``load`` takes it, and which one it is."""
    if which not in (None, "certified", "last"):
        raise InputError(f"The policy is {which!r}: 'certified' or 'last' is expected.")
    config = read_config(path)
    if which == "last":
        return policy_checkpoint(path, warn), "last"
    problem = None
    try:
        found = certified_checkpoint(path)
        if found is not None:
            policy_from(found.tree, str(found.path))
            return found, "certified"
    except RunError as error:
        problem = str(error)
    said = problem or _why_none(config, _verdict(path, warn))
    if which == "certified":
        raise RunError(f"{path} has no certified policy that could be taken. {said}")
    last = policy_checkpoint(path, warn)
    warn(f"This is the last policy of {path}, which is not certified. {said}")
    return last, "last"


def _why_none(config: dict[str, Any], verdict: dict[str, Any] | None) -> str:
    settings = config.get("config")
    certify = settings.get("certify") if isinstance(settings, dict) else None
    if isinstance(certify, dict) and certify.get("enabled") is False:
        return "Certification is disabled (certify.enabled)."
    if verdict is None:
        return "Certification did not finish; `steingate resume` completes it."
    return str(verdict["sentence"])


def _verdict(path: str | Path, warn: Callable[[str], None]) -> dict[str, Any] | None:
    try:
        return load_certification(path)
    except RunError as error:
        warn(str(error))
        return None


def policy_checkpoint(path: str | Path, warn: Callable[[str], None]) -> Checkpoint:
    """Return the newest checkpoint of a run folder that holds a policy."""
    checkpoint = newest_checkpoint(path, warn, lambda found: policy_from(found.tree, str(found.path)))
    if checkpoint is None:
        raise RunError(f"{path} has no checkpoint yet; train it for an epoch first.")
    return checkpoint


def policy_from(tree: dict[str, Any], name: str) -> Policy:
    """Return the policy in a checkpoint's tree; ``name`` is for the error if its parts do not fit."""
    try:
        with np.errstate(over="ignore"):  # what does not fit into a float is infinite, and refused below
            params, stats, action = tree["policy"], tree["stats"], tree["action"]
            weights = tuple(np.asarray(w, np.float32) for w in params["w"])
            biases = tuple(np.asarray(b, np.float32) for b in params["b"])
            choice = Choice(int(action["choices"]), int(action["start"])) if "choices" in action else None
            log_std = np.asarray(params["log_std"] if choice is None else (), np.float32)
            shift, scale = (np.asarray(() if choice else action[key], np.float64) for key in ("shift", "scale"))
            count = int(stats["count"])
            mean, m2 = (np.asarray(stats[key], np.float64) for key in ("mean", "m2"))
        normalized = bool(tree["normalize"]) and count > 1
        stored = tree.get("safety_state")
        safety_state = None if stored is None else SafetyState.from_list(stored)
        features = tree.get("lidar_features")
        lidar = None if features is None else LidarFeatures.from_dict(features)
    except (KeyError, TypeError, ValueError, OverflowError, AttributeError) as error:
        raise RunError(f"Checkpoint {name} holds no policy of this package.") from error
    numbers: tuple[npt.NDArray[Any], ...] = (*weights, *biases, log_std, shift, scale, mean, m2)
    if not all(np.isfinite(part).all() for part in numbers):
        raise RunError(f"Checkpoint {name} holds a policy with numbers that are not finite.")
    sizes = [mean.size + (safety_state is not None), *(bias.size for bias in biases)]
    layers = [weight.shape for weight in weights] == list(pairwise(sizes))
    many = log_std.size if choice is None else choice.choices
    actions = sizes[-1] == many and log_std.size == shift.size == scale.size
    if not (weights and layers and actions and mean.shape == m2.shape):
        raise RunError(f"Checkpoint {name} holds a policy whose parts do not fit together.")
    if lidar is not None and lidar.max_index >= mean.size - lidar.n_features:
        raise RunError(f"Checkpoint {name} holds a policy whose parts do not fit together.")
    center, spread = (mean, std(Stats(count, mean, m2))) if normalized else (None, None)
    return Policy(weights, biases, log_std, center, spread, shift, scale, safety_state, lidar, choice)
