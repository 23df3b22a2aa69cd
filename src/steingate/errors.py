"""Errors for users: one sentence each, which says what to do; and checks that raise them."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from difflib import get_close_matches
from numbers import Real
from typing import TypeGuard

_EXTRAS = {  # optional packages, as they are imported, by the extra that installs them
    "envs": ("gymnasium", "mujoco", "numba"),
    "plot": ("matplotlib",),
    "train": ("jax", "jaxlib", "tensorboardX", "imageio", "imageio_ffmpeg"),
    "ray": ("ray",),
    "wandb": ("wandb",),
    "onnx": ("onnx",),
    "sb3": ("stable_baselines3",),
}
EXTRA_OF = {package: extra for extra, packages in _EXTRAS.items() for package in packages}


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

    clone = Path(__file__).parents[2]
    if (clone / "pyproject.toml").is_file():  # installed as editable, or run from its sources
        return f"pip install -e {quote(f'{clone}[{extra}]')}"
    with suppress(PackageNotFoundError, ValueError, AttributeError):
        url = json.loads(distribution("steingate").read_text("direct_url.json") or "{}").get("url", "")
        source = Path(unquote(urlsplit(url).path))
        if url.startswith("file:") and (source.is_file() or (source / "pyproject.toml").is_file()):
            return f"pip install {quote(f'{source}[{extra}]')}"
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
