"""An argument parser whose complaints are one sentence and whose options are never abbreviated."""

import argparse
from collections.abc import Callable, Sequence
from typing import NoReturn

from steingate.errors import InputError, nearest


class Parser(argparse.ArgumentParser):
    """``argparse`` with one-sentence ``InputError`` complaints and the nearest name for a misspelt option."""

    def __init__(self, prog: str, description: str) -> None:
        super().__init__(
            prog=prog,
            description=description,
            allow_abbrev=False,
            formatter_class=argparse.RawDescriptionHelpFormatter,  # examples keep their lines
        )

    def error(self, message: str) -> NoReturn:
        """Raise the complaint as an ``InputError`` instead of leaving the process."""
        raise InputError(f"{message.rstrip('.')}; run {self.prog} --help.")

    def parse(
        self,
        argv: Sequence[str],
        refuse: Callable[[str, Sequence[str], Sequence[str]], str] | None = None,
    ) -> argparse.Namespace | None:
        """Return the parsed options, or ``None`` when help was asked for and printed.

        ``refuse`` may give a better sentence about an option that is not there, from its name and the known.
        """
        if "-h" in argv or "--help" in argv:
            self.print_help()
            return None
        known = [option for action in self._actions for option in action.option_strings]
        # Checked before parsing, because a missing argument would hide the misspelt option that caused it.
        for word in argv:
            if word == "--":
                break
            option = word.split("=", 1)[0]
            if option.startswith("--") and option not in known:
                if refuse is not None:
                    raise InputError(refuse(option, known, argv))
                raise InputError(
                    f"There is no option {option}{nearest(option, known)}; run {self.prog} --help."
                )
        args, rest = self.parse_known_args(argv)
        if rest:
            raise InputError(f"The word {rest[0]!r} was not expected here; run {self.prog} --help.")
        return args
