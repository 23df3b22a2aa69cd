"""The errors a user may see: one family, one sentence each, saying what to do."""

from collections.abc import Iterable
from difflib import get_close_matches
from math import inf


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


def require_positive(record: object, *names: str) -> None:
    """Refuse a record one of whose fields is not above zero."""
    for name in names:
        if not getattr(record, name) > 0:
            raise InputError(f"{name} must be positive, got {getattr(record, name)}.")


def require_between(record: object, low: float, high: float, *names: str) -> None:
    """Refuse a record one of whose fields is below ``low`` or above ``high``."""
    for name in names:
        if not low <= getattr(record, name) <= high:
            bounds = f"at least {low:g}" if high == inf else f"from {low:g} to {high:g}"
            raise InputError(f"{name} must be {bounds}, got {getattr(record, name)}.")


def nearest(name: str, known: Iterable[str]) -> str:
    """Return ``" (did you mean X?)"`` for the known name most like ``name``, or an empty string."""
    matches = get_close_matches(name, list(known), n=1)
    return f" (did you mean {matches[0]}?)" if matches else ""
