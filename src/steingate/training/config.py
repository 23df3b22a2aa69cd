"""RunConfig: everything that determines the results of a run, as one frozen dataclass."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from itertools import pairwise
from math import inf
from pathlib import Path
from typing import Any

import gymnasium

from steingate import settings
from steingate.algorithms import ALGORITHMS, DEFAULT, find_algorithm, make_algorithm, require_complete
from steingate.algorithms.allowance import Allowance
from steingate.algorithms.base import Algorithm, RunContext
from steingate.envs.make import env_name, short_name
from steingate.errors import InputError
from steingate.runs import digest, run_path
from steingate.settings import group, option, to_json, with_options
from steingate.storage.checkpoint import MAX_FILE_BYTES
from steingate.tasks.catalog import TASKS
from steingate.trust import require_trust

_COUNTS = ("total_steps", "steps_per_epoch", "num_envs", "window", "checkpoint_every", "threads", "workers")


@dataclass(frozen=True)
class CertifyConfig:
    """Selection of the certified checkpoint: the best policy that passed a test on fresh episodes.

    A certificate states P(cost of an episode > limit) <= ``budget`` for the mean action. With probability at least
    1 - ``delta`` all certificates of a run are right, however many policies were tested.
    """

    enabled: bool = option(True, "test policies and save the best certified one")
    budget: float = option(0.1, "accepted violation probability P(cost > limit) of a certified policy")
    delta: float = option(0.05, "probability that any certificate of the run is wrong")
    max_step_fraction: float = option(0.03, "steps of tests during training, as a fraction of the training steps")
    max_episodes: int = option(300, "maximum number of fresh episodes of one test")

    def __post_init__(self) -> None:
        _require(self, "certify.budget", lambda p: 0.0 < p < 1.0, "between 0 and 1")
        _require(self, "certify.delta", lambda p: 0.0 < p < 1.0, "between 0 and 1")
        _require(self, "certify.max_step_fraction", lambda p: 0.0 <= p <= 1.0, "from 0 to 1")
        _require(self, "certify.max_episodes", lambda n: n >= 1, "greater than zero")


@dataclass(frozen=True)
class RunConfig:
    """One run: task, algorithm and sizes. Equal configurations give equal runs, bit for bit.

    ``steingate.runs.WITHOUT_EFFECT`` lists the settings that do not affect what is learned. :func:`make_config` makes a
    configuration from names and values, with the options of the algorithm among them.
    """

    env: str = option("SafetyPointGoal1-v0", "native task, Gymnasium id, module:Class or ./file.py:Class")
    algo: Algorithm = group(Allowance, "algorithm: a name (see steingate algos) or module:Class")
    total_steps: int = option(10_000_000, "environment steps of the whole run, over all environments")
    steps_per_epoch: int = option(20_000, "environment steps per policy update, over all environments")
    num_envs: int = option(8, "number of environments")
    seed: int = option(0, "random seed")
    cost_limit: float = option(25.0, "limit on the cost of an episode; 0 accepts no cost at all")
    window: int = option(100, "episodes in the running means of the log and of the algorithms")
    carry_episodes: bool = option(False, "continue episodes in the next epoch instead of resetting")
    env_options: dict[str, Any] = option({}, "options of the environment, such as max_episode_steps=500")
    certify: CertifyConfig = group(CertifyConfig, "certified-checkpoint selection")
    overlap: bool = option(True, "fit the critics in parallel with the policy update and the next rollout")
    threads: int | None = option(None, "number of simulation threads (default: all cores)")
    workers: int | None = option(None, "processes that step environments other than native ones (default: measured)")
    checkpoint_every: int = option(10, "epochs between checkpoints")
    wandb: str | None = option(None, "Weights & Biases project that gets a copy of the log")
    out: str = option("runs", "folder for run folders")

    def __post_init__(self) -> None:
        if not isinstance(self.algo, Algorithm):
            raise InputError(f"algo is {self.algo!r}: give an algorithm, or make the run with make_config.")
        for name in _COUNTS:
            if getattr(self, name) is not None:
                _require(self, name, lambda n: 0 < n < 2**63, "greater than zero and less than 2**63")
        _require(self, "cost_limit", lambda limit: 0.0 <= limit < inf, "zero or a finite number above it")
        _require(self, "seed", lambda seed: 0 <= seed < 2**63, "a whole number from 0 to 2**63 - 1")
        steps, num_envs, hidden = self.steps_per_epoch, self.num_envs, self.algo.networks.hidden
        multiple = f"a multiple of num_envs ({num_envs})"
        _require(self, "steps_per_epoch", lambda n: n % num_envs == 0, multiple)
        _require(self, "total_steps", lambda n: n >= steps, f"at least one epoch of {steps} steps (steps_per_epoch)")
        weights = sum(before * after for before, after in pairwise(hidden)) + sum(hidden)
        # Four bytes each, for 8 policies (7 are candidates), two critics, and 6 averages of optimizers.
        if 4 * (8 + 2 + 6) * weights > MAX_FILE_BYTES:
            raise InputError(f"hidden is {hidden}: networks of that size do not fit a checkpoint; choose smaller ones.")
        object.__setattr__(self, "env", env_name(self.env))
        cost = self.env_options.get("cost")
        if isinstance(cost, str):  # the path of a file is made absolute, so that it is found again
            object.__setattr__(self, "env_options", {**self.env_options, "cost": env_name(cost)})
        _require_json("env_options", self.env_options)
        _require_json("a setting of the algorithm", to_json(self.algo))

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
        """Time limit of an episode in steps; None if there is none."""
        task = TASKS.get(self.env.removeprefix("steingate/")) or gymnasium.registry.get(self.env.split(":")[-1])
        steps = self.env_options.get("max_episode_steps") or (task and task.max_episode_steps)
        return int(steps) if steps else None

    @property
    def episode_length(self) -> int:
        """Steps of an episode of the task; 1000 if it has no time limit."""
        return self.time_limit or 1000

    @property
    def context(self) -> RunContext:
        """Facts about the run for the algorithm."""
        return RunContext(*(getattr(self, name) for name in RunContext._fields))

    @property
    def identity(self) -> str:
        """Digest of the settings that affect the results; ``total_steps`` only if every epoch depends on it."""
        return digest(self.to_dict(), steps=self.algo.depends_on_total_steps)

    @property
    def path(self) -> Path:
        """The run folder."""
        return run_path(self.out, self.algo.name, short_name(self.env), self.seed)

    def to_dict(self) -> dict[str, Any]:
        """Return everything as JSON types: ``algo`` is the name, ``algorithm`` the options of the algorithm."""
        own = {item.name: to_json(getattr(self, item.name)) for item in fields(self) if item.name != "algo"}
        name, kind = self.algo.name, type(self.algo)
        stored = name if ALGORITHMS.get(name) is kind else settings.object_name(kind)
        return {**own, "algo": stored, "algorithm": to_json(self.algo)}


def make_config(given: Mapping[str, Any], file: str | Path | None = None, trust_code: bool = False) -> RunConfig:
    """Return a run from names and values, over a file, over the defaults; InputError names the nearest option.

    Parameters
    ----------
    given
        Fields of :class:`RunConfig` and options of the algorithm (``max_kl``, ``ppo.epochs``), as text or as
        values. ``algo`` is a name, ``module:Class``, an algorithm or its class; ``env`` is a name or a function
        that makes an environment.
    file, trust_code
        A TOML file of ``name = value`` lines (tables are groups, such as ``[ppo]``), or the ``config.json`` of a run;
        and whether to import the code that one from another machine names.

    Examples
    --------
    >>> make_config({"algo": "cpo", "max_kl": "0.02", "seed": 3}).algo.trust_region.max_kl
    0.02
    """
    sources = ({} if file is None else load_options(file, trust_code), given)
    values = {key.replace("-", "_"): value for source in sources for key, value in source.items()}
    algo = values.pop("algo", DEFAULT)
    if "env" in values and not isinstance(values["env"], str):
        values["env"] = env_name(values["env"])
    own, of_run, of_certify, options = settings.field_types(RunConfig), {}, {}, {}
    for name, value in values.items():
        if name.partition(".")[0] == "certify":
            of_certify[name] = value
        elif name in own:
            of_run[name] = settings.convert(own[name], value, name)
        else:
            options[name] = value
    if isinstance(algo, type) and issubclass(algo, Algorithm):
        require_complete(algo)
        algo = algo()
    if not isinstance(algo, str | Algorithm):
        raise InputError(f"algo is {algo!r}: give a name, module:Class, or an algorithm.")
    base, name = (find_algorithm(algo)(), algo) if isinstance(algo, str) else (algo, algo.name)
    known = settings.option_names(base)
    groups = {option.partition(".")[0] for option in known} | set(settings.field_types(type(base)))
    for key in options:
        if key.partition(".")[0] not in groups:
            hint = settings.nearest_option(key, [*known, *own])
            raise InputError(f"{name} has no option {key!r}{hint}; steingate algos {name} lists what it has.")
    if isinstance(algo, str):
        algorithm = make_algorithm(algo, str(of_run.get("env", RunConfig.env)), options)
    else:
        algorithm = with_options(algo, options, name)
    return with_options(RunConfig(algo=algorithm, **of_run), of_certify, "A run")


def load_options(file: str | Path, trust_code: bool = False) -> dict[str, Any]:
    """Return the options in a TOML file, or in the ``config.json`` of a run whose code may be imported."""
    content = settings.load_file(file)
    if Path(file).suffix != ".json":
        return content
    require_trust(file, content, trust_code)
    own, options = _stored_parts(content["config"], str(file))
    return own | options


def read_stored(stored: Mapping[str, Any], source: str) -> RunConfig:
    """Return the run that a ``config.json`` describes."""
    own, options = _stored_parts(stored, source)
    try:
        kind = find_algorithm(str(own.pop("algo", "")))
        return make_config({**own, "algo": with_options(kind(), options, kind.info.name)})
    except InputError as error:
        raise InputError(f"{source} cannot be used: {error}") from error


def _stored_parts(stored: Mapping[str, Any], source: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the settings of a run and of its algorithm; InputError unless they have the form that training writes.

    In another form they could name code that ``steingate.trust`` does not see.
    """
    own = dict(stored)
    options: Any = own.pop("algorithm", None)
    for name, table in (("algorithm", options), ("env_options", own.get("env_options", {}))):
        if not isinstance(table, dict):
            raise InputError(f"{source} cannot be used: {name} is {table!r}: a table of names and values is expected.")
    known = settings.field_types(RunConfig)
    for name in (*(name for name in own if name not in known), *(n for n in options if n.replace("-", "_") in known)):
        raise InputError(f"{source} cannot be used: it has the setting {name!r} in a place where training writes none.")
    return own, dict(options)


def _require(config: Any, name: str, holds: Callable[[Any], bool], expected: str) -> None:
    value = getattr(config, name.rpartition(".")[2])
    if not holds(value):
        raise InputError(f"{name} is {value!r}: it must be {expected}.")


def _require_json(name: str, table: Mapping[str, Any]) -> None:
    """Refuse what ``config.json`` cannot hold, because the run could not be resumed."""
    for key, value in table.items():
        try:
            json.dumps(value)
        except (TypeError, ValueError) as error:
            advice = "give functions as text, 'module:function'"
            raise InputError(f"{key!r} of {name} is {value!r}: config.json cannot hold it; {advice}.") from error
