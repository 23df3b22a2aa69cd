"""One door: every way to name an environment, every wrong name one sentence."""

import sys
import textwrap

import gymnasium
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode

from steingate.envs.make import make_vec
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

def make(id, **options):
    if id != "Own-v0":
        raise AssertionError("no such id")
    return Line(**options)

def far(obs, action, next_obs, info):
    return float(abs(next_obs[0]) > 1)

number = 3
gymnasium.register("LineFive-v0", entry_point=Line, max_episode_steps=4)
gymnasium.register("LineSix-v0", entry_point=Six, max_episode_steps=4)
"""


ORIGINAL = '''
import gymnasium
import numpy as np
from gymnasium import spaces

class Builder(gymnasium.Env):
    """Six values, a legacy random stream, its own step count, constructor arguments from the registry."""

    def __init__(self, task_id, config=None, render_mode=None):
        self.task_id, self.config, self.num_steps = task_id, config, 6
        self.terminated, self.truncated = True, False

    observation_space = property(lambda self: spaces.Box(-np.inf, np.inf, (2,), np.float64))
    action_space = property(lambda self: spaces.Box(-1, 1, (2,), np.float64))

    def reset(self, *, seed=None, options=None):
        if seed is not None:
            self.random = np.random.RandomState(seed)
        self.terminated, self.truncated, self.steps = False, False, 0
        self.place = self.random.uniform(-1, 1, 2)
        return self.place.copy(), {}

    def step(self, action):
        assert not (self.terminated or self.truncated), "Environment must be reset before stepping."
        self.place += action
        self.steps += 1
        self.truncated = self.steps >= self.num_steps
        cost = float(self.place[0] > 1)
        return self.place.copy(), 0.0, cost, self.terminated, self.truncated, {"cost_sum": cost}

class Conversion(gymnasium.Wrapper):
    def step(self, action):
        obs, reward, cost, terminated, truncated, info = self.env.step(action)
        return obs, reward, terminated, truncated, {**info, "cost": cost}

def make_five(env_id, **options):
    return Conversion(Builder(**options))

safe = {"SafetyPointGoal1-v0"}
config = {"config": {"agent_name": "Point"}, "task_id": "SafetyPointGoal1-v0"}
gymnasium.register("SafetyPointGoal1-v0", entry_point=Builder, kwargs=config, max_episode_steps=6)
five = {"env_id": "SafetyPointGoal1Gymnasium-v0", **config}
gymnasium.register("SafetyPointGoal1Gymnasium-v0", entry_point=make_five, kwargs=five, max_episode_steps=6)

def make(id, **options):
    assert id in safe, f"Environment {id} is not registered in safety-gymnasium."
    return gymnasium.make(id, **options)
'''


@pytest.fixture(autouse=True)
def _module(tmp_path, monkeypatch):
    """A module of the user's on the path, forgotten afterwards."""
    (tmp_path / "user_tasks.py").write_text(MODULE)
    (tmp_path / "user_original.py").write_text(ORIGINAL)
    (tmp_path / "user_broken.py").write_text("import a_package_nobody_has\n")
    (tmp_path / "user_wrong.py").write_text("def f(:\n")
    (tmp_path / "user_raises.py").write_text(textwrap.dedent("raise ValueError('two\\nlines')\n"))
    monkeypatch.syspath_prepend(tmp_path)
    yield
    for name in [name for name in sys.modules if name.startswith("user_")]:
        del sys.modules[name]
    for name in ("LineFive-v0", "LineSix-v0", "SafetyPointGoal1-v0", "SafetyPointGoal1Gymnasium-v0"):
        gymnasium.registry.pop(name, None)


def steps(env, count, action=0.5):
    env.reset(seed=0)
    return [env.step(np.full(env.action_space.shape, action)) for _ in range(count)]


@pytest.mark.parametrize(
    ("spec", "limit"),
    [
        ("user_tasks:Line", None),
        ("user_tasks:Six", None),
        ("user_tasks:LineFive-v0", 4),
        ("user_tasks:LineSix-v0", 4),
        ("user_tasks:Own-v0", None),
    ],
)
def test_every_way_to_name_a_foreign_environment(spec, limit):
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


def test_the_original_package_with_both_of_its_interfaces():
    """Registered as safety-gymnasium registers: six values behind one id, five behind the other."""
    six = make_vec("user_original:SafetyPointGoal1-v0", 2)
    five = make_vec("user_original:SafetyPointGoal1Gymnasium-v0", 2)
    assert six.max_episode_steps == five.max_episode_steps == 6
    costs = []
    for k, (left, right) in enumerate(zip(steps(six, 12, 0.3), steps(five, 12, 0.3), strict=True), 1):
        for a, b in zip(left[:4], right[:4], strict=True):
            assert np.array_equal(a, b)
        assert np.array_equal(left[4]["cost"], right[4]["cost"])
        assert left[3].all() == (k % 6 == 0)
        costs += left[4]["cost"].tolist()
    assert set(costs) == {0.0, 1.0}
    assert make_vec("SafetyPointGoal1-v0", 1).single_observation_space.shape == (60,)  # still the native one
    with pytest.raises(InputError, match="not registered in safety-gymnasium"):
        make_vec("user_original:SafetyPointNone-v0", 1)


def test_a_registered_id_and_a_callable():
    import user_tasks

    by_id, by_class = make_vec("LineFive-v0", 2), make_vec(user_tasks.Line, 2, max_episode_steps=4)
    by_function = make_vec(lambda: user_tasks.Line(gain=1.0), 2, max_episode_steps=4)
    for left, middle, right in zip(steps(by_id, 9), steps(by_class, 9), steps(by_function, 9), strict=True):
        for a, b, c in zip(left[:4], middle[:4], right[:4], strict=True):
            assert np.array_equal(a, b)
            assert np.array_equal(a, c)


def test_options_reach_the_environment():
    doubled = make_vec("user_tasks:Line", 1, gain=2.0, threads=2, copy=False)
    start = doubled.reset(seed=0)[0].copy()
    assert doubled.step(np.array([[0.5]]))[0][0, 0] - start[0, 0] == pytest.approx(1.0, abs=1e-15)
    short = make_vec("user_tasks:LineFive-v0", 1, max_episode_steps=2)
    assert [bool(step[3][0]) for step in steps(short, 4)] == [False, True, False, True]


def test_the_cost_may_be_a_named_function():
    env = make_vec("user_tasks:Silent", 1, cost="user_tasks:far")
    costs = [(step[4]["cost"][0], abs(step[0][0, 0]) > 1) for step in steps(env, 6)]
    assert all(cost == float(far) for cost, far in costs)
    assert {cost for cost, _ in costs} == {0.0, 1.0}
    with pytest.raises(InputError, match=r"'user_tasks:Silent' gives no cost"):
        steps(make_vec("user_tasks:Silent", 1), 1)
    for cost in ("user_tasks:number", "user_tasks:nothing", "user_tasks"):
        with pytest.raises(InputError, match="module:function"):
            make_vec("user_tasks:Silent", 1, cost=cost)


def test_a_known_environment_of_gymnasium():
    env = make_vec("Pendulum-v1", 2, cost=lambda obs, action, after, info: float(abs(after[2]) > 4))
    assert env.max_episode_steps == 200
    assert env.single_action_space.high.tolist() == [2.0]
    for obs, _, _, _, info in steps(env, 30, action=2.0):
        assert np.array_equal(info["cost"], (np.abs(obs[:, 2]) > 4).astype(float))


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ("SafetyPointGoal9-v0", "did you mean 'SafetyPointGoal"),
        ("safetypointgoal1-v0", "did you mean 'SafetyPointGoal1-v0'"),
        ("steingate/SafetyPontGoal1-v0", "did you mean 'SafetyPointGoal1-v0'"),
        ("Pendulumm-v1", "did you mean 'Pendulum-v1'"),
        ("zzzzzzzzzzzz", "steingate envs"),
        ("user_tasks:Lin", "did you mean 'user_tasks:Line'"),
        ("user_tasks:number", "'user_tasks:number' is of type int and makes no environment"),
        ("os:path", "'os:path' is of type module and makes no environment: name a class or function"),
        ("os:pathh", "has no 'pathh' to make an environment of"),
        ("user_tasks:", "has no ''"),
        ("user_missing:Line", "no module 'user_missing'"),
        ("user_missing.part:Line", "no module 'user_missing'"),
        ("user_broken:Line", "a_package_nobody_has"),
        ("user_wrong:Line", "cannot be imported"),
        ("user_raises:Line", "two lines"),
        (":Line", "cannot be imported"),
        ("user_tasks:Other-v0", "no such id"),
    ],
)
def test_wrong_names_are_one_sentence(spec, words):
    with pytest.raises(InputError, match=words) as caught:
        make_vec(spec, 1)
    text = str(caught.value)
    assert "\n" not in text
    assert text[-1] in ".?"
    assert not text.endswith("?.")


def test_wrong_options_are_one_sentence():
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
    with pytest.raises(InputError, match="its own cost"):
        make_vec(name, 1, cost="user_tasks:far")
