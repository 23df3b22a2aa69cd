"""Machine code on disk belongs to the sources it was made from, all of them."""

import math
import os
import pty
import shutil
import subprocess
import sys
import time
from pathlib import Path

import numba
import pytest
from llvmlite.binding import Linkage
from numba.core.codegen import JITCodeLibrary

import steingate
from steingate import compiled as module
from steingate.compiled import KEPT, NOTICE, compiled, source_digest

SOURCE = Path(steingate.__file__).parents[1]

CALLEE = """
from steingate.compiled import compiled
{constant}
@compiled
def inner(x):
    return {factor} * x
"""
CALLER = """
from steingate.compiled import compiled
from small.deep import callee
from small.constants import SHIFT

@compiled
def outer(x):
    return callee.inner(x) + SHIFT
"""
RUN = """
import sys
from small.caller import outer
print(outer(1.0), sum(outer.stats.cache_hits.values()), sum(outer.stats.cache_misses.values()))
"""
CAR = """
import hashlib
import gymnasium
import numpy as np
import steingate
envs = gymnasium.make_vec("steingate/SafetyCarCircle1-v0", num_envs=8)
seen = hashlib.sha256(envs.reset(seed=0)[0].tobytes())
for actions in np.random.default_rng(0).uniform(-1, 1, (300, 8, 2)):
    obs, reward, *_ = envs.step(actions)
    seen.update(obs.tobytes() + reward.tobytes())
from steingate.tasks.contact_plan import plan
print(seen.hexdigest(), sum(plan.stats.cache_misses.values()))
"""


@pytest.fixture
def small(tmp_path):
    """Return the folder of a package whose compiled function calls one in another file."""
    package = tmp_path / "small"
    (package / "deep").mkdir(parents=True)
    for folder in (package, package / "deep"):
        (folder / "__init__.py").write_text("")
    (package / "constants.py").write_text("SHIFT = 0.5\n")
    (package / "deep" / "callee.py").write_text(CALLEE.format(factor=2, constant=""))
    (package / "caller.py").write_text(CALLER)
    return package


def run(package, code=RUN, *, patience=120, **environment):
    """Return what a new process prints, with the package at hand."""
    paths = os.pathsep.join([str(package.parent), str(SOURCE)])
    variables = {k: v for k, v in os.environ.items() if k not in ("NUMBA_CACHE_DIR", "XDG_CACHE_HOME")}
    variables |= {"PYTHONPATH": paths, "HOME": str(package.parent / "home"), "PYTHONDONTWRITEBYTECODE": "1"}
    result = subprocess.run(
        [sys.executable, "-c", code],
        env=variables | environment,
        capture_output=True,
        text=True,
        timeout=patience,
    )
    assert result.returncode == 0, result.stderr
    assert result.stderr == ""
    return result.stdout.split()


def test_a_changed_callee_or_constant_in_another_file_is_compiled_anew(small):
    assert run(small) == ["2.5", "0", "1"]
    assert run(small) == ["2.5", "1", "0"]
    (small / "deep" / "callee.py").write_text(CALLEE.format(factor=3, constant=""))
    assert run(small) == ["3.5", "0", "1"]
    (small / "constants.py").write_text("SHIFT = 1.5\n")
    assert run(small) == ["4.5", "0", "1"]
    (small / "unrelated.py").write_text("SHIFT = 9\n")
    assert run(small) == ["4.5", "1", "0"]


def test_old_machine_code_is_cleared_away(small):
    folder = small / "__pycache__" / "steingate-numba" / "small.deep.callee"
    for factor in range(KEPT + 1):
        (small / "deep" / "callee.py").write_text(CALLEE.format(factor=factor, constant=""))
        run(small, "import small.caller")
        assert (folder / source_digest(small / "deep" / "callee.py")).is_dir()
    assert len(list(folder.iterdir())) == KEPT


def test_a_read_only_package_is_cached_in_the_users_folder(small):
    """Root may write anywhere, so a file stands where the package's own folder would go."""
    (small / "__pycache__").write_text("in the way")
    assert run(small) == ["2.5", "0", "1"]
    assert run(small) == ["2.5", "1", "0"]
    assert list((small.parent / "home" / ".cache").glob("steingate-numba-*/small.caller/*/*/*.nbi"))


def test_nowhere_to_write_only_costs_time(small):
    for name in (small / "__pycache__", small.parent / "home"):
        name.write_text("in the way")
    assert run(small)[0] == "2.5"
    assert run(small)[0] == "2.5"


def test_numbas_own_variable_decides_where_the_cache_is(small, tmp_path):
    run(small, NUMBA_CACHE_DIR=str(tmp_path / "mine"))
    assert list((tmp_path / "mine").rglob("*.nbi"))
    assert not (small / "__pycache__").exists()


def test_functions_of_others_are_cached_as_ever(tmp_path):
    """Numba's setting is as it was, for the function a user compiles next."""
    before = numba.config.CACHE_DIR
    compiled(test_functions_of_others_are_cached_as_ever)
    assert before == numba.config.CACHE_DIR


def test_functions_without_a_file_are_compiled_but_not_cached():
    space = {}
    exec("def twice(x):\n    return 2 * x", space)
    twice = compiled(space["twice"])
    assert twice(4) == 8
    assert twice.stats.cache_path is None


def test_options_are_handed_on():
    assert compiled(lambda a, b: a / b, error_model="numpy")(1.0, 0.0) == float("inf")
    assert compiled(error_model="numpy")(lambda a, b: a / b)(1.0, 0.0) == float("inf")
    with pytest.raises(ZeroDivisionError):
        compiled(lambda a, b: a / b)(1.0, 0.0)


def test_calls_stay_within_their_own_machine_code(monkeypatch):
    """Numba would let other libraries have the copies of what a function calls, and have theirs instead."""
    made = {}
    finish = JITCodeLibrary._finalize_final_module

    def look(self):
        defined = [f for f in self._final_module.functions if not f.is_declaration]
        made[self.name] = [f.linkage for f in defined if "long" in f.name]
        finish(self)

    monkeypatch.setattr(JITCodeLibrary, "_finalize_final_module", look)
    space = {"math": math}
    body = "    x = 0.5 * x + math.sin(x)\n" * 40  # too long to be inlined
    exec(f"def long(x):\n{body}    return x", space)
    long = space["long"] = compiled(space["long"])
    exec("def twice(x):\n    return long(long(x))\ndef again(x):\n    return twice(x) + long(x)", space)
    twice = space["twice"] = compiled(space["twice"])
    again = compiled(space["again"])
    assert again(1.0) == twice(1.0) + long(1.0)
    assert twice(1.0) == long(long(1.0))
    assert Linkage.external in made["long"]
    assert made["twice"] == made["again"] == [Linkage.internal]


@pytest.mark.slow
def test_the_process_that_compiles_gets_the_bits_of_those_that_load(small, tmp_path):
    """The Car's products and sums are fused, so two copies of a function may round differently."""
    cache = tmp_path / "cache"

    def bits():
        return run(small, CAR, patience=1200, NUMBA_CACHE_DIR=str(cache))

    first, compiled_first = bits()
    assert bits() == [first, "0"]
    (folder,) = cache.glob("*/steingate.tasks.contact_plan")
    shutil.rmtree(folder)
    assert bits() == [first, compiled_first]  # what it calls was loaded
    assert compiled_first == "1"


def test_the_digest_covers_imports_of_every_form(tmp_path):
    package = tmp_path / "pack"
    (package / "sub").mkdir(parents=True)
    files = {
        "__init__.py": "",
        "sub/__init__.py": "from . import d\nw = 4\n",
        "a.py": "import pack.b\nfrom .sub.c import x\nimport math\n",
        "b.py": "def f():\n    from pack.sub import e\n",
        "sub/c.py": "from ..f import (\n    y,\n)\nx = 1",
        "sub/d.py": "",
        "sub/e.py": "import pack.a\nfrom . import w",
        "f.py": "y = 2",
        "g.py": "z = 3",
    }
    for name, text in files.items():
        (package / name).write_text(text)
    before = source_digest(package / "a.py")
    for name in ("b.py", "sub/c.py", "sub/d.py", "sub/e.py", "f.py", "sub/__init__.py"):
        module._imports.cache_clear()
        (package / name).write_text(files[name] + "\n# changed")
        assert source_digest(package / "a.py") != before, name
        (package / name).write_text(files[name])
    module._imports.cache_clear()
    (package / "g.py").write_text("z = 4")
    assert source_digest(package / "a.py") == before


def test_no_module_of_the_package_compiles_past_the_cache():
    """Every compiled function goes through ``compiled``: numba's own decorator would cache dishonestly."""
    sources = {path: path.read_text() for path in Path(steingate.__file__).parent.rglob("*.py")}
    users = [path.name for path, text in sources.items() if "njit" in text]
    assert users == ["compiled.py"]


def test_a_terminal_is_told_once_why_it_waits(small):
    """Only functions of this package are spoken of, so the listener is made to think it is the small one."""
    code = "import steingate.compiled as c; c.__name__ = 'small.x'\n" + RUN
    leader, follower = pty.openpty()
    variables = {**os.environ, "PYTHONPATH": os.pathsep.join([str(small.parent), str(SOURCE)])}
    process = subprocess.Popen(
        [sys.executable, "-c", code], env=variables, stderr=follower, stdout=subprocess.PIPE
    )
    out, _ = process.communicate(timeout=120)
    os.close(follower)
    time.sleep(0.05)
    said = os.read(leader, 10_000).decode()
    os.close(leader)
    assert out.split()[0] == b"2.5"
    assert said.split("\n")[0].strip() == NOTICE
    assert said.count(NOTICE) == 1
