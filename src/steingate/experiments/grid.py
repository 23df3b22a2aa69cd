"""Grids: functions from sizes to a list of run configurations, built in or from a user's Python file."""

import sys
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any, Literal

from steingate.errors import InputError, SteingateError, nearest
from steingate.training.config import RunConfig, make_config

BUILT_IN = (
    "table1", "velocity", "baselines", "cpo-variants", "limits", "references", "samples", "circle2", "gates",
    "learning", "quick", "allowance", "unseen",
)  # fmt: skip

# What a file may raise while it is imported or called; told in one sentence with the line.
_FILE_ERRORS = (
    SyntaxError, ImportError, NameError, AttributeError, TypeError, ValueError, LookupError, ArithmeticError,
    OSError, AssertionError, RuntimeError,
)  # fmt: skip


@dataclass(frozen=True)
class Sizes:
    """What every run of a grid shares unless the grid says otherwise; the defaults are the paper's."""

    total_steps: int = 10_000_000
    steps_per_epoch: int = 20_000
    num_envs: int = 8
    seeds: tuple[int, ...] = (0, 1, 2, 3, 4, 5)
    variant: Literal["corrected", "published"] = "published"
    checkpoint_every: int = 10
    out: str = "runs"

    def runs(
        self, envs: str | Sequence[str], algos: str | Sequence[str], folder: str = "", **settings: Any
    ) -> list[RunConfig]:
        """Return one run for each task, algorithm and seed.

        Parameters
        ----------
        envs, algos
            Names of tasks and algorithms (or ``module:Class``), or a single one.
        folder
            A folder below ``out`` for these runs; needed where runs differ in more than task, algorithm
            and seed.
        **settings
            Any field of :class:`~steingate.training.config.RunConfig` and any setting of the algorithm, over
            those of the sizes.
        """
        shared: dict[str, Any] = {
            "total_steps": self.total_steps,
            "steps_per_epoch": self.steps_per_epoch,
            "num_envs": self.num_envs,
            "variant": self.variant,
            "checkpoint_every": self.checkpoint_every,
            "out": str(Path(self.out) / folder),
        }
        return [
            make_config({**shared, "env": env, "algo": algo, "seed": seed, **settings})
            for env in ([envs] if isinstance(envs, str) else envs)
            for algo in ([algos] if isinstance(algos, str) else algos)
            for seed in self.seeds
        ]


@dataclass(frozen=True)
class Grid:
    """A grid by name: what it is about, its function, and the sizes it has by default."""

    name: str
    summary: str
    build: Callable[[Sizes], list[RunConfig]]
    sizes: Sizes = Sizes()


def load_grid(name: str) -> Grid:
    """Return a built-in grid by name, or the one in a Python file, which is imported for that.

    A file has a function ``grid(sizes)`` that returns a list of ``RunConfig``, and may have ``SIZES``, the
    sizes it has by default.
    """
    if name in BUILT_IN:
        return _from_module(import_module(f"steingate.experiments.grids.{name.replace('-', '_')}"), name)
    path = Path(name)
    if path.suffix != ".py":
        raise InputError(
            f"There is no grid {name!r}{nearest(name, BUILT_IN)}: choose {', '.join(BUILT_IN)}, "
            "or name a Python file."
        )
    if not path.is_file():
        raise InputError(f"There is no file {path}; name a Python file with a function grid(sizes).")
    module_name = f"steingate_grid_{path.stem}"
    spec = spec_from_file_location(module_name, path)
    if spec is None or spec.loader is None:
        raise InputError(f"{path} cannot be imported as a Python file.")
    module = module_from_spec(spec)
    sys.modules[module_name] = module  # dataclasses defined in the file look themselves up there
    try:
        spec.loader.exec_module(module)
    except _FILE_ERRORS as error:
        raise InputError(_told(path, error)) from error
    return _from_module(module, path.stem)


def plan(grid: Grid, sizes: Sizes) -> list[RunConfig]:
    """Return the runs of a grid, first seeds first, each checked for a folder of its own below ``out``."""
    try:
        runs = grid.build(sizes)
    except SteingateError:
        raise
    except _FILE_ERRORS as error:
        raise InputError(_told(Path(grid.name), error)) from error
    if not isinstance(runs, list | tuple) or not all(isinstance(run, RunConfig) for run in runs):
        raise InputError(f"The grid {grid.name} does not return a list of RunConfig; see sizes.runs(...).")
    if not runs:
        raise InputError(f"The grid {grid.name} has no runs; give it tasks, algorithms and seeds.")
    taken: dict[Path, RunConfig] = {}
    for run in runs:
        if not Path(run.out).resolve().is_relative_to(Path(sizes.out).resolve()):
            raise InputError(
                f"The grid {grid.name} puts a run into {run.out}, outside of {sizes.out}: "
                "build it with sizes.runs(...), or with out=sizes.out."
            )
        if taken.setdefault(run.path, run) != run:
            raise InputError(
                f"Two runs of the grid {grid.name} share the folder {run.path}; "
                "give each kind a folder with sizes.runs(..., folder=NAME)."
            )
    return sorted(taken.values(), key=lambda run: run.seed)


def resize(grid: Grid, changes: dict[str, Any]) -> Sizes:
    """Return the grid's sizes with some changed; ``out`` is ``runs/NAME`` unless given."""
    return replace(grid.sizes, **{"out": f"runs/{grid.name}", **changes})


def _from_module(module: ModuleType, name: str) -> Grid:
    build, sizes = getattr(module, "grid", None), getattr(module, "SIZES", Sizes())
    if not callable(build):
        raise InputError(f"{module.__file__} has no function grid(sizes) that returns a list of RunConfig.")
    if not isinstance(sizes, Sizes):
        raise InputError(f"SIZES in {module.__file__} must be a steingate.experiments.grid.Sizes.")
    summary = (module.__doc__ or "").strip().partition("\n")[0]
    return Grid(name, summary, build, sizes)


def _told(path: Path, error: BaseException) -> str:
    """Return what went wrong in a grid and where, as one sentence."""
    if isinstance(error, SyntaxError):
        return f"{path} line {error.lineno} is not Python: {error.msg}."
    frames = traceback.extract_tb(error.__traceback__)
    text = " ".join(str(error).split())
    line = next((f" line {frame.lineno}" for frame in reversed(frames) if Path(frame.filename) == path), "")
    return f"The grid {path}{line} ended with {type(error).__name__}: {text}."
