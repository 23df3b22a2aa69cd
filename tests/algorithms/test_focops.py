import numpy as np
import pytest
from tests.algorithms.problems import bandit, kl_and_ratio, minibatch, minimizer, problem, update

from steingate.algorithms.base import Mode, Objective
from steingate.algorithms.focops import focops_loss


def test_the_loss_against_plain_sums():
    now, rows = minibatch()
    kl, ratio = kl_and_ratio(now, rows)
    radius = float(np.median(kl)) + 1e-4
    inside = kl <= radius
    assert 0 < inside.sum() < 5
    gain = ratio * rows.adv[:5] / 1.5
    per_state = np.mean([inside[i] * (kl[i] - gain[i]) for i in range(5)])
    crossed = np.mean([[inside[i] * (kl[i] - gain[j]) for j in range(5)] for i in range(5)])
    assert abs(per_state - crossed) > 1e-3
    assert focops_loss(1.5, radius, True)(now, rows, ()) == pytest.approx(per_state, abs=1e-5)
    assert focops_loss(1.5, radius, False)(now, rows, ()) == pytest.approx(crossed, abs=1e-5)


def test_the_minimum_is_the_tilted_policy():
    """KL(new || old) - E[A] / t is least at old exp(A / t): a Gaussian moved by slope * variance / t."""
    center, width = minimizer(focops_loss(1.5, np.inf, True), bandit(0.4, 0.0))
    assert center == pytest.approx(0.3 + 0.4 * 0.7**2 / 1.5, abs=1e-4)
    assert width == pytest.approx(0.7, abs=1e-4)


def test_the_variant_and_the_options_reach_the_loss():
    policy, batch = problem()
    adv = (batch.adv - 2.0 * batch.cost_adv) / 3.0
    size = {"ppo.epochs": 1, "ppo.batch_size": 300, "ppo.lr": 1e-2}
    for variant in ("corrected", "published"):
        options = {**size, "variant": variant, "temperature": 0.7, "radius": 0.3}
        objective = Objective(Mode.IMPROVE, lagrange_multiplier=2.0)
        metrics = update("focops", objective, policy, batch, options)[1]
        # At the old policy every state is inside and every ratio is 1, in both variants.
        assert metrics["Loss/Policy"] == pytest.approx(-adv.mean() / 0.7, abs=1e-6)
    size = {"ppo.epochs": 6, "ppo.lr": 1e-2, "ppo.max_kl": 9.0}
    corrected, published = (
        update("focops", objective, policy, batch, {**size, "variant": variant})[0]
        for variant in ("corrected", "published")
    )
    assert np.abs(corrected["w"][0] - published["w"][0]).max() > 1e-4
