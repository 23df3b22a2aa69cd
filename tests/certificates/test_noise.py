"""Null quantiles against direct simulation of the discrepancy, and their reproducibility."""

import numpy as np
import pytest
from scipy.special import expit
from scipy.stats import binom

from steingate.certificates import noise
from steingate.certificates.factors import valid_stein_factor
from steingate.certificates.kernels import Kernel, ksd
from steingate.certificates.noise import null_quantile
from steingate.certificates.reference import Beta, LogitNormal
from steingate.certificates.risk import Sigmoid

MATERN = Kernel("matern52", 0.2)


def simulated(interior, kernel, operator, m, draws, seed=0):
    rng = np.random.default_rng([seed, m])
    if isinstance(interior, Beta):
        samples = rng.beta(interior.a, interior.b, draws * m)
    else:
        samples = expit(rng.normal(interior.mu, interior.sigma, draws * m))
    samples = np.clip(samples, 1e-5, 1 - 1e-5).reshape(draws, m)
    return np.array([ksd(x, interior, kernel, operator) for x in samples])


@pytest.mark.parametrize(("m", "median"), [(16, 0.173), (40, 0.114), (200, 0.050), (1000, 0.023)])
def test_recorded_medians_of_the_noise_term(m, median):
    factor = valid_stein_factor(Beta(2, 5), Sigmoid(), MATERN, "weighted").value
    assert factor * null_quantile(Beta(2, 5), MATERN, "weighted", m, level=0.5) == pytest.approx(median, rel=0.04)


@pytest.mark.parametrize(
    ("interior", "kernel", "operator"),
    [
        (Beta(2, 6.506), MATERN, "weighted"),
        (Beta(1, 10), Kernel("matern52", 0.1), "weighted"),
        (LogitNormal(-1.0, 1.0), MATERN, "weighted"),
        (Beta(2, 5), Kernel("rbf", 0.1), "langevin"),
    ],
)
@pytest.mark.parametrize("m", [1, 5, 40, 150])
def test_the_null_is_exceeded_as_often_as_promised(interior, kernel, operator, m):
    """Counts over quantiles at 5 % and 50 % lie within what a share 20 % off the nominal one would give."""
    draws = 1200
    values = simulated(interior, kernel, operator, m, draws)
    for alpha in (0.05, 0.5):
        over = int(np.sum(values > null_quantile(interior, kernel, operator, m, 1 - alpha)))
        slack = 0.25 if alpha == 0.05 else 0.06
        assert binom.ppf(1e-4, draws, alpha * (1 - slack)) <= over <= binom.ppf(1 - 1e-4, draws, alpha * (1 + slack))


def test_large_samples_follow_the_limit():
    m = 1200
    values = simulated(Beta(2, 6.506), MATERN, "weighted", m, 120)
    limit = null_quantile(Beta(2, 6.506), MATERN, "weighted", m, level=0.5)
    assert np.median(values) == pytest.approx(limit, rel=0.1)
    assert null_quantile(Beta(2, 6.506), MATERN, "weighted", 4 * m) == pytest.approx(
        null_quantile(Beta(2, 6.506), MATERN, "weighted", m) / 2
    )


def test_quantiles_fall_with_size_and_rise_with_confidence():
    for level in (0.99, 0.95, 0.5):
        sizes = [1, 2, 3, 5, 7, 10, 16, 29, 40, 77, 200, 511, 512, 513, 10_000, 1_000_000]
        assert np.all(np.diff([null_quantile(Beta(2, 5), MATERN, "weighted", m, level) for m in sizes]) < 0)
    by_level = [null_quantile(Beta(2, 5), MATERN, "weighted", 40, level) for level in (0.5, 0.9, 0.95, 0.99)]
    assert np.all(np.diff(by_level) > 0)


def test_low_rank_keeps_all_but_the_trace_it_reports():
    x = np.linspace(0.01, 0.99, 80)
    matrix = MATERN.derivatives(x[:, None] - x)[0]
    factor, lost = noise._low_rank(matrix, 1e-4)
    rest = matrix - factor @ factor.T
    assert factor.shape[1] < 30
    assert np.trace(rest) == pytest.approx(lost)
    assert lost <= 1e-4 * 80
    assert np.linalg.eigvalsh(rest).min() > -1e-12


def test_the_simulation_runs_once_and_is_reproducible(monkeypatch):
    first = null_quantile(Beta(2, 4.5), MATERN, "weighted", 33)
    simulate = noise.scaled_table.__wrapped__
    again = np.quantile(simulate(Beta(2, 4.5), MATERN, "weighted", 1e-5), 0.95, axis=1)
    assert first == np.interp(np.log(33), np.log(noise.LADDER), again) / np.sqrt(33)

    def forbidden(*_):
        raise AssertionError("simulated twice")

    monkeypatch.setattr(noise, "stein_kernel", forbidden)
    assert null_quantile(Beta(2.0, 4.5), Kernel("matern52", 0.2), "weighted", 33) == first
    assert null_quantile(Beta(2, 4.5), MATERN, "weighted", 34, 0.99) > 0
