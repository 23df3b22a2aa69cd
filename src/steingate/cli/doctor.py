"""``steingate doctor``: versions, what this machine offers, and a short self-test."""

import argparse
import json
import os
import platform
import re
import sys
from collections.abc import Callable
from importlib import metadata
from math import isclose

from steingate import __version__
from steingate.cli.output import print_rows
from steingate.cli.parser import Parser
from steingate.errors import SteingateError, install_command

FAILED = 1


def doctor_arguments(parser: Parser) -> None:
    """Add the options of ``doctor``."""
    parser.add_argument("--json", action="store_true", help="print JSON")


def doctor(args: argparse.Namespace) -> int:
    """Print versions and checks; return 1 if a check fails."""
    versions = [("steingate", __version__, ""), ("Python", platform.python_version(), sys.executable)]
    versions += [(f"extra {extra}" if extra else "required", *_extra(extra)) for extra in extras()]
    checks = [(name, *_run_check(check)) for name, check in CHECKS.items()]
    if args.json:
        tables = {"versions": versions, "checks": checks}
        print(
            json.dumps({name: {row[0]: row[1:] for row in rows} for name, rows in tables.items()}, indent=2)
        )
    else:
        print_rows("[bold]Versions[/]", versions)
        print()
        print_rows("[bold]Checks[/]", checks)
    return FAILED if any(status == "failed" for _, status, _ in checks) else 0


def extras() -> dict[str, list[str]]:
    """Return the packages of each extra; "" holds those that are always required."""
    found: dict[str, list[str]] = {"": []}
    for line in metadata.requires("steingate") or []:
        name = re.match(r"[\w.-]+", line)
        extra = re.search(r"extra == ['\"]([\w-]+)['\"]", line)
        if name is not None and name[0] != "steingate":
            found.setdefault(extra[1] if extra else "", []).append(name[0])
    return {extra: names for extra, names in found.items() if extra not in ("all", "test", "docs")}


def _extra(extra: str) -> tuple[str, str]:
    present, missing = [], []
    for name in extras()[extra]:
        try:
            present.append(f"{name} {metadata.version(name)}")
        except metadata.PackageNotFoundError:
            missing.append(name)
    if missing:
        return "missing", f"{', '.join(missing)}: {install_command(extra)}"
    return "installed", ", ".join(present)


def _run_check(check: Callable[[], str]) -> tuple[str, str]:
    try:
        return "ok", check()
    except ModuleNotFoundError as error:
        return "skipped", f"{error.name} is not installed"
    except SteingateError as error:
        return "skipped" if isinstance(error, ImportError) else "failed", str(error)
    except Exception as error:
        return "failed", f"{type(error).__name__}: {error}"


def _certificate() -> str:
    from steingate.certificates.bounds import clopper_pearson_upper

    bound = clopper_pearson_upper(0, 29, 0.05)
    if not isclose(bound, 1.0 - 0.05 ** (1 / 29), rel_tol=1e-12):
        raise ValueError(f"wrong bound {bound!r}")
    return f"29 episodes without a violation: violation probability at most {bound:.4f}"


def _simulation() -> str:
    import numpy as np

    from steingate.compiled import cache_folder
    from steingate.envs.make import make_vec

    runs = []
    for _ in range(2):
        envs = make_vec("SafetyPointCircle1-v0", 2)
        envs.reset(seed=0)
        runs.append(np.stack([envs.step(np.full((2, 2), 0.5))[0] for _ in range(50)]))
        envs.close()
    if not np.array_equal(runs[0], runs[1]):
        raise ValueError("the same seed gave different observations")
    return f"the same seed gives the same observations; compiled code in {cache_folder()}"


def _rendering() -> str:
    from steingate.tasks.render import find_backend

    return f"{find_backend()} (MUJOCO_GL={os.environ.get('MUJOCO_GL', 'not set')})"


def _jax() -> str:
    from steingate.algorithms.common.backend import configure

    facts = configure()
    import jax.numpy as jnp

    if float(jnp.arange(5.0).sum()) != 10.0:
        raise ValueError("0 + 1 + 2 + 3 + 4 is not 10")
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return f"runs on {facts['platform']}; {cores} CPU cores"


def _video() -> str:
    from imageio_ffmpeg import get_ffmpeg_exe

    return str(get_ffmpeg_exe())


CHECKS = {
    "certificate": _certificate,
    "simulation": _simulation,
    "rendering": _rendering,
    "JAX": _jax,
    "video": _video,
}
