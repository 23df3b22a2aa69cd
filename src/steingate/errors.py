"""Errors for users: one sentence each, which says what to do; and checks that raise them."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from difflib import get_close_matches
from numbers import Real
from typing import TypeGuard

EXTRA_OF = {  # optional packages (as they are imported) and the extra that installs them
    "gymnasium": "envs",
    "mujoco": "envs",
    "numba": "envs",
    "matplotlib": "plot",
    "jax": "train",
    "jaxlib": "train",
    "tensorboardX": "train",
    "imageio": "train",
    "imageio_ffmpeg": "train",
    "ray": "ray",
    "wandb": "wandb",
    "onnx": "onnx",
    "stable_baselines3": "sb3",
    "shtab": "completion",
}


class SteingateError(Exception):
    """Base of all errors that steingate raises on purpose; the message is one sentence."""


class InputError(SteingateError, ValueError):
    """A value, file or option that cannot be used; the message names it and what is expected."""


class MissingExtraError(SteingateError, ImportError):
    """A feature whose optional packages are not installed; the message says which extra to install."""

    def __init__(self, feature: str, extra: str) -> None:
        super().__init__(f"{feature} needs optional packages: run {install_command(extra)}.")


def install_command(extra: str) -> str:
    """Return the command that adds an extra to this installation: from its clone or wheel file, or from the index."""
    import json
    from importlib.metadata import PackageNotFoundError, distribution
    from pathlib import Path
    from shlex import quote
    from urllib.parse import unquote, urlsplit

    try:
        origin = json.loads(distribution("steingate").read_text("direct_url.json") or "{}")
        source, clone = Path(unquote(urlsplit(origin.get("url", "")).path)), "dir_info" in origin
        flag = "-e " if clone and origin["dir_info"].get("editable") else ""
    except (PackageNotFoundError, ValueError, AttributeError, TypeError):
        source, clone, flag = Path(__file__).parents[2], True, "-e "  # run from its sources
    if (source / "pyproject.toml" if clone else source).is_file():
        return f"pip install {flag}{quote(f'{source}[{extra}]')}"
    return f"pip install 'steingate[{extra}]'"


@contextmanager
def needs(feature: str, extra: str | None = None) -> Iterator[None]:
    """Turn the failed import of an optional package into the sentence that says which extra to install.

    ``extra`` is the one that ``feature`` as a whole needs; without it, the one the package belongs to.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        if package not in EXTRA_OF:
            raise
        own = EXTRA_OF[package]
        raise MissingExtraError(feature, extra if extra and own in ("envs", "plot") else own) from error


class RunError(SteingateError):
    """A run folder or checkpoint that cannot be used, or a training run that had to stop."""


def is_real(value: object) -> TypeGuard[float]:
    """Return whether a value is one real number, of Python or NumPy; booleans and arrays are not."""
    return isinstance(value, Real) and not isinstance(value, bool)


def check_interval(name: str, value: object, low: float, high: float, brackets: str = "()") -> None:
    """Refuse a value that is not a number in the interval; ``brackets`` such as ``[)`` say which ends belong to it."""
    inside = is_real(value) and (
        low < value < high or (brackets[0] == "[" and value == low) or (brackets[1] == "]" and value == high)
    )
    if not inside:
        raise InputError(f"{name} is {value!r}; give a number in {brackets[0]}{low:g}, {high:g}{brackets[1]}.")


def nearest(name: str, known: Iterable[str]) -> str:
    """Return ``" (did you mean X?)"`` for the known name most like ``name``, or an empty string."""
    matches = get_close_matches(name, list(known), n=1)
    return f" (did you mean {matches[0]}?)" if matches else ""
