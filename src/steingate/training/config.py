"""RunConfig: everything that decides what a run computes, as one frozen dataclass of plain fields."""

import hashlib
import json
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, NamedTuple

import gymnasium

from steingate.algos.catalog import defaults, needs_length
from steingate.envs.catalog import TASKS
from steingate.errors import InputError
from steingate.runs import run_path

WITHOUT_EFFECT = ("overlap", "threads", "checkpoint_every", "wandb", "out")


def _option(default: Any, text: str) -> Any:
    return field(default=default, metadata={"help": text})


@dataclass(frozen=True)
class RunConfig:
    """One run: task, recipe, sizes and constants. Equal configurations give equal runs, bit for bit.

    Only ``overlap``, ``threads``, ``checkpoint_every``, ``wandb`` and ``out`` leave the results untouched.
    """

    env: str = _option("SafetyPointGoal1-v0", "native task, Gymnasium id or module:Class")
    algo: str = _option("steingate", "algorithm; see steingate algos")
    total_steps: int = _option(10_000_000, "environment steps of the whole run, over all environments")
    steps_per_epoch: int = _option(20_000, "environment steps per policy update, over all environments")
    num_envs: int = _option(8, "environments stepped together")
    seed: int = _option(0, "seed of everything random")
    cost_limit: float = _option(25.0, "limit on the cost of an episode")
    variant: Literal["corrected", "published"] = _option(
        "corrected", "published reproduces the behaviour behind published numbers"
    )
    preset: Literal["paper", "released", "certified", "confident"] = _option(
        "released", "certificate of the gate"
    )
    certificate: dict[str, Any] = field(
        default_factory=dict, metadata={"help": "overrides of the certificate, such as budget=0.2"}
    )
    algo_options: dict[str, Any] = field(
        default_factory=dict,
        metadata={"help": "further options of the algorithm, such as tolerance=2.0 or clipped.passes=80"},
    )
    max_kl: float = _option(0.01, "trust region: KL per action dimension")
    cg_iters: int = _option(15, "conjugate-gradient iterations")
    damping: float = _option(0.1, "damping of the Fisher product")
    search_steps: int | None = _option(None, "line-search trials; none takes the algorithm's own")
    shrink: float = _option(0.8, "line-search factor")
    discount: float = _option(0.99, "discount of rewards")
    cost_discount: float = _option(0.99, "discount of costs")
    lam: float = _option(0.95, "lambda of the reward advantages")
    cost_lam: float = _option(0.95, "lambda of the cost advantages")
    critic_lr: float | None = _option(None, "learning rate of both critics; none takes the algorithm's own")
    critic_passes: int | None = _option(
        None, "passes over the epoch's data per critic fit; none takes the algorithm's own"
    )
    critic_batch: int | None = _option(None, "minibatch of the critic fit; none takes the algorithm's own")
    critic_decay: float = _option(0.001, "weight of the squared parameters in the critic loss")
    critic_grad_norm: float = _option(40.0, "largest gradient norm of the critic fit")
    hidden: tuple[int, ...] = _option((64, 64), "hidden layers of policy and critics")
    normalise_obs: bool | None = _option(
        None, "normalise observations by their running statistics; none takes the algorithm's own"
    )
    window: int = _option(100, "episodes in the running means of the log and of gates that look back")
    carry_episodes: bool = _option(False, "let episodes run on over the end of an epoch instead of resetting")
    env_options: dict[str, Any] = field(
        default_factory=dict, metadata={"help": "options of the environment, such as max_episode_steps=500"}
    )
    overlap: bool = _option(True, "fit the critics beside the policy update and the next collection")
    threads: int | None = _option(None, "simulation threads; none uses every core")
    checkpoint_every: int = _option(10, "epochs between checkpoints")
    wandb: str | None = _option(None, "Weights & Biases project that gets a copy of the log")
    out: str = _option("runs", "folder for run folders")

    def __post_init__(self) -> None:
        for name in _POSITIVE:
            value = getattr(self, name)
            _require(name, value, value is None or value > 0, "greater than zero")
        for name in ("discount", "cost_discount", "lam", "cost_lam"):
            _require(name, getattr(self, name), 0.0 <= getattr(self, name) <= 1.0, "between 0 and 1")
        _require("shrink", self.shrink, 0.0 < self.shrink < 1.0, "between 0 and 1")
        _require("seed", self.seed, 0 <= self.seed < 2**63, "a whole number from 0 to 2**63 - 1")
        _require(
            "critic_decay", self.critic_decay, 0.0 <= self.critic_decay < float("inf"), "finite, not negative"
        )
        _require(
            "threads", self.threads, self.threads is None or self.threads > 0, "greater than zero, or none"
        )
        _require(
            "hidden", self.hidden, bool(self.hidden) and min(self.hidden) > 0, "a list of sizes above zero"
        )
        for name in ("certificate", "algo_options", "env_options"):
            for key, value in getattr(self, name).items():
                _require_text(f"{name}[{key!r}]", value)
        if self.steps_per_epoch % self.num_envs:
            raise InputError(
                f"steps_per_epoch is {self.steps_per_epoch}, which {self.num_envs} environments cannot share "
                "equally; choose a multiple of num_envs."
            )
        if self.total_steps < self.steps_per_epoch:
            raise InputError(
                f"total_steps is {self.total_steps}, less than one epoch of {self.steps_per_epoch} steps; "
                "raise it or lower steps_per_epoch."
            )

    @property
    def epochs(self) -> int:
        """Number of epochs; steps that do not fill one are not taken."""
        return self.total_steps // self.steps_per_epoch

    @property
    def horizon(self) -> int:
        """Vector steps per epoch."""
        return self.steps_per_epoch // self.num_envs

    @property
    def settled(self) -> "Settled":
        """The settings that belong to the algorithm where they are not given."""
        of_run, of_recipe = defaults(self.algo, self.env, self.variant)
        if needs_length(self.algo):
            of_recipe = {"length": _episode_length(self), **of_recipe}
        given = {name: getattr(self, name) for name in of_run if getattr(self, name) is not None}
        return Settled(**{**of_run, **given}, algo_options={**of_recipe, **self.algo_options})

    def resolved(self) -> "RunConfig":
        """Return the same run with every setting that belongs to the algorithm filled in."""
        return replace(self, **self.settled._asdict())

    @property
    def identity(self) -> str:
        """The same text for all runs that must give the same results, another one for any other run."""
        deciding = {
            name: value for name, value in self.resolved().to_dict().items() if name not in WITHOUT_EFFECT
        }
        return hashlib.sha256(json.dumps(deciding, sort_keys=True).encode()).hexdigest()

    @property
    def path(self) -> Path:
        """The run folder."""
        return run_path(self.out, self.algo, self.env, self.seed)

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as JSON types."""
        return {**asdict(self), "hidden": list(self.hidden)}


class Settled(NamedTuple):
    """Settings of a run that the algorithm decides unless they are given."""

    critic_lr: float
    critic_passes: int | None  # none repeats the passes of the policy step
    critic_batch: int
    normalise_obs: bool
    search_steps: int
    algo_options: dict[str, Any]


def _episode_length(cfg: RunConfig) -> int:
    """Return the steps of an episode of the task; 1000 where nobody says, and always as published."""
    if cfg.variant == "published":
        return 1000
    task = TASKS.get(cfg.env.removeprefix("steingate/"))
    known = gymnasium.registry.get(cfg.env.split(":")[-1])
    stated = (cfg.env_options.get("max_episode_steps"), task and task.max_episode_steps)
    return int(next((steps for steps in (*stated, known and known.max_episode_steps) if steps), 1000))


_POSITIVE = (
    "total_steps", "steps_per_epoch", "num_envs", "cost_limit", "max_kl", "cg_iters", "damping",
    "search_steps", "critic_lr", "critic_passes", "critic_batch", "critic_grad_norm", "window",
    "checkpoint_every",
)  # fmt: skip


def _require(name: str, value: Any, holds: bool, expected: str) -> None:
    if not holds:
        raise InputError(f"{name} is {value!r}: it must be {expected}.")


def _require_text(name: str, value: Any) -> None:
    """Refuse what ``config.json`` cannot hold, because the run could not be resumed."""
    if callable(value):
        raise InputError(
            f"{name} is {value!r}: give it as text, 'module:function', so that the run can be resumed."
        )
    try:
        json.dumps(value)
    except (TypeError, ValueError) as error:
        raise InputError(f"{name} is {value!r}: config.json cannot hold it ({error}).") from error
