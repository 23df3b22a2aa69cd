"""``steingate doctor``: what is installed, what this machine offers, and whether the package works on it."""

import argparse
import json
import os
import platform
import re
import shutil
import sys
from dataclasses import asdict, dataclass
from importlib import metadata
from pathlib import Path

from steingate import __version__
from steingate.cli.self_test import TESTS, Outcome, attempt
from steingate.cli.table import print_rows
from steingate.errors import SteingateError, install_command

BROKEN = 1


@dataclass(frozen=True)
class Fact:
    """One line of the report."""

    subject: str
    name: str
    value: str
    note: str = ""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of ``doctor``."""
    parser.add_argument("--json", action="store_true", help="print JSON and nothing else")
    parser.add_argument("--no-test", action="store_true", help="leave the self-test out")


def run(args: argparse.Namespace) -> int:
    """Print what is known, run the self-test, and return 1 if a part of it failed."""
    facts = [*packages(), *machine(), *drawing(), *caches()]
    if not args.json:
        for subject in dict.fromkeys(fact.subject for fact in facts):
            rows = [(fact.name, fact.value, fact.note) for fact in facts if fact.subject == subject]
            print_rows(f"[bold]{subject}[/]", rows)
            print()
    outcomes: list[Outcome] = []
    if not args.no_test:
        outcomes = [attempt(name, test, extra) for name, (test, extra) in TESTS.items()]
    if args.json:
        told = {"facts": [asdict(fact) for fact in facts], "tests": [asdict(one) for one in outcomes]}
        print(json.dumps(told, indent=2))
    elif outcomes:
        _show(outcomes)
    return BROKEN if any(one.status == "failed" for one in outcomes) else 0


def _show(outcomes: list[Outcome]) -> None:
    failed = [one.name for one in outcomes if one.status == "failed"]
    seconds = sum(one.seconds for one in outcomes)
    verdict = f"[bold red]{len(failed)} failed[/]" if failed else "[bold green]passed[/]"
    rows = [(one.name, one.status, f"{one.seconds:.1f} s  {one.note}") for one in outcomes]
    print_rows(f"[bold]Self-test[/]: {verdict} in {seconds:.0f} s", rows)


def packages() -> list[Fact]:
    """Return the versions of Python, of this package, and of what each extra needs."""
    facts = [
        Fact("Versions", "steingate", __version__, str(Path(__file__).parents[1])),
        Fact("Versions", "Python", platform.python_version(), sys.executable),
    ]
    for extra, names in extras().items():
        found = {name: installed(name) for name in names}
        missing = [name for name, version in found.items() if version is None]
        there = ", ".join(f"{name} {version}" for name, version in found.items() if version)
        if not extra:
            facts.append(Fact("Versions", "always needed", "there" if not missing else "incomplete", there))
        elif not missing:
            facts.append(Fact("Versions", f"extra {extra}", "there", there))
        else:
            advice = f"without {', '.join(missing)}: {install_command(extra)}"
            facts.append(Fact("Versions", f"extra {extra}", "missing", advice))
    return facts


def extras() -> dict[str, list[str]]:
    """Return the packages that each extra for users names, and under "" those always needed."""
    try:
        lines = metadata.requires("steingate") or []
    except metadata.PackageNotFoundError:  # run from its source folder
        return {}
    found: dict[str, list[str]] = {"": []}
    for line in lines:
        name = re.match(r"[\w.-]+", line)
        extra = re.search(r"extra == ['\"]([\w-]+)['\"]", line)
        if name is not None and name[0] != "steingate":
            found.setdefault(extra[1] if extra else "", []).append(name[0])
    return {extra: names for extra, names in found.items() if extra not in ("all", "test", "docs")}


def installed(name: str) -> str | None:
    """Return the version of a distribution, or None."""
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def machine() -> list[Fact]:
    """Return system, cores, memory and free disk."""
    cores = os.cpu_count() or 1
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else cores
    facts = [
        Fact("Machine", "system", platform.system(), platform.platform()),
        Fact(
            "Machine", "cores", str(usable), "" if usable == cores else f"of {cores}: this process has them"
        ),
    ]
    try:
        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
        facts.append(Fact("Machine", "memory", f"{memory / 2**30:.1f} GB"))
    except (AttributeError, OSError, ValueError):  # there is no sysconf on Windows
        pass
    free = shutil.disk_usage(".").free
    facts.append(Fact("Machine", "free disk", f"{free / 2**30:.1f} GB", f"in {Path.cwd()}"))
    try:
        from steingate.algorithms.common.backend import configure  # before JAX looks at the machine by itself
    except ModuleNotFoundError:
        return facts
    return [*facts, Fact("Machine", "JAX runs on", configure()["platform"])]


def drawing() -> list[Fact]:
    """Return the library that draws tasks without a display, and the program that writes films."""
    facts = []
    chosen = os.environ.get("MUJOCO_GL")
    try:
        from steingate.tasks.render import find_backend
    except ModuleNotFoundError:
        facts.append(Fact("Drawing", "tasks", "missing", install_command("envs")))
    except (SteingateError, ImportError) as error:
        facts.append(Fact("Drawing", "tasks", "broken", str(error)))
    else:
        try:
            facts.append(Fact("Drawing", "tasks", find_backend(), f"MUJOCO_GL={chosen}" if chosen else ""))
        except SteingateError as error:
            facts.append(Fact("Drawing", "tasks", "nothing works", str(error)))
    try:
        from imageio_ffmpeg import get_ffmpeg_exe

        facts.append(Fact("Drawing", "films", "ffmpeg", get_ffmpeg_exe()))
    except (ImportError, RuntimeError):
        facts.append(Fact("Drawing", "films", "missing", install_command("train")))
    return facts


def caches() -> list[Fact]:
    """Return where compiled code is kept and how much there is of it; both folders may be removed."""
    facts = []
    try:
        from steingate.compiled import cache_folder

        facts.append(_folder("simulation (numba)", cache_folder()))
    except ModuleNotFoundError:
        pass
    try:
        from steingate.algorithms.common.backend import cache_dir

        facts.append(_folder("learning (JAX)", cache_dir()))
    except ModuleNotFoundError:
        pass
    return facts


def _folder(name: str, path: Path | None) -> Fact:
    if path is None:
        return Fact("Compiled code", name, "not kept", "no folder can be written: set NUMBA_CACHE_DIR")
    size = sum(file.stat().st_size for file in path.rglob("*") if file.is_file()) if path.is_dir() else 0
    return Fact("Compiled code", name, f"{size / 1e6:.1f} MB", str(path))
