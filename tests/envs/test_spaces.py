"""Foreign spaces: flattened as Gymnasium flattens them, or refused with the reason."""

import numpy as np
import pytest
from gymnasium import spaces

from steingate.envs.spaces import flat_actions, flat_observations
from steingate.errors import InputError


class _Old:
    """Stands for a space class of an older Gym: same name and fields, another package."""


def _old(kind, **fields):
    space = type(kind, (_Old,), {})()
    vars(space).update(fields)
    return space


def _unit_box(*shape, dtype=np.float32):
    return spaces.Box(-1, 1, shape, dtype)


@pytest.mark.parametrize(
    "space",
    [
        _unit_box(3),
        _unit_box(2, 4, dtype=np.float64),
        spaces.Discrete(5),
        spaces.Discrete(4, start=-2),
        spaces.MultiDiscrete([2, 3]),
        spaces.MultiBinary(4),
        spaces.Dict({"b": _unit_box(2), "a": spaces.Discrete(3)}),
        spaces.Tuple([spaces.Dict({"x": _unit_box(2, 2)}), spaces.MultiBinary(2)]),
        spaces.Box(0, 255, (7,), np.uint8),
    ],
    ids=str,
)
def test_observations_are_flattened_as_gymnasium_does(space):
    flat, flatten = flat_observations(space, "task")
    space.seed(3)
    for _ in range(20):
        obs = space.sample()
        vector = flatten(obs)
        assert vector.dtype == np.float64
        assert np.array_equal(vector, spaces.utils.flatten(space, obs))
        assert flat.contains(vector)
    assert flat.shape == (spaces.utils.flatdim(space),)


def test_discrete_observations_are_one_hot():
    _, flatten = flat_observations(spaces.Discrete(4, start=2), "task")
    assert flatten(3).tolist() == [0, 1, 0, 0]


def test_older_spaces_are_read_by_name_and_fields():
    low, high = -np.ones(2, np.float32), np.full(2, np.inf, np.float32)
    box = _old("Box", low=low, high=high, shape=(2,), dtype=np.float32)
    parts = {
        "box": box,
        "which": _old("Discrete", n=3),
        "pair": _old("Tuple", spaces=[_old("MultiBinary", n=2), _old("MultiDiscrete", nvec=[2, 2])]),
    }
    flat, flatten = flat_observations(_old("Dict", spaces=parts), "task")
    assert flat.shape == (2 + 3 + 2 + 4,)
    vector = flatten({"box": [0.5, 7.0], "which": 1, "pair": ([1, 0], [0, 1])})
    # Gymnasium sorts the keys of a Dict that is built from a plain mapping.
    assert sorted(vector.tolist()) == sorted([0.5, 7.0, 0, 1, 0, 1, 0, 1, 0, 0, 1])
    with pytest.raises(InputError, match=r"'task'.*'Blob'"):
        flat_observations(_old("Blob"), "task")


@pytest.mark.parametrize(
    ("space", "words"),
    [
        (spaces.Box(0, 255, (8, 8, 3), np.uint8), "images"),
        (spaces.Dict({"eye": spaces.Box(0, 255, (8, 8, 3), np.uint8)}), "images"),
        (spaces.Tuple([spaces.Text(5)]), "Text"),
        (spaces.Sequence(spaces.Discrete(2)), "Sequence"),
        (spaces.Graph(_unit_box(2), None), "Graph"),
    ],
    ids=str,
)
def test_images_and_spaces_without_length_are_refused(space, words):
    with pytest.raises(InputError, match=rf"'task'.*{words}"):
        flat_observations(space, "task")


@pytest.mark.parametrize(
    ("space", "words"),
    [
        (spaces.MultiDiscrete([2, 2]), "MultiDiscrete"),
        (spaces.MultiBinary(2), "MultiBinary"),
        (spaces.Dict({"a": _unit_box(2)}), "Dict"),
        (spaces.Tuple([_unit_box(2)]), "Tuple"),
        (spaces.Box(0, 3, (2,), np.int64), "int64"),
        (spaces.Box(-np.inf, np.inf, (2,)), "finite bounds"),
        (spaces.Box(np.array([0.0, -np.inf]), np.ones(2), dtype=np.float64), "finite bounds"),
    ],
    ids=str,
)
def test_actions_other_than_bounded_boxes_and_choices_are_refused(space, words):
    with pytest.raises(InputError, match=rf"'task'.*{words}"):
        flat_actions(space, "task")


def test_actions_get_the_shape_type_and_bounds_of_the_environment():
    space = spaces.Box(-2, np.float32([[1, 2], [3, 4]]), dtype=np.float32)
    flat, shaped = flat_actions(space, "task")
    assert flat.shape == (4,)
    assert flat.dtype == np.float64
    action = shaped(np.array([-9.0, 0.5, 9.0, 1.25]))
    assert action.dtype == np.float32
    assert action.tolist() == [[-2, 0.5], [3, 1.25]]
    assert space.contains(action)


def test_choices_stay_what_they_are():
    for space in (spaces.Discrete(4, start=-2), _old("Discrete", n=4, start=-2)):
        own, shaped = flat_actions(space, "task")
        assert own == spaces.Discrete(4, start=-2)
        assert own.contains(shaped(np.int64(1)))
