import numpy as np
import pytest
from tests.algorithms.problems import bandit, kl_and_ratio, minibatch, minimizer, problem, surrogates, update

from steingate.algorithms import make_algorithm
from steingate.algorithms.base import Mode, Objective
from steingate.algorithms.cup import projection_loss
from steingate.errors import InputError


def test_the_projection_against_plain_sums():
    now, rows = minibatch()
    kl, ratio = kl_and_ratio(now, rows)
    expected = 3.0 * np.mean(ratio * rows.cost_adv[:5]) + np.mean(kl)
    assert projection_loss(now, rows, np.array([3.0], np.float32)) == pytest.approx(expected, abs=1e-5)


def test_the_projection_ends_at_the_tilted_policy():
    center, width = minimizer(projection_loss, bandit(0.0, 0.4), (0.8,))
    assert center == pytest.approx(0.3 - 0.8 * 0.4 * 0.7**2, abs=1e-4)
    assert width == pytest.approx(0.7, abs=1e-4)


@pytest.mark.parametrize(
    ("options", "gae_lambda", "gamma"),
    [
        ({}, 0.95, 0.99),
        ({"cost_gae_lambda": 0.5}, 0.5, 0.99),
        ({"cost_adv_lambda": 0.3}, 0.3, 0.99),
        ({"cost_gamma": 0.9}, 0.95, 0.9),
    ],
)
def test_the_weight_of_the_cost(options, gae_lambda, gamma):
    _, batch = problem(samples=5)
    objective = Objective(Mode.IMPROVE, lagrange_multiplier=0.5)
    first, second = make_algorithm("cup", options=options).phases(batch, objective)
    assert first.numbers == ()
    assert second.numbers == (pytest.approx(0.5 * (1.0 - gamma * gae_lambda) / (1.0 - gamma)),)


SIZE = {"ppo.epochs": 8, "ppo.lr": 3e-3, "ppo.max_kl": 0.03}


def test_reward_rises_first_and_some_of_it_is_given_up_for_lower_cost():
    policy, batch = problem(samples=1000)
    batch = batch._replace(cost_adv=(batch.adv + batch.cost_adv).astype(np.float32))
    after_ppo, ppo = update("ppo", Objective(Mode.IMPROVE), policy, batch, SIZE)
    updated, metrics = update("cup", Objective(Mode.IMPROVE, lagrange_multiplier=2.0), policy, batch, SIZE)
    reward, cost = surrogates(after_ppo, batch)
    assert reward > 0.05
    assert cost > 0.0
    assert surrogates(updated, batch)[1] < cost
    assert surrogates(updated, batch)[0] < reward
    for name in ("Loss/Epochs", "Loss/KL"):
        assert metrics[name] == ppo[name]
    # Without a multiplier only the momentum of the optimizer moves the policy in the second phase.
    same, metrics = update("cup", Objective(Mode.IMPROVE, lagrange_multiplier=0.0), policy, batch, SIZE)
    assert metrics["Loss/Epochs_2"] == 8
    assert metrics["Loss/KL_2"] < 0.2 * metrics["Loss/KL"]
    assert surrogates(same, batch)[0] == pytest.approx(reward, rel=0.2)


def test_a_cost_gamma_of_1_is_refused():
    with pytest.raises(InputError, match="cup needs a cost_gamma below 1"):
        make_algorithm("cup", options={"cost_gamma": 1.0})
