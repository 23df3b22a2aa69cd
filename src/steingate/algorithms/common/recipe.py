"""A recipe is a method: its settings as a frozen dataclass, ``build`` as what is made of them. Needs no JAX.

A method of your own is a class like those of ``algos/methods``: derive it from :class:`FirstOrder` or
:class:`SecondOrder` (and :class:`Constrained` if it learns from costs), say what it is in ``about``, and
return an :class:`~steingate.algorithms.common.base.Algorithm` from ``build``. ``--algo module:Class`` trains
it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import inf
from typing import Any, ClassVar, Literal, NamedTuple, Self, TypeVar

from steingate.algorithms.common.base import Algorithm, Step
from steingate.algorithms.common.sizes import Clipped, CriticFit, Passes, TrustRegion, Variant
from steingate.errors import InputError, nearest, require_between, require_positive
from steingate.gates.base import Gate, Recent
from steingate.gates.mean import PerStep, mean_gate, slack_per_step
from steingate.settings import import_named, named, part, setting, with_settings

S = TypeVar("S")
NO_DIFFERENCE = "nothing: both variants are the same"


@dataclass(frozen=True)
class About:
    """What there is to know about a method, one sentence each, and how reports show it."""

    name: str
    summary: str = ""
    paper: str = ""
    published: str = "nothing wrong is known"  # what the published code does
    corrected: str = NO_DIFFERENCE  # what the corrected variant changes
    gate: str = ""  # what is watched
    step: str = ""  # how the policy moves
    sees: str = ""  # what the policy sees beside the task's observation
    order: float = inf  # place in tables and figures, smallest first
    color: str | None = None  # such as "#2f6f9f"; None takes the next that is free


class Setup(NamedTuple):
    """What a method is told about the run that it is built for."""

    limit: float = 25.0  # on the cost of an episode
    window: int = 100  # episodes in moving averages of the cost
    length: int = 1000  # steps of an episode of the task
    epochs: int = 0  # of the whole run
    seed: int = 0


class Returns(NamedTuple):
    """How rewards and costs are summed up over time: discounts, and lambdas of the advantages."""

    discount: float = 0.99
    cost_discount: float = 0.99
    lam: float = 0.95
    cost_lam: float = 0.95  # of the targets that the cost critic is fitted to
    cost_adv_lam: float = 0.95  # of the cost advantages that the policy follows
    trim: float = inf  # where reward advantages are cut, in multiples of the size that a tenth exceeds


@dataclass(frozen=True)
class Recipe:
    """What all methods have: networks, the reward's advantages, how the critics are fitted."""

    about: ClassVar[About] = About("")
    takes_choices: ClassVar[bool] = True  # false for a method that works with continuous actions only

    variant: Variant = setting("corrected", "published reproduces the behavior behind published numbers")
    hidden: tuple[int, ...] = setting((64, 64), "hidden layers of policy and critics")
    first_std: float = setting(1.0, "standard deviation of actions at first, where they are not choices")
    normalize_obs: bool = setting(True, "normalize observations by their running statistics")
    near: tuple[float, ...] = setting(
        (), "also show observations between 0 and 1 (lidar) to these powers, such as 4,12,36"
    )
    places: bool = setting(False, "also show where the things are that a lidar sees")
    discount: float = setting(0.99, "discount of rewards")
    lam: float = setting(0.95, "lambda of the reward advantages")
    trim: float | None = setting(
        None, "cut reward advantages at this many times the size that one in ten exceeds, such as 3"
    )
    inward: float = setting(
        0.0, "pull on policies that try nothing else: mean actions too far out of range, choices too certain"
    )
    critic_lr: float = setting(1e-3, "learning rate of the critics")
    critic_passes: int | None = setting(
        10, "passes over the epoch's data per critic fit; none repeats those of the policy step"
    )
    critic_batch: int = setting(128, "minibatch of the critic fit")
    critic_decay: float = setting(0.001, "weight of the squared parameters in the critic loss")
    critic_grad_norm: float = setting(40.0, "largest gradient norm of the critic fit")

    def __post_init__(self) -> None:
        require_between(self, 0.0, 1.0, "discount", "lam")
        if not self.hidden or min(self.hidden) < 1:
            raise InputError(f"hidden is {self.hidden}: give the sizes of the layers, such as 64,64.")
        if not all(0.0 < power < inf for power in self.near):
            raise InputError(f"near is {self.near}: give positive powers, such as 4,12,36.")
        if self.critic_passes is not None:
            require_positive(self, "critic_passes")
        if self.trim is not None:
            require_positive(self, "trim")
        require_positive(self, "first_std", "critic_lr", "critic_batch", "critic_grad_norm")
        require_between(self, 0.0, 1e6, "critic_decay", "inward")

    @property
    def name(self) -> str:
        """How the method is called: its own name, or ``module:Class``."""
        return self.about.name or named(type(self))

    @property
    def is_published(self) -> bool:
        """Whether the published behavior is asked for."""
        return self.variant == "published"

    @property
    def returns(self) -> Returns:
        """Discounts and lambdas."""
        return Returns(discount=self.discount, lam=self.lam, trim=inf if self.trim is None else self.trim)

    @property
    def critic_fit(self) -> CriticFit:
        """How both critics are fitted."""
        return CriticFit(self.critic_batch, self.critic_lr, self.critic_decay, self.critic_grad_norm)

    @property
    def counts_started(self) -> bool:
        """Whether the gate sees only episodes that began early enough to finish in the epoch."""
        return False

    @property
    def needs_epochs(self) -> bool:
        """Whether each epoch depends on how many there will be, so that the run cannot be made longer."""
        return False

    @classmethod
    def tuned(cls, task: str, variant: str) -> Mapping[str, Any]:
        """Return settings that were published for a task; those given by the user win."""
        del task, variant
        return {}

    def resolved(self, length: int) -> Self:
        """Return the recipe with whatever follows from the variant or the task's episode length filled in."""
        del length
        return self

    def build(self, setup: Setup) -> Algorithm:
        """Return the method for a run."""
        raise TypeError(f"{type(self).__name__} does not say how it is built: give it build(setup).")


@dataclass(frozen=True)
class Watchful(Recipe):
    """What methods have whose gate looks at episodes."""

    count: Literal["started", "finished"] | None = setting(
        None,
        "which episodes of an epoch a gate sees: those that began early enough to finish in it, or all that "
        "finished, as published; none takes the variant's own",
    )

    @property
    def counts_started(self) -> bool:
        """Whether the gate sees only episodes that began early enough to finish in the epoch."""
        return self.count == "started" or (self.count is None and not self.is_published)


@dataclass(frozen=True)
class LearnsCost(Recipe):
    """What methods that learn from costs have besides."""

    cost_discount: float = setting(0.99, "discount of costs")
    cost_lam: float = setting(0.95, "lambda of the targets that the cost critic is fitted to")
    cost_adv_lam: float | None = setting(None, "lambda of the cost advantages; none takes cost_lam")

    def __post_init__(self) -> None:
        super().__post_init__()
        require_between(self, 0.0, 1.0, "cost_discount", "cost_lam")
        if self.cost_adv_lam is not None:
            require_between(self, 0.0, 1.0, "cost_adv_lam")

    @property
    def returns(self) -> Returns:
        """Discounts and lambdas."""
        own = self.cost_lam if self.cost_adv_lam is None else self.cost_adv_lam
        costs = {"cost_discount": self.cost_discount, "cost_lam": self.cost_lam, "cost_adv_lam": own}
        return super().returns._replace(**costs)

    def in_step_units(self, gate: Gate[S], setup: Setup) -> Gate[S] | Gate[PerStep[S]]:
        """Return the gate with its slack per step; the published codes leave it per episode."""
        return gate if self.is_published else slack_per_step(gate, setup.window)

    def mean_cost_gate(self, setup: Setup) -> Gate[Recent] | Gate[PerStep[Recent]]:
        """Return the gate that balances by the mean cost of the window."""
        return self.in_step_units(mean_gate(setup.limit, setup.window), setup)


@dataclass(frozen=True)
class Constrained(LearnsCost, Watchful):
    """What methods have that learn from costs and whose gate looks at the episodes of an epoch."""


@dataclass(frozen=True)
class NaturalGradient(Recipe):
    """What methods have that solve for a natural gradient."""

    max_kl: float = setting(0.01, "trust region: KL per action dimension")
    cg_iters: int = setting(15, "conjugate-gradient iterations")
    damping: float = setting(0.1, "damping of the Fisher product")

    def __post_init__(self) -> None:
        super().__post_init__()
        require_positive(self, "max_kl", "cg_iters", "damping")
        if self.critic_passes is None:
            raise InputError("critic_passes is none: the policy step makes no passes that could be repeated.")

    def region(self, **changes: Any) -> TrustRegion:
        """Return the sizes of the step."""
        sizes = TrustRegion(self.max_kl, self.cg_iters, self.damping, variant=self.variant)
        return replace(sizes, **changes)


@dataclass(frozen=True)
class SecondOrder(NaturalGradient):
    """What methods have that move inside a trust region, by a line search."""

    search_steps: int = setting(20, "line-search trials")
    shrink: float = setting(0.8, "line-search factor")

    def __post_init__(self) -> None:
        super().__post_init__()
        self.region()

    def region(self, **changes: Any) -> TrustRegion:
        """Return the sizes of the step."""
        return super().region(**{"search_steps": self.search_steps, "shrink": self.shrink, **changes})

    def step(self, setup: Setup, **changes: Any) -> Step[Any]:
        """Return the trust-region step, with changes of its sizes."""
        from steingate.algorithms.common.trust_region import trust_region_step

        del setup
        return trust_region_step(self.region(**changes))


@dataclass(frozen=True)
class FirstOrder(Recipe):
    """What methods have that make minibatch passes; the critics repeat as many, unless told otherwise."""

    critic_lr: float = setting(3e-4, "learning rate of the critics")
    critic_passes: int | None = setting(
        None, "passes over the epoch's data per critic fit; none repeats those of the policy step"
    )
    critic_batch: int = setting(64, "minibatch of the critic fit")
    clipped: Passes = part(Clipped)

    @property
    def needs_epochs(self) -> bool:
        """Whether the learning rate falls over the run."""
        return self.clipped.decay

    def step(self, setup: Setup) -> Step[Any]:
        """Return PPO's step."""
        from steingate.algorithms.common.clipped import clipped_step

        assert isinstance(self.clipped, Clipped)
        return clipped_step(self.clipped, setup.seed, setup.epochs)


def find_recipe(text: str) -> type[Recipe]:
    """Return the class of a built-in method by name, or the one that ``module:Class`` names.

    >>> find_recipe("cpo").__name__
    'CPO'
    """
    from steingate.algorithms import METHODS

    if text in METHODS:
        return METHODS[text]
    if ":" not in text:
        hint = nearest(text, METHODS) or f": choose one of {', '.join(METHODS)}, or give module:Class"
        raise InputError(f"algorithm {text!r} is not known{hint}.")
    found = import_named(text, "The recipe")
    if not (isinstance(found, type) and issubclass(found, Recipe)):
        raise InputError(
            f"{text} is not a recipe: derive a class from steingate.algorithms.common.recipe.Recipe."
        )
    return found


def make_recipe(text: str, task: str = "", settings: Mapping[str, Any] | None = None) -> Recipe:
    """Return a method by name with settings, over those published for the task.

    Parameters
    ----------
    text
        The name of a built-in method, or ``module:Class``.
    task
        The environment.
    settings
        Values by name; ``"part.field"`` for those of parts, such as ``"clipped.passes"``.

    Raises
    ------
    InputError
        If there is no such method or setting; the message names the nearest.
    """
    kind = find_recipe(text)
    given = dict(settings or {})
    variant = str(given.get("variant", kind.variant))
    tuned = kind.tuned(task.removeprefix("steingate/"), variant)
    return with_settings(with_settings(kind(), tuned, text), given, text)
