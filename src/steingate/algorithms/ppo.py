"""PPO (Schulman et al., 2017): maximize reward with a clipped surrogate; cost is ignored.

    maximize  mean(min(ratio A, clip(ratio, 1 - clip, 1 + clip) A)),   ratio = pi(a|s) / pi_old(a|s)

by epochs of minibatch Adam, until the KL from the old policy exceeds ``ppo.max_kl``. ``MinibatchAlgorithm`` is the base
class of all methods with this kind of update.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

from steingate.algorithms.base import (
    Batch,
    Decision,
    Episodes,
    MethodInfo,
    Mode,
    Objective,
    OnPolicyAlgorithm,
    Params,
    RunContext,
    State,
    Update,
)
from steingate.algorithms.common.episodes import gate_output
from steingate.algorithms.config import (
    VARIANT,
    AdvantageConfig,
    CriticConfig,
    MinibatchConfig,
    NetworkConfig,
    PPOConfig,
    Variant,
)
from steingate.settings import group, option


@dataclass(frozen=True)
class MinibatchAlgorithm(OnPolicyAlgorithm):
    """An algorithm whose policy update is minibatch Adam on PPO's loss, or on ``phases`` (``common.ppo_update``).

    Its state has a field ``optimizer``, which starts as ``init_optimizer(policy)``.
    """

    variant: Variant = option("corrected", VARIANT)
    networks: NetworkConfig = group(NetworkConfig, flat=True)
    advantages: AdvantageConfig = group(AdvantageConfig, flat=True)
    critics: CriticConfig = group(lambda: CriticConfig(vf_lr=3e-4, vf_epochs=None, vf_batch_size=64), flat=True)
    ppo: MinibatchConfig = group(PPOConfig)

    @property
    def depends_on_total_steps(self) -> bool:
        """Whether the learning rate decays over the run."""
        return self.ppo.lr_decay

    def init_optimizer(self, policy: Params) -> Any:
        from steingate.algorithms.common.ppo_update import PPOState, init_adam

        return PPOState(init_adam(policy))

    def phases(self, batch: Batch, objective: Objective) -> tuple[Any, ...]:
        """Return the losses to minimize, one after the other: PPO's."""
        from steingate.algorithms.common.ppo_update import Phase, clipped_loss, objective_advantage

        assert isinstance(self.ppo, PPOConfig)
        return (Phase(clipped_loss(self.ppo.clip), objective_advantage(batch, objective)),)

    def update(self, context: RunContext, state: State, policy: Params, batch: Batch, objective: Objective) -> Update:
        from steingate.algorithms.common.ppo_update import minibatch_update

        phases = self.phases(batch, objective)
        optimizer, policy, metrics = minibatch_update(context, state.optimizer, policy, batch, self.ppo, phases)
        return state._replace(optimizer=optimizer), policy, metrics

    def update_epochs(self, state: State) -> int:
        """Return the epochs of the last policy update."""
        return int(state.optimizer.epochs)


class OptimizerState(NamedTuple):
    """State between epochs: the optimizer."""

    optimizer: Any


@dataclass(frozen=True)
class PPO(MinibatchAlgorithm):
    """Proximal policy optimization."""

    info = MethodInfo(
        "ppo",
        "maximize reward with a clipped surrogate; cost is ignored",
        "Proximal Policy Optimization (Schulman et al., 2017)",
        constraint="none", update="PPO", order=60, color="#a3adb5",
    )  # fmt: skip

    def init(self, context: RunContext, policy: Params) -> OptimizerState:
        return OptimizerState(self.init_optimizer(policy))

    def decide(self, context: RunContext, state: OptimizerState, episodes: Episodes) -> Decision:
        return state, gate_output(Mode.IMPROVE, episodes, Fallback=0.0)
