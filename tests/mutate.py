"""Mutation test: make small mistakes one by one, and name those that no test notices. Run by hand.

    python tests/mutate.py                     all of them, some minutes
    python tests/mutate.py --only 3 --only 17  these
    python tests/mutate.py --only wiring       those of a table, or of files whose names hold the word
    python tests/mutate.py --list              what there is

Each mistake of ``tests/mutants.py`` is made in a copy of the tree, where only the tests of that module run,
up to the first failure. A survivor is a mistake after which they all pass. Needs ``fork``: the processes that
run the tests share the imports of what is not under test.
"""

import argparse
import os
import shutil
import signal
import sys
import tempfile
import time
import traceback
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
SOURCE = Path("src/steingate")
TIMEOUT = 300.0  # seconds of one mutant; a loop that never ends is noticed, too


def tests_of(file: str, table) -> tuple[str, ...]:
    """Return the test files that should notice a mistake in a module."""
    for start, tests in table:
        if file.startswith(start):
            return tests
    raise SystemExit(f"mutate: No tests are named for {file}; add them to TESTS.")


def mutated(mutant) -> str:
    """Return the text of the module with the mistake in it; a mutant that no longer fits is refused."""
    text = (ROOT / SOURCE / mutant.file).read_text(encoding="utf-8")
    found = text.count(mutant.old)
    if found != 1:
        raise SystemExit(
            f"mutate: {mutant.old!r} stands {found} times in {mutant.file} instead of once; mend the table."
        )
    return text.replace(mutant.old, mutant.new)


def preload() -> None:
    """Import what the tests need and no mutant changes, so that forked processes need not."""
    import gymnasium  # noqa: F401
    import jax.numpy  # noqa: F401
    import numba  # noqa: F401
    import pytest  # noqa: F401
    import scipy.stats  # noqa: F401


def copied(folder: Path) -> Path:
    """Copy what tests need; compiled kernels come along, compiled Python does not, for it might be stale."""
    for name in ("src", "tests", "examples"):
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("*.pyc", "envs_data"))
    shutil.copy2(ROOT / "pyproject.toml", folder)
    return folder


def run_tests(folder: Path, tests: tuple[str, ...], output: Path) -> int:
    """Start the tests in a process of their own and return its id."""
    pid = os.fork()
    if pid:
        return pid
    status = 99
    try:
        os.setsid()
        os.chdir(folder)
        file = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(file, 1)
        os.dup2(file, 2)
        sys.dont_write_bytecode = True
        sys.path[:0] = [str(folder / "src"), str(folder)]
        # Gymnasium has looked for our tasks already, and the table came from the tree itself.
        for name in [name for name in sys.modules if name.partition(".")[0] in ("steingate", "tests")]:
            del sys.modules[name]
        import pytest

        import steingate

        assert Path(steingate.__file__).is_relative_to(folder), steingate.__file__
        status = int(pytest.main(["-x", "-p", "no:cacheprovider", "-p", "no:xdist", *tests]))
    except BaseException:
        traceback.print_exc()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


class Job(NamedTuple):
    """A mutant being tried, or the unchanged code if there is none."""

    index: int | None
    tests: tuple[str, ...]
    place: int
    began: float


def ended(running: dict[int, Job]) -> tuple[int, int] | None:
    """Wait for a process and return its id and status; one that takes too long is ended, and failed."""
    for pid, job in running.items():
        found, status = os.waitpid(pid, os.WNOHANG)
        if found:
            return pid, os.waitstatus_to_exitcode(status)
        if time.monotonic() - job.began > TIMEOUT:
            os.killpg(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            return pid, 1
    return None


def chosen(only: list[str], mutants, tables) -> list[int]:
    """Return the numbers of the mutants that are asked for, all by default."""
    picked: set[int] = set()
    for word in only:
        if word.isdigit():
            picked.add(int(word))
        else:
            table = tables.get(word.lower(), ())
            picked |= {i for i, mutant in enumerate(mutants) if mutant in table or word in mutant.file}
    if only and not picked <= set(range(len(mutants))):
        raise SystemExit(f"mutate: There are mutants 0 to {len(mutants) - 1}.")
    return sorted(picked) if only else list(range(len(mutants)))


def main() -> int:
    """Try the mutants, print survivors and the score, and return 1 if there are any."""
    parser = argparse.ArgumentParser(description="Make small mistakes one by one and name those unnoticed.")
    parser.add_argument("--only", action="append", default=[], metavar="WHICH", help="number, table or file")
    parser.add_argument("--workers", type=int, default=2, metavar="N", help="processes at a time (2)")
    parser.add_argument("--list", action="store_true", help="print the mutants and end")
    parser.add_argument("--verbose", action="store_true", help="print what failed")
    args = parser.parse_args()
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    sys.path.insert(0, str(ROOT))
    from tests import mutants as table

    mutants = table.MUTANTS
    tables = {name.lower(): rows for name, rows in vars(table).items() if name.isupper()}
    todo = chosen(args.only, mutants, tables)
    texts = {index: mutated(mutants[index]) for index in todo}
    if args.list:
        for index in todo:
            print(f"{index:3d} {mutants[index].file}: {mutants[index].why}")
        return 0
    preload()
    selections = {index: tests_of(mutants[index].file, table.TESTS) for index in todo}
    # The unchanged code comes first: where its tests fail, they cannot tell anything about a mistake.
    waiting = [(None, tests) for tests in dict.fromkeys(selections.values())]
    waiting += [(index, selections[index]) for index in todo]
    with tempfile.TemporaryDirectory(prefix="mutate-") as top:
        places = [copied(Path(top) / str(i)) for i in range(max(1, args.workers))]
        survivors, broken = try_all(waiting, mutants, texts, places, args.verbose)
    tried = len(todo) - sum(selections[index] in broken for index in todo)
    for index in survivors:
        print(f"survived: {index} {mutants[index].file}: {mutants[index].why}")
    for tests in broken:
        print(f"not tried: mutants of {' '.join(tests)}, which fail without any")
    print(f"{tried - len(survivors)} of {tried} mutants were noticed.")
    return 1 if survivors or broken else 0


def try_all(waiting, mutants, texts, places, verbose) -> tuple[list[int], set[tuple[str, ...]]]:
    """Run all jobs, as many at a time as there are places; return survivors, and tests that fail anyway."""
    running: dict[int, Job] = {}
    survivors: list[int] = []
    broken: set[tuple[str, ...]] = set()
    unchecked = {tests for index, tests in waiting if index is None}
    free = list(range(len(places)))
    try:
        while waiting or running:
            ready = next((job for job in waiting if job[0] is None or job[1] not in unchecked), None)
            if free and ready is not None:
                waiting.remove(ready)
                index, tests = ready
                if tests in broken:
                    continue
                place = free.pop()
                if index is not None:
                    (places[place] / SOURCE / mutants[index].file).write_text(texts[index], encoding="utf-8")
                pid = run_tests(places[place], tests, places[place] / "output.txt")
                running[pid] = Job(index, tests, place, time.monotonic())
                continue
            found = ended(running)
            if found is None:
                time.sleep(0.1)
                continue
            job = running.pop(found[0])
            free.append(job.place)
            report(job, found[1], mutants, places[job.place], verbose)
            if job.index is None:
                unchecked.discard(job.tests)
                if found[1] != 0:
                    broken.add(job.tests)
                continue
            file = SOURCE / mutants[job.index].file
            shutil.copy2(ROOT / file, places[job.place] / file)
            if found[1] == 0:
                survivors.append(job.index)
    finally:
        for pid in running:
            os.killpg(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
    return survivors, broken


def report(job: Job, status: int, mutants, place: Path, verbose: bool) -> None:
    """Print one line about a job, and what failed."""
    seconds = time.monotonic() - job.began
    if job.index is None:
        print(f"    {'fine' if status == 0 else 'FAILS'} {' '.join(job.tests)} ({seconds:.0f} s)", flush=True)
    else:
        mutant = mutants[job.index]
        word = "SURVIVED" if status == 0 else "noticed"
        print(f"{job.index:3d} {word} {mutant.file}: {mutant.why} ({seconds:.0f} s)", flush=True)
    if verbose or (job.index is None and status != 0):
        lines = (place / "output.txt").read_text(encoding="utf-8", errors="replace").splitlines()
        print("\n".join(f"    | {line}" for line in lines[-12:]), flush=True)


if __name__ == "__main__":
    sys.exit(main())
