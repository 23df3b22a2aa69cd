"""Claims of monitors and comparisons in simulations, as documented; slow."""

import numpy as np
import pytest
from tests.monitoring import simulations
from tests.monitoring.simulations import BUDGET, DELTA

from steingate.monitoring.compare import ComparisonMonitor
from steingate.monitoring.monitor import Monitor


@pytest.mark.slow
def test_unsafe_is_rarely_wrong_in_20_000_looks():
    assert simulations.false_unsafe(runs=1_000) <= DELTA


@pytest.mark.slow
@pytest.mark.parametrize(("rate", "recorded"), [(0.2, 343), (0.3, 103), (1.0, 10)])
def test_delay_of_unsafe(rate, recorded):
    assert simulations.unsafe_delay(rate, restart=True) == pytest.approx(recorded, rel=0.25)


@pytest.mark.slow
@pytest.mark.parametrize(("correlation", "single"), [(0.09, 0.16), (0.33, 0.45)])
def test_clusters_repair_certificates_of_dependent_episodes(correlation, single):
    x = simulations.beta_clusters(np.random.default_rng(1), 1_000, 200, 10, BUDGET, correlation)
    wrong_single, wrong_clusters = simulations.wrong_certificates(x)
    assert wrong_single == pytest.approx(single, abs=0.06)
    assert wrong_clusters <= 0.025


@pytest.mark.slow
def test_price_of_clusters():
    clusters, single = simulations.cluster_price()
    assert clusters == pytest.approx(510, rel=0.05)
    assert single == pytest.approx(88, rel=0.05)


@pytest.mark.slow
def test_comparisons_are_rarely_wrong():
    assert simulations.wrong_comparison() <= DELTA


@pytest.mark.slow
@pytest.mark.parametrize(("correlation", "recorded"), [(0.0, 864), (0.5, 649), (0.9, 315)])
def test_pairs_until_a_policy_is_safer(correlation, recorded):
    """Exact, and half of 400 simulated runs are shorter (within four standard errors)."""
    assert simulations.pairs_until_safer(0.05, 0.08, correlation) == recorded
    rng, (a, b) = np.random.default_rng(2), simulations.pair_probabilities(0.05, 0.08, correlation)
    done = 0
    for _ in range(400):
        comparison = ComparisonMonitor(25)
        for kind in rng.choice(3, recorded, p=[a, b, 1 - a - b]).tolist():
            if kind < 2 and not comparison.a_is_safer:  # other pairs change nothing
                comparison.update(30.0 * (kind == 0), 30.0 * (kind == 1))
        done += comparison.a_is_safer
    assert abs(done - 200) <= 40


@pytest.mark.slow
def test_comparisons_of_returns_are_rarely_wrong_and_gain_from_the_same_seeds():
    assert 0.005 < simulations.wrong_higher_return() <= DELTA
    assert simulations.pairs_until_higher_return(True) == pytest.approx(243, rel=0.1)
    assert simulations.pairs_until_higher_return(False) > 450


@pytest.mark.slow
def test_delay_of_cost_drift():
    costs, violations = simulations.drift_delays(simulations.gamma_costs, shift=3.5)
    assert costs == pytest.approx(61, rel=0.3)
    assert violations > 10 * costs
    costs, violations = simulations.drift_delays(simulations.rising_costs, rate=0.07)
    assert violations < costs


@pytest.mark.slow
def test_false_alarms_of_cost_drift_are_rare():
    lengths = simulations.cost_run_lengths(runs=300)
    assert lengths.mean() + 4 * lengths.std() / 300**0.5 >= 200.0


def test_the_simulations_follow_the_classes():
    rng = np.random.default_rng(3)
    x = rng.random((30, 40)) < 0.3
    found, monitors = simulations.simulate_unsafe(list(x.T), 0.1, 0.05), [Monitor(25) for _ in x]
    shares = x.reshape(30, 10, 4).mean(axis=2) * 0.1
    certified = simulations.certified_at(np.tile(shares, (1, 20)), 0.1, 0.05)
    for run, monitor in enumerate(monitors):
        monitor.update_many(np.where(x[run], 30.0, 1.0))
        assert (monitor.unsafe_at or 0) == found[run]
        cluster = Monitor(25)
        for share in np.tile(shares[run], 20):
            cluster.update_cluster([30.0] * round(40 * share) + [1.0] * round(40 * (1 - share)))
        assert (cluster.certified_at or 0) == 40 * certified[run]
    assert found.any()
    assert certified.any()
    differences = rng.normal(0.2, 0.5, (5, 200))
    for row, decided in zip(differences, simulations.return_decisions(differences.T), strict=True):
        comparison, first = ComparisonMonitor(25, return_range=10.0), 0
        for pair, difference in enumerate(row.tolist(), start=1):
            comparison.update(0.0, 0.0, 10.0 * difference, 0.0)
            first = first or pair * comparison.a_has_higher_return
        assert first == decided
