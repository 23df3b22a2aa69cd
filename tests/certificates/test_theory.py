"""The published finite-sample statements: formulas, when they are vacuous, and coverage by simulation."""

import numpy as np
import pytest
from scipy.stats import beta as beta_law
from scipy.stats import binom

from steingate.certificates.kernels import Kernel, ksd_squared, stein_kernel
from steingate.certificates.reference import Beta, LogitNormal
from steingate.certificates.theory import (
    concentration_radii,
    discrepancy_lower_bound,
    embedding_radius,
    required_step_factor,
    stein_kernel_bound,
    step_penalty,
)
from steingate.errors import InputError

MATERN = Kernel("matern52", 0.2)


def test_published_radii():
    radii = concentration_radii(100, 80, 0.05, 3.0, squared_ksd=True)
    assert radii.mass == pytest.approx(2 * np.sqrt(np.log(120) / 200))
    assert radii.interior == pytest.approx(2 * np.sqrt(2) * 3 * np.sqrt(np.log(120) / 80) + 3 / 80)
    assert radii.total(0.5) == pytest.approx(radii.interior + 1.5 * radii.mass)
    ours = concentration_radii(100, 80, 0.05, 3.0)
    assert ours.interior == pytest.approx(np.sqrt(3 / 80) * (1 + np.sqrt(2 * np.log(60))))


def test_embedding_radius():
    assert embedding_radius(24.0, 40, 0.05) == pytest.approx(np.sqrt(24 / 40) * (1 + np.sqrt(2 * np.log(20))))


def test_the_langevin_kernel_makes_the_proposition_vacuous():
    langevin = stein_kernel_bound(Beta(2, 5), Kernel("rbf", 0.1), "langevin", 1e-5)
    weighted = stein_kernel_bound(Beta(2, 5), MATERN, "weighted", 1e-5)
    assert 1e9 < langevin < 1e12
    assert weighted < 50
    for squared in (False, True):
        assert 0.1 * concentration_radii(10**6, 10**6, 0.05, langevin, squared).interior > 1.0
    assert 0.476 * concentration_radii(2000, 1500, 0.05, weighted).interior < 1.0
    assert concentration_radii(2000, 1500, 0.05, np.inf).interior == np.inf


def test_lower_bound_formula_and_floor():
    radii = concentration_radii(4000, 3000, 0.05, 0.01)
    estimate = 0.2 + 0.7 * 0.8
    expected = estimate - radii.interior - radii.mass * (1.8 + radii.interior)
    assert discrepancy_lower_bound(0.2, 0.8, 0.7, radii) == pytest.approx(expected)
    assert discrepancy_lower_bound(0.0, 0.01, 0.7, radii) == 0.0
    alone = discrepancy_lower_bound(0.3, 0.0, 0.0, concentration_radii(4000, 0, 0.05, 0.01))
    assert alone == pytest.approx(0.3 - radii.mass)


def test_penalty_and_factor_of_a_step():
    penalty = step_penalty(horizon=10, advantage_bound=0.02, mean_total_variation=0.005)
    assert penalty == pytest.approx(2 * 10 * 0.02 * (10 * 0.005))
    assert required_step_factor(penalty, 0.4) * 0.4 == pytest.approx(penalty)
    # A policy like its reference has no margin, however large lambda_k is, unless the step adds no risk at all.
    assert required_step_factor(penalty, 0.0) == np.inf
    assert required_step_factor(0.0, 0.0) == 0.0


def test_the_theorem_at_the_size_of_a_usual_task_promises_nothing():
    """H = 1000, mean total variation 0.01, epsilon_h = 1: a penalty of 20,000 against a budget of 0.1."""
    bound = stein_kernel_bound(Beta(2, 6.506), MATERN, "weighted", 1e-5)
    assert step_penalty(1000, 1.0, 0.01) == pytest.approx(20_000)
    for n in (16, 100):
        # A discrepancy of 1 is more than a hundred samples of a policy at the limit show.
        assert discrepancy_lower_bound(0.0, 1.0, 1.0, concentration_radii(n, n, 0.05, bound)) == 0.0


def test_the_largest_stein_kernel_of_both_operators():
    assert stein_kernel_bound(Beta(2, 5), MATERN, "weighted", 0.01) == pytest.approx(24.3, abs=0.05)
    assert stein_kernel_bound(Beta(2, 5), MATERN, "langevin", 0.01) == pytest.approx(160_000, rel=0.01)
    assert stein_kernel_bound(Beta(2, 5), MATERN, "langevin", 1e-5) == pytest.approx(1.6e11, rel=0.01)


@pytest.mark.parametrize("name", ["rbf", "matern52", "imq"])
@pytest.mark.parametrize("operator", ["langevin", "weighted"])
def test_the_bound_is_the_maximum_over_the_square(name, operator):
    interior, kernel = Beta(2, 3), Kernel(name, 0.3)
    grid = np.linspace(0.05, 0.95, 301)
    largest = np.abs(stein_kernel(grid, grid, interior, kernel, operator)).max()
    bound = stein_kernel_bound(interior, kernel, operator, 0.05)
    assert largest <= bound * (1 + 1e-12)
    assert largest == pytest.approx(bound, rel=1e-3)


def test_without_a_clip_the_bound_is_finite_only_where_the_kernel_is_bounded():
    assert stein_kernel_bound(Beta(2, 5), MATERN, "weighted", 0.0) == pytest.approx(25.0, rel=1e-9)
    half = stein_kernel_bound(Beta(0.5, 0.5), MATERN, "weighted", 0.0)
    assert half == pytest.approx(5 / 3 / 0.04 / 16, rel=1e-6)
    assert stein_kernel_bound(LogitNormal(-1, 1), MATERN, "weighted", 0.0) == np.inf
    assert stein_kernel_bound(Beta(2, 5), MATERN, "langevin", 0.0) == np.inf


GRID = (np.arange(400) + 0.5) / 400


def assert_covers(squared_ksd, n, draws):
    """Simulate hybrid distributions with a known KSD and count failures of any of the three inequalities."""
    interior, a0, a1, delta = Beta(2, 5), 0.3, 0.1, 0.3
    inner = np.diff(beta_law.cdf(np.linspace(0, 1, GRID.size + 1), 6, 4))
    u = stein_kernel(GRID, GRID, interior, MATERN, "weighted")
    squared = float(inner @ u @ inner)
    bound = float(np.diag(u).max())
    true_int = squared if squared_ksd else np.sqrt(squared)
    rng = np.random.default_rng(n)
    wrong = failures = 0
    for _ in range(draws):
        _, ones, m = rng.multinomial(n, [a0, a1, 1 - a0 - a1])
        x = rng.choice(GRID, size=m, p=inner)
        v = max(ksd_squared(x, interior, MATERN, "weighted"), 0.0)
        found_int = v if squared_ksd else np.sqrt(v)
        radii = concentration_radii(n, m, delta, bound, squared_ksd=squared_ksd)
        disc, true_disc = max(ones / n - 0.05, 0.0), 0.05
        total, true_total = disc + m / n * found_int, true_disc + (1 - a0 - a1) * true_int
        wrong += abs(total - true_total) > radii.total(true_int) or abs(found_int - true_int) > radii.interior
        failures += discrepancy_lower_bound(disc, found_int, m / n, radii) > true_total
    limit = binom.ppf(1 - 1e-4, draws, delta)
    assert wrong <= limit
    assert failures <= limit


@pytest.mark.parametrize("squared_ksd", [False, True])
@pytest.mark.parametrize("n", [20, 200])
def test_the_statements_cover(squared_ksd, n):
    assert_covers(squared_ksd, n, draws=300)


@pytest.mark.slow
@pytest.mark.parametrize("squared_ksd", [False, True])
@pytest.mark.parametrize("n", [20, 100, 500])
def test_the_statements_cover_in_ten_thousand_draws(squared_ksd, n):
    assert_covers(squared_ksd, n, draws=10_000)


def test_embedding_radius_of_small_error_is_not_loose_by_orders():
    """At delta = 0.3 the radius is within a factor 10 of what occurs, so the coverage tests can fail."""
    interior = Beta(2, 5)
    u = stein_kernel(GRID, GRID, interior, MATERN, "weighted")
    inner = np.diff(beta_law.cdf(np.linspace(0, 1, GRID.size + 1), 6, 4))
    radius = concentration_radii(50, 50, 0.3, float(np.diag(u).max())).interior
    rng = np.random.default_rng(0)
    counts = rng.multinomial(50, inner / inner.sum(), size=500) / 50 - inner
    distance = np.sqrt(np.einsum("di,ij,dj->d", counts, u, counts, optimize=True))
    assert radius / 10 < np.quantile(distance, 0.9) < radius
    assert np.mean(distance > radius) <= 0.1


@pytest.mark.parametrize(
    ("call", "named"),
    [
        (lambda: concentration_radii(0, 0, 0.05, 1.0), "n is 0"),
        (lambda: concentration_radii(5, 6, 0.05, 1.0), "m is 6"),
        (lambda: concentration_radii(5, 5, 1.0, 1.0), "delta is 1.0"),
        (lambda: stein_kernel_bound(Beta(2, 5), MATERN, "weighted", 0.5), r"clip is 0\.5"),
        (lambda: step_penalty(-1, 1.0, 0.1), "horizon is -1"),
    ],
)
def test_bad_input_is_named(call, named):
    with pytest.raises(InputError, match=named):
        call()
