"""The published finite-sample statements: formulas, when they are vacuous, and coverage by simulation."""

import numpy as np
import pytest
from scipy.stats import beta as beta_law
from scipy.stats import binom

from steingate.certificates.concentration import (
    concentration_radii,
    discrepancy_lower_bound,
    stein_kernel_bound,
    step_condition,
)
from steingate.certificates.kernels import Kernel, ksd_squared, stein_kernel
from steingate.certificates.reference import Beta
from steingate.errors import InputError

MATERN = Kernel("matern52", 0.2)


def test_published_radii():
    radii = concentration_radii(100, 80, 0.05, 3.0, form="squared")
    assert radii.mass == pytest.approx(2 * np.sqrt(np.log(120) / 200))
    assert radii.interior == pytest.approx(2 * np.sqrt(2) * 3 * np.sqrt(np.log(120) / 80) + 3 / 80)
    assert radii.total(0.5) == pytest.approx(radii.interior + 1.5 * radii.mass)
    ours = concentration_radii(100, 80, 0.05, 3.0)
    assert ours.interior == pytest.approx(np.sqrt(3 / 80) * (1 + np.sqrt(2 * np.log(60))))


def test_langevin_kernel_makes_the_proposition_vacuous_and_the_weighted_one_does_not():
    langevin = stein_kernel_bound(Beta(2, 5), Kernel("rbf", 0.1), "langevin", 1e-5)
    weighted = stein_kernel_bound(Beta(2, 5), MATERN, "weighted", 1e-5)
    assert 1e9 < langevin < 1e12
    assert weighted < 50
    for form in ("ksd", "squared"):
        radii = concentration_radii(10**6, 10**6, 0.05, langevin, form=form, stein_factor=0.1)
        assert radii.holds
        assert radii.vacuous
    useful = concentration_radii(2000, 1500, 0.05, weighted, stein_factor=0.476)
    assert useful.holds
    assert not useful.vacuous
    unbounded = concentration_radii(2000, 1500, 0.05, np.inf)
    assert not unbounded.holds
    assert "unbounded" in unbounded.assumptions


def test_a_kernel_chosen_from_the_samples_voids_the_statement():
    fixed = concentration_radii(100, 80, 0.05, 3.0)
    chosen = concentration_radii(100, 80, 0.05, 3.0, kernel_from_data=True)
    assert fixed.holds
    assert not chosen.holds
    assert (chosen.mass, chosen.interior) == (fixed.mass, fixed.interior)
    assert "chosen from the samples" in chosen.assumptions
    assert not discrepancy_lower_bound(0.2, 0.8, 0.7, chosen).holds


def test_lower_bound_formula_and_floor():
    radii = concentration_radii(4000, 3000, 0.05, 0.01)
    found = discrepancy_lower_bound(0.2, 0.8, 0.7, radii)
    estimate = 0.2 + 0.7 * 0.8
    assert found.estimate == pytest.approx(estimate)
    assert found.value == pytest.approx(estimate - radii.interior - radii.mass * (1.8 + radii.interior))
    assert discrepancy_lower_bound(0.0, 0.01, 0.7, radii).value == 0.0
    assert discrepancy_lower_bound(0.0, 0.01, 0.7, radii).vacuous
    alone = discrepancy_lower_bound(0.3, 0.0, 0.0, concentration_radii(4000, 0, 0.05, 0.01))
    assert alone.value == pytest.approx(0.3 - radii.mass)
    assert alone.holds


def test_step_condition_of_the_safety_theorem():
    radii = concentration_radii(4000, 3000, 0.05, 0.01)
    lower = discrepancy_lower_bound(0.2, 0.8, 0.7, radii)
    inputs = {"advantage_bound": 0.02, "horizon": 10, "mean_total_variation": 0.005, "budget": 0.1}
    found = step_condition(lower, 0.1, **inputs)
    assert found.penalty == pytest.approx(2 * 10 * 0.02 * (10 * 0.005))
    assert found.required_factor == pytest.approx(found.penalty / lower.value)
    assert found.margin == pytest.approx(0.1 * lower.value)
    assert found.holds == (found.required_factor <= 0.1)
    assert step_condition(lower, found.required_factor * 1.0001, **inputs).holds
    assert not step_condition(lower, found.required_factor * 0.999, **inputs).holds
    assert found.attainable
    assert not step_condition(lower, 0.1, **(inputs | {"horizon": 1000})).attainable


def test_the_theorem_at_the_size_of_a_usual_task_promises_nothing():
    """H = 1000, mean total variation 0.01, epsilon_h = 1: a penalty of 20,000 against a budget of 0.1."""
    bound = stein_kernel_bound(Beta(2, 6.506), MATERN, "weighted", 1e-5)
    for n in (16, 100):
        radii = concentration_radii(n, n, 0.05, bound)
        # A discrepancy of 1 is more than a hundred samples of a policy at the limit show.
        lower = discrepancy_lower_bound(0.0, 1.0, 1.0, radii)
        assert lower.value == 0.0
        found = step_condition(
            lower, 0.409, advantage_bound=1.0, horizon=1000, mean_total_variation=0.01, budget=0.1
        )
        assert found.penalty == pytest.approx(20_000)
        assert found.required_factor == np.inf
        assert not found.holds


def test_a_policy_like_its_reference_has_no_finite_factor():
    """SD_tot^+ = 0 leaves no margin, however large lambda_k is, unless the step adds no risk at all."""
    nothing = discrepancy_lower_bound(0.0, 0.0, 1.0, concentration_radii(100, 100, 0.05, 20.0))
    inputs = {"advantage_bound": 0.02, "horizon": 10, "budget": 0.1}
    found = step_condition(nothing, 1e6, mean_total_variation=0.005, **inputs)
    assert found.required_factor == np.inf
    assert not found.holds
    assert not found.attainable
    still = step_condition(nothing, 0.0, mean_total_variation=0.0, **inputs)
    assert still.required_factor == 0.0
    assert still.holds


GRID = (np.arange(400) + 0.5) / 400


def assert_covers(form, n, draws):
    """Simulate hybrid distributions with a known KSD and count failures of any of the three inequalities."""
    interior, a0, a1, delta = Beta(2, 5), 0.3, 0.1, 0.3
    inner = np.diff(beta_law.cdf(np.linspace(0, 1, GRID.size + 1), 6, 4))
    u = stein_kernel(GRID, GRID, interior, MATERN, "weighted")
    squared = float(inner @ u @ inner)
    bound = float(np.diag(u).max())
    true_int = squared if form == "squared" else np.sqrt(squared)
    rng = np.random.default_rng(n)
    wrong = failures = 0
    for _ in range(draws):
        _, ones, m = rng.multinomial(n, [a0, a1, 1 - a0 - a1])
        x = rng.choice(GRID, size=m, p=inner)
        v = max(ksd_squared(x, interior, MATERN, "weighted"), 0.0)
        found_int = v if form == "squared" else np.sqrt(v)
        radii = concentration_radii(n, m, delta, bound, form=form)
        disc, true_disc = max(ones / n - 0.05, 0.0), 0.05
        total, true_total = disc + m / n * found_int, true_disc + (1 - a0 - a1) * true_int
        wrong += abs(total - true_total) > radii.total(true_int) or abs(found_int - true_int) > radii.interior
        failures += discrepancy_lower_bound(disc, found_int, m / n, radii).value > true_total
    limit = binom.ppf(1 - 1e-4, draws, delta)
    assert wrong <= limit
    assert failures <= limit


@pytest.mark.parametrize("form", ["ksd", "squared"])
@pytest.mark.parametrize("n", [20, 200])
def test_the_statements_cover(form, n):
    assert_covers(form, n, draws=300)


@pytest.mark.slow
@pytest.mark.parametrize("form", ["ksd", "squared"])
@pytest.mark.parametrize("n", [20, 100, 500])
def test_the_statements_cover_in_ten_thousand_draws(form, n):
    assert_covers(form, n, draws=10_000)


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
        (lambda: concentration_radii(5, 5, 0.05, 1.0, form="cubed"), "cubed"),
        (
            lambda: step_condition(
                discrepancy_lower_bound(0, 0, 1, concentration_radii(5, 5, 0.05, 1.0)),
                -1.0,
                advantage_bound=1.0,
                horizon=1,
                mean_total_variation=0.0,
                budget=0.1,
            ),
            "factor is -1.0",
        ),
    ],
)
def test_bad_input_is_named(call, named):
    with pytest.raises(InputError, match=named):
        call()
