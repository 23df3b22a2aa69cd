"""Argument parser of the commands: no abbreviations, one-sentence errors, options from configurations."""

import argparse
from collections.abc import Sequence
from typing import Any, Literal, NoReturn, get_args, get_origin

from steingate.errors import InputError
from steingate.settings import Option, nearest_option


class Parser(argparse.ArgumentParser):
    """``argparse`` with one-sentence ``InputError``; ``argv`` are the words of the command line."""

    def __init__(self, prog: str, description: str = "", argv: Sequence[str] = ()) -> None:
        layout = argparse.RawDescriptionHelpFormatter
        super().__init__(prog=prog, description=description, allow_abbrev=False, formatter_class=layout)
        self.argv = list(argv)

    def option(self, name: str, metavar: str | None, text: str, **settings: Any) -> None:
        """Add an option with a value; its default, if there is one, is added to the help text."""
        default = settings.get("default", "")
        shown = text if default in ("", [], argparse.SUPPRESS) else f"{text} (default: {default})"
        self.add_argument(name, metavar=metavar, help=shown, **settings)

    def flag(self, name: str, text: str) -> None:
        """Add an option without a value."""
        self.add_argument(name, action="store_true", help=text)

    def error(self, message: str) -> NoReturn:
        """Raise the message as ``InputError`` instead of leaving the process."""
        raise InputError(f"{message.rstrip('.')}; run {self.prog} --help.")

    def parse(self) -> argparse.Namespace | None:
        """Parse ``argv``; print the help and return ``None`` if it contains ``--help``."""
        if "-h" in self.argv or "--help" in self.argv:
            self.print_help()
            return None
        known = [option for action in self._actions for option in action.option_strings]
        # Before parsing, because argparse would report a missing argument instead of the misspelt option.
        for word in self.argv:
            if word == "--":
                break
            option = word.split("=", 1)[0]
            if option.startswith("--") and option not in known:
                self.error(f"There is no option {option}{nearest_option(option, known)}")
        args, rest = self.parse_known_args(self.argv)
        if rest:
            self.error(f"Unexpected argument {rest[0]!r}")
        return args


def add_options(parser: argparse._ActionsContainer, options: Sequence[Option]) -> None:
    """Add configuration options; their values stay text and are absent from the namespace unless given."""
    for option in options:
        kinds = [kind for kind in get_args(option.type) if kind is not type(None)]
        is_optional = type(None) in get_args(option.type) and get_origin(option.type) is not Literal
        kind = kinds[0] if is_optional else option.type
        default = "" if "(default: " in option.help else f" (default: {format_value(option.value)})"
        settings: dict[str, Any] = {"help": f"{option.help}{default}".replace("%", "%%"), "dest": option.name}
        if kind is bool:
            settings["action"] = argparse.BooleanOptionalAction
        elif isinstance(option.value, dict) or get_origin(kind) is dict:
            settings |= {"action": "append", "metavar": "KEY=VALUE"}
        elif get_origin(kind) is Literal:
            settings["metavar"] = "{" + ",".join(map(str, get_args(kind))) + "}"
        else:
            settings["metavar"] = {int: "N", float: "X", str: "TEXT"}.get(kind, "N,N")
        parser.add_argument("--" + option.name.replace("_", "-"), default=argparse.SUPPRESS, **settings)


def format_value(value: Any) -> str:
    """Return the value of an option as it is typed."""
    if isinstance(value, tuple):
        return ",".join(map(str, value)) or "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "none" if value in (None, {}) else str(value)


def add_run_options(parser: Parser, env: bool = True) -> None:
    """Add the run folder, the choice between its policies, and the options for the environment of the run."""
    parser.add_argument("run", metavar="RUN", help="run folder, or a name of steingate zoo")
    policies = "the best certified policy or the last one (default: certified, else last with a warning)"
    parser.option("--policy", None, policies, choices=("certified", "last"))
    if env:
        add_env_options(parser)


def add_env_options(parser: Parser) -> None:
    """Add ``--env`` and ``--trust-code`` for commands that make the environment of a run."""
    parser.option("--env", "TEXT", "location of the environment, if it has moved")
    add_trust_option(parser)


def add_trust_option(parser: Parser) -> None:
    """Add ``--trust-code`` for commands that import code that a run names."""
    text = "import the code that a run from another machine names (environment, algorithm, cost or risk function)"
    parser.flag("--trust-code", text)


def add_claim_options(parser: Parser, source: str = "") -> None:
    """Add ``--risk`` and ``--confidence``; ``source`` says where their defaults come from, if not 0.1 and 0.95."""
    parser.option("--risk", "P", f"accepted violation probability (default: {source or 0.1})", type=float)
    parser.option("--confidence", "P", f"confidence of the bound (default: {source or 0.95})", type=float)
