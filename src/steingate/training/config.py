"""RunConfig: everything that decides what a run computes, as one frozen dataclass that holds the recipe."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, fields
from itertools import pairwise
from pathlib import Path
from typing import Any

import gymnasium

from steingate.algorithms import METHODS
from steingate.algorithms.common.recipe import Recipe, Setup, find_recipe, make_recipe
from steingate.algorithms.steingate import SteinGate
from steingate.envs.make import env_name, short_name
from steingate.errors import InputError
from steingate.runs import run_path
from steingate.settings import (
    convert,
    field_types,
    named,
    nearest_setting,
    part,
    read_toml,
    setting,
    setting_names,
    to_plain,
    with_settings,
)
from steingate.storage.checkpoint import MAX_FILE_BYTES
from steingate.tasks.catalog import TASKS
from steingate.training.certification_config import CertifyConfig

WITHOUT_EFFECT = ("overlap", "threads", "workers", "checkpoint_every", "wandb", "out", "certify")
_PARTS = ("certify",)
_POSITIVE = ("total_steps", "steps_per_epoch", "num_envs", "window", "checkpoint_every")


@dataclass(frozen=True)
class RunConfig:
    """One run: task, recipe and sizes. Equal configurations give equal runs, bit for bit.

    Only ``overlap``, ``threads``, ``workers``, ``checkpoint_every``, ``wandb`` and ``out`` leave the results
    untouched; ``certify`` changes which policy is kept beside the last one, not what is learnt.
    :func:`make_config` makes one from names and values, with the settings of the recipe among them.
    """

    env: str = setting("SafetyPointGoal1-v0", "native task, Gymnasium id, module:Class or ./file.py:Class")
    algo: Recipe = part(SteinGate, "algorithm: a name (see steingate algos) or module:Class")
    total_steps: int = setting(10_000_000, "environment steps of the whole run, over all environments")
    steps_per_epoch: int = setting(20_000, "environment steps per policy update, over all environments")
    num_envs: int = setting(8, "environments stepped together")
    seed: int = setting(0, "seed of everything random")
    cost_limit: float = setting(25.0, "limit on the cost of an episode; 0 accepts no cost at all")
    window: int = setting(100, "episodes in the running means of the log and of gates that look back")
    carry_episodes: bool = setting(False, "let episodes run on over the end of an epoch instead of resetting")
    env_options: dict[str, Any] = part(dict, "options of the environment, such as max_episode_steps=500")
    certify: CertifyConfig = part(CertifyConfig, "certified-checkpoint selection")
    overlap: bool = setting(True, "fit the critics beside the policy update and the next collection")
    threads: int | None = setting(None, "simulation threads; none uses every core")
    workers: int | None = setting(
        None, "processes that step environments other than native ones; none measures what is faster"
    )
    checkpoint_every: int = setting(10, "epochs between checkpoints")
    wandb: str | None = setting(None, "Weights & Biases project that gets a copy of the log")
    out: str = setting("runs", "folder for run folders")

    def __post_init__(self) -> None:
        if not isinstance(self.algo, Recipe):
            raise InputError(f"algo is {self.algo!r}: give a recipe, or make the run with make_config.")
        for name in _POSITIVE:
            value = getattr(self, name)
            _require(name, value, value > 0, "greater than zero")
            _require(name, value, value < 2**63, "less than 2**63")
        limit = self.cost_limit
        _require("cost_limit", limit, 0.0 <= limit < float("inf"), "zero or a finite number above it")
        _require("seed", self.seed, 0 <= self.seed < 2**63, "a whole number from 0 to 2**63 - 1")
        for name in ("threads", "workers"):
            value = getattr(self, name)
            _require(name, value, value is None or value > 0, "greater than zero, or none")
        object.__setattr__(self, "env", env_name(self.env))
        cost = self.env_options.get("cost")
        if isinstance(cost, str):  # the path of a file is made absolute, so that it is found again
            object.__setattr__(self, "env_options", {**self.env_options, "cost": env_name(cost)})
        _require_room(self.algo.hidden)
        _require_json("env_options", self.env_options)
        _require_json("a setting of the algorithm", to_plain(self.algo))
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
    def time_limit(self) -> int | None:
        """The most steps of an episode of the task; None where nobody says."""
        task = TASKS.get(self.env.removeprefix("steingate/"))
        known = gymnasium.registry.get(self.env.split(":")[-1])
        stated = (self.env_options.get("max_episode_steps"), task and task.max_episode_steps)
        limits = (*stated, known and known.max_episode_steps)
        return next((int(steps) for steps in limits if steps), None)

    @property
    def episode_length(self) -> int:
        """Steps of an episode of the task; 1000 where nobody says."""
        return self.time_limit or 1000

    @property
    def recipe(self) -> Recipe:
        """The recipe with what follows from its variant and the task filled in."""
        return self.algo.resolved(self.episode_length)

    @property
    def setup(self) -> Setup:
        """What the recipe is told about the run."""
        return Setup(self.cost_limit, self.window, self.episode_length, self.epochs, self.seed)

    @property
    def identity(self) -> str:
        """The same text for all runs that must give the same results, another one for any other run.

        A longer run begins with the shorter one, so the number of steps belongs to it only if the recipe
        depends on that.
        """
        return digest(self.to_dict(), steps=self.algo.needs_epochs)

    @property
    def path(self) -> Path:
        """The run folder."""
        return run_path(self.out, self.algo.name, short_name(self.env), self.seed)

    def to_dict(self) -> dict[str, Any]:
        """Return everything as JSON types: the fields, ``algo`` as its name, ``recipe`` as its settings."""
        own = {item.name: to_plain(getattr(self, item.name)) for item in fields(self) if item.name != "algo"}
        name = self.algo.name
        built_in = METHODS.get(name) is type(self.algo)
        return {**own, "algo": name if built_in else named(type(self.algo)), "recipe": to_plain(self.recipe)}


def deciding(stored: Mapping[str, Any], steps: bool = False) -> dict[str, Any]:
    """Return the settings of a stored configuration that may not change on the way.

    ``steps`` counts the number of steps among them; else a run may be made longer.
    """
    idle = WITHOUT_EFFECT if steps else (*WITHOUT_EFFECT, "total_steps")
    return {name: value for name, value in stored.items() if name not in idle}


def digest(stored: Mapping[str, Any], steps: bool) -> str:
    """Return a text that is the same for stored configurations with the same deciding settings alone."""
    return hashlib.sha256(json.dumps(deciding(stored, steps), sort_keys=True).encode()).hexdigest()


def make_config(given: Mapping[str, Any], file: str | Path | None = None) -> RunConfig:
    """Return a run from names and values, over a TOML file, over the defaults.

    Parameters
    ----------
    given
        Fields of :class:`RunConfig` and settings of the recipe (``max_kl``, ``clipped.passes``), as text or
        as values. ``algo`` is a name, ``module:Class``, a recipe, or the class of one; ``env`` is a name, or
        what makes an environment.
    file
        A TOML file of ``name = value`` lines; tables are parts, such as ``[clipped]``.

    Raises
    ------
    InputError
        If there is no such setting, or a value cannot be used; the message names the nearest.

    Examples
    --------
    >>> make_config({"algo": "cpo", "max_kl": "0.02", "seed": 3}).algo.max_kl
    0.02
    """
    values = {} if file is None else {key.replace("-", "_"): value for key, value in read_toml(file).items()}
    values |= {key.replace("-", "_"): value for key, value in given.items()}
    algo = values.pop("algo", "steingate")
    if "env" in values and not isinstance(values["env"], str):
        values["env"] = env_name(values["env"])
    own = field_types(RunConfig)
    parts = {name: value for name, value in values.items() if name.partition(".")[0] in _PARTS}
    values = {name: value for name, value in values.items() if name not in parts}
    of_run = {name: convert(own[name], value, name) for name, value in values.items() if name in own}
    settings = {name: value for name, value in values.items() if name not in own}
    if isinstance(algo, type) and issubclass(algo, Recipe):
        algo = algo()
    if isinstance(algo, Recipe):
        base, name = algo, algo.name
    elif isinstance(algo, str):
        base, name = find_recipe(algo)(), algo
    else:
        raise InputError(f"algo is {algo!r}: give a name, module:Class, or a recipe.")
    _check_names(settings, base, name, list(own))
    if isinstance(algo, Recipe):
        recipe = with_settings(algo, settings, name)
    else:
        recipe = make_recipe(algo, str(of_run.get("env", RunConfig.env)), settings)
    return with_settings(RunConfig(algo=recipe, **of_run), parts, "A run")


def _check_names(settings: Mapping[str, Any], recipe: Recipe, name: str, own: list[str]) -> None:
    known = setting_names(recipe)
    parts = {setting.partition(".")[0] for setting in known}
    for key in settings:
        if key.partition(".")[0] in parts:
            continue
        hint = nearest_setting(key, [*known, *own])
        raise InputError(f"{name} has no option {key!r}{hint}; steingate algos {name} lists what it has.")


def read_stored(stored: Mapping[str, Any], source: str) -> RunConfig:
    """Return the run that a ``config.json`` describes, of this version or an earlier one."""
    try:
        if "recipe" not in stored:
            stored = _converted(stored)
        recipe = stored["recipe"]
        if not isinstance(recipe, Mapping):
            raise InputError(f"recipe is {recipe!r}: a table of names and values is expected.")
        own = {name: value for name, value in stored.items() if name != "recipe"}
        kind = find_recipe(str(own.pop("algo", "")))
        return make_config({**own, "algo": with_settings(kind(), recipe, kind.about.name)})
    except InputError as error:
        raise InputError(f"{source} cannot be used: {error}") from error


# Settings of earlier versions that are now those of some recipes, by their old names.
_FORMER = (
    "variant", "preset", "certificate", "max_kl", "cg_iters", "damping", "search_steps", "shrink", "discount",
    "cost_discount", "lam", "cost_lam", "critic_lr", "critic_passes", "critic_batch", "critic_decay",
    "critic_grad_norm", "hidden", "normalize_obs",
)  # fmt: skip


def _converted(stored: Mapping[str, Any]) -> dict[str, Any]:
    """Return the configuration of an earlier version, in which all runs had all settings, in today's form."""
    own = {name: value for name, value in stored.items() if name not in (*_FORMER, "algo_options")}
    known = {item.name for item in fields(find_recipe(str(stored.get("algo", ""))))}
    recipe = {name: stored[name] for name in _FORMER if name in stored and name in known}
    options = dict(stored.get("algo_options") or {})
    if "budget_discount" in known and "discount" in options:
        options["budget_discount"] = options.pop("discount")
    return {**own, "recipe": {**recipe, **options}}


def _require(name: str, value: Any, holds: bool, expected: str) -> None:
    if not holds:
        raise InputError(f"{name} is {value!r}: it must be {expected}.")


def _require_room(hidden: tuple[int, ...]) -> None:
    """Refuse networks that no checkpoint could hold, before anything takes memory for them."""
    weights = sum(before * after for before, after in pairwise(hidden)) + sum(hidden)
    # Four bytes each, for the policy and for a critic with the two averages of its optimizer.
    if 16 * weights > MAX_FILE_BYTES:
        raise InputError(
            f"hidden is {','.join(map(str, hidden))}: networks of that size do not fit a checkpoint of "
            f"at most {MAX_FILE_BYTES >> 30} GiB; choose smaller layers."
        )


def _require_json(name: str, table: Mapping[str, Any]) -> None:
    """Refuse what ``config.json`` cannot hold, because the run could not be resumed."""
    for key, value in table.items():
        if isinstance(value, Mapping):
            _require_json(key, value)
        elif callable(value):
            raise InputError(
                f"{key!r} of {name} is {value!r}: give it as text, 'module:function', so that the run can be "
                "resumed."
            )
        else:
            try:
                json.dumps(value)
            except (TypeError, ValueError) as error:
                raise InputError(
                    f"{key!r} of {name} is {value!r}: config.json cannot hold it ({error})."
                ) from error
