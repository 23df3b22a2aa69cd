import numpy as np
import pytest
from steingate.gates.sight import Senses, Sight

from steingate.errors import InputError
from steingate.tasks.navigation_kernels import add_lidar_target


def test_only_numbers_bounded_by_0_and_1_are_repeated():
    sight = Sight.of([-np.inf, 0.0, 0.0, 0.0], [np.inf, 1.0, 2.0, 1.0], (2.0, 3.0))
    assert (sight.where, sight.added) == ((1, 3), 4)
    obs = np.array([[5.0, 0.5, 1.5, 0.1], [-5.0, 1.0, 0.0, 0.0]])
    expected = [[5.0, 0.5, 1.5, 0.1, 0.25, 0.01, 0.125, 0.001], [-5.0, 1.0, 0.0, 0.0, 1.0, 0.0, 1.0, 0.0]]
    np.testing.assert_allclose(sight(obs), expected)
    np.testing.assert_allclose(sight(obs[0]), expected[0])


def test_rounding_beyond_the_bounds_is_clipped():
    np.testing.assert_allclose(Sight((0,), (36.0,))([-1e-9]), [-1e-9, 0.0])


def test_a_power_must_be_positive():
    with pytest.raises(InputError, match="power"):
        Sight((0,), (0.0,))


def seen(place, heading, target, speed=(0.0, 0.0), lidar_range=6.0, north=-0.5):
    """Return compass, velocity and ring as an agent at ``place`` that looks along ``heading`` has them."""
    turn = np.eye(3)
    turn[:2, :2] = [[np.cos(heading), -np.sin(heading)], [np.sin(heading), np.cos(heading)]]
    bins = np.zeros(16)
    add_lidar_target(*target, np.array([*place, 0.0]), turn, lidar_range, bins)
    return np.concatenate([turn[1, :2] * north, turn[:2, :2].T @ speed, bins])


class TestPlaces:
    sight = Sight.of(np.full(20, -1.0), np.full(20, 1.0), (), Senses((4,), 16, (0, 1), (2, 3)))

    @pytest.mark.parametrize("seed", range(20))
    def test_one_target_and_the_motion_are_found_as_they_are(self, seed):
        rng = np.random.default_rng(seed)
        place, target, heading = rng.uniform(-2, 2, 2), rng.uniform(-1, 1, 2), rng.uniform(-7, 7)
        speed = rng.normal(size=2)
        shown = self.sight(seen(place, heading, target, speed))[20:]
        body, world, motion = shown[:2], shown[2:4], shown[4:]
        away = target - place
        frame = np.array([[np.cos(heading), np.sin(heading)], [-np.sin(heading), np.cos(heading)]])
        # The bins tell the direction to a quarter of a degree, the distance exactly.
        np.testing.assert_allclose(6.0 * body, frame @ away, atol=0.005 * np.hypot(*away))
        assert 6.0 * np.hypot(*body) == pytest.approx(np.hypot(*away))
        # The field points along -y: what lies along it is -y, and to its left is x.
        np.testing.assert_allclose(6.0 * world, [-away[1], away[0]], atol=0.005 * np.hypot(*away))
        np.testing.assert_allclose(motion, [-speed[1], speed[0]])

    def test_the_frame_of_the_compass_does_not_depend_on_the_heading(self):
        shown = np.array([self.sight(seen((0.3, 1.0), heading, (0.0, 0.0), (0.5, 0.1)))[-4:] for heading in range(7)])
        np.testing.assert_allclose(shown, np.broadcast_to(shown[0], shown.shape), atol=0.001)

    def test_nothing_in_sight_and_a_compass_without_a_field_are_nowhere(self):
        np.testing.assert_array_equal(self.sight(np.zeros(20))[20:], np.zeros(6))

    def test_every_ring_is_read_apart_and_a_batch_gives_the_bits_of_its_rows(self):
        sight = Sight.of(np.zeros(36), np.ones(36), (4.0,), Senses((4, 20), 16, (0, 1), (2, 3)))
        rng = np.random.default_rng(3)
        obs = np.where(rng.random((50, 36)) < 0.3, rng.random((50, 36)), 0.0)
        found = sight(obs)
        assert found.shape == (50, 36 + 36 + 10) == (50, 36 + sight.added)
        for row, whole in zip(obs, found, strict=True):
            np.testing.assert_array_equal(sight(row), whole)
            for ring in (0, 1):
                alone = np.concatenate([row[:4], row[4 + 16 * ring : 20 + 16 * ring]])
                expected = np.concatenate([whole[72 + ring : 80 : 2], whole[80:]])
                np.testing.assert_array_equal(self.sight(alone)[20:], expected)

    @pytest.mark.parametrize(("left_out", "shown"), [("compass", 2), ("velocity", 4)])
    def test_without_a_compass_or_velocity_there_is_less(self, left_out, shown):
        senses = Senses((4,), 16, (0, 1), (2, 3))._replace(**{left_out: ()})
        less = Sight.of(np.zeros(20), np.ones(20), (), senses)
        obs = seen((1.0, 0.5), 0.4, (0.0, 0.0), (1.0, 2.0))
        np.testing.assert_array_equal(less(obs), self.sight(obs)[: 20 + shown])
        assert less.added == shown

    def test_what_is_stored_comes_back(self):
        sight = Sight((1, 2), (4.0,), (2,), 8, (0, 1), (2, 3))
        assert Sight.read(sight.plain()) == sight
