"""Adapters of Gymnasium environments: vector interface, costs, seeds, spaces, and refused environments."""

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from gymnasium.wrappers import TimeLimit
from tests.training.probes import Walk

from steingate.envs.adapters import flatten_actions, flatten_observations
from steingate.envs.vector_env import AdapterVectorEnv
from steingate.errors import InputError


def batch(factory=Walk, num_envs=3, **options):
    return AdapterVectorEnv(factory, num_envs, name="walk", **options)


class Told(Walk):
    """Tells where it is."""

    def reset(self, **options):
        obs, _ = super().reset(**options)
        return obs, {"start": self.x}

    def step(self, action):
        *result, info = super().step(action)
        return *result, {**info, "place": self.x}


def test_it_equals_the_vector_environment_of_gymnasium():
    env = batch(lambda: Told(out=0.6), max_episode_steps=7)
    makers = [lambda: TimeLimit(Told(out=0.6), 7)] * 3
    other = SyncVectorEnv(makers, autoreset_mode=AutoresetMode.SAME_STEP)
    (first, info), (expected, plain) = env.reset(seed=11), other.reset(seed=11)
    assert np.array_equal(first.astype(np.float32), expected)
    assert np.array_equal(info["start"], plain["start"])
    rng, ends = np.random.default_rng(1), set()
    for _ in range(60):
        actions = rng.uniform(-2.0, 2.0, (3, 2)).astype(np.float32)
        *found, info = env.step(actions)
        *expected, plain = other.step(actions)
        found[0] = found[0].astype(np.float32)
        assert all(np.array_equal(a, b) for a, b in zip(found, expected, strict=True))
        ended = found[2] | found[3]
        ends |= set(zip(found[2][ended].tolist(), found[3][ended].tolist(), strict=True))
        for name in ("place", "cost"):
            value = np.where(ended, plain.get("final_info", {}).get(name, 0.0), plain.get(name, np.zeros(3)))
            assert np.array_equal(info[name], value)
        assert ("final_obs" in info) == ended.any()
        for i in np.flatnonzero(ended):
            assert np.array_equal(info["final_obs"][i], plain["final_obs"][i])
            assert info["final_info"]["cost"][i] == value[i]
        if ended.any():
            assert np.array_equal(info["_final_obs"], ended)
            assert np.array_equal(info["_final_info"], ended)
    assert {(True, False), (False, True)} <= ends
    assert found[0].shape == env.observation_space.shape
    assert env.metadata["autoreset_mode"] is AutoresetMode.SAME_STEP
    assert env.max_episode_steps == 7


def test_a_seed_determines_the_trajectory_and_no_seed_continues_it():
    env = batch()
    first = env.reset(seed=3)[0]
    second = env.reset()[0]
    assert not np.array_equal(first, second)
    assert np.array_equal(env.reset(seed=[3, 4, 5])[0], first)
    assert np.array_equal(env.reset()[0], second)


def test_a_cost_function_receives_the_transition_and_replaces_the_cost():
    class Reusing(Walk):
        buffer = np.zeros(3)

        def _obs(self):
            self.buffer[:] = super()._obs()
            return self.buffer

    seen = []

    def cost(obs, action, next_obs, info):
        seen.append((obs.copy(), action, next_obs.copy(), info["cost"]))
        return float(next_obs[0] > obs[0])

    env = batch(Reusing, cost=cost, num_envs=1, max_episode_steps=6)
    shown, _ = env.reset(seed=0)
    for _ in range(20):
        after, _, _, truncated, info = env.step(np.array([[0.25, 3.0]]))
        obs, action, next_obs, own = seen[-1]
        assert np.array_equal(obs, shown[0])
        assert action.tolist() == [0.25, 2.0]  # clipped
        assert np.array_equal(next_obs, info["final_obs"][0] if truncated[0] else after[0])
        assert info["cost"][0] == float(next_obs[0] > obs[0])
        assert own == pytest.approx(float(next_obs[0] > 0.5) + 0.2)
        shown = after


def test_actions_that_are_no_numbers_are_refused():
    env = batch()
    env.reset(seed=0)
    with pytest.raises(InputError, match="environment 1 of 'walk'"):
        env.step(np.array([[0.0, 0.0], [np.nan, 0.0], [0.0, 0.0]]))
    with pytest.raises(InputError, match=r"shape \(2, 1\), not \(3, 2\)"):
        env.step(np.zeros((2, 1)))


def _stepping(answer):
    return type("Odd", (Walk,), {"step": lambda self, action: answer})


OBS = np.zeros(3)


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        ((OBS, 0.0, False, False, {}), r"gives no cost.*cost=function\(obs, action, next_obs, info\)"),
        ((OBS, 0.0, False, {"cost": 1.0}), "returns 4 values from step"),
        (OBS, "returns 1 values from step"),
        ((OBS, 0.0, False, False, {"cost": "much"}), "one number"),
        ((OBS, 0.0, [0.0, 1.0], False, False, {}), "one number"),
    ],
)
def test_errors_of_step(answer, words):
    env = batch(_stepping(answer), num_envs=1)
    env.reset(seed=0)
    with pytest.raises(InputError, match=rf"'walk'.*{words}|'walk' {words}"):
        env.step(np.zeros((1, 2)))


def test_errors_of_reset_and_construction():
    env = batch(type("Old", (Walk,), {"reset": lambda self, seed=None: OBS}), num_envs=1)
    with pytest.raises(InputError, match=r"\(observation, info\)"):
        env.reset(seed=0)
    with pytest.raises(InputError, match="not an environment"):
        batch(dict)
    one = Walk()
    with pytest.raises(InputError, match="same environment twice"):
        batch(lambda: one)
    with pytest.raises(InputError, match="max_episode_steps is 0"):
        batch(max_episode_steps=0)
    short = batch(type("Short", (Walk,), {"_obs": lambda self: np.zeros(1, np.float32)}), num_envs=1)
    with pytest.raises(InputError, match="observes 1 numbers: its space has 3"):
        short.reset(seed=0)
    with pytest.raises(InputError, match="There are 2 seeds for 3"):
        batch().reset(seed=[1, 2])


def test_snapshots_need_methods_of_the_environment():
    env, other = batch(max_episode_steps=8), batch(max_episode_steps=8)
    env.reset(seed=0)
    for _ in range(5):
        obs, *_ = env.step(np.full((3, 2), 0.1))
    saved = env.snapshot()
    assert all(array.dtype.kind in "fiu" for array in saved.values())
    other.reset(seed=99)
    assert np.array_equal(other.restore(saved), obs)
    for _ in range(20):
        left, right = env.step(np.full((3, 2), 0.1)), other.step(np.full((3, 2), 0.1))
        for a, b in zip(left[:4], right[:4], strict=True):
            assert np.array_equal(a, b)
    with pytest.raises(InputError, match="3 environments: 2 are expected"):
        batch(num_envs=2).restore(saved)
    for unsaved in (batch(lambda: gymnasium.make("Pendulum-v1")), batch(cost=lambda *_: 0.0)):
        with pytest.raises(InputError, match="let every epoch start from a reset"):
            unsaved.snapshot()


class Counts(Walk):
    """Discrete actions that start at 4; the reward is the action."""

    action_space = spaces.Discrete(3, start=4)

    def __init__(self):
        self.observation_space = spaces.Box(-np.inf, np.inf, (3,))

    def reset(self, **options):
        return OBS, {}

    def step(self, action):
        assert self.action_space.contains(action)
        return OBS, float(action), False, False, {"cost": 0.0}


def test_discrete_actions():
    env = batch(Counts)
    assert env.single_action_space == spaces.Discrete(3, start=4)
    assert env.action_space.shape == (3,)
    env.reset(seed=0)
    for actions in (np.array([4, 6, 5]), [4.0, 6.0, 5.0]):
        assert env.step(actions)[1].tolist() == [4.0, 6.0, 5.0]
    for wrong, words in (
        ([4, 7, 5], "environment 1 of 'walk' is 7.0: a whole number from 4 to 6 is expected"),
        ([4.5, 5, 5], "environment 0 of 'walk' is 4.5"),
        ([[4], [5], [6]], "have shape"),
    ):
        with pytest.raises(InputError, match=words):
            env.step(wrong)


def box(*shape, dtype=np.float32):
    return spaces.Box(-1, 1, shape, dtype)


IMAGE = spaces.Box(0, 255, (8, 8, 3), np.uint8)


@pytest.mark.parametrize(
    "space",
    [
        box(3),
        spaces.Discrete(4, start=-2),
        spaces.MultiDiscrete([2, 3]),
        spaces.Dict({"b": box(2), "a": spaces.Discrete(3)}),
        spaces.Tuple([spaces.Dict({"x": box(2, 2)}), spaces.MultiBinary(2)]),
    ],
    ids=lambda value: getattr(value, "__name__", str(value)),
)
def test_observations_are_flattened_as_by_gymnasium(space):
    flat, flatten = flatten_observations(space, "task")
    space.seed(3)
    for _ in range(20):
        obs = space.sample()
        vector = flatten(obs)
        assert vector.dtype == np.float64
        assert np.array_equal(vector, spaces.utils.flatten(space, obs))
        assert flat.contains(vector)
    assert flat.shape == (spaces.utils.flatdim(space),)


@pytest.mark.parametrize(
    ("flatten", "space", "words"),
    [
        (flatten_observations, IMAGE, "images"),
        (flatten_observations, spaces.Tuple([spaces.Text(5)]), "Text"),
        (flatten_observations, spaces.Sequence(spaces.Discrete(2)), "Sequence"),
        (flatten_actions, spaces.MultiDiscrete([2, 2]), "MultiDiscrete.*numbers"),
        (flatten_actions, spaces.Box(0, 3, (2,), np.int64), "int64"),
        (flatten_actions, spaces.Box(-np.inf, 1.0, (2,)), "finite bounds"),
    ],
    ids=lambda value: getattr(value, "__name__", str(value)),
)
def test_unsupported_spaces_are_refused(flatten, space, words):
    with pytest.raises(InputError, match=rf"'task'.*{words}"):
        flatten(space, "task")


def test_actions_get_the_shape_type_and_bounds_of_the_environment():
    space = spaces.Box(-2, np.float32([[1, 2], [3, 4]]), dtype=np.float32)
    flat, to_env_action = flatten_actions(space, "task")
    assert (flat.shape, flat.dtype) == ((4,), np.float64)
    action = to_env_action(np.array([-9.0, 0.5, 9.0, 1.25]))
    assert action.dtype == np.float32
    assert action.tolist() == [[-2, 0.5], [3, 1.25]]
    flat, to_env_action = flatten_actions(spaces.Discrete(4, start=-2), "task")
    assert flat == spaces.Discrete(4, start=-2)
    assert flat.contains(to_env_action(np.int64(1)))
