"""The errors a user may see: one family, one sentence each, saying what to do."""

from collections.abc import Iterable
from difflib import get_close_matches


class SteingateError(Exception):
    """Base of every error this package raises on purpose; its text is one sentence for the user."""


class InputError(SteingateError, ValueError):
    """A value, file or option that cannot be used; the message names it and says what is expected."""


class MissingExtraError(SteingateError, ImportError):
    """A feature whose optional packages are not installed; the message says which extra to install."""

    def __init__(self, feature: str, extra: str) -> None:
        super().__init__(f"{feature} needs optional packages: run pip install 'steingate[{extra}]'.")


class RunError(SteingateError):
    """A run folder or checkpoint that cannot be used, or a training run that had to stop."""


def nearest(name: str, known: Iterable[str]) -> str:
    """Return ``" (did you mean X?)"`` for the known name most like ``name``, or an empty string."""
    matches = get_close_matches(name, list(known), n=1)
    return f" (did you mean {matches[0]}?)" if matches else ""
