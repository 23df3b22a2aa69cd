import numpy as np
import pytest

from steingate.algos.reach import FAR, out_of_reach

NODES, WEIGHTS = np.polynomial.hermite_e.hermegauss(20)
WEIGHTS = WEIGHTS / WEIGHTS.sum()


def taken(mean, std):
    """Return what is taken off at the quadrature nodes of one action's noise."""
    act = (mean + std * NODES)[:, None]
    return out_of_reach(act, NODES[:, None], np.log([std]))


@pytest.mark.parametrize("std", [0.3, 2.0])
@pytest.mark.parametrize("sign", [-1.0, 1.0])
def test_nothing_happens_up_to_two_deviations_beyond_the_range(std, sign):
    edge = 1.0 + FAR * std
    for mean in (0.0, 0.9, 1.0, 1.0 + 0.99 * FAR * std):
        assert not taken(sign * mean, std).any()
    assert np.abs(taken(sign * (edge + 0.1), std)).max() > 0.0


@pytest.mark.parametrize(("mean", "std"), [(3.0, 0.4), (-5.0, 0.4), (9.0, 2.0), (-1.9, 0.3)])
def test_its_policy_gradient_is_that_of_half_the_squared_distance(mean, std):
    def half_square(m):
        return 0.5 * max((abs(m) - 1.0) / std - FAR, 0.0) ** 2

    found = taken(mean, std)
    step = 1e-6
    slope = (half_square(mean + step) - half_square(mean - step)) / (2.0 * step)
    assert WEIGHTS @ found == pytest.approx(0.0, abs=1e-9)
    assert WEIGHTS @ (found * NODES / std) == pytest.approx(slope, rel=1e-5)  # d log p / d mean
    assert WEIGHTS @ (found * (NODES**2 - 1.0)) == pytest.approx(0.0, abs=1e-9)  # d log p / d log std


def test_actions_add_up():
    rng = np.random.default_rng(0)
    noise = rng.standard_normal((5, 3, 2)).astype(np.float32)
    log_std = np.log([0.4, 0.8])
    mean = np.array([4.0, -6.0])
    act = (mean + np.exp(log_std) * noise).astype(np.float32)
    apart = sum(out_of_reach(act[..., [k]], noise[..., [k]], log_std[[k]]) for k in (0, 1))
    found = out_of_reach(act, noise, log_std)
    assert found.shape == (5, 3)
    np.testing.assert_allclose(found, apart, rtol=1e-6)
