"""The public functions for training and evaluation: ``steingate.train`` and its companions."""

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from steingate.errors import needs
from steingate.policies.policy import Loaded, Which, load
from steingate.runs import load_certification
from steingate.training.stop import stop_on_signals

if TYPE_CHECKING:
    from gymnasium.vector import VectorEnv

    from steingate.algorithms.common.recipe import Recipe
    from steingate.training.evaluate import Evaluation

__all__ = ["Loaded", "Run", "evaluate", "load", "make_vec", "resume", "train"]


@dataclass(frozen=True)
class Run:
    """A finished run.

    Attributes
    ----------
    path : the run folder

    Examples
    --------
    >>> run = Run(Path("runs/steingate/SafetyPointGoal1-v0/seed-0"))  # doctest: +SKIP
    >>> print(run)  # doctest: +SKIP
    >>> run.plot("run.png"), run.load().policy, run.evaluate(100)  # doctest: +SKIP
    """

    path: Path

    @property
    def certification(self) -> dict[str, Any] | None:
        """Content of ``certification.json``: the certified policy and its test, or why there is none."""
        return load_certification(self.path)

    @property
    def certified(self) -> bool:
        """Whether the run has a certified policy."""
        report = self.certification
        return report is not None and bool(report["certified"])

    def load(self, policy: Which | None = None) -> Loaded:
        """Return the certified policy, or the last one with a warning; see ``steingate.load``."""
        return load(self.path, policy)

    def evaluate(self, episodes: int = 100, **options: Any) -> "Evaluation":
        """Evaluate the policy on fresh episodes; see ``steingate.evaluate``."""
        return evaluate(self.path, episodes, **options)

    def plot(self, file: str | Path | None = None) -> Any:
        """Return the figure of the training; ``file`` saves it as PNG, SVG or PDF."""
        figures = import_module("steingate.report.run_figure")  # a higher layer, imported only on demand
        if file is not None:
            figures.save_run_figure(self.path, file)
        return figures.run_figure(self.path)

    def __str__(self) -> str:
        report = self.certification
        return f"{self.path}\n{report['sentence']}" if report is not None else str(self.path)


def train(
    env: str | Callable[..., Any] | None = None,
    algo: "str | Recipe | type[Recipe] | None" = None,
    *,
    total_steps: int | None = None,
    seed: int | None = None,
    cost_limit: float | None = None,
    out: str | Path | None = None,
    config: str | Path | None = None,
    quiet: bool = False,
    **settings: Any,
) -> Run:
    """Train a policy, select its certified checkpoint, and return the run.

    Arguments that are None are taken from ``config``, or are the defaults of
    :class:`~steingate.training.config.RunConfig`.

    Parameters
    ----------
    env
        Native task, Gymnasium id, ``module:Class``, ``./file.py:Class``, or the class or function itself.
    algo
        Name of an algorithm (see ``steingate algos``), ``module:Class``, or an algorithm configuration.
    total_steps
        Environment steps of the whole run.
    seed
        Seed of all random numbers; equal seeds give identical runs.
    cost_limit
        Limit on the cost of an episode.
    out
        Parent folder of the run folder.
    config
        A TOML file with settings; arguments take precedence.
    quiet
        Show no progress.
    **settings
        Further fields of :class:`~steingate.training.config.RunConfig`, such as ``num_envs``, and settings of
        the algorithm, such as ``max_kl``; nested ones as ``**{"certify.budget": 0.05}``.

    Examples
    --------
    >>> import steingate
    >>> run = steingate.train("SafetyPointCircle1-v0", total_steps=200_000)  # doctest: +SKIP
    >>> print(run)  # doctest: +SKIP
    """
    with needs("steingate.train", "train"):
        from steingate.training.config import make_config

    own = {"env": env, "algo": algo, "total_steps": total_steps, "seed": seed, "cost_limit": cost_limit}
    given = {name: value for name, value in own.items() if value is not None}
    if out is not None:
        given["out"] = str(out)
    cfg = make_config({**settings, **given}, config)
    with stop_on_signals() as stop:
        with needs("steingate.train", "train"):
            from steingate.training import loop
        return Run(loop.train(cfg, quiet, stop))


def resume(path: str | Path, *, env: Any = None, total_steps: int | None = None, quiet: bool = False) -> Run:
    """Continue a run from its last checkpoint to its end; the result equals that of an uninterrupted run.

    Parameters
    ----------
    path
        The run folder.
    env
        The environment, if it was given as a Python object or has moved.
    total_steps
        Extend the run to this number of environment steps.
    quiet
        Show no progress.
    """
    with stop_on_signals() as stop:
        with needs("steingate.resume", "train"):
            from steingate.training import loop
        return Run(loop.resume(path, quiet, stop, total_steps, env))


def evaluate(
    run: str | Path | Run,
    episodes: int = 100,
    *,
    seed: int = 0,
    sample: bool = False,
    policy: Which | None = None,
    limit: float | None = None,
    budget: float | None = None,
    delta: float | None = None,
    until_certified: bool = False,
    env: Any = None,
    warn: Callable[[str], None] = warnings.warn,
) -> "Evaluation":
    """Play fresh episodes with a policy of a run, and bound its violation probability P(cost > limit).

    Parameters
    ----------
    run
        A run, or its folder.
    episodes
        Number of episodes.
    seed
        Seed of the episodes; they differ from those of training and of its certification tests.
    sample
        Sample actions as in training, instead of taking the mean.
    policy
        ``"certified"`` or ``"last"``; by default the certified one, else the last with a warning.
    limit, budget, delta
        Cost limit, accepted violation probability and error probability; by default those of the run.
    until_certified
        Stop as soon as the policy is certified or shown to be unsafe, after at most ``episodes``.
    env
        The environment, if it was given as a Python object or has moved.
    warn
        Called with warnings.

    Examples
    --------
    >>> import steingate
    >>> result = steingate.evaluate("runs/steingate/SafetyPointGoal1-v0/seed-0", 100)  # doctest: +SKIP
    >>> print(result)  # doctest: +SKIP
    >>> result.episodes.cost, result.violations, result.bound, result.certified  # doctest: +SKIP
    """
    with needs("steingate.evaluate", "train"):
        from steingate.training.evaluate import evaluate as evaluate_folder
    return evaluate_folder(
        run.path if isinstance(run, Run) else run,
        episodes,
        seed=seed,
        sample=sample,
        policy=policy,
        limit=limit,
        budget=budget,
        delta=delta,
        until_certified=until_certified,
        env=env,
        warn=warn,
    )


def make_vec(spec: str | Callable[..., Any], num_envs: int = 1, **options: Any) -> "VectorEnv[Any, Any, Any]":
    """Return a vector environment as training uses it, with costs (num_envs,) in ``info["cost"]``.

    Parameters
    ----------
    spec
        Native task, Gymnasium id, ``module:Class``, or a callable that makes one environment.
    num_envs
        Number of environments.
    **options
        Options of the environment, such as ``max_episode_steps`` and, for environments that are not native,
        ``cost``.

    Examples
    --------
    >>> import steingate
    >>> envs = steingate.make_vec("SafetyPointGoal1-v0", 8)  # doctest: +SKIP
    >>> obs, info = envs.reset(seed=0)  # doctest: +SKIP
    """
    with needs("steingate.make_vec", "envs"):
        from steingate.envs.make import make_vec as make
    return make(spec, num_envs, **options)
