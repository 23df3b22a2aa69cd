"""Training from Python: ``steingate.train(...)`` and ``steingate.load(...)``."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from steingate.errors import needs
from steingate.policy import Loaded, load
from steingate.training.stop import stop_on_signals

__all__ = ["Loaded", "Run", "load", "train"]


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
        any setting of the algorithm, such as ``max_kl``. ``algo`` is a name, ``module:Class``, or a recipe.
    """
    with needs("steingate.train", "train"):
        from steingate.training.config import make_config

    cfg = make_config(settings, config)
    with stop_on_signals() as stop:
        with needs("steingate.train", "train"):
            from steingate.training import loop
        return Run(loop.train(cfg, quiet, stop))
