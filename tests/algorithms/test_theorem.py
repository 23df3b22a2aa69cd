import numpy as np
import pytest
from scipy.stats import norm

from steingate.algorithms.common.base import Batch
from steingate.algorithms.common.heads import log_prob
from steingate.algorithms.common.networks import init_policy, mean
from steingate.algorithms.common.theorem import mean_total_variation, step_audit
from steingate.certificates.certificate import Certificate
from steingate.gates.base import Episodes


def shifted(shift, samples=40_000):
    """A batch of a policy and the policy with its mean moved by ``shift`` standard deviations."""
    rng = np.random.default_rng(0)
    old = init_policy(rng, 2, 1, (4,))
    obs = rng.normal(size=(samples, 2)).astype(np.float32)
    act = (np.asarray(mean(old, obs)) + rng.normal(size=(samples, 1))).astype(np.float32)
    adv = np.linspace(-0.2, 0.1, samples, dtype=np.float32)
    batch = Batch(obs, act, np.asarray(log_prob(old, obs, act)), adv, adv)
    new = {**old, "b": (old["b"][0], old["b"][1] + np.float32(shift))}
    return batch, new


@pytest.mark.parametrize("shift", [0.0, 0.2, 1.5])
def test_total_variation_against_the_closed_form(shift):
    batch, new = shifted(shift)
    assert mean_total_variation(new, batch) == pytest.approx(2 * norm.cdf(shift / 2) - 1, abs=0.01)


@pytest.mark.parametrize("preset", ["released", "certified"])
@pytest.mark.parametrize("bound", [1.0, 0.2])
def test_the_numbers_of_the_theorem_belong_together(preset, bound):
    certificate = Certificate.preset(preset, limit=25.0)
    batch, new = shifted(0.1, 500)
    costs = np.array([0.0, 3.0, 60.0, 70.0, 60.0, 55.0, 80.0, 51.0] * 20)
    episodes = Episodes(costs, costs, np.full(len(costs), 40, np.int64))
    log = step_audit(certificate, bound)(episodes, batch, new)
    assert log["theorem/advantage_bound"] == pytest.approx(bound)
    assert log["theorem/horizon"] == 40.0
    assert log["theorem/penalty"] == pytest.approx(2 * 40**2 * bound * log["theorem/total_variation"])
    assert log["theorem/margin"] == pytest.approx(certificate.factor * log["theorem/discrepancy"])
    assert log["theorem/discrepancy"] >= 0.0
    if log["theorem/discrepancy"] > 0:
        product = log["theorem/required_factor"] * log["theorem/discrepancy"]
        assert product == pytest.approx(log["theorem/penalty"])
    covered = log["theorem/margin"] >= log["theorem/penalty"]
    assert log["theorem/holds"] == float(covered and preset == "certified")


def test_a_harmless_step_passes_only_where_the_kernel_does_not_look_at_the_samples():
    """Without an advantage the penalty is 0, so what fails for ``released`` is the statement on the radii."""
    batch, new = shifted(0.1, 100)
    costs = np.linspace(1.0, 60.0, 50)
    episodes = Episodes(costs, costs, np.full(50, 40, np.int64))
    holds = {
        preset: step_audit(Certificate.preset(preset, limit=25.0), 0.0)(episodes, batch, new)["theorem/holds"]
        for preset in ("paper", "released", "certified")
    }
    assert holds == {"paper": 0.0, "released": 0.0, "certified": 1.0}


def test_the_advantages_of_a_batch_do_not_set_the_bound():
    """They are centered, so their size says nothing about the largest advantage."""
    audit = step_audit(Certificate.preset("certified", limit=25.0))
    batch, new = shifted(0.1, 100)
    costs = np.linspace(1.0, 60.0, 50)
    episodes = Episodes(costs, costs, np.full(50, 40, np.int64))
    log = audit(episodes, batch, new)
    assert log["theorem/advantage_bound"] == 1.0
    assert audit(episodes, batch._replace(cost_adv=9.0 * batch.cost_adv), new) == log


def test_without_an_episode_only_the_variation_is_known():
    audit = step_audit(Certificate.preset("released", limit=25.0))
    batch, new = shifted(0.1, 100)
    nothing = Episodes(np.zeros(0), np.zeros(0), np.zeros(0, np.int64))
    assert set(audit(nothing, batch, new)) == {"theorem/total_variation"}
