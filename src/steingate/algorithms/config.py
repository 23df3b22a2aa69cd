"""Option groups that algorithms share."""

from dataclasses import dataclass
from math import inf
from typing import Literal

from steingate.errors import InputError
from steingate.settings import POSITIVE, UNIT, Range, option

Variant = Literal["corrected", "published"]
EpisodeFilter = Literal["complete", "all"] | None
EPISODE_FILTER = (
    "episodes that the gate uses: complete ones, which began early enough to finish in the epoch whatever their "
    "length, or all that finished; none follows the variant"
)
VARIANT = "published reproduces the behavior behind published numbers"


@dataclass(frozen=True)
class NetworkConfig:
    """Networks of policy and critics, and their inputs."""

    hidden: tuple[int, ...] = option((64, 64), "hidden layers of policy and critics")
    init_std: float = option(1.0, "initial action standard deviation (continuous actions)", POSITIVE)
    normalize_obs: bool = option(True, "normalize observations by running mean and standard deviation")
    lidar_powers: tuple[float, ...] = option((), "append these powers of the lidar readings, such as 4,12,36")
    lidar_positions: bool = option(False, "append object positions computed from the lidar")

    def __post_init__(self) -> None:
        if not self.hidden or min(self.hidden) < 1:
            raise InputError(f"hidden is {self.hidden}: give the sizes of the layers, such as 64,64.")
        if not all(0.0 < power < inf for power in self.lidar_powers):
            raise InputError(f"lidar_powers is {self.lidar_powers}: give positive numbers, such as 4,12,36.")


@dataclass(frozen=True)
class AdvantageConfig:
    """Reward advantages: generalized advantage estimation, and two optional corrections."""

    gamma: float = option(0.99, "discount of rewards", UNIT)
    gae_lambda: float = option(0.95, "GAE lambda of the reward advantages", UNIT)
    advantage_clip: float | None = option(
        None, "clip |advantage| at this multiple of its 90th percentile, such as 3", POSITIVE
    )
    saturation_coef: float = option(
        0.0, "penalty on saturated policies: mean actions far out of range, near-certain discrete actions",
        Range(0.0, 1e6),
    )  # fmt: skip


@dataclass(frozen=True)
class CostAdvantageConfig:
    """Cost advantages: discount and GAE lambdas."""

    cost_gamma: float = option(0.99, "discount of costs", UNIT)
    cost_gae_lambda: float = option(0.95, "GAE lambda of the targets of the cost critic", UNIT)
    cost_adv_lambda: float | None = option(None, "GAE lambda of the cost advantages; none takes cost_gae_lambda", UNIT)

    @property
    def adv_lambda(self) -> float:
        """GAE lambda of the cost advantages."""
        return self.cost_gae_lambda if self.cost_adv_lambda is None else self.cost_adv_lambda


@dataclass(frozen=True)
class CriticConfig:
    """Fit of the value functions (vf) of reward and cost: minibatch Adam on the squared error."""

    vf_lr: float = option(1e-3, "learning rate of the critics", POSITIVE)
    vf_epochs: int | None = option(
        10, "passes over the batch per critic fit; none takes as many as the policy update made", POSITIVE
    )
    vf_batch_size: int = option(128, "minibatch size of the critic fit", POSITIVE)
    vf_weight_decay: float = option(0.001, "weight of the squared parameters in the critic loss", Range(0.0, 1e6))
    vf_max_grad_norm: float = option(40.0, "maximum gradient norm of the critic fit", POSITIVE)


@dataclass(frozen=True)
class TrustRegionConfig:
    """Natural-gradient step; ``max_kl`` bounds the KL averaged over samples and action dimensions."""

    max_kl: float = option(0.01, "trust region: KL per action dimension", POSITIVE)
    cg_iters: int = option(15, "conjugate-gradient iterations", POSITIVE)
    cg_damping: float = option(0.1, "damping: this times the identity is added to the Fisher matrix", POSITIVE)


@dataclass(frozen=True)
class LineSearchConfig:
    """Backtracking line search along the step."""

    backtrack_iters: int = option(20, "maximum number of line-search trials", POSITIVE)
    backtrack_coef: float = option(0.8, "factor on the step length after a rejected trial", Range(0.001, 0.999))


@dataclass(frozen=True)
class MinibatchConfig:
    """Minibatch Adam on a policy loss; ``max_kl`` bounds the KL summed over action dimensions."""

    epochs: int = option(40, "maximum number of passes over the batch per update", POSITIVE)
    batch_size: int = option(64, "minibatch size", POSITIVE)
    lr: float = option(3e-4, "learning rate of the policy", POSITIVE)
    max_kl: float = option(0.02, "no further pass once the KL exceeds this", POSITIVE)
    max_grad_norm: float = option(40.0, "maximum gradient norm", POSITIVE)
    lr_decay: bool = option(True, "decay the learning rate linearly to 0 over the run")


@dataclass(frozen=True)
class PPOConfig(MinibatchConfig):
    """Minibatch Adam on PPO's clipped surrogate."""

    clip: float = option(0.2, "clipping range of the likelihood ratio", POSITIVE)
