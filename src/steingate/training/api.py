"""Training and trained policies from Python: what ``steingate.train(...)`` and its companions are."""

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from steingate.errors import InputError, needs
from steingate.policies.policy import Loaded, Which, load
from steingate.runs import load_certification
from steingate.training.stop import stop_on_signals

if TYPE_CHECKING:
    from gymnasium.vector import VectorEnv

    from steingate.algorithms.common.recipe import Recipe
    from steingate.training.evaluate import Evaluation

__all__ = ["Episode", "Loaded", "Run", "evaluate", "load", "make_vec", "resume", "rollout", "train"]


@dataclass(frozen=True)
class Run:
    """A finished run: its folder, and what became of it.

    Examples
    --------
    >>> run = Run(Path("runs/steingate/SafetyPointGoal1-v0/seed-0"))  # doctest: +SKIP
    >>> print(run)  # doctest: +SKIP
    >>> run.plot("run.png"), run.load().policy, run.evaluate(100)  # doctest: +SKIP
    """

    path: Path

    @property
    def certification(self) -> dict[str, Any] | None:
        """Which policy is certified, by which episodes, or why none is: see ``certification.json``."""
        return load_certification(self.path)

    @property
    def certified(self) -> bool:
        """Whether the run delivers a certified policy."""
        verdict = self.certification
        return verdict is not None and bool(verdict["certified"])

    def load(self, policy: Which | None = None) -> Loaded:
        """Return the certified policy, or the last one with a warning; see ``steingate.load``."""
        return load(self.path, policy)

    def evaluate(self, episodes: int = 100, **options: Any) -> "Evaluation":
        """Return what the policy does in fresh episodes; see ``steingate.evaluate``."""
        return evaluate(self.path, episodes, **options)

    def plot(self, file: str | Path | None = None) -> Any:
        """Return the figure of the training, and write it to a PNG, SVG or PDF file if one is named."""
        figures = import_module("steingate.report.run_figure")  # a layer above: only for those who ask
        if file is not None:
            figures.save_run_figure(self.path, file)
        return figures.run_figure(self.path)

    def __str__(self) -> str:
        verdict = self.certification
        return f"{self.path}\n{verdict['sentence']}" if verdict is not None else str(self.path)


@dataclass(frozen=True)
class Episode:
    """One episode of a policy: what it cost and what it returned."""

    cost: float
    ret: float


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
    """Train one run and return it; its verdict says which policy is certified.

    What is None is taken from ``config``, or is the default of
    :class:`~steingate.training.config.RunConfig`.

    Parameters
    ----------
    env
        Native task, Gymnasium id, ``module:Class`` or ``./file.py:Class``; or the class or function itself.
    algo
        A name (``steingate algos`` lists them), ``module:Class``, or a recipe.
    total_steps
        Environment steps of the whole run.
    seed
        Of everything random; the same seed gives the same run, bit for bit.
    cost_limit
        Limit on the cost of an episode.
    out
        Folder for run folders.
    config
        A TOML file with settings; those given here win.
    quiet
        Show no progress.
    **settings
        Any other field of :class:`~steingate.training.config.RunConfig`, such as ``num_envs``, and any
        setting of the algorithm, such as ``max_kl``; ``**{"certify.budget": 0.05}`` for those of a part.

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
    preset: str | None = None,
    warn: Callable[[str], None] | None = None,
    env: Any = None,
) -> "Evaluation":
    """Return what a policy of a run does in fresh whole episodes.

    Parameters
    ----------
    run
        A run, or its folder.
    episodes
        How many.
    seed
        Decides the episodes; they are never those of training or of its tests.
    sample
        Draw actions as training does, instead of taking the mean.
    policy
        ``"certified"`` or ``"last"``; by default the certified one, and the last with a warning where there
        is none.
    limit
        Another limit than the run's.
    preset
        Another certificate than the method's, by name.
    warn
        Hears such warnings; ``warnings.warn`` by default.
    env
        The environment again, for a run whose environment was given from Python and has no name that finds
        it; or where it is now.

    Examples
    --------
    >>> import steingate
    >>> found = steingate.evaluate("runs/steingate/SafetyPointGoal1-v0/seed-0", 100)  # doctest: +SKIP
    >>> print(found)  # doctest: +SKIP
    >>> found.episodes.cost, found.over, found.bound, found.certified  # doctest: +SKIP
    """
    with needs("steingate.evaluate", "train"):
        from steingate.training import evaluate as module
    path = run.path if isinstance(run, Run) else run
    return module.evaluate(
        path,
        episodes,
        seed,
        sample,
        warn or warnings.warn,
        policy=policy,
        limit=limit,
        preset=preset,
        env=env,
    )


def rollout(
    env: Any, policy: Callable[[Any], Any], episodes: int = 1, *, seed: int = 0, max_steps: int = 1_000_000
) -> list[Episode]:
    """Return cost and return of whole episodes of a policy in one environment.

    Parameters
    ----------
    env
        One Gymnasium environment whose steps give ``info["cost"]``, or six values with the cost in third
        place; or a function that makes one, which is then closed at the end.
    policy
        Function from an observation to an action, such as a ``Policy``.
    episodes
        How many.
    seed
        Decides the episodes; each has a seed of its own.
    max_steps
        An episode that takes longer is an error.

    Examples
    --------
    >>> class Coin:
    ...     def reset(self, seed=None):
    ...         return 0.0, {}
    ...     def step(self, action):
    ...         return 0.0, 1.0, True, False, {"cost": abs(action)}
    >>> rollout(Coin(), lambda obs: 2.0, episodes=2)
    [Episode(cost=2.0, ret=1.0), Episode(cost=2.0, ret=1.0)]
    """
    from steingate.monitoring.certify import play  # brings SciPy, which a stored policy does not need

    if episodes < 1:
        raise InputError(f"episodes is {episodes}: at least one is needed.")
    if not callable(policy):
        raise InputError(f"The policy is {policy!r}: give a function from an observation to an action.")
    made = not hasattr(env, "step") and callable(env)
    world = env() if made or isinstance(env, type) else env
    try:
        drawn = play(policy, world, seed, max_steps)
        return [Episode(*next(drawn)) for _ in range(episodes)]
    finally:
        if world is not env and hasattr(world, "close"):
            world.close()


def make_vec(spec: str | Callable[..., Any], num_envs: int = 1, **options: Any) -> "VectorEnv[Any, Any, Any]":
    """Return environments as training uses them: ``num_envs`` in one, with the cost in ``info["cost"]``.

    Parameters
    ----------
    spec
        Native task, Gymnasium id, ``module:Class``, or a callable that makes one environment.
    num_envs
        How many.
    **options
        Of the environment; ``max_episode_steps`` and, for other people's, ``cost`` among them.

    Examples
    --------
    >>> import steingate
    >>> envs = steingate.make_vec("SafetyPointGoal1-v0", 8)  # doctest: +SKIP
    >>> obs, info = envs.reset(seed=0)  # doctest: +SKIP
    """
    with needs("steingate.make_vec", "envs"):
        from steingate.envs.make import make_vec as make
    return make(spec, num_envs, **options)
