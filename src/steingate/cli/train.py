"""``steingate train``: one run with live progress, every setting of it and its algorithm an option."""

import argparse
from collections.abc import Sequence

from steingate.algos.recipe import find_recipe
from steingate.cli.options import add_options
from steingate.errors import InputError
from steingate.settings import nearest_setting, read_toml
from steingate.training.config import RunConfig, make_config
from steingate.training.stop import stop_on_signals


def add_arguments(parser: argparse.ArgumentParser, argv: Sequence[str] = ()) -> None:
    """Add the options of the command; those of the algorithm are the ones that ``argv`` asks for."""
    parser.add_argument("--config", metavar="FILE", help="TOML file of settings; options win over it")
    parser.add_argument("--quiet", action="store_true", help="show no progress")
    parser.add_argument(
        "--algo",
        default=argparse.SUPPRESS,
        metavar="TEXT",
        help="algorithm: a name (see steingate algos) or module:Class (default: steingate)",
    )
    run = parser.add_argument_group("the run")
    add_options(run, RunConfig(), but=("algo",))
    name = _algorithm(argv)
    recipe = find_recipe(name)()
    group = parser.add_argument_group(
        f"settings of {name}", f"see steingate algos {name}; --algo OTHER --help shows those of another"
    )
    add_options(group, recipe)


def refuse(option: str, known: Sequence[str], argv: Sequence[str]) -> str:
    """Return the complaint about an option that neither the run nor its algorithm has."""
    name = _algorithm(argv)
    hint = nearest_setting(option, known)
    return f"{name} has no setting {option}{hint}; steingate algos {name} lists what it has."


def run(args: argparse.Namespace) -> int:
    """Train, print the run folder, and return the exit status."""
    given = {key: value for key, value in vars(args).items() if key not in ("config", "quiet")}
    cfg = make_config(given, args.config)
    with stop_on_signals() as stop:
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
