"""Planning: the classical counts, inverse functions, and agreement with the bounds they plan for."""

import numpy as np
import pytest
from scipy.stats import binom

from steingate.certificates.factors import rkhs_factor
from steingate.certificates.kernels import Kernel, ksd
from steingate.certificates.null import null_quantile
from steingate.certificates.plan import certifiable_budget, episodes_needed, noise_episodes
from steingate.certificates.reference import Beta, HybridReference
from steingate.certificates.risk import Sigmoid
from steingate.errors import InputError

MATERN = Kernel("matern52", 0.2)


@pytest.mark.parametrize(
    ("budget", "violations", "episodes"),
    [
        (0.10, 0, 29),
        (0.05, 0, 59),
        (0.01, 0, 299),
        (0.10, 1, 46),
        (0.10, 2, 61),
        (0.05, 1, 93),
        (0.01, 1, 473),
    ],
)
def test_episodes_needed(budget, violations, episodes):
    assert episodes_needed(budget, 0.05, violations) == episodes
    assert binom.cdf(violations, episodes, budget) <= 0.05 < binom.cdf(violations, episodes - 1, budget)


@pytest.mark.parametrize("violations", [0, 1, 5, 40])
@pytest.mark.parametrize("delta", [0.2, 0.05, 0.001])
def test_budget_and_episodes_are_inverse(violations, delta):
    for budget in (0.3, 0.1, 0.02):
        n = episodes_needed(budget, delta, violations)
        assert certifiable_budget(n, delta, violations) <= budget
        if n - 1 > violations:
            assert certifiable_budget(n - 1, delta, violations) > budget


def test_an_exact_quotient_is_not_rounded_up():
    assert episodes_needed(0.5, 0.25) == 2
    assert episodes_needed(0.1, 0.9**7) == 7


def test_noise_episodes_are_the_first_that_fit():
    interior, risk = Beta(2, 6.506), Sigmoid()
    factor = rkhs_factor(interior, risk, MATERN, "weighted").value
    h_ref = HybridReference(interior).expectation(risk)
    for budget in (0.1, 0.3, 0.9):
        m = noise_episodes(interior, MATERN, "weighted", factor, h_ref, budget)
        assert factor * null_quantile(interior, MATERN, "weighted", m) <= budget - h_ref
        assert factor * null_quantile(interior, MATERN, "weighted", m - 1) > budget - h_ref
    assert noise_episodes(Beta(2, 5), MATERN, "weighted", 0.476, 0.113048, 0.1) is None
    assert noise_episodes(interior, MATERN, "weighted", 0.0, h_ref, 0.1) == 1


def test_at_that_size_the_plain_stein_bound_opens_for_the_reference():
    interior, risk, budget = Beta(2, 6.506), Sigmoid(), 0.15
    factor = rkhs_factor(interior, risk, MATERN, "weighted").value
    h_ref = HybridReference(interior).expectation(risk)
    m = noise_episodes(interior, MATERN, "weighted", factor, h_ref, budget)
    rng = np.random.default_rng(0)
    shut = sum(
        h_ref + factor * ksd(interior.sample(rng, m), interior, MATERN, "weighted") > budget
        for _ in range(400)
    )
    assert binom.ppf(1e-3, 400, 0.04) <= shut <= binom.ppf(1 - 1e-3, 400, 0.06)


@pytest.mark.parametrize(
    ("call", "named"),
    [
        (lambda: episodes_needed(0.0, 0.05), "budget is 0.0"),
        (lambda: episodes_needed(1.5, 0.05), "budget is 1.5"),
        (lambda: episodes_needed(0.1, 1.0), "delta is 1.0"),
        (lambda: episodes_needed(0.1, 0.05, -1), "violations is -1"),
        (lambda: certifiable_budget(0, 0.05), "n is 0"),
        (lambda: certifiable_budget(3, 0.05, 4), "violations is 4"),
        (lambda: noise_episodes(Beta(), MATERN, "weighted", -1.0, 0.05, 0.1), "factor is -1.0"),
    ],
)
def test_bad_input_is_named(call, named):
    with pytest.raises(InputError, match=named):
        call()
