import numpy as np
import pytest
from steingate.algorithms.common.reach import CERTAIN, FAR, out_of_reach, too_certain

NODES, WEIGHTS = np.polynomial.hermite_e.hermegauss(20)
WEIGHTS = WEIGHTS / WEIGHTS.sum()


def taken(mean, std):
    """Return what is taken off at the quadrature nodes of one action's noise."""
    act = (mean + std * NODES)[:, None]
    return out_of_reach(act, NODES[:, None], np.log([std]))


@pytest.mark.parametrize("std", [0.3, 2.0])
@pytest.mark.parametrize("sign", [-1.0, 1.0])
def test_nothing_happens_up_to_a_deviation_beyond_the_range(std, sign):
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


def every_choice(logits):
    """Return what is taken off for each choice made by the same logits, and its probability."""
    logits = np.asarray(logits, np.float64)
    found = too_certain(np.arange(len(logits))[:, None].astype(np.float32), np.tile(logits, (len(logits), 1)))
    odds = np.exp(logits - logits.max())
    return found, odds / odds.sum()


def test_choices_are_left_alone_up_to_98_in_a_hundred():
    edge = CERTAIN  # difference of two logits
    assert 1.0 / (1.0 + np.exp(-edge)) == pytest.approx(0.98)
    assert not every_choice([0.0, 1.0, -1.0])[0].any()
    assert not every_choice([edge - 1e-6, 0.0])[0].any()
    assert np.abs(every_choice([edge + 0.1, 0.0])[0]).max() > 0.0


@pytest.mark.parametrize("logits", [[6.0, 0.0], [-8.0, 2.0, 1.0, 9.0], [0.0, 30.0, 0.0], [12.0, -0.1, -5.0]])
def test_certainty_is_taken_back_in_proportion_to_how_far_it_is(logits):
    found, p = every_choice(logits)
    top = int(np.argmax(logits))
    against = 1.0 - p[top] if p[top] < 0.999999 else np.delete(p, top).sum()
    far = np.log(p[top] / against) - np.log(49.0)
    assert p @ found == pytest.approx(0.0, abs=1e-9 * far)
    assert p @ found**2 == pytest.approx(far**2, rel=1e-6)
    # The gradient of the expectation in the logits, whose score is one for the choice made, minus p.
    slope = np.array([np.sum(p * found * ((np.arange(len(p)) == k) - p[k])) for k in range(len(p))])
    assert slope[top] == pytest.approx(far * np.sqrt(p[top] * against), rel=1e-6)
    others = np.delete(np.arange(len(p)), top)
    np.testing.assert_allclose(slope[others] / p[others], slope[others[0]] / p[others[0]], rtol=1e-6)


def test_a_choice_that_underflows_is_finite():
    found, _ = every_choice([2000.0, 0.0])
    assert np.isfinite(found).all()
    assert np.isfinite(every_choice([3.0])[0]).all()  # nothing else to choose
