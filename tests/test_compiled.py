"""Cached machine code belongs to its sources and gives the same bits as the process that compiled it."""

import ast
import os
import pty
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import steingate
from steingate import compiled as module
from steingate.compiled import COMPILE_MESSAGE, MAX_VERSIONS

PACKAGE = Path(steingate.__file__).parent

CALLEE = """
from steingate.compiled import compiled
@compiled
def inner(x):
    return 2 * x
"""
CALLER = """
from steingate.compiled import compiled
from steingate.tasks.callee import inner
from steingate.tasks.constants import SHIFT
@compiled
def outer(x):
    return inner(x) + SHIFT
"""
RUN = """
from steingate.tasks.caller import outer
print(outer(1.0), sum(outer.stats.cache_hits.values()))
"""
ROLLOUT = """
import hashlib, sys
import gymnasium
import numpy as np
import steingate
digest = hashlib.sha256()
for name in sys.argv[1:]:
    envs = gymnasium.make_vec(f"steingate/{name}", num_envs=8)
    digest.update(envs.reset(seed=0)[0].tobytes())
    for actions in np.random.default_rng(0).uniform(-1, 1, (300, *envs.action_space.shape)):
        obs, reward, *_ = envs.step(actions)
        digest.update(obs.tobytes() + reward.tobytes())
print(digest.hexdigest())
"""


@pytest.fixture
def package(tmp_path):
    """Return the folder of a small package in place of steingate, with kernels in two files."""
    package = tmp_path / "steingate"
    (package / "tasks").mkdir(parents=True)
    (package / "__init__.py").write_text("")
    shutil.copy(PACKAGE / "compiled.py", package)
    files = {"__init__": "", "constants": "SHIFT = 0.5\n", "callee": CALLEE, "caller": CALLER}
    for name, text in files.items():
        (package / "tasks" / f"{name}.py").write_text(text)
    return package


def run(source, code, *arguments, stderr=subprocess.PIPE, **environment):
    """Return what a new process prints that imports steingate from the folder ``source``."""
    variables = {k: v for k, v in os.environ.items() if k not in ("NUMBA_CACHE_DIR", "XDG_CACHE_HOME")}
    variables |= {"PYTHONPATH": str(source), "PYTHONDONTWRITEBYTECODE": "1", **environment}
    command = [sys.executable, "-c", code, *arguments]
    return subprocess.run(
        command, env=variables, stdout=subprocess.PIPE, stderr=stderr, text=True, timeout=1200, check=True
    ).stdout.split()


def test_changes_in_other_files_recompile_and_old_versions_are_deleted(package):
    source = package.parent
    assert run(source, RUN) == ["2.5", "0"]
    assert run(source, RUN) == ["2.5", "1"]
    (package / "tasks" / "callee.py").write_text(CALLEE.replace("2 *", "3 *"))
    assert run(source, RUN) == ["3.5", "0"]
    (package / "tasks" / "constants.py").write_text("SHIFT = 1.5\n")
    assert run(source, RUN) == ["4.5", "0"]
    (package / "unrelated.py").write_text("SHIFT = 9\n")
    assert run(source, RUN) == ["4.5", "1"]
    (package / "tasks" / "constants.py").write_text("SHIFT = 2.5\n")
    run(source, RUN)
    assert len(list((package / "__pycache__" / "steingate-numba").iterdir())) == MAX_VERSIONS


def test_every_kernel_and_its_constants_are_in_the_source_hash():
    hashed = {file for pattern in module._SOURCES for file in PACKAGE.glob(pattern)}
    for file in PACKAGE.rglob("*.py"):
        text = file.read_text()
        if "import compiled\n" not in text:
            assert "njit" not in text or file.name == "compiled.py", f"{file}: use @compiled"
            continue
        assert file in hashed, f"add {file} to steingate.compiled._SOURCES"
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.ImportFrom) and node.module.startswith("steingate."):
                imported = PACKAGE.parent.joinpath(*node.module.split(".")).with_suffix(".py")
                assert not imported.is_file() or imported in hashed or imported.stem == "errors", imported


@pytest.mark.parametrize(
    ("blocked", "environment", "cache"),
    [
        ([], {}, "steingate/__pycache__"),
        (["steingate/__pycache__"], {"XDG_CACHE_HOME": "{}/user"}, "user"),
        (["steingate/__pycache__", "home"], {}, None),
    ],
)
def test_cache_location(package, blocked, environment, cache):
    """Root can write everywhere, so an unwritable folder is simulated by a file in its place."""
    source = package.parent
    for name in blocked:
        (source / name).write_text("")
    variables = {"HOME": f"{source}/home"} | {k: v.format(source) for k, v in environment.items()}
    assert run(source, RUN, **variables) == ["2.5", "0"]
    assert run(source, RUN, **variables) == ["2.5", "0" if cache is None else "1"]
    found = {file.relative_to(source).as_posix() for file in source.rglob("*.nbi")}
    assert bool(found) == (cache is not None)
    assert all(file.startswith(f"{cache}/steingate-numba/") for file in found)


def test_a_terminal_shows_one_message_while_compiling(package):
    leader, follower = pty.openpty()
    assert run(package.parent, RUN, stderr=follower) == ["2.5", "0"]
    assert run(package.parent, RUN, stderr=follower) == ["2.5", "1"]
    os.close(follower)
    assert os.read(leader, 10_000).decode().strip() == COMPILE_MESSAGE
    os.close(leader)


@pytest.mark.slow
def test_bits_do_not_depend_on_cache_or_import_order(tmp_path):
    """Processes that compile all, load all, compile in another order, and compile the callers only."""
    tasks = ["SafetyCarGoal1-v0", "SafetyHalfCheetahVelocity-v1"]

    def rollout(names, cache):
        return run(PACKAGE.parent, ROLLOUT, *names, NUMBA_CACHE_DIR=str(tmp_path / cache))

    expected = rollout(tasks, "one")
    assert rollout(tasks, "one") == expected
    run(PACKAGE.parent, ROLLOUT, "SafetyCarCircle1-v0", NUMBA_CACHE_DIR=str(tmp_path / "two"))
    assert rollout(tasks, "two") == expected
    indexes = [file for file in (tmp_path / "one").rglob("*.nbi") if ".advance_agents-" in file.name]
    assert indexes
    for file in indexes:
        file.unlink()
    assert rollout(tasks, "one") == expected
