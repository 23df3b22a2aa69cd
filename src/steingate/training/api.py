"""``steingate.train`` and ``steingate.resume``, and the ``Run`` that they return."""

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from steingate.errors import needs
from steingate.runs import load_certification
from steingate.training.stop import stop_on_signals

if TYPE_CHECKING:
    from steingate.algorithms.base import Algorithm


@dataclass(frozen=True)
class Run:
    """A finished run; functions that take a run folder accept it too. ``path`` is the run folder.

    Examples
    --------
    >>> run = Run(Path("runs/allowance/SafetyPointGoal1-v0/seed-0"))  # doctest: +SKIP
    >>> run.plot("run.png"), steingate.load_policy(run), steingate.evaluate(run, 100)  # doctest: +SKIP
    """

    path: Path

    @property
    def certification(self) -> dict[str, Any] | None:
        """Content of ``certification.json``: the certified policy and its test, or why there is none."""
        return load_certification(self.path)

    @property
    def certified(self) -> bool:
        """Whether the run has a certified policy."""
        return bool((self.certification or {}).get("certified"))

    def plot(self, file: str | Path | None = None) -> Any:
        """Return the figure of the training; ``file`` saves it as PNG, SVG or PDF."""
        figures = import_module("steingate.report.figures")  # a higher layer, imported only on demand
        if file is not None:
            figures.save_run_figure(self.path, file)
        return figures.run_figure(self.path)

    def __fspath__(self) -> str:
        return str(self.path)

    def __str__(self) -> str:
        report = self.certification
        return f"{self.path}\n{report['sentence']}" if report is not None else str(self.path)


def train(
    env: str | Callable[..., Any] | None = None, algo: "str | Algorithm | type[Algorithm] | None" = None, *,
    total_steps: int | None = None, seed: int | None = None, cost_limit: float | None = None,
    out: str | Path | None = None, config: str | Path | None = None, quiet: bool = False, trust_code: bool = False,
    **settings: Any,
) -> Run:  # fmt: skip
    """Train a policy, select its certified checkpoint, and return the run.

    Arguments that are None are taken from ``config``, or are the defaults of
    :class:`~steingate.training.config.RunConfig`.

    Parameters
    ----------
    env
        Native task, Gymnasium id, ``module:Class``, ``./file.py:Class``, or the class or function itself.
    algo
        Name of an algorithm (see ``steingate algos``), ``module:Class``, or an algorithm configuration.
    total_steps, cost_limit
        Environment steps of the whole run, and limit on the cost of an episode.
    seed
        Seed of all random numbers; equal seeds give identical runs.
    out
        Parent folder of the run folder.
    config
        A TOML file with settings, or the ``config.json`` of a run; arguments take precedence.
    quiet, trust_code
        Show only the result; import the code that the ``config.json`` of a run from another machine names.
    **settings
        Further fields of :class:`~steingate.training.config.RunConfig`, such as ``num_envs``, and settings of the
        algorithm, such as ``max_kl``; nested ones as ``**{"certify.budget": 0.05}``.

    Examples
    --------
    >>> run = steingate.train("SafetyPointCircle1-v0", total_steps=200_000)  # doctest: +SKIP
    """
    with needs("steingate.train", "train"):
        from steingate.training.config import make_config

    own = {"env": env, "algo": algo, "total_steps": total_steps, "seed": seed, "cost_limit": cost_limit}
    own["out"] = None if out is None else str(out)
    given = {**settings, **{key: value for key, value in own.items() if value is not None}}
    cfg = make_config(given, config, trust_code)
    with stop_on_signals() as stop:
        with needs("steingate.train", "train"):
            from steingate.training import runner
        return Run(runner.train(cfg, quiet, stop))


def resume(
    path: str | PathLike[str], *, env: Any = None, total_steps: int | None = None, quiet: bool = False,
    trust_code: bool = False,
) -> Run:  # fmt: skip
    """Continue a run from its last checkpoint to its end; the result equals that of an uninterrupted run.

    Parameters
    ----------
    path, total_steps
        The run folder or the run, and a larger number of environment steps, which extends the run.
    env
        The environment, if it was given as a Python object or has moved.
    quiet, trust_code
        As for :func:`train`.
    """
    with stop_on_signals() as stop:
        with needs("steingate.resume", "train"):
            from steingate.training import runner
        return Run(runner.resume(Path(path), quiet, stop, total_steps, env, trust_code))
