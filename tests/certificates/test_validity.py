"""The Stein bound against the truth: exact integrals over hundreds of distributions, and over samples."""

from functools import lru_cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import expit
from scipy.stats import beta as scipy_beta

from steingate.certificates.certificate import Certificate
from steingate.certificates.kernels import Kernel, stein_kernel
from steingate.certificates.reference import Beta


@pytest.fixture(scope="module")
def certified():
    return Certificate.preset("certified", limit=25.0)


@lru_cache
def quadrature(order=600, reach=17.0):
    """Return nodes and weights on (0, 1), equally fine at both ends."""
    t, weight = np.polynomial.legendre.leggauss(order)
    x = expit(reach * t)
    return x, reach * weight * x * (1.0 - x)


def random_mixtures(count, seed):
    """Return atoms (count, 2) and interior distributions at the nodes (nodes, count), weights included."""
    rng = np.random.default_rng(seed)
    x, weight = quadrature()
    shapes = rng.uniform(1.2, 12.0, (2, 3, count))
    shares = rng.dirichlet(np.ones(3), count).T
    q = (shares * scipy_beta.pdf(x[:, None, None], *shapes)).sum(axis=1) * weight[:, None]
    assert np.abs(q.sum(axis=0) - 1.0).max() < 1e-5
    atoms = rng.dirichlet((0.5, 0.5, 1.0), count)[:, :2] * (rng.random((count, 1)) < 0.7)
    return atoms, q / q.sum(axis=0)


def population_bounds(made, kernel, atoms, q):
    """Return true risk and bound of each distribution of costs, with integrals in place of sample means."""
    x, _ = quadrature()
    zero, one = atoms.T
    inside = 1.0 - zero - one
    low, high = made.risk(np.array([0.0, 1.0]))
    risk = zero * low + one * high + inside * (made.risk(x) @ q)
    discrete = np.maximum(made.zero_mass - zero, 0.0) + np.maximum(one - made.one_mass, 0.0)
    u = stein_kernel(x, x, made.interior, kernel, made.operator)
    discrepancy = np.sqrt(np.maximum((q * (u @ q)).sum(axis=0), 0.0))
    return risk, made.reference_risk + discrete + made.factor * inside * discrepancy


@pytest.mark.parametrize("atoms", [{}, {"zero_mass": 0.3, "one_mass": 0.02}])
def test_the_certified_bound_holds_for_hundreds_of_mixtures(atoms):
    made = Certificate.preset("certified", limit=25.0, **atoms)
    risk, bound = population_bounds(made, Kernel("matern52", 0.2), *random_mixtures(400, seed=11))
    assert (risk <= bound + 1e-9).all()
    # Not by being vacuous: the bound is often close to the truth.
    assert np.median(bound - risk) < 0.45


def test_the_published_factor_fails_the_same_test():
    """At the smallest length of the released rule, which it reaches as the number of samples grows."""
    made = Certificate.preset("released", limit=25.0)
    risk, bound = population_bounds(made, Kernel("rbf", 0.05), *random_mixtures(400, seed=11))
    assert (risk > bound + 1e-9).sum() >= 20


def test_the_published_factor_fails_for_the_valid_kernel_too():
    made = Certificate.preset("certified", limit=25.0, reference=Beta(2, 5), stein_factor=0.10)
    risk, bound = population_bounds(made, Kernel("matern52", 0.2), *random_mixtures(400, seed=11))
    assert (risk > bound + 1e-9).sum() >= 100


def test_the_certified_bound_is_within_a_factor_of_the_truth():
    made = Certificate.preset("certified", limit=25.0, reference=Beta(2, 5))
    atoms, q = random_mixtures(300, seed=12)
    risk, bound = population_bounds(made, Kernel("matern52", 0.2), 0.0 * atoms, q)
    rising = risk > made.reference_risk + 0.01
    ratio = (bound - made.reference_risk)[rising] / (risk - made.reference_risk)[rising]
    assert ratio.min() > 1.2
    assert np.quantile(ratio, 0.9) < 2.4


@settings(max_examples=60, deadline=None)
@given(st.lists(st.floats(0.0, 80.0), min_size=1, max_size=30))
def test_the_certified_bound_is_never_below_the_mean_risk_of_the_sample(certified, costs):
    """A sample is itself a distribution of costs, so the bound must hold for it."""
    result = certified.evaluate(costs)
    assert result.empirical_risk <= result.bound + 1e-9


@settings(max_examples=80, deadline=None)
@given(
    st.lists(st.floats(0.0, 80.0), min_size=1, max_size=20),
    st.sampled_from([0.0, 1e-4, 0.05, 0.4]),
    st.sampled_from([0.0, 1e-4, 0.05]),
    st.sampled_from([1e-5, 0.1, 0.45]),
    st.sampled_from([0.3, 0.5, 0.9]),
    st.sampled_from([0.0, 0.3]),
)
def test_a_valid_bound_is_never_below_the_mean_risk(costs, zero_tol, one_tol, clip, threshold, zero_mass):
    made = Certificate.preset(
        "certified",
        limit=25.0,
        zero_tol=zero_tol,
        one_tol=one_tol,
        interior_clip=clip,
        risk_threshold=threshold,
        zero_mass=zero_mass,
        reference=Beta(2.0, 6.5),
        decision="bound",
    )
    result = made.evaluate(costs)
    assert not result.valid or result.empirical_risk <= result.bound + 2e-9
