"""Grids: functions that return a list of run configurations, built in or in a user's Python file."""

import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from steingate.envs.make import find_module
from steingate.errors import InputError, SteingateError, nearest
from steingate.settings import option
from steingate.training.config import RunConfig, make_config


@dataclass(frozen=True)
class Sizes:
    """Settings that all runs of a grid share; the defaults are the paper's."""

    total_steps: int = option(10_000_000, "environment steps of each run")
    steps_per_epoch: int = option(20_000, "environment steps per policy update")
    num_envs: int = option(8, "environments stepped together")
    seeds: tuple[int, ...] = option((0, 1, 2, 3, 4, 5), "random seeds, such as 0-5 or 0 2 4")
    variant: Literal["corrected", "published"] = option("published", "variant of the algorithms")
    checkpoint_every: int = option(10, "epochs between checkpoints")
    out: str = option("runs", "folder of the runs")

    def runs(
        self, envs: str | Sequence[str], algos: str | Sequence[str], folder: str = "", **options: Any
    ) -> list[RunConfig]:
        """Return one run for each task, algorithm and seed; ``options`` are those of the run or of the algorithm.

        ``folder`` is a subfolder of ``out``: runs that differ in other settings than task, algorithm and seed need
        different ones. Tasks and algorithms may also be ``module:Class``.
        """
        names = ("total_steps", "steps_per_epoch", "num_envs", "variant", "checkpoint_every")
        shared = {name: getattr(self, name) for name in names} | {"out": str(Path(self.out) / folder)}
        return [
            make_config({**shared, "env": env, "algo": algo, "seed": seed, **options})
            for env in ([envs] if isinstance(envs, str) else envs)
            for algo in ([algos] if isinstance(algos, str) else algos)
            for seed in self.seeds
        ]


@dataclass(frozen=True)
class Grid:
    """A named grid: summary, function that builds the runs, and default sizes."""

    name: str
    summary: str
    build: Callable[[Sizes], list[RunConfig]]
    sizes: Sizes = Sizes()

    def __post_init__(self) -> None:
        if self.sizes.out == Sizes().out:
            object.__setattr__(self, "sizes", replace(self.sizes, out=f"runs/{self.name}"))


def load_grid(name: str) -> Grid:
    """Return a built-in grid by name, or the grid of a Python file.

    The file defines ``grid(sizes)``, which returns a list of ``RunConfig``, and optionally ``SIZES``, its
    default sizes. Loading it runs its code.
    """
    from steingate.experiments.grids import GRIDS

    if name in GRIDS:
        return GRIDS[name]
    path = Path(name)
    if path.suffix != ".py":
        hint = nearest(name, GRIDS)
        raise InputError(f"There is no grid {name!r}{hint}: choose {', '.join(GRIDS)}, or a Python file.")
    if not path.is_file():
        raise InputError(f"There is no file {path}; name a Python file with a function grid(sizes).")
    try:
        module = find_module(name)
    except Exception as error:
        raise InputError(_describe(path, error)) from error
    build, sizes = getattr(module, "grid", None), getattr(module, "SIZES", Sizes())
    if not callable(build) or not isinstance(sizes, Sizes):
        raise InputError(
            f"{path} needs a function grid(sizes) that returns a list of RunConfig; SIZES, if there are any, must be "
            "steingate.experiments.grid.Sizes."
        )
    return Grid(path.stem, (module.__doc__ or "").strip().partition("\n")[0], build, sizes)


def plan_runs(grid: Grid, sizes: Sizes) -> list[RunConfig]:
    """Return the runs of a grid in order of seed, after checking that each has its own folder."""
    try:
        runs = grid.build(sizes)
    except SteingateError:
        raise
    except Exception as error:
        raise InputError(_describe(Path(grid.name), error)) from error
    if not isinstance(runs, list | tuple) or not runs or not all(isinstance(run, RunConfig) for run in runs):
        raise InputError(
            f"The grid {grid.name} must return a list of RunConfig that is not empty; see sizes.runs(...)."
        )
    by_path: dict[Path, RunConfig] = {}
    for run in runs:
        if not Path(run.out).resolve().is_relative_to(Path(sizes.out).resolve()):
            raise InputError(
                f"The grid {grid.name} puts a run into {run.out}, outside of {sizes.out}; "
                "use sizes.runs(...), or out=sizes.out."
            )
        if by_path.setdefault(run.path, run) != run:
            raise InputError(
                f"Two runs of the grid {grid.name} have the folder {run.path}; "
                "use sizes.runs(..., folder=NAME) for each kind of run."
            )
    return sorted(by_path.values(), key=lambda run: run.seed)


def filter_runs(runs: list[RunConfig], tasks: Sequence[str], algos: Sequence[str]) -> list[RunConfig]:
    """Return the runs on some tasks with some algorithms; no names mean all.

    A task is named by its id or in short: ``CarGoal1`` is ``SafetyCarGoal1-v0``.
    """
    runs = _select(runs, "task", [short_task(name) for name in tasks], lambda run: short_task(run.env))
    return _select(runs, "algorithm", algos, lambda run: run.algo.name)


def _select(
    runs: list[RunConfig], kind: str, wanted: Sequence[str], name_of: Callable[[RunConfig], str]
) -> list[RunConfig]:
    known = sorted({name_of(run) for run in runs})
    for name in wanted:
        if name not in known:
            raise InputError(f"The grid has no {kind} {name!r}{nearest(name, known)}; it has {', '.join(known)}.")
    return [run for run in runs if not wanted or name_of(run) in wanted]


def short_task(env: str) -> str:
    """Return the name of a task without prefix and version.

    >>> short_task("SafetyCarGoal1-v0")
    'CarGoal1'
    """
    return env.removeprefix("steingate/").removeprefix("Safety").partition("-v")[0]


def _describe(path: Path, error: Exception) -> str:
    """Return one sentence that says what failed in a grid, and in which line."""
    if isinstance(error, SyntaxError):
        return f"{path} line {error.lineno} is not Python: {error.msg}."
    frames = traceback.extract_tb(error.__traceback__)
    line = next((f" line {frame.lineno}" for frame in reversed(frames) if Path(frame.filename) == path.absolute()), "")
    return f"The grid {path}{line} ended with {type(error).__name__}: {' '.join(str(error).split())}."
