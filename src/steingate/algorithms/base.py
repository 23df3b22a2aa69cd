"""The interface between algorithms and the trainer. Start here to read or to write an algorithm.

An algorithm is a frozen dataclass: its fields are its settings, its methods are pure functions of an explicit
state. Each epoch, ``training.epoch`` calls, in this order,

    env_params          what the environments need to know (cost budget, return scale)
    ends_episode        which training episodes to end early (after every step)
    record_rollout      remember parts of the rollout
    decide              episodes of the epoch -> objective of the policy update ("the gate")
    shape_advantages    reweight advantages or samples
    update              one policy update

Nothing in this module needs JAX, so that settings can be validated before it is loaded.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import inf
from typing import Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt

from steingate.algorithms.config import (
    EPISODE_FILTER,
    VARIANT,
    AdvantageConfig,
    CostAdvantageConfig,
    CriticConfig,
    EpisodeFilter,
    LineSearchConfig,
    NetworkConfig,
    TrustRegionConfig,
    Variant,
)
from steingate.algorithms.modes import Mode
from steingate.errors import InputError
from steingate.policies.safety_state import SafetyState
from steingate.settings import check_ranges, group, object_name, option

Array = npt.NDArray[np.float64]
Params = dict[str, Any]  # policy or critic: {"w": (W1, ...), "b": (b1, ...)}, and "log_std" of a Gaussian policy
State = Any  # NamedTuples, dicts and tuples of numbers and NumPy arrays, so that checkpoints can store them
Metrics = dict[str, float]  # column of progress.csv -> number


class Objective(NamedTuple):
    """Objective of one policy update.

    ``cost_slack`` is the limit minus the constrained statistic, in cost per step (per episode in published
    variants); infinite without a limit. The reward is penalized by ``lagrange_multiplier`` times cost.
    """

    mode: Mode = Mode.IMPROVE
    cost_slack: float = inf
    lagrange_multiplier: float = 0.0


class GateOutput(NamedTuple):
    """What ``decide`` finds: the objective, columns of ``progress.csv``, and sentences for the user."""

    objective: Objective
    metrics: Metrics = {}  # noqa: RUF012 (never changed in place)
    messages: tuple[str, ...] = ()


Decision = tuple[State, GateOutput]  # result of ``decide``: the next state, and the objective of the policy update
Update = tuple[State, Params, Metrics]  # result of ``update``: the next state, the updated policy, ``Loss/NAME``


class EnvParams(NamedTuple):
    """Numbers that an algorithm passes to its own ``safety_state`` and ``shape_reward`` in the environments."""

    cost_budget_fraction: float = 1.0  # fraction of the cost limit that an episode may spend
    return_scale: float = 0.0  # typical size of an episode's return


class Episodes(NamedTuple):
    """The n episodes that finished in one epoch, by time of completion; return and cost are undiscounted."""

    cost: Array
    ret: Array
    length: npt.NDArray[np.int64]
    start: npt.NDArray[np.int64] | None = None
    """Step of the epoch at which each began in its environment; negative if it began in an earlier epoch."""
    truncated: npt.NDArray[np.bool_] | None = None
    """Whether each was cut off, by a time limit for example, instead of terminated by the task."""


class Trajectories(NamedTuple):
    """T steps of E environments as the policy saw them."""

    obs: npt.NDArray[np.float32]  # (T, E, d), normalized
    act: npt.NDArray[np.float32]  # (T, E, a) as sampled; (T, E, 1) indices of discrete actions
    logp: npt.NDArray[np.float32]  # (T, E)
    finished_at: npt.NDArray[np.int64]  # (n, 2): step and environment at which each episode finished


class Batch(NamedTuple):
    """Samples of one epoch for the policy update: N = T * E rows of float32."""

    obs: np.ndarray  # (N, d), normalized
    act: np.ndarray  # (N, a) as sampled, neither clipped nor scaled; (N, 1) indices of discrete actions
    logp: np.ndarray  # (N,) log-density of ``act`` under the policy that collected it
    adv: np.ndarray  # (N,) reward advantage, standardized
    cost_adv: np.ndarray  # (N,) cost advantage, centered
    weight: np.ndarray | None = None  # (N,) how often each sample counts; None for once
    adv_std: float = 1.0  # standard deviation of the (clipped) reward advantage before standardization

    def penalized_advantage(self, multiplier: Any, same_unit: bool = False) -> Any:
        """Return (reward advantage - multiplier * cost advantage) / (1 + multiplier).

        With ``same_unit`` both are in the units of the task, so the result is the advantage of a penalized reward.
        Otherwise the reward advantage is standardized and the cost advantage only centered, as in published code.
        """
        reward = self.adv * self.adv_std if same_unit else self.adv
        return (reward - multiplier * self.cost_adv) / (1.0 + multiplier)


class RunContext(NamedTuple):
    """Facts about the run that an algorithm may use."""

    cost_limit: float = 25.0  # on the cost of an episode
    window: int = 100  # episodes in moving averages of the cost
    episode_length: int = 1000  # steps of an episode of the task
    epochs: int = 0  # of the whole run; 0 if unknown
    seed: int = 0
    num_envs: int = 1
    carry_episodes: bool = False  # episodes continue in the next epoch


@dataclass(frozen=True)
class MethodInfo:
    """Facts about a method for lists and documentation, one sentence each."""

    name: str
    summary: str = ""
    paper: str = ""
    published: str = "no error is known"  # what the published code does
    corrected: str = "nothing: both variants are the same"  # what ``variant="corrected"`` changes
    constraint: str = ""  # constrained quantity
    update: str = ""  # kind of policy update
    inputs: str = ""  # policy inputs besides the task's observation
    order: float = inf  # position in tables and figures
    color: str | None = None  # in figures, such as "#2f6f9f"; None takes a free one


class Algorithm(ABC):
    """Base class of all algorithms. A subclass is a frozen dataclass with ``info``, ``init`` and ``decide``.

    The attributes below are the defaults; a subclass that declares one of them as a field makes it a setting.
    """

    info: ClassVar[MethodInfo] = MethodInfo("")
    variant: Variant = "corrected"
    episode_filter: EpisodeFilter = "all"
    networks: NetworkConfig = NetworkConfig()

    def __post_init__(self) -> None:
        check_ranges(self)

    @property
    def name(self) -> str:
        """Name of the algorithm: that of ``info``, or ``module:Class``."""
        return self.info.name or object_name(type(self))

    @property
    def is_published(self) -> bool:
        """Whether the behavior behind published numbers is wanted."""
        return self.variant == "published"

    @property
    def complete_episodes_only(self) -> bool:
        """Whether ``decide`` gets only the episodes that ``common.episodes.complete_episodes`` selects."""
        return self.episode_filter == "complete" or (self.episode_filter is None and not self.is_published)

    @property
    def depends_on_total_steps(self) -> bool:
        """Whether every epoch depends on the number of epochs, so that a run cannot be extended."""
        return False

    @classmethod
    def published_options(cls, task: str, variant: Variant) -> Mapping[str, Any]:
        """Return options that were published for a task; options of the user have priority."""
        return {}

    @abstractmethod
    def init(self, context: RunContext, policy: Params) -> State:
        """Return the state before the first epoch."""

    @abstractmethod
    def decide(self, context: RunContext, state: State, episodes: Episodes) -> Decision:
        """Return the next state and the output of the gate; ``episodes`` is empty if the epoch finished none."""

    def env_params(self, context: RunContext, state: State) -> EnvParams:
        """Return the numbers that the environments use in the next epoch."""
        return EnvParams()

    def safety_state(self, context: RunContext, params: EnvParams) -> SafetyState | None:
        """Return the safety state that is appended to observations; None appends nothing."""
        return None

    def shape_reward(self, context: RunContext, params: EnvParams, z: Array, reward: Array, cost: Array) -> Array:
        """Return the reward to learn from, given safety state after a step, reward and cost: all (E,)."""
        return reward

    def ends_episode(self, context: RunContext, accumulated_cost: Array) -> npt.NDArray[np.bool_]:
        """Return which episodes terminate after a step of training, given their costs so far: both (E,)."""
        return np.zeros(len(accumulated_cost), np.bool_)

    def initial_messages(self, context: RunContext) -> tuple[str, ...]:
        """Return sentences that the user sees when training starts."""
        return ()


class OnPolicyAlgorithm(Algorithm):
    """An algorithm that updates its policy once per epoch on the epoch's samples."""

    advantages: AdvantageConfig = AdvantageConfig()
    cost_advantages: CostAdvantageConfig | None = None  # None: the cost critic is not fitted
    critics: CriticConfig = CriticConfig()

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.critics.vf_epochs is None and type(self).update_epochs is OnPolicyAlgorithm.update_epochs:
            raise InputError("vf_epochs is none: the policy update makes no passes that could be repeated.")

    def record_rollout(self, context: RunContext, state: State, policy: Params, rollout: Trajectories) -> State:
        """Return the state after a rollout of ``policy``, before ``decide``."""
        return state

    def init_optimizer(self, policy: Params) -> Any:
        """Return the optimizer of the policy update before the first epoch; () if it has none."""
        return ()

    def cost_transform(self, context: RunContext, state: State) -> Callable[[Array], Array] | None:
        """Return a function of the accumulated episode cost whose increments replace the step costs."""
        return None

    def shape_advantages(self, advantage: Array) -> tuple[Array, npt.NDArray[np.float32] | None, Metrics]:
        """Return standardized reward advantages (T, E), sample weights (T * E,) or None, and metrics."""
        return advantage, None, {}

    @abstractmethod
    def update(self, context: RunContext, state: State, policy: Params, batch: Batch, objective: Objective) -> Update:
        """Return the next state, the updated policy, and columns of ``progress.csv`` (``Loss/NAME``)."""

    def update_epochs(self, state: State) -> int | None:
        """Return the passes that the last update made over the batch; None if it made none."""
        return None


@dataclass(frozen=True)
class ConstrainedAlgorithm(OnPolicyAlgorithm):
    """An algorithm that selects the episodes of its gate, and fits the cost critic. Abstract."""

    episode_filter: EpisodeFilter = option(None, EPISODE_FILTER)
    cost_advantages: CostAdvantageConfig = group(CostAdvantageConfig, flat=True)


@dataclass(frozen=True)
class TrustRegionAlgorithm(OnPolicyAlgorithm):
    """An algorithm whose policy update is one trust-region step (``common.trust_region``). Abstract."""

    variant: Variant = option("corrected", VARIANT)
    networks: NetworkConfig = group(NetworkConfig, flat=True)
    advantages: AdvantageConfig = group(AdvantageConfig, flat=True)
    critics: CriticConfig = group(CriticConfig, flat=True)
    trust_region: TrustRegionConfig = group(TrustRegionConfig, flat=True)
    line_search: LineSearchConfig | None = group(LineSearchConfig, flat=True)  # None: full steps

    def step_rule(self) -> Any:
        """Return the settings of the step, a ``StepRule``."""
        from steingate.algorithms.common.trust_region import StepRule

        return StepRule(self.trust_region, self.line_search, self.variant)

    def update(self, context: RunContext, state: State, policy: Params, batch: Batch, objective: Objective) -> Update:
        from steingate.algorithms.common.trust_region import trust_region_update

        return state, *trust_region_update(policy, batch, objective, self.step_rule())
