"""Methods that put a price on cost: Lagrangian TRPO and PPO, RCPO, FOCOPS, CUP."""

from dataclasses import MISSING, dataclass, fields, replace
from typing import Literal

from steingate.algorithms.common.base import Algorithm
from steingate.algorithms.common.recipe import (
    About,
    Constrained,
    FirstOrder,
    NaturalGradient,
    SecondOrder,
    Setup,
)
from steingate.algorithms.common.sizes import Clipped, Passes
from steingate.errors import InputError, require_positive
from steingate.gates.base import Gate
from steingate.gates.multiplier import PID, Ascent, Priced, multiplier_gate
from steingate.settings import part, setting

_LAGRANGIAN = About(
    "",
    "raise reward minus cost at a price that rises while the mean cost is above the limit",
    "Benchmarking Safe Exploration (Ray et al., 2019); PID multipliers: Stooke et al., ICML 2020",
    "mixes a standardized reward advantage with a cost advantage that is only centered, so the price that "
    "holds the limit grows as the policy's spread shrinks",
    "nothing: both variants keep the mixture, on which published prices depend",
)


@dataclass(frozen=True)
class Lagrangian(Constrained):
    """The price follows the violation, by Adam or by a PID controller."""

    multiplier: Literal["adam", "pid"] = setting("adam", "what moves the price: Adam, or a PID controller")
    ascent: Ascent = part(Ascent)
    pid: PID = part(PID)

    def __post_init__(self) -> None:
        super().__post_init__()
        idle = "pid" if self.multiplier == "adam" else "ascent"
        factory = next(item.default_factory for item in fields(self) if item.name == idle)
        if factory is not MISSING and getattr(self, idle) != factory():
            other = {"pid": "pid", "ascent": "adam"}[idle]
            raise InputError(
                f"{idle} has no effect with multiplier={self.multiplier}: set multiplier={other}."
            )

    def price_gate(self, setup: Setup) -> Gate[Priced]:
        """Return the gate that sets the price."""
        law: Ascent | PID = self.ascent if self.multiplier == "adam" else self.pid
        return multiplier_gate(setup.limit, law, setup.window)


@dataclass(frozen=True)
class TRPOLag(SecondOrder, Lagrangian):
    """TRPO on reward minus cost at a price."""

    about = replace(
        _LAGRANGIAN,
        name="trpo-lag",
        summary=_LAGRANGIAN.summary + ", by TRPO",
        gate="multiplier",
        step="trust region",
        order=70,
        color="#7a9a3a",
    )
    search_steps: int = 15

    def build(self, setup: Setup) -> Algorithm:
        """Return the price's gate in front of the trust-region step."""
        return Algorithm(self.price_gate(setup), self.step(setup))


@dataclass(frozen=True)
class PPOLag(FirstOrder, Lagrangian):
    """PPO on reward minus cost at a price."""

    about = replace(
        _LAGRANGIAN,
        name="ppo-lag",
        summary=_LAGRANGIAN.summary + ", by PPO",
        gate="multiplier",
        step="clipped",
        order=80,
        color="#4b6b1f",
    )

    def build(self, setup: Setup) -> Algorithm:
        """Return the price's gate in front of PPO's step."""
        return Algorithm(self.price_gate(setup), self.step(setup))


@dataclass(frozen=True)
class RCPO(NaturalGradient, Lagrangian):
    """Reward-constrained policy optimization with natural gradients, unchecked."""

    about = About(
        "rcpo",
        "raise reward minus cost at a price, by full natural-gradient steps",
        "Reward Constrained Policy Optimization (Tessler et al., ICLR 2019)",
        "takes natural-gradient steps without a line search and prices a standardized reward advantage; the "
        "paper penalizes the reward of an actor-critic",
        "prices cost in the units of the reward, as the paper's penalized reward does",
        gate="multiplier",
        step="trust region, no line search",
        order=30,
        color="#9a5b73",
    )

    def build(self, setup: Setup) -> Algorithm:
        """Return the price's gate in front of the full natural-gradient step."""
        from steingate.algorithms.common.trust_region import trust_region_step

        region = self.region(checked=False, same_unit=not self.is_published)
        return Algorithm(self.price_gate(setup), trust_region_step(region))


@dataclass(frozen=True)
class FOCOPS(FirstOrder, Lagrangian):
    """First-order constrained optimization in policy space, by minibatches."""

    about = About(
        "focops",
        "raise reward minus cost at a price, state by state towards the best policy in a KL ball",
        "First Order Constrained Optimization in Policy Space (Zhang et al., NeurIPS 2020)",
        "multiplies a column by a row, so the mask of states inside the ball does not choose whose "
        "advantages count: it scales the mean over all of them",
        "counts the advantages of the states inside the ball",
        gate="multiplier",
        step="towards the best policy in a KL ball",
        order=150,
        color="#b5477d",
    )
    ascent: Ascent = part(lambda: Ascent(ceiling=2.0))
    pid: PID = part(lambda: PID(ceiling=2.0))
    clipped: Passes = part(Passes)
    temperature: float = setting(1.5, "weight of the KL against the advantage")
    radius: float = setting(0.02, "states farther than this KL from the old policy do not count")

    def __post_init__(self) -> None:
        super().__post_init__()
        require_positive(self, "temperature", "radius")

    def build(self, setup: Setup) -> Algorithm:
        """Return the price's gate in front of FOCOPS' step."""
        from steingate.algorithms.common.first_order import focops_step

        sizes = (self.temperature, self.radius, not self.is_published)
        return Algorithm(self.price_gate(setup), focops_step(self.clipped, *sizes, setup.seed, setup.epochs))


@dataclass(frozen=True)
class CUP(FirstOrder, Lagrangian):
    """Constrained update projection: PPO on the reward, then a projection at a price."""

    about = About(
        "cup",
        "raise reward by PPO, then project towards lower cost at a price",
        "Constrained Update Projection (Yang et al., NeurIPS 2022)",
        gate="multiplier",
        step="clipped, then projected",
        order=160,
        color="#c48fb0",
    )
    ascent: Ascent = part(lambda: Ascent(ceiling=2.0))
    pid: PID = part(lambda: PID(ceiling=2.0))
    clipped: Passes = part(lambda: Clipped(max_kl=0.01))

    def build(self, setup: Setup) -> Algorithm:
        """Return the price's gate in front of CUP's two phases."""
        from steingate.algorithms.common.first_order import update_and_project_step

        if self.cost_discount >= 1.0:
            raise InputError(f"cup needs a cost_discount below 1, got {self.cost_discount}.")
        assert isinstance(self.clipped, Clipped)
        lam = self.returns.cost_adv_lam
        weight = (1.0 - self.cost_discount * lam) / (1.0 - self.cost_discount)
        return Algorithm(
            self.price_gate(setup), update_and_project_step(self.clipped, weight, setup.seed, setup.epochs)
        )
