import numpy as np
import pytest

from steingate.policies.lidar_features import LidarFeatures
from steingate.tasks.navigation_kernels import add_lidar_target

POSITIONS = LidarFeatures((), (), (4,), 16, (0, 1), (2, 3))


def test_powers_of_components():
    features = LidarFeatures((1, 3), (2.0, 3.0))
    obs = np.array([[5.0, 0.5, 1.5, 0.1], [-5.0, 1.0, 0.0, 0.0]])
    expected = [[5.0, 0.5, 1.5, 0.1, 0.25, 0.01, 0.125, 0.001], [-5.0, 1.0, 0.0, 0.0, 1.0, 0.0, 1.0, 0.0]]
    np.testing.assert_allclose(features(obs), expected)
    np.testing.assert_allclose(features(obs[0]), expected[0])


def test_rounding_beyond_the_bounds_is_clipped():
    np.testing.assert_allclose(LidarFeatures((0,), (36.0,))([-1e-9]), [-1e-9, 0.0])


def observation(place, heading, target, speed=(0.0, 0.0), lidar_range=6.0, north=-0.5):
    """Compass, velocity and lidar ring of an agent at ``place`` that looks along ``heading``."""
    turn = np.eye(3)
    turn[:2, :2] = [[np.cos(heading), -np.sin(heading)], [np.sin(heading), np.cos(heading)]]
    bins = np.zeros(16)
    add_lidar_target(*target, np.array([*place, 0.0]), turn, lidar_range, bins)
    return np.concatenate([turn[1, :2] * north, turn[:2, :2].T @ speed, bins])


@pytest.mark.parametrize("seed", range(10))
def test_positions_and_motion_against_the_geometry(seed):
    rng = np.random.default_rng(seed)
    place, target, heading = rng.uniform(-2, 2, 2), rng.uniform(-1, 1, 2), rng.uniform(-7, 7)
    speed = rng.normal(size=2)
    found = POSITIONS(observation(place, heading, target, speed))[20:]
    body, world, motion = found[:2], found[2:4], found[4:]
    offset = target - place
    frame = np.array([[np.cos(heading), np.sin(heading)], [-np.sin(heading), np.cos(heading)]])
    # The bins give the direction to a quarter of a degree, and the distance exactly.
    np.testing.assert_allclose(6.0 * body, frame @ offset, atol=0.005 * np.hypot(*offset))
    assert 6.0 * np.hypot(*body) == pytest.approx(np.hypot(*offset))
    # The compass points along -y: forward in its frame is -y, and left is x.
    np.testing.assert_allclose(6.0 * world, [-offset[1], offset[0]], atol=0.005 * np.hypot(*offset))
    np.testing.assert_allclose(motion, [-speed[1], speed[0]])


def test_positions_are_zero_without_an_object_or_a_compass_reading():
    np.testing.assert_array_equal(POSITIONS(np.zeros(20))[20:], np.zeros(6))


def test_rings_are_independent_and_batches_have_the_bits_of_their_rows():
    features = LidarFeatures(tuple(range(36)), (4.0,), (4, 20), 16, (0, 1), (2, 3))
    rng = np.random.default_rng(3)
    obs = np.where(rng.random((50, 36)) < 0.3, rng.random((50, 36)), 0.0)
    found = features(obs)
    assert found.shape == (50, 36 + 36 + 10)
    for row, whole in zip(obs, found, strict=True):
        np.testing.assert_array_equal(features(row), whole)
        for ring in (0, 1):
            alone = np.concatenate([row[:4], row[4 + 16 * ring : 20 + 16 * ring]])
            expected = np.concatenate([whole[72 + ring : 80 : 2], whole[80:]])
            np.testing.assert_array_equal(POSITIONS(alone)[20:], expected)


@pytest.mark.parametrize(("missing", "count"), [("compass", 2), ("velocity", 4)])
def test_without_a_compass_or_velocity_there_are_fewer_features(missing, count):
    fewer = POSITIONS._replace(**{missing: ()})
    obs = observation((1.0, 0.5), 0.4, (0.0, 0.0), (1.0, 2.0))
    np.testing.assert_array_equal(fewer(obs), POSITIONS(obs)[: 20 + count])
