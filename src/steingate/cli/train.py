"""``steingate train``: one run with live progress, every setting of it and its algorithm an option."""

import argparse
from collections.abc import Sequence
from dataclasses import fields

from steingate.algorithms.common.recipe import (
    FirstOrder,
    LearnsCost,
    Recipe,
    SecondOrder,
    Watchful,
    find_recipe,
)
from steingate.cli.options import add_options
from steingate.errors import InputError
from steingate.settings import nearest_setting, read_toml
from steingate.training.config import RunConfig, make_config
from steingate.training.stop import stop_on_signals

EXAMPLES = """examples:
  steingate train --env SafetyPointCircle1-v0 --total-steps 1e6
  steingate train --env SafetyPointGoal1-v0 --algo trpo-lag --multiplier pid --cost-limit 10 --seed 3
  steingate train --config run.toml --out runs/mine
  steingate train --env mymodule:MyEnv --env-options max_episode_steps=200
  steingate train --algo ppo --help              the settings of another algorithm
"""
_RUN = {
    "the task": ("env", "env_options", "cost_limit", "seed"),
    "the size of the run": ("total_steps", "steps_per_epoch", "num_envs", "window", "carry_episodes"),
    "files and logs": ("out", "checkpoint_every", "wandb"),
    "speed, without effect on results": ("threads", "workers", "overlap"),
    "the policy that is delivered": ("certify",),
}
_SHARED = {
    "costs": (LearnsCost, Watchful),
    "trust region": (SecondOrder,),
    "minibatch passes": (FirstOrder,),
    "networks and critics": (Recipe,),
}


def add_arguments(parser: argparse.ArgumentParser, argv: Sequence[str] = ()) -> None:
    """Add the options of the command; those of the algorithm are the ones that ``argv`` asks for."""
    name = _algorithm(argv)
    recipe = find_recipe(name)()
    parser.usage = "steingate train [--env TASK] [--algo NAME] [--config FILE] [any setting below]"
    parser.epilog = EXAMPLES
    parser.add_argument("--config", metavar="FILE", help="TOML file of settings; options win over it")
    parser.add_argument("--quiet", action="store_true", help="show no progress")
    parser.add_argument(
        "--algo",
        default=argparse.SUPPRESS,
        metavar="TEXT",
        help="algorithm: a name (see steingate algos) or module:Class (default: steingate)",
    )
    for title, names in run_subjects().items():
        add_options(parser.add_argument_group(title), RunConfig(), only=names)
    for title, names in recipe_subjects(recipe).items():
        more = f"steingate algos {name} says more" if title == "its own" else None
        add_options(parser.add_argument_group(f"{name}: {title}", more), recipe, only=names)


def run_subjects() -> dict[str, tuple[str, ...]]:
    """Return the settings of a run by subject."""
    known = {"algo", *(name for names in _RUN.values() for name in names)}
    rest = tuple(item.name for item in fields(RunConfig) if item.name not in known)
    return {**_RUN, "other": rest} if rest else dict(_RUN)


def recipe_subjects(recipe: Recipe) -> dict[str, tuple[str, ...]]:
    """Return the settings of an algorithm by subject, its own first; a subject without any is left out."""
    homes: dict[str, str] = {}
    for title, bases in reversed(_SHARED.items()):  # what all have is not repeated by the others
        for base in bases:
            homes = {item.name: title for item in fields(base)} | homes
    del homes["variant"]
    found: dict[str, list[str]] = {title: [] for title in ("its own", *_SHARED)}
    for item in fields(recipe):
        found[homes.get(item.name, "its own")].append(item.name)
    return {title: tuple(names) for title, names in found.items() if names}


def refuse(option: str, known: Sequence[str], argv: Sequence[str]) -> str:
    """Return the complaint about an option that neither the run nor its algorithm has."""
    name = _algorithm(argv)
    hint = nearest_setting(option, known)
    return f"{name} has no option {option}{hint}; steingate algos {name} lists what it has."


def run(args: argparse.Namespace) -> int:
    """Train, print the run folder, and return the exit status."""
    given = {key: value for key, value in vars(args).items() if key not in ("config", "quiet")}
    cfg = make_config(given, args.config)
    with stop_on_signals(process=True) as stop:
        from steingate.training.loop import train

        path = train(cfg, args.quiet, stop)
    print(path)
    return 0


def _algorithm(argv: Sequence[str]) -> str:
    """Return the algorithm that a command line or its file asks for."""
    peek = argparse.ArgumentParser(add_help=False, allow_abbrev=False, exit_on_error=False)
    peek.add_argument("--algo")
    peek.add_argument("--config")
    try:
        seen, _ = peek.parse_known_args(list(argv))
    except argparse.ArgumentError as error:
        raise InputError(f"{str(error).rstrip('.')}; run steingate train --help.") from error
    if seen.algo is not None:
        return str(seen.algo)
    stored = read_toml(seen.config).get("algo") if seen.config else None
    return stored if isinstance(stored, str) else "steingate"
