import jax
import numpy as np
import pytest
from tests.algorithms.problems import kl_and_ratio, minibatch, problem, surrogates, update

from steingate.algorithms.base import Mode, Objective
from steingate.algorithms.p3o import p3o_loss


@pytest.mark.parametrize("clips_cost", [True, False])
@pytest.mark.parametrize("violation", [-3.0, 0.2])
def test_the_loss_against_plain_sums(clips_cost, violation):
    now, rows = minibatch()
    _, ratio = kl_and_ratio(now, rows)
    clipped, adv, cost = np.clip(ratio, 0.8, 1.2), rows.adv[:5], rows.cost_adv[:5]
    assert (clipped != ratio).any()
    reward = np.mean(np.minimum(ratio * adv, clipped * adv))
    change = np.mean(np.maximum(ratio * cost, clipped * cost) if clips_cost else ratio * cost)
    expected = -reward + 20.0 * max(0.0, change + violation)
    numbers = np.array([violation], np.float32)
    assert p3o_loss(0.2, 20.0, clips_cost)(now, rows, numbers) == pytest.approx(expected, abs=1e-4)


def test_updates_follow_the_slack_and_minimize_cost_before_the_first_episode():
    policy, batch = problem()
    batch = batch._replace(cost_adv=6.0 * batch.cost_adv)
    size = {"ppo.epochs": 6, "ppo.lr": 3e-3, "ppo.max_kl": 9.0}
    loose, tight, unknown = (
        update("p3o", objective, policy, batch, size)[0]
        for objective in (Objective(Mode.BALANCE, 1.0), Objective(Mode.BALANCE, -1.0), Objective(Mode.RECOVER, 0.0))
    )
    recover = update("ppo", Objective(Mode.RECOVER), policy, batch, size)[0]
    assert surrogates(loose, batch)[0] > 0.02
    assert surrogates(tight, batch)[1] < min(-0.01, surrogates(loose, batch)[1])
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, atol=1e-5), unknown, recover)
    published = update("p3o", Objective(Mode.BALANCE, -1.0), policy, batch, {**size, "variant": "published"})[0]
    assert np.abs(published["w"][0] - tight["w"][0]).max() > 1e-4
