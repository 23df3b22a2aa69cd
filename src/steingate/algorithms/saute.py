"""Sauté and Simmer: reward while some of the episode's cost budget is left, which the policy sees."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Self

from steingate.algorithms.common.base import Algorithm, Step
from steingate.algorithms.common.recipe import About, FirstOrder, Recipe, SecondOrder, Setup, Watchful
from steingate.errors import require_between, require_positive
from steingate.gates.account import Account, Remaining, require_budget, unsafe_reward
from steingate.gates.mean import open_gate
from steingate.gates.schedule import Controller, budget_gate, discounted_share
from steingate.settings import part, setting

_SAUTE = About(
    "",
    "raise reward while some of the episode's cost budget is left, which the policy sees",
    "Saute RL (Sootla et al., ICML 2022)",
    "shows a full budget in the last observation of an episode cut by its time limit, and discounts the "
    "budget over 1000 steps whatever the task",
    "shows the budget that is really left, and takes the task's own episode length",
)
_SIMMER = About(
    "",
    "Saute with a budget that follows the cost",
    "Enhancing Safe Exploration Using Safety State Augmentation (Sootla et al., NeurIPS 2022)",
    "as Saute; also divides costs by the controlled budget and starts every episode but the first of an "
    "epoch with a full one",
    "as Saute; divides by the upper budget and starts every episode with the controlled share",
)
_GOAL, _CIRCLE = r"Safety(Point|Car)Goal[12]-v0", r"Safety(Point|Car)Circle[12]-v0"
_BUDGET = {"budget_discount": 0.9999, "unsafe_reward": -0.2}


@dataclass(frozen=True)
class Saute(Recipe):
    """The budget that is left, discounted, is seen; once it is spent, a constant takes the reward's place."""

    budget_discount: float = setting(0.999, "discount of the budget")
    unsafe_reward: float = setting(-1.0, "reward once the budget is spent")
    length: int | None = setting(
        None, "steps over which the budget is discounted; none takes the task's episodes"
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        require_positive(self, "budget_discount")
        require_between(self, 0.0, 1.0, "budget_discount")
        if self.length is not None:
            require_positive(self, "length")

    def resolved(self, length: int) -> Self:
        """Return the recipe with the length of an episode: the task's, or 1000 as published."""
        if self.length is not None:
            return self
        return replace(self, length=1000 if self.is_published else length)

    def account(self, setup: Setup) -> Account:
        """Return what is seen and what that does to the reward."""
        published = self.is_published
        require_budget(self.name, setup.limit)
        seen = Remaining(
            setup.limit * discounted_share(self.budget_discount, self.steps(setup)),
            self.budget_discount,
            true_at_end=not published,
            scale_by_share=published,
            restart_full=published,
        )
        return Account(seen, unsafe_reward(self.unsafe_reward))

    def steps(self, setup: Setup) -> int:
        """Return the steps over which the budget is discounted."""
        return self.resolved(setup.length).length or setup.length

    def with_budget(self, setup: Setup, step: Step[Any]) -> Algorithm:
        """Return the open gate in front of ``step``, and the budget."""
        return Algorithm(open_gate(), step, self.account(setup), uses_cost=False)


@dataclass(frozen=True)
class Simmer(Saute, Watchful):
    """Sauté's budget, which a controller moves towards what the policy spends."""

    controller: Controller = part(Controller)

    def with_budget(self, setup: Setup, step: Step[Any]) -> Algorithm:
        """Return the budget's gate in front of ``step``, and the budget."""
        gate = budget_gate(
            setup.limit, self.budget_discount, self.steps(setup), self.controller, setup.window
        )
        return Algorithm(gate, step, self.account(setup), uses_cost=False)


@dataclass(frozen=True)
class _ByTRPO(SecondOrder, Saute):
    search_steps: int = 15

    @classmethod
    def tuned(cls, task: str, variant: str) -> Mapping[str, Any]:
        """Return the budget's settings that were published for the navigation tasks."""
        return _BUDGET if re.fullmatch(f"{_GOAL}|{_CIRCLE}", task) else {}

    def build(self, setup: Setup) -> Algorithm:
        """Return the budget around the trust-region step."""
        return self.with_budget(setup, self.step(setup))


@dataclass(frozen=True)
class _ByPPO(FirstOrder, Saute):
    @classmethod
    def tuned(cls, task: str, variant: str) -> Mapping[str, Any]:
        """Return the settings that were published for the navigation tasks."""
        if re.fullmatch(_GOAL, task):
            return {**_BUDGET, "clipped.passes": 80, "normalize_obs": False}
        return {**_BUDGET, "clipped.passes": 80} if re.fullmatch(_CIRCLE, task) else {}

    def build(self, setup: Setup) -> Algorithm:
        """Return the budget around PPO's step."""
        return self.with_budget(setup, self.step(setup))


@dataclass(frozen=True)
class TRPOSaute(_ByTRPO):
    """Sauté on TRPO."""

    about = replace(
        _SAUTE,
        name="trpo-saute",
        summary=_SAUTE.summary + ", by TRPO",
        gate="open",
        step="trust region",
        sees="remaining budget",
        order=90,
        color="#8a63a6",
    )


@dataclass(frozen=True)
class PPOSaute(_ByPPO):
    """Sauté on PPO."""

    about = replace(
        _SAUTE,
        name="ppo-saute",
        summary=_SAUTE.summary + ", by PPO",
        gate="open",
        step="clipped",
        sees="remaining budget",
        order=100,
        color="#b79fce",
    )


@dataclass(frozen=True)
class TRPOSimmer(_ByTRPO, Simmer):
    """Simmer on TRPO."""

    about = replace(
        _SIMMER,
        name="trpo-simmer",
        summary=_SIMMER.summary + ", by TRPO",
        gate="budget controller",
        step="trust region",
        sees="remaining budget",
        order=110,
        color="#c7683c",
    )


@dataclass(frozen=True)
class PPOSimmer(_ByPPO, Simmer):
    """Simmer on PPO."""

    about = replace(
        _SIMMER,
        name="ppo-simmer",
        summary=_SIMMER.summary + ", by PPO",
        published=_SIMMER.published + "; lacks its own settings on CarCircle1",
        corrected=_SIMMER.corrected + ", with PointCircle1's settings on CarCircle1",
        gate="budget controller",
        step="clipped",
        sees="remaining budget",
        order=120,
        color="#e3a27f",
    )

    @classmethod
    def tuned(cls, task: str, variant: str) -> Mapping[str, Any]:
        """Return the settings that were published for the navigation tasks; one of them was forgotten."""
        forgotten = variant == "published" and task == "SafetyCarCircle1-v0"
        return {} if forgotten else super().tuned(task, variant)
