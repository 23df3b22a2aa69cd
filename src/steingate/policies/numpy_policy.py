"""A trained policy on a machine that has NumPy and nothing else: this file and the ``.npz`` beside it.

``steingate export`` writes both. Copy them anywhere::

    from policy import RobotPolicy
    policy = RobotPolicy("policy.npz")
    action = policy(observation)

Loading reads no pickles. It checks that the parts fit, that all numbers are finite, and that the actions for
the stored observations are those computed when the file was written.
"""

import json
from pathlib import Path
from typing import Any

import numpy as np

FORMAT = "steingate-policy-2"
_TOLERANCE = 1e-4  # of the range of an action; other processors round sums differently


class RobotPolicy:
    """The mean action of a stored policy, clipped to its range; call it with one observation or a batch.

    A policy that was trained to see what the episode has spent keeps that account itself: call ``start()``
    at the start of an episode and ``spend(cost)`` after each step.

    Attributes
    ----------
    about : dict
        Where the policy comes from and what is known about it.
    obs_dim, act_dim : int
        Length of an observation of the task, and of an action.
    """

    def __init__(self, file: "str | Path") -> None:
        with np.load(file, allow_pickle=False) as found:
            parts = {name: found[name] for name in found.files}
        if str(parts.get("format")) != FORMAT:
            raise ValueError(f"{file} is not a policy of the format {FORMAT}: export it again.")
        self.about: dict[str, Any] = json.loads(str(parts["about"]))
        self._w = [parts[f"w{i}"] for i in range(int(parts["layers"]))]
        self._b = [parts[f"b{i}"] for i in range(int(parts["layers"]))]
        self._center, self._spread, self._clip = parts["obs_mean"], parts["obs_std"], float(parts["obs_clip"])
        self._shift, self._scale = parts["shift"], parts["scale"]
        self._near, self._powers = parts["indices"], parts["powers"]
        self._rings, self._compass, self._velocity = parts["rings"], parts["compass"], parts["velocity"]
        self._bins = np.arange(int(parts["bins"]))
        self._account, self._choice = parts["safety_state"], parts["choice"]
        self._check(file, parts)
        self.start()
        error = np.abs(self._act(parts["test_obs"]) - parts["test_actions"]).max()
        if not error <= _TOLERANCE * max(1.0, np.abs(self._scale).max(initial=0.0)):
            raise ValueError(f"{file} does not give the actions it was written with: it is damaged.")

    @property
    def obs_dim(self) -> int:
        """Length of an observation of the task, without the account."""
        places = 2 * self._rings.size * (2 if self._compass.size else 1)
        places += 2 if self._rings.size and self._compass.size and self._velocity.size else 0
        more = self._near.size * self._powers.size + places + (self._account.size > 0)
        return int(self._w[0].shape[0] - more)

    @property
    def act_dim(self) -> int:
        """Length of an action; 1 for a choice."""
        return 1 if self._choice.size else int(self._b[-1].size)

    def __call__(self, obs: Any) -> Any:
        """Return the action for one observation (d,), or the actions for a batch (n, d)."""
        seen = np.asarray(obs, np.float64)
        if seen.ndim not in (1, 2) or seen.shape[-1] != self.obs_dim:
            raise ValueError(f"The policy got shape {seen.shape}: ({self.obs_dim},) or a batch is expected.")
        if self._account.size:
            seen = np.concatenate([seen, np.full((*seen.shape[:-1], 1), self.number)], axis=-1)
        return self._act(seen)

    def start(self) -> None:
        """Start an episode."""
        self.number = float(self._account[0]) if self._account.size else 0.0

    def spend(self, cost: float) -> None:
        """Take note of the cost of a step."""
        if self._account.size:
            scale, discount, floor = map(float, self._account[1:])
            self.number = max((self.number - cost / scale) / discount, floor)

    def __repr__(self) -> str:
        return f"RobotPolicy({self.obs_dim} observations -> {self.act_dim} actions)"

    def _act(self, seen: Any) -> Any:
        if not np.isfinite(seen).all():
            raise ValueError("The policy got an observation that is not finite (NaN or infinity).")
        own = seen.shape[-1] - (self._account.size > 0)
        near = np.clip(seen[..., self._near], 0.0, 1.0)
        more = [near**power for power in self._powers] + (self._places(seen) if self._rings.size else [])
        seen = np.concatenate([seen[..., :own], *more, seen[..., own:]], axis=-1)
        known = self._center.size
        if known:
            scaled = np.clip((seen[..., :known] - self._center) / self._spread, -self._clip, self._clip)
            seen = np.concatenate([scaled, seen[..., known:]], axis=-1)
        hidden = seen.astype(np.float32)
        for w, b in zip(self._w[:-1], self._b[:-1]):  # noqa: B905 (for old Pythons)
            hidden = np.tanh(hidden @ w + b)
        out = (hidden @ self._w[-1] + self._b[-1]).astype(np.float64)
        if self._choice.size:
            return self._choice[1] + np.argmax(out, axis=-1)
        return self._shift + self._scale * np.clip(out, -1.0, 1.0)

    def _places(self, seen: Any) -> "list[Any]":
        """Return where the things are that each ring of a lidar shows, and the same turned by the compass."""
        ring = np.ascontiguousarray(np.clip(seen[..., np.add.outer(self._rings, self._bins)], 0.0, 1.0))
        angle = (self._bins + 0.5) * (2.0 * np.pi / self._bins.size)
        x, y = (ring * np.cos(angle)).sum(axis=-1), (ring * np.sin(angle)).sum(axis=-1)
        scale = (1.0 - ring.max(axis=-1)) / np.maximum(np.sqrt(x * x + y * y), 1e-12)
        x, y = scale * x, scale * y
        if not self._compass.size:
            return [x, y]
        along, across = (seen[..., [i]] for i in self._compass)
        size = np.maximum(np.sqrt(along * along + across * across), 1e-12)
        along, across = along / size, across / size
        u, v = (seen[..., [i]] for i in self._velocity) if self._velocity.size else (x[..., :0], x[..., :0])
        turned = [(a * along + b * across, b * along - a * across) for a, b in ((x, y), (u, v))]
        return [x, y, *turned[0], *turned[1]]

    def _check(self, file: Any, parts: "dict[str, Any]") -> None:
        sizes = [w.shape for w in self._w]
        fits = bool(sizes) and all(len(size) == 2 for size in sizes)
        fits = fits and all(a[1] == b[0] for a, b in zip(sizes, sizes[1:]))  # noqa: B905, RUF007
        fits = fits and [b.shape for b in self._b] == [(size[1],) for size in sizes]
        fits = fits and self._center.shape == self._spread.shape and self._center.size <= sizes[0][0]
        actions = self._choice[0] if self._choice.size else self._shift.size
        if not (fits and actions == sizes[-1][1] and self._shift.shape == self._scale.shape):
            raise ValueError(f"{file} holds a policy whose parts do not fit together.")
        for name, part in parts.items():
            if part.dtype.kind == "f" and name != "safety_state" and not np.isfinite(part).all():
                raise ValueError(f"{file} holds a number in {name} that is not finite.")
