"""Lagrangian methods: maximize reward - lambda * cost, with a multiplier lambda >= 0 that follows the violation.

    lambda <- lambda + lr * (mean cost - limit)       dual ascent, with Adam's step size; or a PID controller

The mean is over the last ``window`` episodes. The policy update uses the advantage (A_r - lambda A_c) / (1 + lambda):
TRPO's update in ``trpo-lag``, PPO's in ``ppo-lag``, and a full natural-gradient step in ``rcpo``. FOCOPS and CUP share
the multiplier.
"""

from dataclasses import MISSING, dataclass, fields
from typing import Any, Literal, NamedTuple

from steingate.algorithms.base import (
    Batch,
    Episodes,
    GateOutput,
    MethodInfo,
    Metrics,
    Mode,
    Objective,
    OnPolicyAlgorithm,
    Params,
    RunContext,
)
from steingate.algorithms.common.episodes import RecentEpisodes, gate_metrics
from steingate.algorithms.common.lagrange import AdamConfig, AdamMultiplier, PIDConfig, PIDMultiplier
from steingate.algorithms.config import (
    EPISODE_FILTER,
    VARIANT,
    AdvantageConfig,
    CostAdvantageConfig,
    CriticConfig,
    EpisodeFilter,
    LineSearchConfig,
    NetworkConfig,
    PPOConfig,
    TrustRegionConfig,
    Variant,
    minibatch_critics,
)
from steingate.errors import InputError
from steingate.settings import group, option


class LagrangianState(NamedTuple):
    """Multiplier, recent episodes, and the optimizer of a minibatch update."""

    multiplier: AdamMultiplier | PIDMultiplier
    recent: RecentEpisodes = RecentEpisodes()
    optimizer: Any = ()


def multiplier_config(algorithm: Any) -> AdamConfig | PIDConfig:
    """Return the settings of the rule that ``algorithm.multiplier`` selects."""
    config: AdamConfig | PIDConfig = getattr(algorithm, algorithm.multiplier)
    return config


def check_multiplier(algorithm: Any) -> None:
    """Refuse settings of the rule that is not selected."""
    idle = "pid" if algorithm.multiplier == "adam" else "adam"
    factory = next(item.default_factory for item in fields(algorithm) if item.name == idle)
    if factory is not MISSING and getattr(algorithm, idle) != factory():
        raise InputError(f"{idle} has no effect with multiplier={algorithm.multiplier}: set multiplier={idle}.")


def update_multiplier(
    context: RunContext, state: LagrangianState, episodes: Episodes, config: AdamConfig | PIDConfig
) -> tuple[LagrangianState, GateOutput]:
    """Move the multiplier by the violation of the mean cost; it stays until the first episode has finished."""
    recent = state.recent.extend(episodes, context.window)
    known = len(recent.costs) > 0
    mean = float(recent.costs.mean()) if known else context.cost_limit
    multiplier = state.multiplier
    if known:
        multiplier = config.next(multiplier, mean, context.cost_limit)  # type: ignore[arg-type]
    metrics = gate_metrics(Mode.IMPROVE, episodes, MeanCost=mean, LagrangeMultiplier=multiplier.value)
    output = GateOutput(Objective(Mode.IMPROVE, lagrange_multiplier=multiplier.value), metrics)
    return state._replace(multiplier=multiplier, recent=recent), output


@dataclass(frozen=True)
class TRPOLag(OnPolicyAlgorithm):
    """TRPO with a Lagrange multiplier on cost."""

    info = MethodInfo(
        "trpo-lag",
        "maximize reward minus a Lagrange multiplier times cost, by TRPO",
        "Benchmarking Safe Exploration (Ray et al., 2019); PID multipliers: Stooke et al., ICML 2020",
        "mixes a standardized reward advantage with a cost advantage that is only centered, so the multiplier that "
        "satisfies the limit grows as the policy's standard deviation shrinks",
        "nothing: both variants keep the mixture, on which published multipliers depend",
        constraint="mean cost, by a Lagrange multiplier",
        update="trust region",
        order=70,
        color="#7a9a3a",
    )
    variant: Variant = option("corrected", VARIANT)
    episode_filter: EpisodeFilter = option(None, EPISODE_FILTER)
    networks: NetworkConfig = group(NetworkConfig, flat=True)
    advantages: AdvantageConfig = group(AdvantageConfig, flat=True)
    cost_advantages: CostAdvantageConfig = group(CostAdvantageConfig, flat=True)
    critics: CriticConfig = group(CriticConfig, flat=True)
    trust_region: TrustRegionConfig = group(TrustRegionConfig, flat=True)
    line_search: LineSearchConfig = group(lambda: LineSearchConfig(backtrack_iters=15), flat=True)
    multiplier: Literal["adam", "pid"] = option("adam", "what updates the multiplier: Adam, or a PID controller")
    adam: AdamConfig = group(AdamConfig)
    pid: PIDConfig = group(PIDConfig)

    def __post_init__(self) -> None:
        super().__post_init__()
        check_multiplier(self)

    def init(self, context: RunContext, policy: Params) -> LagrangianState:
        """Return the state before the first epoch."""
        del context, policy
        return LagrangianState(multiplier_config(self).start())

    def decide(
        self, context: RunContext, state: LagrangianState, episodes: Episodes
    ) -> tuple[LagrangianState, GateOutput]:
        """Update the Lagrange multiplier."""
        return update_multiplier(context, state, episodes, multiplier_config(self))

    def update(
        self, context: RunContext, state: LagrangianState, policy: Params, batch: Batch, objective: Objective
    ) -> tuple[LagrangianState, Params, Metrics]:
        """Take one trust-region step."""
        from steingate.algorithms.common.trust_region import StepRule, trust_region_update

        del context
        rule = StepRule(self.trust_region, self.line_search, self.variant)
        return state, *trust_region_update(policy, batch, objective, rule)


@dataclass(frozen=True)
class PPOLag(OnPolicyAlgorithm):
    """PPO with a Lagrange multiplier on cost."""

    info = MethodInfo(
        "ppo-lag",
        "maximize reward minus a Lagrange multiplier times cost, by PPO",
        "Benchmarking Safe Exploration (Ray et al., 2019); PID multipliers: Stooke et al., ICML 2020",
        "mixes a standardized reward advantage with a cost advantage that is only centered, so the multiplier that "
        "satisfies the limit grows as the policy's standard deviation shrinks",
        "nothing: both variants keep the mixture, on which published multipliers depend",
        constraint="mean cost, by a Lagrange multiplier",
        update="PPO",
        order=80,
        color="#4b6b1f",
    )
    variant: Variant = option("corrected", VARIANT)
    episode_filter: EpisodeFilter = option(None, EPISODE_FILTER)
    networks: NetworkConfig = group(NetworkConfig, flat=True)
    advantages: AdvantageConfig = group(AdvantageConfig, flat=True)
    cost_advantages: CostAdvantageConfig = group(CostAdvantageConfig, flat=True)
    critics: CriticConfig = group(minibatch_critics, flat=True)
    ppo: PPOConfig = group(PPOConfig)
    multiplier: Literal["adam", "pid"] = option("adam", "what updates the multiplier: Adam, or a PID controller")
    adam: AdamConfig = group(AdamConfig)
    pid: PIDConfig = group(PIDConfig)

    def __post_init__(self) -> None:
        super().__post_init__()
        check_multiplier(self)

    @property
    def depends_on_total_steps(self) -> bool:
        """Whether the learning rate decays over the run."""
        return self.ppo.lr_decay

    def init(self, context: RunContext, policy: Params) -> LagrangianState:
        """Return the state before the first epoch."""
        from steingate.algorithms.common.ppo_update import init_ppo

        del context
        return LagrangianState(multiplier_config(self).start(), optimizer=init_ppo(policy))

    def decide(
        self, context: RunContext, state: LagrangianState, episodes: Episodes
    ) -> tuple[LagrangianState, GateOutput]:
        """Update the Lagrange multiplier."""
        return update_multiplier(context, state, episodes, multiplier_config(self))

    def update(
        self, context: RunContext, state: LagrangianState, policy: Params, batch: Batch, objective: Objective
    ) -> tuple[LagrangianState, Params, Metrics]:
        """Make PPO's update."""
        from steingate.algorithms.common.ppo_update import ppo_update

        optimizer, policy, metrics = ppo_update(context, state.optimizer, policy, batch, objective, self.ppo)
        return state._replace(optimizer=optimizer), policy, metrics

    def update_epochs(self, state: LagrangianState) -> int:
        """Return the epochs of the last policy update."""
        return int(state.optimizer.epochs)


@dataclass(frozen=True)
class RCPO(OnPolicyAlgorithm):
    """Reward-constrained policy optimization with natural gradients and without a line search."""

    info = MethodInfo(
        "rcpo",
        "maximize reward minus a Lagrange multiplier times cost, by full natural-gradient steps",
        "Reward Constrained Policy Optimization (Tessler et al., ICLR 2019)",
        "penalizes a standardized reward advantage; the paper penalizes the reward of an actor-critic",
        "penalizes cost in the units of the reward, as the paper does",
        constraint="mean cost, by a Lagrange multiplier",
        update="natural gradient",
        order=30,
        color="#9a5b73",
    )
    variant: Variant = option("corrected", VARIANT)
    episode_filter: EpisodeFilter = option(None, EPISODE_FILTER)
    networks: NetworkConfig = group(NetworkConfig, flat=True)
    advantages: AdvantageConfig = group(AdvantageConfig, flat=True)
    cost_advantages: CostAdvantageConfig = group(CostAdvantageConfig, flat=True)
    critics: CriticConfig = group(CriticConfig, flat=True)
    trust_region: TrustRegionConfig = group(TrustRegionConfig, flat=True)
    multiplier: Literal["adam", "pid"] = option("adam", "what updates the multiplier: Adam, or a PID controller")
    adam: AdamConfig = group(AdamConfig)
    pid: PIDConfig = group(PIDConfig)

    def __post_init__(self) -> None:
        super().__post_init__()
        check_multiplier(self)

    def init(self, context: RunContext, policy: Params) -> LagrangianState:
        """Return the state before the first epoch."""
        del context, policy
        return LagrangianState(multiplier_config(self).start())

    def decide(
        self, context: RunContext, state: LagrangianState, episodes: Episodes
    ) -> tuple[LagrangianState, GateOutput]:
        """Update the Lagrange multiplier."""
        return update_multiplier(context, state, episodes, multiplier_config(self))

    def update(
        self, context: RunContext, state: LagrangianState, policy: Params, batch: Batch, objective: Objective
    ) -> tuple[LagrangianState, Params, Metrics]:
        """Take one full natural-gradient step."""
        from steingate.algorithms.common.trust_region import StepRule, trust_region_update

        del context
        rule = StepRule(self.trust_region, None, self.variant, same_unit=not self.is_published)
        return state, *trust_region_update(policy, batch, objective, rule)
