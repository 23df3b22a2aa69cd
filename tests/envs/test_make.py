"""Environments by name: every form of a name, recorded names, and errors for wrong names."""

import functools
import os
import sys

import gymnasium
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode
from tests.training.probes import Walk

from steingate.envs.make import EnvName, env_name, import_folder, make_vec, short_name
from steingate.errors import InputError
from steingate.tasks.catalog import TASKS

MODULE = """
import gymnasium
import numpy as np
from gymnasium import spaces

class Line(gymnasium.Env):
    observation_space = spaces.Box(-np.inf, np.inf, (1,), np.float64)
    action_space = spaces.Box(-1, 1, (1,), np.float64)

    def __init__(self, gain=1.0):
        self.gain = gain

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.place = self.np_random.uniform(-1, 1, 1)
        return self.place.copy(), {}

    def step(self, action):
        self.place = self.place + self.gain * action
        return self.place.copy(), 1.0, False, False, {"cost": float(self.place[0] > 0)}

class Silent(Line):
    def step(self, action):
        return *super().step(action)[:4], {}

class Six(Line):
    def step(self, action):
        obs, reward, terminated, truncated, info = super().step(action)
        return obs, reward, info["cost"], terminated, truncated, info

def far(obs, action, next_obs, info):
    return float(abs(next_obs[0]) > 1)

number = 3
gymnasium.register("LineFive-v0", entry_point=Line, max_episode_steps=4)
gymnasium.register("LineSix-v0", entry_point=Six, max_episode_steps=4)
"""


@pytest.fixture(autouse=True)
def _module(tmp_path, monkeypatch):
    """Put modules of a user on the path; unload them afterwards."""
    (tmp_path / "user_tasks.py").write_text(MODULE)
    (tmp_path / "user_broken.py").write_text("import a_missing_package\n")
    (tmp_path / "user_wrong.py").write_text("def f(:\n")
    (tmp_path / "user_raises.py").write_text("raise ValueError('two\\nlines')\n")
    monkeypatch.syspath_prepend(tmp_path)
    yield
    for name in [name for name in sys.modules if name.startswith("user_")]:
        del sys.modules[name]
    for name in ("LineFive-v0", "LineSix-v0"):
        gymnasium.registry.pop(name, None)


def steps(env, count, action=0.5):
    env.reset(seed=0)
    return [env.step(np.full(env.action_space.shape, action)) for _ in range(count)]


@pytest.mark.parametrize(
    ("spec", "limit"),
    [("user_tasks:Line", None), ("user_tasks:Six", None), ("user_tasks:LineFive-v0", 4), ("user_tasks:LineSix-v0", 4)],
)
def test_names_of_environments_in_modules(spec, limit):
    env = make_vec(spec, 2)
    assert env.num_envs == 2
    assert env.max_episode_steps == limit
    assert env.metadata["autoreset_mode"] is AutoresetMode.SAME_STEP
    for k, (obs, reward, terminated, truncated, info) in enumerate(steps(env, 8), 1):
        ended = limit is not None and k % limit == 0
        assert truncated.tolist() == [ended, ended]
        assert not terminated.any()
        assert reward.tolist() == [1, 1]
        shown = info["final_obs"] if ended else obs
        assert np.array_equal(info["cost"], (shown[:, 0] > 0).astype(float))


def test_the_cost_may_be_given_by_name():
    env = make_vec("user_tasks:Silent", 1, cost="user_tasks:far")
    costs = [(step[4]["cost"][0], abs(step[0][0, 0]) > 1) for step in steps(env, 6)]
    assert all(cost == float(far) for cost, far in costs)
    assert {cost for cost, _ in costs} == {0.0, 1.0}
    with pytest.raises(InputError, match=r"'user_tasks:Silent' gives no cost"):
        steps(make_vec("user_tasks:Silent", 1), 1)
    for cost in ("user_tasks:number", "user_tasks:nothing", "user_tasks"):
        with pytest.raises(InputError, match="module:function"):
            make_vec("user_tasks:Silent", 1, cost=cost)


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ("SafetyPointGoal9-v0", "did you mean SafetyPointGoal"),
        ("Pendulumm-v1", "did you mean Pendulum-v1"),
        ("zzzzzzzzzzzz", "steingate envs"),
        ("user_tasks:Lin", "Module 'user_tasks' has no class or function 'Lin' .*did you mean Line"),
        ("user_tasks:number", "no class or function 'number' that makes an environment"),
        ("user_missing:Line", "no module 'user_missing'"),
        ("user_broken:Line", "a_missing_package"),
        ("user_wrong:Line", "cannot be imported"),
    ],
)
def test_errors_for_wrong_names(spec, words):
    with pytest.raises(InputError, match=words) as caught:
        make_vec(spec, 1)
    text = str(caught.value)
    assert "\n" not in text
    assert text[-1] in ".?"
    assert not text.endswith("?.")


def test_errors_for_wrong_options():
    with pytest.raises(InputError, match=r"'user_tasks:Line' cannot be made.*gian"):
        make_vec("user_tasks:Line", 1, gian=2.0)
    with pytest.raises(InputError, match=r"'Pendulum-v1' cannot be made.*gian"):
        make_vec("Pendulum-v1", 1, gian=2.0)
    for number in (0, -1, 2.5, "two"):
        with pytest.raises(InputError, match="positive integer"):
            make_vec("Pendulum-v1", number)
    name = next(iter(TASKS))
    with pytest.raises(InputError, match=r"no option 'gian': it takes .*threads"):
        make_vec(name, 1, gian=2.0)
    with pytest.raises(InputError, match="no option 'cost'"):
        make_vec(name, 1, cost="user_tasks:far")


FILE = """
from dataclasses import dataclass
from beside import GAIN
from tests.training.probes import Walk

@dataclass
class Size:
    limit: int = 7

class Mine(Walk):
    def __init__(self, **options):
        super().__init__(limit=Size().limit, **options)
        self.gain = GAIN

def cost(obs, action, next_obs, info):
    return 0.25
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with a file and a module of a user; the import path is restored afterwards."""
    (tmp_path / "my_file.py").write_text(FILE)
    (tmp_path / "beside.py").write_text("GAIN = 3\n")
    (tmp_path / "wrong.py").write_text("import a_missing_package\n")
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.chdir(tmp_path)
    yield tmp_path
    for name in [name for name in sys.modules if "my_file" in name or name == "beside"]:
        del sys.modules[name]


class Factory:
    """A callable object that makes environments."""

    def __call__(self):
        return Walk(limit=3)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (Walk, "tests.training.probes:Walk"),
        ("CartPole-v1", "CartPole-v1"),
        ("a.b:C", "a.b:C"),
        (lambda: Walk(), "python:lambda"),
        (functools.partial(Walk, limit=4), "python:Walk"),
        (Factory(), "python:Factory"),
    ],
    ids=["class", "id", "module", "lambda", "partial", "instance"],
)
def test_recorded_names(value, text):
    name = env_name(value)
    assert name == text
    assert env_name(name) is name
    if text.startswith("python:"):
        assert isinstance(name, EnvName)
        vec = make_vec(name, 2)
        assert isinstance(vec.worker_pool.adapters[0].env, Walk)


def test_a_file_and_its_neighbors(folder):
    name = env_name("./my_file.py:Mine")
    assert name == f"{folder}{os.sep}my_file.py:Mine"
    assert short_name(name) == "my_file:Mine"
    one = make_vec("./my_file.py:Mine", 2, cost="./my_file.py:cost", workers=2)
    try:
        assert len(one.worker_pool.processes) == 2
        one.reset(seed=0)
        assert one.step(one.action_space.sample())[4]["cost"].tolist() == [0.25, 0.25]
    finally:
        one.close()
    made = make_vec(name, 1).worker_pool.adapters[0].env
    assert (made.limit, made.gain) == (7, 3)
    assert env_name(type(made)) == name
    with pytest.raises(InputError, match=r"There is no file .*none\.py: give the path"):
        make_vec("./none.py:Mine", 1)
    with pytest.raises(InputError, match=r"no class or function 'Mina' .*did you mean Mine"):
        make_vec("my_file.py:Mina", 1)
    with pytest.raises(InputError, match=r"wrong\.py' cannot be imported: .*No module named 'a_missing_package'"):
        make_vec("wrong.py:Mine", 1)


def test_a_module_of_the_current_folder(folder):
    sys.path[:] = [path for path in sys.path if path not in ("", str(folder))]  # as in a console script
    assert make_vec("my_file:Mine", 1).worker_pool.adapters[0].env.gain == 3
    assert import_folder("my_file:Mine") == str(folder)
    assert import_folder("tests.training.probes:Walk") is None
    assert import_folder("CartPole-v1") is None
    with pytest.raises(InputError, match=r"There is no module 'missing' for 'missing:Mine': .*give its file"):
        make_vec("missing:Mine", 1)
