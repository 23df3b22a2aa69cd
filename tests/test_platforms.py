"""Windows, simulated: no module uses what Windows lacks.

Not tested here: locks of msvcrt against another process, a second Ctrl-C, and replacing an open file.
"""

import subprocess
import sys

import pytest

# Imported before the simulation, because these packages check the platform themselves.
PACKAGES = (
    "numpy scipy.special scipy.stats scipy.optimize gymnasium mujoco numba jax "
    "matplotlib.pyplot imageio tensorboardX.record_writer tensorboardX.proto.event_pb2"
)
SCRIPT = f"""
import importlib, os, pkgutil, signal, sys, types
for name in {PACKAGES.split()!r}:
    try:
        importlib.import_module(name)
    except ImportError:
        pass
absent = ["fcntl", "pwd", "grp", "resource", "termios", "tty", "pty", "posix"]
for name in absent:
    sys.modules[name] = None
for name in ["SIGKILL", "SIGHUP", "SIGALRM", "SIGPIPE", "SIGUSR1", "alarm"]:
    delattr(signal, name)
gone = ["O_NONBLOCK", "O_DIRECTORY", "O_NOFOLLOW", "O_CLOEXEC", "fork", "mkfifo", "sysconf", "getuid"]
gone += ["sched_setaffinity", "sched_getaffinity", "setsid", "killpg"]
for name in gone:
    if hasattr(os, name):
        delattr(os, name)
locked = []
msvcrt = types.ModuleType("msvcrt")
msvcrt.LK_NBLCK = 2
msvcrt.locking = lambda descriptor, mode, size: locked.append((mode, size))
sys.modules["msvcrt"] = msvcrt
sys.platform = "win32"

import steingate
names = [item.name for item in pkgutil.walk_packages(steingate.__path__, "steingate.")]
extras = {{"ray", "stable_baselines3", "torch", "wandb"}}
count = 0
for name in names:
    if name.endswith("__main__"):
        continue
    try:
        importlib.import_module(name)
        count += 1
    except ImportError as error:
        missing = (getattr(error, "name", None) or getattr(error.__cause__, "name", None) or "").split(".")[0]
        if missing not in extras and not any(extra in str(error) for extra in extras):
            raise
print("modules", count)

from pathlib import Path
from steingate.cli import main
from steingate.runs import RunFolder, folder_lock
from steingate.storage.checkpoint import read_checkpoint, write_checkpoint
from steingate.storage.tables import Table, read_progress
from steingate.training.stop import stop_on_signals
run = RunFolder(Path(sys.argv[1]))
with folder_lock(run), stop_on_signals(process=True):
    table = Table(run.progress)
    table.append([{{"a": 1}}])
    table.sync()
    table.truncate(1, table.fingerprint())
    print(read_progress(run.path), read_checkpoint(write_checkpoint(run.checkpoints, 3, {{"x": 1}})).tree)
assert locked == [(2, 1)], locked
(run.path / "costs.csv").write_text("1\\n2\\n30\\n")
print(main(["certify", str(run.path / "costs.csv"), "--limit", "25", "--json"]))
print(main(["monitor", str(run.path / "costs.csv"), "--limit", "25", "--state", str(run.path / "s.json")]))
"""


@pytest.mark.skipif(sys.platform == "win32", reason="runs on Windows itself")
def test_modules_and_run_folders_work_without_posix_functions(tmp_path):
    done = subprocess.run([sys.executable, "-c", SCRIPT, str(tmp_path)], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert int(lines[0].split()[1]) > 150
    assert lines[1] == "{'a': [1]} {'x': 1}"
    assert "Traceback" not in done.stderr
