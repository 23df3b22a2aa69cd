import numpy as np
import pytest

from steingate.errors import InputError
from steingate.tasks.catalog import find_task
from steingate.tasks.inputs import (
    action_space,
    checked_actions,
    checked_seeds,
    observation_space,
    one_of,
    positive,
)

POINT, HUMANOID = find_task("SafetyPointGoal1-v0"), find_task("SafetyHumanoidVelocity-v1")


def test_lidar_is_bounded_and_sensors_practically_not():
    space = observation_space(POINT)
    assert (space.shape, space.dtype) == ((60,), np.float64)
    assert set(space.low[12:]) == {0.0}
    assert set(space.high[12:]) == {1.0}
    assert space.low[:12].max() <= -1e9
    assert np.isfinite(space.high).all()


def test_action_spaces():
    assert action_space(POINT).contains(np.array([1.0, -1.0]))
    assert action_space(HUMANOID).high.max() == np.float32(0.4)


def test_good_actions_pass_untouched():
    given = np.array([[2.0, -0.5]])
    assert checked_actions(POINT, 1, given) is given
    assert checked_actions(POINT, 1, [[1, 0]]).dtype == np.float64


def test_infinities_are_clipped_where_actions_are():
    assert checked_actions(POINT, 1, [[np.inf, -np.inf]]).tolist() == [[1.0, -1.0]]
    with pytest.raises(InputError, match="environment 0"):
        checked_actions(HUMANOID, 1, np.full((1, 17), np.inf))


def test_the_first_environment_with_a_bad_action_is_named():
    given = np.zeros((4, 2))
    given[2, 1] = given[3, 0] = np.nan
    with pytest.raises(InputError, match="environment 2"):
        checked_actions(POINT, 4, given)


def test_seeds():
    assert checked_seeds(None, 2) == [None, None]
    assert checked_seeds(7, 3) == [7, 8, 9]
    assert checked_seeds(np.int64(7), 1) == [7]
    assert checked_seeds([4, None], 2) == [4, None]
    with pytest.raises(InputError, match="3 seeds for 2"):
        checked_seeds([1, 2, 3], 2)
    with pytest.raises(InputError, match="-1"):
        checked_seeds(-1, 1)


def test_counts_and_choices():
    assert positive("n", np.int32(3)) == 3
    for value in (0, -1, 1.5, True, "2", None):
        with pytest.raises(InputError, match="n is"):
            positive("n", value)
    one_of("mode", "a", ("a", "b"))
    with pytest.raises(InputError, match="'a', 'b'"):
        one_of("mode", "c", ("a", "b"))


@pytest.mark.parametrize("seed", [1.5, True, "12", [True, False], [1.0, 2.0], [-1, 2], -3])
def test_seeds_are_integers_for_native_and_foreign_environments(seed):
    from tests.training.probes import Walk

    from steingate.envs.make import make_vec

    with pytest.raises(InputError, match=r"Seed .* cannot be used: give an integer"):
        checked_seeds(seed, 2)
    with pytest.raises(InputError, match=r"Seed .* cannot be used: give an integer"):
        make_vec(Walk, 2).reset(seed=seed)
    assert checked_seeds(np.array([3, 4]), 2) == [3, 4]
