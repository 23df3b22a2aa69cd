"""Lagrangian methods: maximize reward - lambda * cost, with a multiplier lambda >= 0 that follows the violation.

    lambda <- lambda + lr * (mean cost - limit)       dual ascent, with Adam's step size; or a PID controller

The mean is over the last ``window`` episodes. The policy update uses the advantage (A_r - lambda A_c) / (1 + lambda):
TRPO's update in ``trpo-lag``, PPO's in ``ppo-lag``, and a full natural-gradient step in ``rcpo``. FOCOPS and CUP share
the multiplier.
"""

from dataclasses import MISSING, dataclass, fields, replace
from typing import Any, ClassVar, Literal, NamedTuple

from steingate.algorithms.base import (
    Episodes,
    GateOutput,
    MethodInfo,
    Mode,
    Objective,
    OnPolicyAlgorithm,
    Params,
    RunContext,
    TrustRegionAlgorithm,
)
from steingate.algorithms.common.episodes import RecentEpisodes, gate_metrics
from steingate.algorithms.common.lagrange import AdamConfig, AdamMultiplier, PIDConfig, PIDMultiplier
from steingate.algorithms.config import EPISODE_FILTER, CostAdvantageConfig, EpisodeFilter, LineSearchConfig
from steingate.algorithms.ppo import MinibatchAlgorithm
from steingate.errors import InputError
from steingate.settings import group, option


class LagrangianState(NamedTuple):
    """Multiplier, recent episodes, and the optimizer of a minibatch update."""

    multiplier: AdamMultiplier | PIDMultiplier
    recent: RecentEpisodes = RecentEpisodes()
    optimizer: Any = ()


@dataclass(frozen=True)
class Lagrangian(OnPolicyAlgorithm):
    """Updates the multiplier in ``decide``. Abstract."""

    episode_filter: EpisodeFilter = option(None, EPISODE_FILTER)
    cost_advantages: CostAdvantageConfig = group(CostAdvantageConfig, flat=True)
    multiplier: Literal["adam", "pid"] = option("adam", "what updates the multiplier: Adam, or a PID controller")
    adam: AdamConfig = group(AdamConfig)
    pid: PIDConfig = group(PIDConfig)

    def __post_init__(self) -> None:
        super().__post_init__()
        idle = "pid" if self.multiplier == "adam" else "adam"
        factory = next(item.default_factory for item in fields(self) if item.name == idle)  # type: ignore[arg-type]
        if factory is not MISSING and getattr(self, idle) != factory():
            raise InputError(f"{idle} has no effect with multiplier={self.multiplier}: set multiplier={idle}.")

    @property
    def multiplier_config(self) -> AdamConfig | PIDConfig:
        """Settings of the selected rule."""
        return self.adam if self.multiplier == "adam" else self.pid

    def init(self, context: RunContext, policy: Params) -> LagrangianState:
        """Return the state before the first epoch."""
        return LagrangianState(self.multiplier_config.start(), optimizer=self.init_optimizer(policy))

    def decide(
        self, context: RunContext, state: LagrangianState, episodes: Episodes
    ) -> tuple[LagrangianState, GateOutput]:
        """Move the multiplier by the violation of the mean cost; it stays until the first episode has finished."""
        recent = state.recent.extend(episodes, context.window)
        known = len(recent.costs) > 0
        mean = float(recent.costs.mean()) if known else context.cost_limit
        multiplier = state.multiplier
        if known:
            multiplier = self.multiplier_config.next(multiplier, mean, context.cost_limit)  # type: ignore[arg-type]
        metrics = gate_metrics(Mode.IMPROVE, episodes, MeanCost=mean, LagrangeMultiplier=multiplier.value)
        output = GateOutput(Objective(Mode.IMPROVE, lagrange_multiplier=multiplier.value), metrics)
        return state._replace(multiplier=multiplier, recent=recent), output


@dataclass(frozen=True)
class TRPOLag(Lagrangian, TrustRegionAlgorithm):
    """TRPO with a Lagrange multiplier on cost."""

    info = MethodInfo(
        "trpo-lag",
        "maximize reward minus a Lagrange multiplier times cost, by TRPO",
        "Benchmarking Safe Exploration (Ray et al., 2019); PID multipliers: Stooke et al., ICML 2020",
        "mixes a standardized reward advantage with a cost advantage that is only centered, so the multiplier that "
        "satisfies the limit grows as the policy's standard deviation shrinks",
        "nothing: both variants keep the mixture, on which published multipliers depend",
        constraint="mean cost, by a Lagrange multiplier", update="trust region", order=70, color="#7a9a3a",
    )  # fmt: skip
    line_search: LineSearchConfig = group(lambda: LineSearchConfig(backtrack_iters=15), flat=True)


@dataclass(frozen=True)
class PPOLag(Lagrangian, MinibatchAlgorithm):
    """PPO with a Lagrange multiplier on cost."""

    info = replace(
        TRPOLag.info, name="ppo-lag", summary="maximize reward minus a Lagrange multiplier times cost, by PPO",
        update="PPO", order=80, color="#4b6b1f",
    )  # fmt: skip


@dataclass(frozen=True)
class RCPO(Lagrangian, TrustRegionAlgorithm):
    """Reward-constrained policy optimization with natural gradients and without a line search."""

    info = MethodInfo(
        "rcpo",
        "maximize reward minus a Lagrange multiplier times cost, by full natural-gradient steps",
        "Reward Constrained Policy Optimization (Tessler et al., ICLR 2019)",
        "penalizes a standardized reward advantage; the paper penalizes the reward of an actor-critic",
        "penalizes cost in the units of the reward, as the paper does",
        constraint="mean cost, by a Lagrange multiplier", update="natural gradient", order=30, color="#9a5b73",
    )  # fmt: skip
    line_search: ClassVar[None] = None  # type: ignore[misc]  # no option, unlike in other trust-region methods

    def step_rule(self) -> Any:
        """Return a full step, with the multiplier in the units of the task unless published."""
        return super().step_rule()._replace(same_unit=not self.is_published)
