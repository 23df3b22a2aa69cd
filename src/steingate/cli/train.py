"""``steingate train`` and ``steingate resume``."""

import argparse

from steingate.algorithms import find_algorithm
from steingate.cli.parser import Parser, add_env_options, add_options, add_trust_option
from steingate.settings import Option, convert, list_options
from steingate.training.config import RunConfig, load_options, make_config
from steingate.training.stop import stop_on_signals

EXAMPLES = """examples:
  steingate train --env SafetyPointCircle1-v0 --total-steps 1e6
  steingate train --env SafetyPointGoal1-v0 --algo trpo-lag --multiplier pid --cost-limit 10 --seed 3
  steingate train --config run.toml --out runs/mine
  steingate train --env mymodule:MyEnv --env-options max_episode_steps=200
  steingate train --algo ppo --help              options of another algorithm
"""
RUN_GROUPS = {
    "task": ("env", "env_options", "cost_limit", "seed"),
    "size of the run": ("total_steps", "steps_per_epoch", "num_envs", "window", "carry_episodes"),
    "files and logs": ("out", "checkpoint_every", "wandb"),
    "speed (no effect on results)": ("threads", "workers", "overlap"),
    "certified checkpoint": ("certify",),
}


def train_arguments(parser: Parser) -> None:
    default = RunConfig()
    parser.usage = "steingate train [--env TASK] [--algo NAME] [--config FILE] [options]"
    parser.epilog = EXAMPLES
    algo = f"algorithm (see steingate algos) or module:Class (default: {default.algo.name})"
    parser.option("--algo", "TEXT", algo, default=argparse.SUPPRESS)
    parser.option("--config", "FILE", "TOML file, or config.json of a run; the command line overrides it")
    add_trust_option(parser)
    parser.flag("--quiet", "show only the result")
    given, _ = parser.parse_known_args([word for word in parser.argv if word not in ("-h", "--help")])
    selected = getattr(given, "algo", None)
    if selected is None and given.config:
        selected = load_options(given.config, given.trust_code).get("algo")
    name = selected if isinstance(selected, str) else default.algo.name
    if selected:
        parser.prog += f" --algo {name}"  # in errors
    groups: dict[str, list[Option]] = {title: [] for title in RUN_GROUPS}
    titles = {field: title for title, names in RUN_GROUPS.items() for field in names}
    for option in list_options(default):
        if option.path[0] != "algo":
            groups.setdefault(titles.get(option.path[0], "other"), []).append(option)
    for option in list_options(find_algorithm(name)()):
        title = f"{name}: {option.path[0].replace('_', ' ')}" if len(option.path) > 1 else name
        groups.setdefault(title, []).append(option)
    for title, options in groups.items():
        add_options(parser.add_argument_group(title), options)


def train(args: argparse.Namespace) -> int:
    """Train and print the run folder."""
    given = {key: value for key, value in vars(args).items() if key not in ("config", "quiet", "trust_code")}
    config = make_config(given, args.config, args.trust_code)
    with stop_on_signals(process=True) as stop:
        from steingate.training.runner import train as train_run

        path = train_run(config, args.quiet, stop)
    print(path)
    return 0


def resume_arguments(parser: Parser) -> None:
    parser.add_argument("run", metavar="RUN", help="run folder")
    parser.option("--total-steps", "N", "new total number of environment steps, to make the run longer")
    add_env_options(parser)
    parser.flag("--quiet", "show only the result")


def resume(args: argparse.Namespace) -> int:
    """Continue training and print the run folder."""
    with stop_on_signals(process=True) as stop:
        from steingate.training.runner import resume as resume_run

        steps = None if args.total_steps is None else convert(int, args.total_steps, "--total-steps")
        path = resume_run(args.run, args.quiet, stop, steps, args.env, args.trust_code)
    print(path)
    return 0
