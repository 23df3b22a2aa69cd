"""The recipes: what each kind of algorithm is made of, as frozen dataclasses of its settings."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from math import inf
from typing import Any, Self

import numpy as np

from steingate.algos.base import Algorithm, Step
from steingate.algos.clipped import clipped_step
from steingate.algos.descent import Clipped
from steingate.algos.first_order import focops_step, penalised_step, update_and_project_step
from steingate.algos.projection import projected_direction
from steingate.algos.replay import Replay, episode_memory, replay_extremes
from steingate.algos.theorem import step_audit
from steingate.algos.trust_region import TrustRegion, trust_region_step
from steingate.core.certificate import Certificate
from steingate.errors import InputError, require_between, require_positive
from steingate.gates.account import Remaining, Running
from steingate.gates.base import Decision, Gate
from steingate.gates.mean import crpo_gate, mean_gate, open_gate, slack_per_step
from steingate.gates.multiplier import PID, Ascent, multiplier_gate
from steingate.gates.schedule import Controller, budget_gate, discounted_share
from steingate.gates.stein import stein_gate
from steingate.gates.tail import ExtremeValue, cvar_gate, extreme_value_gate, risk_slack


@dataclass(frozen=True)
class Shared:
    """What all recipes have: the limit, the variant, the cost window, and the sizes of both kinds of step."""

    limit: float = 25.0
    variant: str = "corrected"
    window: int = 100  # episodes in the moving average of the cost
    backbone: str = "trpo"
    region: TrustRegion = field(default_factory=TrustRegion)
    clipped: Clipped = field(default_factory=Clipped)
    seed: int = 0  # of the order of samples in the clipped step

    def __post_init__(self) -> None:
        require_positive(self, "limit", "window")

    @property
    def is_published(self) -> bool:
        """Whether the published behaviour is asked for."""
        return self.variant == "published"

    def with_variant(self) -> Self:
        """Return the recipe with the settings of its variant, which options may change afterwards."""
        return self

    def step(self, **changes: Any) -> Step:
        """Return the step of the backbone, with changes of the trust region."""
        region = replace(self.region, variant=self.variant, **changes)
        if self.backbone not in ("trpo", "ppo"):
            raise InputError(f"The backbone {self.backbone!r} is not known: use trpo or ppo.")
        return clipped_step(self.clipped, self.seed) if self.backbone == "ppo" else trust_region_step(region)

    def in_step_units(self, gate: Gate) -> Gate:
        """Return the gate with its slack per step; the published codes leave it per episode."""
        return gate if self.is_published else slack_per_step(gate, self.window)

    @property
    def mean_cost_gate(self) -> Gate:
        """The gate that balances by the mean cost of the window."""
        return self.in_step_units(mean_gate(self.limit, self.window, per_step=False))


@dataclass(frozen=True)
class Unconstrained(Shared):
    """TRPO (Schulman et al., 2015) and PPO (Schulman et al., 2017): reward alone."""

    def build(self) -> Algorithm:
        """Return the open gate in front of either step."""
        return Algorithm(open_gate(), self.step(), uses_cost=False)


@dataclass(frozen=True)
class CPO(Shared):
    """Constrained policy optimisation (Achiam et al., 2017): reward under a limit on the mean cost."""

    def build(self) -> Algorithm:
        """Return the mean-cost gate in front of the trust-region step."""
        return Algorithm(self.mean_cost_gate, self.step())


@dataclass(frozen=True)
class PCPO(Shared):
    """Projection-based CPO (Yang et al., 2020): a reward step, then the nearest step that meets the limit."""

    def build(self) -> Algorithm:
        """Return the mean-cost gate in front of the projected step."""
        region = replace(self.region, variant=self.variant)
        return Algorithm(self.mean_cost_gate, trust_region_step(region, projected_direction))


@dataclass(frozen=True)
class CRPO(Shared):
    """Constraint-rectified policy optimisation (Xu et al., 2021): a switch with a tolerance."""

    tolerance: float = 2.0

    def __post_init__(self) -> None:
        super().__post_init__()
        require_between(self, 0.0, inf, "tolerance")

    def build(self) -> Algorithm:
        """Return the switching gate in front of the trust-region step."""
        return Algorithm(crpo_gate(self.limit, self.tolerance, self.window), self.step())


@dataclass(frozen=True)
class Lagrangian(Shared):
    """TRPO or PPO on reward less cost at a price that follows the violation, by Adam or a PID controller."""

    multiplier: str = "adam"
    ascent: Ascent = field(default_factory=Ascent)
    pid: PID = field(default_factory=PID)

    @property
    def gate(self) -> Gate:
        """The gate that sets the price."""
        laws: dict[str, Ascent | PID] = {"adam": self.ascent, "pid": self.pid}
        return multiplier_gate(self.limit, laws.get(self.multiplier, self.multiplier), self.window)

    def build(self) -> Algorithm:
        """Return the multiplier's gate in front of either step."""
        return Algorithm(self.gate, self.step())


@dataclass(frozen=True)
class RCPO(Lagrangian):
    """Reward-constrained policy optimisation (Tessler et al., 2019) with natural gradients, unchecked."""

    def build(self) -> Algorithm:
        """Return the multiplier's gate in front of the full natural-gradient step."""
        return Algorithm(self.gate, self.step(checked=False, same_unit=not self.is_published))


@dataclass(frozen=True)
class FOCOPS(Lagrangian):
    """First-order constrained optimisation in policy space (Zhang et al., 2020), by minibatches."""

    ascent: Ascent = field(default_factory=lambda: Ascent(ceiling=2.0))
    pid: PID = field(default_factory=lambda: PID(ceiling=2.0))
    temperature: float = 1.5
    radius: float = 0.02  # states farther than this KL from the old policy do not count

    def __post_init__(self) -> None:
        super().__post_init__()
        require_positive(self, "temperature", "radius")

    def build(self) -> Algorithm:
        """Return the multiplier's gate in front of FOCOPS' step."""
        per_state = not self.is_published
        step = focops_step(self.clipped, self.temperature, self.radius, per_state, self.seed)
        return Algorithm(self.gate, step)


@dataclass(frozen=True)
class CUP(Lagrangian):
    """Constrained update projection (Yang et al., 2022): PPO on the reward, then a projection at a price."""

    ascent: Ascent = field(default_factory=lambda: Ascent(ceiling=2.0))
    pid: PID = field(default_factory=lambda: PID(ceiling=2.0))
    cost_discount: float = 0.99
    cost_lam: float = 0.95

    def build(self) -> Algorithm:
        """Return the multiplier's gate in front of CUP's two phases."""
        if self.cost_discount >= 1.0:
            raise InputError(f"cup needs a cost_discount below 1, got {self.cost_discount}.")
        weight = (1.0 - self.cost_discount * self.cost_lam) / (1.0 - self.cost_discount)
        return Algorithm(self.gate, update_and_project_step(self.clipped, weight, self.seed))


@dataclass(frozen=True)
class P3O(Shared):
    """Penalised PPO (Zhang et al., 2022): an exact penalty on the predicted violation of the mean cost."""

    penalty: float = 20.0

    def __post_init__(self) -> None:
        super().__post_init__()
        require_positive(self, "penalty")

    def build(self) -> Algorithm:
        """Return the mean-cost gate in front of PPO's step with the penalty."""
        step = penalised_step(self.clipped, self.penalty, not self.is_published, self.seed)
        return Algorithm(self.mean_cost_gate, step)


@dataclass(frozen=True)
class Saute(Shared):
    """Sauté (Sootla et al., 2022): reward while some of the cost budget is left, and the agent sees it.

    ``controlled`` makes it Simmer (Sootla et al., 2022), whose budget follows the cost.
    """

    discount: float = 0.999
    unsafe_reward: float = -1.0
    length: int = 1000  # steps of an episode, over which the budget is discounted
    controlled: bool = False
    controller: Controller = field(default_factory=Controller)

    def __post_init__(self) -> None:
        super().__post_init__()
        require_positive(self, "discount", "length")
        require_between(self, 0.0, 1.0, "discount")

    def build(self) -> Algorithm:
        """Return the open gate, or the budget's, in front of either step, and the budget."""
        gate = open_gate()
        if self.controlled:
            gate = budget_gate(self.limit, self.discount, self.length, self.controller, self.window)
        published = self.is_published
        account = Remaining(
            self.limit * discounted_share(self.discount, self.length),
            self.discount,
            self.unsafe_reward,
            true_at_end=not published,
            scale_by_share=published,
            restart_full=published,
        )
        return Algorithm(gate, self.step(), account, uses_cost=False)


@dataclass(frozen=True)
class EVO(Shared):
    """Extreme-value policy optimisation (ICML 2025): CPO under a limit on a fitted extreme of the cost."""

    extreme: ExtremeValue = field(default_factory=ExtremeValue)
    replay: Replay = field(default_factory=Replay)

    def with_variant(self) -> Self:
        """Return the recipe with the flags of its variant."""
        if not self.is_published:
            return self
        return replace(self, extreme=self.extreme.published(), replay=self.replay.published())

    def build(self) -> Algorithm:
        """Return the extreme-value gate in front of the trust-region step, over replayed transitions."""
        return Algorithm(
            self.in_step_units(extreme_value_gate(self.limit, self.extreme)),
            self.step(),
            replay=lambda adv: replay_extremes(adv, self.replay),
            memory=episode_memory(self.extreme.capacity),
        )


@dataclass(frozen=True)
class CVaRCPO(Shared):
    """CPO under a limit on the mean of the worst episodes; the policy sees its running cost.

    Where more than the share ``tail`` of the episodes have one and the same largest cost, CVaR is flat: it
    does not change until they are fewer, so the policy gets no direction.
    """

    tail: float = 0.1  # share of worst episodes

    def build(self) -> Algorithm:
        """Return the CVaR gate in front of the trust-region step, learning from the cost beyond the level."""

        def beyond(running: np.ndarray, decision: Decision) -> np.ndarray:
            return np.maximum(running - decision.level, 0.0) / self.tail

        gate = self.in_step_units(cvar_gate(self.limit, self.tail, self.window))
        return Algorithm(gate, self.step(), Running(self.limit), beyond)


@dataclass(frozen=True)
class SteinGate(Shared):
    """Either step behind a certificate on the whole cost distribution.

    ``recovery="mean"`` lowers the mean cost, as released; ``"tail"`` the certificate's risk of the episode
    cost itself, for which the policy sees its running cost.
    """

    preset: str = "released"
    certificate: Mapping[str, Any] = field(default_factory=dict)  # fields that differ from the preset
    recovery: str = "mean"

    def build(self) -> Algorithm:
        """Return the certificate's gate in front of either step."""
        if self.recovery not in ("mean", "tail"):
            raise InputError(f"The recovery {self.recovery!r} is not known: use mean or tail.")
        certificate = Certificate.preset(self.preset, limit=self.limit, **self.certificate)
        gate = stein_gate(certificate, self.window)
        notes = tuple(certificate.explain().splitlines())
        if self.recovery == "mean":
            audit = step_audit(certificate)
            return Algorithm(self.in_step_units(gate), self.step(), audit=audit, notes=notes)

        def risk(running: np.ndarray, decision: Decision) -> np.ndarray:
            del decision
            return np.asarray(certificate.risk(np.clip(running / certificate.scale, 0.0, 1.0)))

        gate = risk_slack(gate, certificate.risk, certificate.scale, certificate.budget)
        return Algorithm(
            self.in_step_units(gate),
            self.step(),
            Running(self.limit),
            risk,
            audit=step_audit(certificate),
            notes=notes,
        )
