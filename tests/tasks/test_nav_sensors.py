import mujoco
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from steingate.tasks import nav_sensors

unit = st.floats(-1, 1).filter(lambda x: abs(x) > 1e-3)


def lidar(targets, position, turn, reach):
    """Return the 16 bins by the definition, one target after the other, with plain NumPy."""
    bins = np.zeros(16)
    for x, y in targets:
        e = turn.T @ (np.array([x, y, 0.0]) - position)
        angle = np.arctan2(e[1], e[0]) % (2 * np.pi)
        share = angle / (2 * np.pi / 16)
        b = int(share)
        signal = max(0.0, reach - np.hypot(e[0], e[1])) / reach
        for index, value in ((b, 1.0), (b + 1, share - b), (b - 1, 1 - (share - b))):
            bins[index % 16] = max(bins[index % 16], value * signal)
    return bins


def matrix(quaternion):
    """Return the rotation matrix the engine makes of a quaternion."""
    out = np.zeros(9)
    mujoco.mju_quat2Mat(out, np.asarray(quaternion) / np.linalg.norm(quaternion))
    return out.reshape(3, 3)


@settings(deadline=None)
@given(st.tuples(unit, unit, unit, unit))
def test_rotation_is_the_engines(quaternion):
    out = np.zeros((3, 3))
    nav_sensors.rotation(np.array(quaternion), out)
    np.testing.assert_allclose(out, matrix(quaternion), atol=1e-14)


def test_lidar_follows_its_definition_also_when_tilted():
    rng = np.random.default_rng(0)
    for _ in range(200):
        turn = matrix(rng.normal(size=4))
        position = rng.uniform(-2, 2, 3)
        targets = rng.uniform(-3, 3, (5, 2))
        bins = np.zeros(16)
        for x, y in targets:
            nav_sensors.see(x, y, position, turn, 3.0, bins)
        np.testing.assert_allclose(bins, lidar(targets, position, turn, 3.0), atol=1e-12)


@pytest.mark.parametrize("y", [-1e-17, -1e-300, -0.0, 0.0, 1e-17])
def test_lidar_survives_angles_that_round_to_a_full_turn(y):
    bins = np.zeros(16)
    nav_sensors.see(1.0, y, np.zeros(3), np.eye(3), 3.0, bins)
    assert bins[[15, 0]] == pytest.approx([2 / 3, 2 / 3])
    assert bins[1:15].max() < 1e-12


def test_targets_beyond_the_range_are_invisible_and_one_underfoot_is_full():
    bins = np.zeros(16)
    nav_sensors.see(3.0, 0.1, np.zeros(3), np.eye(3), 3.0, bins)
    assert not bins.any()
    nav_sensors.see(0.0, 0.0, np.zeros(3), np.eye(3), 3.0, bins)
    assert bins.max() == 1.0
