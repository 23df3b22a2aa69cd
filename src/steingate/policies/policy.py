"""A trained policy with NumPy and nothing else; ``steingate export`` copies this file beside the weights.

On any machine with this file, ``policy.npz`` and NumPy::

    from policy import Policy

    policy = Policy.load("policy.npz")
    policy.reset()                     # at the start of every episode
    action = policy(observation)       # one observation or a batch
    policy.observe(cost)               # after every step

Arrays of a policy (those that do not apply are absent or empty):

============================ =================================================================================
w0, b0, w1, b1, ...          layers of a tanh network, float32; a weight has shape (in, out)
log_std                      logarithm of the standard deviation of each continuous action
obs_mean, obs_std, obs_clip  normalized observation: clip((obs - mean) / std, -clip, clip)
shift, scale                 continuous action: shift + scale * clip(output, -1, 1)
discrete                     number of discrete actions, and the integer of the first one
safety_state                 start, scale, discount and floor of the safety state
layout                       how an observation that is no vector is flattened: JSON as bytes
indices, powers              the powers of these components of the observation are appended
rings, bins, compass,        positions of the objects in lidar rings, and the velocity
velocity                     (``steingate.policies.lidar_features``)
============================ =================================================================================
"""

from __future__ import annotations

import hashlib
import json
import zipfile
from functools import cache
from itertools import count, takewhile
from typing import Any

import numpy as np

FORMAT = "steingate-policy-3"
TINY = 1e-12  # smallest length of a direction
_TOLERANCE = 1e-4  # of the action range; other processors round sums differently
_EMPTY = np.zeros(0)
_MAX_BYTES = 1 << 28  # of all arrays in a file


@cache
def ring_bins(rings: tuple[int, ...], bins: int) -> tuple[Any, Any, Any]:
    """Return the indices (rings, bins) of all bins, and cosine and sine of the bins' center angles."""
    angle = (np.arange(bins) + 0.5) * (2.0 * np.pi / bins)
    return np.add.outer(rings, np.arange(bins)), np.cos(angle), np.sin(angle)


def lidar_features(
    obs: Any, indices: Any, powers: Any, rings: Any, bins: int, compass: Any, velocity: Any
) -> list[Any]:
    """Return the features of observations (..., d), part by part (``steingate.policies.lidar_features``)."""
    parts = []
    if powers:
        readings = np.clip(obs[..., list(indices)], 0.0, 1.0)
        parts = [readings**power for power in powers]
    if not rings:
        return parts
    index, cos, sin = ring_bins(rings, bins)
    # A contiguous copy, so that sums do not depend on the number of observations.
    ring = np.ascontiguousarray(obs.take(index, axis=-1))
    np.maximum(np.minimum(ring, 1.0, out=ring), 0.0, out=ring)
    x, y = (ring * cos).sum(axis=-1), (ring * sin).sum(axis=-1)
    scale = (1.0 - ring.max(axis=-1)) / np.maximum(np.sqrt(x * x + y * y), TINY)
    vectors = [(scale * x, scale * y)]
    if compass:
        forward, left = (obs[..., i, None] for i in compass)
        size = np.maximum(np.sqrt(forward * forward + left * left), TINY)
        a, b = forward / size, left / size
        moving = [tuple(obs[..., i, None] for i in velocity)] if velocity else []
        vectors += [(u * a + v * b, v * a - u * b) for u, v in [*vectors, *moving]]
    return parts + [part for vector in vectors for part in vector]


class Policy:
    """A trained policy; call it with observations to get actions.

    A call returns the mean action clipped to its range, or the most likely discrete action. If the policy
    observes a safety state (the cost of the episode so far), call ``reset()`` at the start of every episode
    and ``observe(cost)`` after every step; otherwise both do nothing.

    Attributes
    ----------
    about : dict
        Where the policy comes from: ``run`` (folder), ``checkpoint``, ``epoch``, ``env``, ``algo``, ``certified``, ...
    arrays : dict
        The arrays listed above.
    obs_dim, act_dim : int
        Lengths of an observation of the task and of an action (1 for a discrete action).
    has_safety_state : bool
        Whether the policy observes a safety state.
    z : float or array
        The safety state, (n,) for a batch.
    """

    def __init__(self, arrays: dict[str, Any], about: dict[str, Any] | None = None) -> None:
        self.arrays, self.about = arrays, about or {}
        numbers = takewhile(lambda i: f"w{i}" in arrays, count())
        self.layers = [(arrays[f"w{i}"], arrays[f"b{i}"]) for i in numbers]
        bins = self.array("bins")
        lidar = [tuple(self.array(name).tolist()) for name in ("indices", "powers", "rings", "compass", "velocity")]
        self._lidar: tuple[Any, ...] = (*lidar[:3], int(bins) if bins.size else 1, *lidar[3:])
        self._layout = json.loads(self.array("layout").tobytes() or "{}")
        self.has_safety_state = bool(self.array("safety_state").size)
        self.act_dim = 1 if self.array("discrete").size else int(self.array("shift").size)
        self.z: Any = 0.0
        if any(array.dtype.kind not in "biuf" for array in arrays.values()):
            raise ValueError("The policy has an array that does not hold numbers.")
        for name, array in arrays.items():
            if array.dtype.kind == "f" and name != "safety_state" and not np.isfinite(array).all():
                raise ValueError(f"The policy has a number in {name} that is not finite.")
        if not self._fits():
            raise ValueError("The arrays of the policy do not fit together.")
        self.reset()

    @classmethod
    def load(cls, file: Any) -> Policy:
        """Return the policy in an exported ``.npz`` file; ``ValueError`` if it is damaged.

        Loading reads no pickles and checks that the arrays fit together, that numbers are finite, and that
        the actions for the stored observations are those computed at export.
        """
        try:
            with np.load(file, allow_pickle=False) as stored:
                if sum(member.file_size for member in stored.zip.infolist()) > _MAX_BYTES:
                    raise ValueError(f"it holds more than {_MAX_BYTES >> 20} MiB")
                arrays = dict(stored)
            if str(arrays.pop("format", "")) != FORMAT:
                raise ValueError(f"its format is not {FORMAT}: export it again")
            about, inputs, actions = (arrays.pop(name) for name in ("about", "test_inputs", "test_actions"))
            policy = cls(arrays, dict(json.loads(str(about))))
            outputs = policy._action(policy._outputs(inputs))
            tolerance = _TOLERANCE * max(1.0, np.abs(policy.array("scale")).max(initial=0.0))
            if outputs.shape != actions.shape or not np.abs(outputs - actions).max() <= tolerance:
                raise ValueError("it does not give the actions it was written with")
            return policy
        except OSError:
            raise
        except Exception as error:  # of zip files, arrays, JSON: the file may contain anything
            reason = error if zipfile.is_zipfile(file) else "it is no .npz file"
            raise ValueError(f"{file} is damaged, or not an exported policy ({reason}).") from None

    def array(self, name: str) -> Any:
        """Return an array, empty if the policy has none of this name."""
        return self.arrays.get(name, _EMPTY)

    @property
    def sha256(self) -> str:
        """SHA-256 of the arrays (name, type, shape, bytes; by name), which names the policy in certificates."""
        total = hashlib.sha256()
        for name, array in sorted((name, np.asarray(array)) for name, array in self.arrays.items()):
            total.update(f"{name} {array.dtype.str} {array.shape} ".encode() + array.tobytes())
        return total.hexdigest()

    @property
    def certified(self) -> bool:
        """Whether this is the certified policy of its run, unchanged."""
        return bool(self.about.get("certified", False)) and self.about.get("sha256") == self.sha256

    def __call__(self, obs: Any) -> Any:
        """Return the action for one observation (d,), or the actions (n, a) for a batch (n, d).

        If the observations of the task are no vectors (dicts, tuples, integers), one of them works too.
        """
        return self._action(self._outputs(self._with_safety_state(obs)))

    def sample(self, obs: Any, rng: np.random.Generator) -> Any:
        """Return random actions, as during training."""
        outputs = self._outputs(self._with_safety_state(obs))
        if self.array("discrete").size:
            return self._action(outputs + rng.gumbel(size=outputs.shape))
        std = np.exp(self.array("log_std").astype(np.float64))
        return self._action(outputs + std * rng.standard_normal(outputs.shape))

    def reset(self, ended: Any = None) -> None:
        """Start an episode; with flags ``ended`` (n,), only in those rows of a batch."""
        self._observed = True
        if self.has_safety_state:
            start = float(self.array("safety_state")[0])
            self.z = start if ended is None else np.where(ended, start, self.z)

    def observe(self, cost: Any) -> None:
        """Update the safety state with the cost of a step: a number, or (n,) for a batch."""
        self._observed = True
        if self.has_safety_state:
            _, scale, discount, floor = self.array("safety_state").tolist()
            self.z = np.maximum((self.z - np.asarray(cost, np.float64) / scale) / discount, floor)

    def __repr__(self) -> str:
        hidden = "-".join(str(b.size) for _, b in self.layers[:-1]) or "none"
        state = " and a safety state" if self.has_safety_state else ""
        return f"Policy({self.obs_dim} observations{state} -> {self.act_dim} actions, hidden {hidden})"

    def _with_safety_state(self, obs: Any) -> Any:
        """Return observations as float64 with the safety state appended."""
        if self._layout and not (isinstance(obs, np.ndarray) and obs.shape[-1:] == (self.obs_dim,)):
            try:
                obs = _flatten(self._layout, obs)
            except (AttributeError, KeyError, IndexError, TypeError, ValueError) as error:
                raise ValueError(f"The policy got an observation unlike those of its task ({error!r}).") from None
        inputs = np.asarray(obs, np.float64)
        if inputs.ndim not in (1, 2) or inputs.shape[-1] != self.obs_dim:
            raise ValueError(f"The policy got shape {inputs.shape}: ({self.obs_dim},) or a batch is expected.")
        if not np.isfinite(inputs).all():
            raise ValueError("The policy got an observation that is not finite (NaN or infinity).")
        if not self.has_safety_state:
            return inputs
        if not self._observed:
            raise ValueError(
                "This policy observes the cost of the episode: call policy.observe(cost) after every step "
                "and policy.reset() at the start of every episode."
            )
        self._observed = False
        return np.concatenate([inputs, np.broadcast_to(self.z, inputs.shape[:-1])[..., None]], axis=-1)

    def _outputs(self, inputs: Any) -> Any:
        """Return the outputs of the network for observations with the safety state."""
        obs, state = inputs[..., : self.obs_dim], inputs[..., self.obs_dim :]
        values = np.concatenate([obs, *lidar_features(obs, *self._lidar), state], axis=-1)
        known = self.array("obs_mean").size
        if known:
            clip = float(self.array("obs_clip"))
            scaled = (values[..., :known] - self.array("obs_mean")) / self.array("obs_std")
            values = np.concatenate([np.clip(scaled, -clip, clip), values[..., known:]], axis=-1)
        hidden = values.astype(np.float32)
        for weight, bias in self.layers[:-1]:
            hidden = np.tanh(hidden @ weight + bias)
        weight, bias = self.layers[-1]
        return (hidden @ weight + bias).astype(np.float64)

    def _action(self, outputs: Any) -> Any:
        discrete = self.array("discrete")
        if discrete.size:
            return np.argmax(outputs, axis=-1) + int(discrete[1])
        return self.array("shift") + self.array("scale") * np.clip(outputs, -1.0, 1.0)

    def _fits(self) -> bool:
        """Set the length of an observation; return whether the arrays fit together."""
        shapes = [weight.shape for weight, _ in self.layers]
        if not shapes or any(len(shape) != 2 for shape in shapes):
            return False
        indices, powers, rings, bins, compass, velocity = self._lidar
        inputs, outputs = shapes[0][0] - self.has_safety_state, shapes[-1][1]
        vectors = len(rings) * (2 if compass else 1) + bool(rings and compass and velocity)
        self.obs_dim = int(inputs - len(indices) * len(powers) - 2 * vectors)
        used = [*indices, *(ring + bins - 1 for ring in rings), *compass, *velocity]
        mean, shift, discrete = self.array("obs_mean"), self.array("shift"), self.array("discrete")
        return bool(
            [bias.shape for _, bias in self.layers] == [shape[1:] for shape in shapes]
            and all(a[1] == b[0] for a, b in zip(shapes, shapes[1:]))  # noqa: B905, RUF007
            and min(used, default=0) >= 0
            and max(used, default=-1) < self.obs_dim
            and bins > 0
            and len(compass) in (0, 2)
            and len(velocity) in (0, 2)
            and all(power > 0.0 for power in powers)
            and mean.shape == self.array("obs_std").shape
            and mean.size in (0, inputs)
            and (self.array("obs_std") > 0.0).all()
            and (discrete.size == 0 or (discrete.size == 2 and discrete.dtype.kind in "iu"))
            and outputs == (discrete[0] if discrete.size else shift.size)
            and shift.shape == self.array("scale").shape
            and self.array("log_std").size == shift.size
            and self.array("safety_state").size in (0, 4)
        )


def _flatten(layout: dict[str, Any], obs: Any) -> Any:
    """Return an observation as a vector, in the order of ``gymnasium.spaces.utils.flatten``.

    A layout is ``{"numbers": n}``, ``{"one_hot": [n, first]}``, ``{"tuple": [layout, ...]}`` or
    ``{"dict": [[key, layout], ...]}``.
    """
    ((kind, value),) = layout.items()
    if kind == "numbers":
        return np.asarray(obs, np.float64).reshape(value)
    if kind == "one_hot":
        return np.arange(value[0]) + value[1] == np.asarray(obs, np.float64).reshape(1)
    return np.concatenate([_flatten(part, obs[key]) for key, part in (value if kind == "dict" else enumerate(value))])
