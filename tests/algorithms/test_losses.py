"""Losses of FOCOPS, CUP and P3O against plain sums and closed-form optima, and their updates."""

import jax
import numpy as np
import pytest
from tests.algorithms.problems import bandit, kl_and_ratio, minibatch, minimizer, problem, surrogates, update

from steingate.algorithms import make_algorithm
from steingate.algorithms.base import Mode, Objective
from steingate.algorithms.cup import projection_loss
from steingate.algorithms.focops import focops_loss
from steingate.algorithms.p3o import p3o_loss
from steingate.errors import InputError


def test_the_loss_of_focops_against_plain_sums():
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


def test_focops_ends_at_the_tilted_policy():
    """KL(new || old) - E[A] / t is least at old exp(A / t): a Gaussian moved by slope * variance / t."""
    center, width = minimizer(focops_loss(1.5, np.inf, True), bandit(0.4, 0.0))
    assert center == pytest.approx(0.3 + 0.4 * 0.7**2 / 1.5, abs=1e-4)
    assert width == pytest.approx(0.7, abs=1e-4)


def test_the_variant_and_the_options_of_focops_reach_the_loss():
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


def test_the_projection_of_cup_against_plain_sums():
    now, rows = minibatch()
    kl, ratio = kl_and_ratio(now, rows)
    expected = 3.0 * np.mean(ratio * rows.cost_adv[:5]) + np.mean(kl)
    assert projection_loss(now, rows, np.array([3.0], np.float32)) == pytest.approx(expected, abs=1e-5)


def test_the_projection_of_cup_ends_at_the_tilted_policy():
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
def test_the_weight_of_the_cost_in_cup(options, gae_lambda, gamma):
    _, batch = problem(samples=5)
    objective = Objective(Mode.IMPROVE, lagrange_multiplier=0.5)
    first, second = make_algorithm("cup", options=options).phases(batch, objective)
    assert first.numbers == ()
    assert second.numbers == (pytest.approx(0.5 * (1.0 - gamma * gae_lambda) / (1.0 - gamma)),)


SIZE = {"ppo.epochs": 8, "ppo.lr": 3e-3, "ppo.max_kl": 0.03}


def test_in_cup_reward_rises_first_and_some_of_it_is_given_up_for_lower_cost():
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


def test_a_cost_gamma_of_1_is_refused_by_cup():
    with pytest.raises(InputError, match="cup needs a cost_gamma below 1"):
        make_algorithm("cup", options={"cost_gamma": 1.0})


@pytest.mark.parametrize("clips_cost", [True, False])
@pytest.mark.parametrize("violation", [-3.0, 0.2])
def test_the_loss_of_p3o_against_plain_sums(clips_cost, violation):
    now, rows = minibatch()
    _, ratio = kl_and_ratio(now, rows)
    clipped, adv, cost = np.clip(ratio, 0.8, 1.2), rows.adv[:5], rows.cost_adv[:5]
    assert (clipped != ratio).any()
    reward = np.mean(np.minimum(ratio * adv, clipped * adv))
    change = np.mean(np.maximum(ratio * cost, clipped * cost) if clips_cost else ratio * cost)
    expected = -reward + 20.0 * max(0.0, change + violation)
    numbers = np.array([violation], np.float32)
    assert p3o_loss(0.2, 20.0, clips_cost)(now, rows, numbers) == pytest.approx(expected, abs=1e-4)


def test_p3o_follows_the_slack_and_minimize_cost_before_the_first_episode():
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
