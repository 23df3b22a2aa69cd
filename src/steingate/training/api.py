"""Training from Python: ``steingate.train(...)`` and ``steingate.load(...)``."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from steingate.errors import MissingExtraError
from steingate.policy import Loaded, load
from steingate.training.stop import stop_on_signals

__all__ = ["Loaded", "Run", "load", "resume", "train"]


@dataclass(frozen=True)
class Run:
    """A finished run: its folder."""

    path: Path


def train(*, config: str | Path | None = None, quiet: bool = False, **settings: Any) -> Run:
    """Train one run and return it.

    Parameters
    ----------
    config
        A TOML file with settings; those given here win.
    quiet
        Show no progress.
    **settings
        Any field of :class:`~steingate.training.config.RunConfig`, such as ``env`` or ``total_steps``, and
        any setting of the algorithm, such as ``max_kl``. ``algo`` is a name, ``module:Class``, or a recipe;
        ``env`` is a name, ``./file.py:Class``, or a class or function that makes an environment.
    """
    from steingate.training.config import make_config

    cfg = make_config(settings, config)
    with stop_on_signals() as stop:
        try:
            from steingate.training import loop
        except ModuleNotFoundError as error:
            raise MissingExtraError("training", "train") from error
        return Run(loop.train(cfg, quiet, stop))


def resume(path: str | Path, *, env: Any = None, total_steps: int | None = None, quiet: bool = False) -> Run:
    """Go on with a run from its last checkpoint to its end, as if it had never stopped, and return it.

    Parameters
    ----------
    path
        The run folder.
    env
        The environment again, for a run whose environment was given from Python and has no name that finds
        it; or where it is now.
    total_steps
        Makes the run longer.
    quiet
        Show no progress.
    """
    with stop_on_signals() as stop:
        try:
            from steingate.training import loop
        except ModuleNotFoundError as error:
            raise MissingExtraError("training", "train") from error
        return Run(loop.resume(path, quiet, stop, total_steps, env))
