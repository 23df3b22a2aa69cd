import numpy as np
import pytest
from tests.training.probes import Walk

from steingate.envs.make import make_vec
from steingate.errors import InputError
from steingate.tasks.catalog import find_task
from steingate.tasks.validation import (
    action_space,
    check_actions,
    check_choice,
    check_positive,
    check_seeds,
    observation_space,
)

POINT, HUMANOID = find_task("SafetyPointGoal1-v0"), find_task("SafetyHumanoidVelocity-v1")


def test_spaces():
    space = observation_space(POINT)
    assert (space.shape, space.dtype) == ((60,), np.float64)
    assert (set(space.low[12:]), set(space.high[12:])) == ({0.0}, {1.0})
    assert space.low[:12].max() <= -1e9
    assert np.isfinite(space.high).all()
    assert action_space(POINT).contains(np.array([1.0, -1.0]))
    assert action_space(HUMANOID).high.max() == np.float32(0.4)


def test_actions():
    given = np.array([[2.0, -0.5]])
    assert check_actions(POINT, 1, given) is given
    assert check_actions(POINT, 1, [[1, 0]]).dtype == np.float64
    assert check_actions(POINT, 1, [[np.inf, -np.inf]]).tolist() == [[1.0, -1.0]]
    with pytest.raises(InputError, match="environment 0"):
        check_actions(HUMANOID, 1, np.full((1, 17), np.inf))
    given = np.zeros((4, 2))
    given[2, 1] = given[3, 0] = np.nan
    with pytest.raises(InputError, match="environment 2"):
        check_actions(POINT, 4, given)


def test_seeds():
    assert check_seeds(None, 2) == [None, None]
    assert check_seeds(7, 3) == [7, 8, 9]
    assert check_seeds(np.int64(7), 1) == [7]
    assert check_seeds([4, None], 2) == [4, None]
    assert check_seeds(np.array([3, 4]), 2) == [3, 4]
    with pytest.raises(InputError, match="3 seeds for 2"):
        check_seeds([1, 2, 3], 2)


@pytest.mark.parametrize("seed", [1.5, True, "12", [True, False], [1.0, 2.0], [-1, 2], -3])
def test_seeds_are_non_negative_integers(seed):
    for use in (lambda: check_seeds(seed, 2), lambda: make_vec(Walk, 2).reset(seed=seed)):
        with pytest.raises(InputError, match=r"Seed .* cannot be used: give a non-negative integer"):
            use()


def test_counts_and_choices():
    assert check_positive("n", np.int32(3)) == 3
    for value in (0, -1, 1.5, True, "2", None):
        with pytest.raises(InputError, match="n is"):
            check_positive("n", value)
    check_choice("mode", "a", ("a", "b"))
    with pytest.raises(InputError, match="'a', 'b'"):
        check_choice("mode", "c", ("a", "b"))
