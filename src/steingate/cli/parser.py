"""Argument parser of the commands: no abbreviations, one-sentence errors, options from configurations."""

import argparse
from collections.abc import Callable, Sequence
from typing import Any, Literal, NoReturn, get_args, get_origin

from steingate.errors import InputError, nearest
from steingate.settings import Option


class Parser(argparse.ArgumentParser):
    """``argparse`` that raises one-sentence ``InputError`` with a suggestion for a misspelt option.

    Attributes
    ----------
    argv
        Words of the command line, for commands whose options depend on them.
    unknown_option
        Returns the message for an unknown option from its name and the known names.
    """

    def __init__(self, prog: str, description: str = "", argv: Sequence[str] = (), **options: Any) -> None:
        options = {"formatter_class": argparse.RawDescriptionHelpFormatter, **options}
        super().__init__(prog=prog, description=description, allow_abbrev=False, **options)
        self.argv = list(argv)
        self.unknown_option: Callable[[str, Sequence[str]], str] = self._unknown_option

    def _unknown_option(self, option: str, known: Sequence[str]) -> str:
        return f"There is no option {option}{nearest(option, known)}; run {self.prog} --help."

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
                raise InputError(self.unknown_option(option, known))
        args, rest = self.parse_known_args(self.argv)
        if rest:
            raise InputError(f"Unexpected argument {rest[0]!r}; run {self.prog} --help.")
        return args


def add_options(parser: argparse._ActionsContainer, options: Sequence[Option]) -> None:
    """Add configuration options; their values stay text and are absent from the namespace unless given."""
    for option in options:
        kind, default = _without_none(option.type), _format_default(option.value)
        states_default = "(default: " in option.help
        help_text = (option.help if states_default else f"{option.help} (default: {default})").replace("%", "%%")
        settings: dict[str, Any] = {"default": argparse.SUPPRESS, "help": help_text, "dest": option.name}
        flag = "--" + option.name.replace("_", "-")
        if kind is bool:
            parser.add_argument(flag, action=argparse.BooleanOptionalAction, **settings)
        elif isinstance(option.value, dict) or get_origin(kind) is dict:
            parser.add_argument(flag, action="append", metavar="KEY=VALUE", **settings)
        else:
            parser.add_argument(flag, metavar=_metavar(kind), **settings)


def _without_none(hint: Any) -> Any:
    kinds = [kind for kind in get_args(hint) if kind is not type(None)]
    return kinds[0] if get_origin(hint) is not Literal and type(None) in get_args(hint) else hint


def _metavar(hint: Any) -> str:
    if get_origin(hint) is Literal:
        return "{" + ",".join(map(str, get_args(hint))) + "}"
    return {int: "N", float: "X", str: "TEXT"}.get(hint, "N,N")


def _format_default(value: Any) -> str:
    if isinstance(value, tuple):
        return ",".join(map(str, value)) or "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "none" if value in (None, {}) else str(value)


def add_env_options(parser: Parser) -> None:
    """Add ``--env`` and ``--trust-code`` for commands that make the environment of a run."""
    parser.add_argument("--env", metavar="TEXT", help="location of the environment, if it has moved")
    add_trust_option(parser)


def add_trust_option(parser: Parser) -> None:
    """Add ``--trust-code`` for commands that import code that a run names."""
    text = "import the code that a run from another machine names (environment, algorithm, cost or risk function)"
    parser.add_argument("--trust-code", action="store_true", help=text)


def add_claim_options(parser: Parser, default: str = "") -> None:
    """Add ``--risk`` and ``--confidence``: violation probability at most ``risk`` with that confidence."""
    parser.add_argument(
        "--risk", type=float, metavar="P", help=f"accepted violation probability (default: {default or 0.1})"
    )
    parser.add_argument(
        "--confidence", type=float, metavar="P", help=f"confidence of the bound (default: {default or 0.95})"
    )
