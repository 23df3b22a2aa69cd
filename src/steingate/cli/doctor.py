"""``steingate doctor``: versions of packages, and a check of each part on this machine."""

import argparse
import json
import os
import platform
import sys
from importlib import metadata

from steingate import __version__
from steingate.cli.output import print_rows
from steingate.cli.parser import Parser
from steingate.errors import EXTRA_OF, SteingateError, install_command

FAILED = 1


def doctor_arguments(parser: Parser) -> None:
    parser.flag("--json", "print JSON")


def doctor(args: argparse.Namespace) -> int:
    """Print versions and checks; return 1 if a check fails."""
    versions = [("steingate", __version__, ""), ("Python", platform.python_version(), sys.executable)]
    for package in ("numpy", "scipy", "safetensors", *EXTRA_OF):
        try:
            versions.append((package, metadata.version(package), ""))
        except metadata.PackageNotFoundError:
            versions.append((package, "missing", install_command(EXTRA_OF.get(package, ""))))
    checks = []
    for name, check in CHECKS.items():
        try:
            checks.append((name, "ok", check()))
        except ImportError as error:
            checks.append((name, "skipped", f"{error.name} is not installed" if error.name else str(error)))
        except Exception as error:
            kind = "" if isinstance(error, SteingateError) else f"{type(error).__name__}: "
            checks.append((name, "failed", f"{kind}{error}"))
    if args.json:
        tables = {"versions": versions, "checks": checks}
        print(json.dumps({name: {row[0]: row[1:] for row in rows} for name, rows in tables.items()}))
    else:
        print_rows("Versions", versions)
        print_rows("\nChecks", checks)
    return FAILED if any(status == "failed" for _, status, _ in checks) else 0


def _certificate() -> str:
    from steingate.certificates.violation import certify

    result = certify([0.0] * 29, limit=25.0)
    assert abs(result.bound - (1.0 - 0.05 ** (1 / 29))) < 1e-12, result.bound
    return result.summary


def _simulation() -> str:
    from steingate.compiled import cache_folder
    from steingate.envs.make import make_vec

    envs = make_vec("SafetyPointCircle1-v0", 2)
    envs.reset(seed=0)
    envs.step(envs.action_space.sample())
    envs.close()
    return f"steps SafetyPointCircle1-v0; compiled code in {cache_folder()}"


def _rendering() -> str:
    from steingate.tasks.render import find_backend

    return f"{find_backend()} (MUJOCO_GL={os.environ.get('MUJOCO_GL', 'not set')})"


def _jax() -> str:
    from steingate.algorithms.common.jax_setup import configure

    platform_name = configure()["platform"]
    import jax.numpy as jnp

    assert float(jnp.arange(5.0).sum()) == 10.0
    return f"runs on {platform_name}; {os.cpu_count()} CPU cores"


def _video() -> str:
    from imageio_ffmpeg import get_ffmpeg_exe

    return str(get_ffmpeg_exe())


CHECKS = {
    "certificate": _certificate, "simulation": _simulation, "rendering": _rendering, "JAX": _jax, "video": _video,
}  # fmt: skip
