"""Several processes step environments: the same numbers as one, one sentence for each mishap, no orphans."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import gymnasium
import numpy as np
import pytest
from gymnasium.spaces import Box

from steingate.envs import worker_speed as pace
from steingate.envs.foreign import EnvFailedError, OneEnv
from steingate.envs.make import make_vec
from steingate.envs.worker_pool import Workers
from steingate.errors import InputError, RunError

WALK, CRASHES = "tests.training.probes:Walk", "tests.envs.test_crew:Crashes"
ROOT = Path(__file__).parents[2]


class Crashes(gymnasium.Env):
    """Ends its process, raises, gives no cost, or says something that no message can hold."""

    def __init__(self, how="exit", seed_that_fails=12):
        self.observation_space = Box(-1.0, 1.0, (1,))
        self.action_space = Box(-1.0, 1.0, (1,))
        self.how, self.fails = how, seed_that_fails

    def reset(self, *, seed=None, options=None):
        self.bad = seed == self.fails
        return np.zeros(1), {}

    def step(self, action):
        info = {"cost": 0.5, "lock": (lambda: None) if self.how == "info" else 1}
        if self.bad and self.how == "exit":
            os._exit(7)
        if self.bad and self.how == "raise":
            raise ZeroDivisionError("lost\n the way.")
        if self.bad and self.how == "silent":
            info = {}
        return np.zeros(1), 1.0, False, False, info


def numbers(vec, steps=30):
    """Everything that 30 steps give, as one list of arrays."""
    rng, found = np.random.default_rng(3), [vec.reset(seed=5)[0]]
    for _ in range(steps):
        obs, reward, terminated, truncated, info = vec.step(rng.uniform(-2.0, 2.0, vec.action_space.shape))
        found += [obs, reward, terminated, truncated, info["cost"]]
        found += [info[key] for key in ("final_obs", "_final_obs") if key in info]
    return found


def test_the_same_numbers_and_snapshots_with_one_process_and_with_several():
    one, two = make_vec(WALK, 5), make_vec(WALK, 5, workers=2)
    try:
        assert (one.workers, two.workers) == (1, 2)
        alone, together = numbers(one), numbers(two)
        assert len(alone) == len(together)
        assert all(np.array_equal(a, b) for a, b in zip(alone, together, strict=True))
        saved = one.snapshot()
        assert saved.keys() == two.snapshot().keys()
        later = numbers(two)
        two.restore(saved)
        one.restore(saved)
        action = np.full((5, 2), 0.3)
        assert np.array_equal(one.step(action)[0], two.step(action)[0])
        assert all(np.array_equal(a, b) for a, b in zip(later, alone, strict=True))
    finally:
        two.close()
    assert all(process.returncode == 0 for process in two._crew._processes)


def test_what_an_environment_does_wrong_is_said_as_in_one_process():
    for how, kind, words in (
        ("raise", EnvFailedError, "ZeroDivisionError: lost the way"),
        ("silent", InputError, "gives no cost"),
        ("exit", RunError, "environment 2 to 3 of .*Crashes' ended with status 7; .*workers=1"),
    ):
        vec = make_vec(CRASHES, 4, workers=2, how=how)
        try:
            vec.reset(seed=10)
            with pytest.raises(kind, match=words) as caught:
                vec.step(np.zeros((4, 1)))
            if how == "raise":
                assert vec.at_work == 2
                assert "test_crew.py, line" in caught.value.place
        finally:
            vec.close()


def test_an_info_that_no_message_can_hold_is_left_out():
    vec = make_vec(CRASHES, 2, workers=2, how="info")
    try:
        vec.reset(seed=0)
        info = vec.step(np.zeros((2, 1)))[4]
        assert info["cost"].tolist() == [0.5, 0.5]
        assert "lock" not in info
    finally:
        vec.close()


def test_what_has_no_name_is_stepped_here_and_the_user_is_told():
    vec = make_vec(lambda: Crashes("none"), 3, workers=2)
    assert vec.workers == 1
    assert vec.notes == [
        "workers=2 has no effect for an environment that other processes cannot find by name; "
        "put it into a file and give env='./FILE.py:NAME' to use several."
    ]
    with pytest.raises(InputError, match="workers is 0"):
        make_vec(WALK, 2, workers=0)


class TestPace:
    def test_slow_steps_are_worth_processes_and_quick_ones_are_not(self, monkeypatch):
        env = OneEnv(Crashes("none"), "it")
        for seconds, expected in ((1e-6, 1), (1e-4, 1), (1e-3, 2), (1.0, 2)):
            monkeypatch.setattr(pace, "seconds_of_step", lambda env, s=seconds: s)
            count, note = pace.worth_of_processes(env, 8, None, True, cores=2)
            assert count == expected
            assert bool(note) == (expected > 1)
        assert pace.worth_of_processes(env, 8, None, False, cores=2)[0] == 1
        assert "A step takes 1e+03 ms" in pace.worth_of_processes(env, 8, None, False, cores=2)[1]
        assert pace.worth_of_processes(env, 8, None, True, cores=1) == (1, "")
        assert pace.worth_of_processes(env, 3, 5, True) == (3, "")

    def test_an_environment_that_fails_is_not_measured(self):
        assert pace.seconds_of_step(OneEnv(Crashes("raise", seed_that_fails=0), "it")) is None
        assert pace.seconds_of_step(OneEnv(Crashes("none"), "it")) > 0.0


SCRIPT = """
import sys, time
from steingate.envs.make import make_vec
vec = make_vec("tests.training.probes:Walk", 2, workers=2, pause=float(sys.argv[1]))
print(*(process.pid for process in vec._crew._processes), flush=True)
vec.reset(seed=0)
while True:
    vec.step(vec.action_space.sample())
"""


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT], ids=str)
def test_no_process_outlives_the_one_that_started_it(how):
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
    """Whether a process is there and not waiting to be buried."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_a_worker_that_is_killed_between_steps_is_one_sentence():
    vec = make_vec(WALK, 2, workers=2)
    assert isinstance(vec._crew, Workers)
    try:
        vec.reset(seed=0)
        vec._crew._processes[1].kill()
        vec._crew._processes[1].wait()
        with pytest.raises(RunError, match=r"environment 1 of .*Walk' ended with signal 9"):
            vec.step(np.zeros((2, 2)))
    finally:
        vec.close()
