"""Worker processes: the same numbers as in one process, clear errors, no orphaned processes."""

import os
import signal
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import gymnasium
import numpy as np
import pytest
from gymnasium.spaces import Box

from steingate.envs.make import make_vec
from steingate.envs.worker_pool import EnvFailedError, LocalEnvs
from steingate.errors import InputError, RunError

WALK, CRASHES = "tests.training.probes:Walk", "tests.envs.test_worker_pool:Crashes"
ROOT = Path(__file__).parents[2]


class Crashes(gymnasium.Env):
    """Ends its process, raises, or gives no cost."""

    def __init__(self, how="exit", failing_seed=12):
        self.observation_space = Box(-1.0, 1.0, (1,))
        self.action_space = Box(-1.0, 1.0, (1,))
        self.how, self.failing_seed = how, failing_seed

    def reset(self, *, seed=None, options=None):
        self.fails = seed == self.failing_seed
        return np.zeros(1), {}

    def step(self, action):
        info = {"cost": 0.5}
        if self.fails and self.how == "exit":
            os._exit(7)
        if self.fails and self.how == "raise":
            raise ZeroDivisionError("lost\n the way.")
        if self.fails and self.how == "silent":
            info = {}
        if self.how == "odd":
            info["odd"] = lambda: None
        return np.zeros(1), 1.0, False, False, info


def rollout(vec, steps=30):
    """Return all arrays of a rollout."""
    rng, found = np.random.default_rng(3), [vec.reset(seed=5)[0]]
    for _ in range(steps):
        obs, reward, terminated, truncated, info = vec.step(rng.uniform(-2.0, 2.0, vec.action_space.shape))
        found += [obs, reward, terminated, truncated, info["cost"]]
        found += [info[key] for key in ("final_obs", "_final_obs") if key in info]
    return found


def test_results_and_snapshots_equal_those_of_one_process():
    one = make_vec(WALK, 5)
    with closing(make_vec(WALK, 5, workers=2)) as two:
        assert isinstance(one.worker_pool, LocalEnvs)
        assert len(two.worker_pool.processes) == 2
        alone, together = rollout(one), rollout(two)
        assert len(alone) == len(together)
        assert all(np.array_equal(a, b) for a, b in zip(alone, together, strict=True))
        saved = one.snapshot()
        assert saved.keys() == two.snapshot().keys()
        later = rollout(two)
        two.restore(saved)
        one.restore(saved)
        action = np.full((5, 2), 0.3)
        assert np.array_equal(one.step(action)[0], two.step(action)[0])
        assert all(np.array_equal(a, b) for a, b in zip(later, alone, strict=True))
    assert all(process.returncode == 0 for process in two.worker_pool.processes)


@pytest.mark.parametrize(
    ("how", "error", "words"),
    [
        ("raise", EnvFailedError, r"ZeroDivisionError: lost the way \(.*test_worker_pool.py, line \d+\)"),
        ("silent", InputError, "gives no cost"),
        ("exit", RunError, "environment 2 to 3 of .*Crashes' ended with status 7; .*workers=1"),
    ],
)
def test_errors_of_environments_are_passed_on(how, error, words):
    with closing(make_vec(CRASHES, 4, workers=2, how=how)) as vec:
        vec.reset(seed=10)
        with pytest.raises(error, match=words):
            vec.step(np.zeros((4, 1)))
        assert how == "exit" or vec.current_env == 2


def test_an_environment_that_others_cannot_make_is_stepped_in_this_process(monkeypatch):
    monkeypatch.setattr(gymnasium, "registry", dict(gymnasium.registry))
    monkeypatch.setattr(gymnasium.envs.registration, "registry", gymnasium.registry)
    gymnasium.register("OnlyHere-v0", entry_point=Crashes)
    for env, reason in (
        (lambda: Crashes("none"), "others cannot import the environment; put it into a file"),
        ("OnlyHere-v0", "There is no environment 'OnlyHere-v0'"),
    ):
        vec = make_vec(env, 3, workers=2)
        assert isinstance(vec.worker_pool, LocalEnvs)
        (message,) = vec.messages
        assert f"All environments are stepped in one process: {reason}" in message
    with pytest.raises(InputError, match="workers is 0"):
        make_vec(WALK, 2, workers=0)


@pytest.mark.parametrize(("pause", "processes"), [(0.0, 1), (0.002, 2)])
def test_slow_environments_are_stepped_by_several_processes(pause, processes):
    with closing(make_vec(WALK, 2, workers=None, threads=2, pause=pause)) as vec:
        assert isinstance(vec.worker_pool, LocalEnvs) == (processes == 1)
        assert len(vec.messages) == processes - 1


SCRIPT = """
import sys, time
from steingate.envs.make import make_vec
vec = make_vec("tests.training.probes:Walk", 2, workers=2, pause=float(sys.argv[1]))
print(*(process.pid for process in vec.worker_pool.processes), flush=True)
vec.reset(seed=0)
while True:
    vec.step(vec.action_space.sample())
"""


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT], ids=str)
def test_workers_end_with_their_parent(how):
    paths = os.pathsep.join([str(ROOT), *sys.path])
    parent = subprocess.Popen(
        [sys.executable, "-c", SCRIPT, "0.05"],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env={**os.environ, "PYTHONPATH": paths},
    )
    assert parent.stdout is not None
    children = [int(word) for word in parent.stdout.readline().split()]
    assert len(children) == 2
    parent.send_signal(how)
    parent.wait()
    parent.stdout.close()
    for _ in range(600):
        if not any(map(_runs, children)):
            break
        time.sleep(0.1)
    assert not any(map(_runs, children))


def _runs(pid):
    """Return whether a process exists and is not a zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_infos_that_cannot_be_pickled_are_left_out():
    with closing(make_vec(CRASHES, 2, workers=2, how="odd")) as vec:
        vec.reset(seed=0)
        info = vec.step(np.zeros((2, 1)))[4]
        assert info["cost"].tolist() == [0.5, 0.5]
        assert "odd" not in info


def test_a_killed_worker_is_reported():
    with closing(make_vec(WALK, 2, workers=2)) as vec:
        vec.reset(seed=0)
        vec.worker_pool.processes[1].kill()
        vec.worker_pool.processes[1].wait()
        with pytest.raises(RunError, match=r"environment 1 of .*Walk' ended with signal 9"):
            vec.step(np.zeros((2, 2)))
