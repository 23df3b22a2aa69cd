"""Sizes of steps and fits as plain records; needs no JAX."""

from dataclasses import dataclass, replace
from math import inf
from typing import Any, Literal

from steingate.errors import InputError, require_between, require_positive

Variant = Literal["corrected", "published"]
VARIANTS = ("corrected", "published")


@dataclass(frozen=True)
class TrustRegion:
    """Sizes of the step; ``max_kl`` bounds the KL averaged over samples and action dimensions."""

    max_kl: float = 0.01
    cg_iters: int = 15
    damping: float = 0.1  # added to the Fisher matrix, times the identity
    search_steps: int = 20
    shrink: float = 0.8  # step length from one trial of the line search to the next
    variant: str = "corrected"  # "published" keeps OmniSafe's signs and lets a recovery spend the slack
    checked: bool = True  # false takes the full step whatever the surrogates and the KL say
    same_unit: bool = False  # a price is on cost in the units of the task, not of standardized reward

    def __post_init__(self) -> None:
        if self.variant not in VARIANTS:
            raise InputError(f"variant {self.variant!r} is not known: use one of {', '.join(VARIANTS)}.")
        require_positive(self, "max_kl", "cg_iters", "damping", "search_steps", "shrink")
        if self.shrink >= 1:
            raise InputError(f"shrink must be below 1, got {self.shrink}.")


@dataclass(frozen=True)
class Passes:
    """Minibatch passes down a loss; ``max_kl`` bounds the KL summed over action dimensions, not averaged."""

    passes: int = 40
    batch_size: int = 64
    learning_rate: float = 3e-4
    max_kl: float = 0.02  # no further pass once it is exceeded
    max_grad_norm: float = 40.0
    decay: bool = True  # let the learning rate fall to 0 over the epochs of the run

    def __post_init__(self) -> None:
        require_positive(self, "passes", "batch_size", "learning_rate", "max_kl", "max_grad_norm")

    def rate(self, epoch: int, epochs: int = 0) -> float:
        """Return the learning rate of a move, of so many in all; without a number of them it stays."""
        return self.learning_rate * (max(1.0 - epoch / epochs, 0.0) if self.decay and epochs else 1.0)


@dataclass(frozen=True)
class Clipped(Passes):
    """The same for a clipped surrogate."""

    clip: float = 0.2

    def __post_init__(self) -> None:
        super().__post_init__()
        require_positive(self, "clip")


@dataclass(frozen=True)
class CriticFit:
    """How a critic is fitted in one epoch."""

    batch_size: int = 128
    learning_rate: float = 1e-3
    penalty: float = 0.001  # times the sum of squares of all parameters, biases too
    max_grad_norm: float = 40.0

    def __post_init__(self) -> None:
        require_positive(self, "batch_size", "learning_rate", "max_grad_norm")
        require_between(self, 0.0, inf, "penalty")


@dataclass(frozen=True)
class Replay:
    """Which transitions count more often, and how often.

    The last three say where the published code differs; None takes the variant's own.
    """

    copies: int = 4  # further copies of each chosen transition
    percentile: float = 90.0
    quantile: float = 0.5  # of the excess fitted above the percentile
    buffer: int = 100  # transitions that are looked at unless all are: the last of the last environment
    whole_epoch: bool | None = None  # look at all transitions instead
    everywhere: bool | None = None  # copies also enter the cost surrogate, the KL and the critics
    free_location: bool | None = None

    def __post_init__(self) -> None:
        require_positive(self, "buffer")
        require_between(self, 0, inf, "copies")
        require_between(self, 0.0, 100.0, "percentile")
        require_between(self, 0.0, 1.0, "quantile")

    def resolved(self, published: bool = False) -> "Replay":
        """Return the same with what is open decided as the variant does."""
        own: dict[str, Any] = {
            "whole_epoch": not published,
            "everywhere": published,
            "free_location": published,
        }
        return replace(self, **{name: value for name, value in own.items() if getattr(self, name) is None})
