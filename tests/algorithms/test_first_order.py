"""Losses of the first-order methods: against plain sums, and at optima that are known in closed form."""

from dataclasses import fields

import jax
import numpy as np
import pytest
from scipy.optimize import minimize
from steingate.algorithms.common.clipped import clipped_loss, clipped_step
from steingate.algorithms.common.descent import Minibatch
from steingate.algorithms.common.first_order import (
    focops_loss,
    focops_step,
    penalized_loss,
    penalized_step,
    projection_loss,
    update_and_project_step,
)
from steingate.algorithms.common.heads import Law, log_prob
from steingate.algorithms.common.recipe import Setup, make_recipe
from steingate.algorithms.common.sizes import Clipped, Passes
from steingate.gates.base import Decision, Episodes, Mode
from tests.algorithms.problems import problem

from steingate.algorithms.common.networks import init_policy, mean
from steingate.algorithms.lagrangian import CUP
from steingate.errors import InputError


def small_part(seed=0):
    """Six rows, the last of which only fills up, and a policy some way from where it started."""
    rng = np.random.default_rng(seed)
    start, now = init_policy(rng, 3, 2, (4,)), init_policy(rng, 3, 2, (4,))
    now = jax.tree.map(lambda a, b: (0.75 * a + 0.25 * b).astype(np.float32), start, now)
    now["log_std"] = np.array([0.05, -0.1], np.float32)
    obs = rng.normal(size=(6, 3)).astype(np.float32)
    mu = np.asarray(mean(start, obs))
    act = (mu + rng.normal(size=(6, 2))).astype(np.float32)
    weight = np.array([0.2] * 5 + [0.0], np.float32)
    adv, cost_adv = rng.normal(size=(2, 6)).astype(np.float32)
    logp = np.asarray(log_prob(start, obs, act))
    return now, Minibatch(obs, act, logp, adv, cost_adv, weight, Law(mu, start["log_std"]))


def kl_and_ratio(now, part):
    """The same two quantities, number by number."""
    kls, ratios = [], []
    for i in range(5):
        mu, log_std = np.asarray(mean(now, part.obs[i : i + 1]))[0], now["log_std"]
        kl, log_ratio = 0.0, 0.0
        for d in range(2):
            s, s0 = np.exp(log_std[d]), np.exp(part.start.log_std[d])
            kl += np.log(s0 / s) + (s**2 + (mu[d] - part.start.out[i, d]) ** 2) / (2 * s0**2) - 0.5
            log_ratio += -np.log(s) - 0.5 * ((part.act[i, d] - mu[d]) / s) ** 2
            log_ratio -= -np.log(s0) - 0.5 * ((part.act[i, d] - part.start.out[i, d]) / s0) ** 2
        kls.append(kl)
        ratios.append(np.exp(log_ratio))
    return np.array(kls), np.array(ratios)


def test_focops_against_plain_sums():
    now, part = small_part()
    kl, ratio = kl_and_ratio(now, part)
    radius = float(np.median(kl)) + 1e-4
    inside = kl <= radius
    assert 0 < inside.sum() < 5
    gain = ratio * part.adv[:5] / 1.5
    per_state = np.mean([inside[i] * (kl[i] - gain[i]) for i in range(5)])
    crossed = np.mean([[inside[i] * (kl[i] - gain[j]) for j in range(5)] for i in range(5)])
    assert abs(per_state - crossed) > 1e-3
    assert focops_loss(1.5, radius, True)(now, part, ()) == pytest.approx(per_state, abs=1e-5)
    assert focops_loss(1.5, radius, False)(now, part, ()) == pytest.approx(crossed, abs=1e-5)


@pytest.mark.parametrize("clips_cost", [True, False])
@pytest.mark.parametrize("violation", [-3.0, 0.2])
def test_p3o_against_plain_sums(clips_cost, violation):
    now, part = small_part()
    _, ratio = kl_and_ratio(now, part)
    capped, adv, cost = np.clip(ratio, 0.8, 1.2), part.adv[:5], part.cost_adv[:5]
    assert (capped != ratio).any()
    reward = np.mean(np.minimum(ratio * adv, capped * adv))
    change = np.mean(np.maximum(ratio * cost, capped * cost) if clips_cost else ratio * cost)
    expected = -reward + 20.0 * max(0.0, change + violation)
    numbers = np.array([violation], np.float32)
    assert penalized_loss(0.2, 20.0, clips_cost)(now, part, numbers) == pytest.approx(expected, abs=1e-4)


def test_cup_against_plain_sums():
    now, part = small_part()
    kl, ratio = kl_and_ratio(now, part)
    expected = 3.0 * np.mean(ratio * part.cost_adv[:5]) + np.mean(kl)
    assert projection_loss(now, part, np.array([3.0], np.float32)) == pytest.approx(expected, abs=1e-5)


def gaussian(slope_reward, slope_cost, nodes=40):
    """A bandit of one action whose advantages are linear in it; quadrature nodes stand for samples."""
    z, w = np.polynomial.hermite_e.hermegauss(nodes)
    start, deviation = 0.3, 0.7
    act = (start + deviation * z)[:, None]
    logp = -0.5 * z**2 - np.log(deviation) - 0.5 * np.log(2 * np.pi)
    shift = act[:, 0] - start
    ones = np.ones((nodes, 1))
    mu, log_std = np.full((nodes, 1), start), np.array([np.log(deviation)])
    return Minibatch(
        ones, act, logp, slope_reward * shift, slope_cost * shift, w / w.sum(), Law(mu, log_std)
    ), deviation


def best(loss, part, numbers=()):
    """Mean and deviation of the Gaussian where the loss is least."""

    def value(theta):
        params = {"w": (np.zeros((1, 1)),), "b": (theta[:1],), "log_std": theta[1:]}
        return float(loss(params, part, numbers))

    with jax.enable_x64(True):
        found = minimize(value, [0.35, -0.3], method="Nelder-Mead", options={"xatol": 1e-6, "fatol": 1e-10})
    return found.x[0], np.exp(found.x[1])


def test_focops_ends_at_the_tilted_policy():
    """The least of KL(new || old) - E[A] / t is old exp(A / t): a Gaussian moved by slope variance / t."""
    part, deviation = gaussian(0.4, 0.0)
    center, width = best(focops_loss(1.5, np.inf, True), part)
    assert center == pytest.approx(0.3 + 0.4 * deviation**2 / 1.5, abs=1e-4)
    assert width == pytest.approx(deviation, abs=1e-4)


def test_cup_projects_to_the_tilted_policy():
    part, deviation = gaussian(0.0, 0.4)
    center, width = best(projection_loss, part, (0.8,))
    assert center == pytest.approx(0.3 - 0.8 * 0.4 * deviation**2, abs=1e-4)
    assert width == pytest.approx(deviation, abs=1e-4)


def test_p3o_stops_where_the_limit_is_reached():
    """Reward and cost rise together; the penalty outweighs the reward once the limit is exceeded."""
    part, _ = gaussian(1.0, 1.0)

    def slope(center, clips_cost):
        params = {"w": (np.zeros((1, 1)),), "b": (np.array([center]),), "log_std": part.start.log_std}
        loss = penalized_loss(0.9, 20.0, clips_cost)
        with jax.enable_x64(True):
            return float(jax.grad(lambda p: loss(p, part, (-0.05,)))(params)["b"][0][0])

    for clips_cost in (True, False):
        assert slope(0.3 + 0.045, clips_cost) == pytest.approx(-1.0, abs=0.05)
        assert slope(0.3 + 0.055, clips_cost) == pytest.approx(-1.0 + 20.0, abs=0.5)


def surrogates(params, batch):
    ratio = np.exp(np.asarray(log_prob(params, batch.obs, batch.act)) - batch.logp)
    return (ratio * batch.adv).mean(), (ratio * batch.cost_adv).mean()


def test_cup_raises_reward_then_gives_some_of_it_back_for_less_cost():
    params, batch = problem(2000)
    batch = batch._replace(cost_adv=(batch.adv + batch.cost_adv).astype(np.float32))
    cfg = Clipped(passes=10, learning_rate=3e-3, max_kl=0.03)
    ppo = clipped_step(cfg, 1)
    after_ppo, _, ppo_log = ppo.move(ppo.init(params), params, batch, Decision(Mode.IMPROVE))
    step = update_and_project_step(cfg, 5.95, 1)
    moved, state, log = step.move(step.init(params), params, batch, Decision(Mode.IMPROVE, price=1.0))
    reward, cost = surrogates(after_ppo, batch)
    assert reward > 0.05
    assert cost > 0.0
    assert surrogates(moved, batch)[1] < 0.0
    assert surrogates(moved, batch)[0] < reward
    assert log["step/passes"] == ppo_log["step/passes"] == step.passes(state)
    assert log["step/kl"] == ppo_log["step/kl"]
    passes = log["step/passes"] + log["step/passes_2"]
    assert state.adam.steps == passes * -(-2000 // 64)


def test_steps_follow_their_decisions():
    params, batch = problem(2000)
    batch = batch._replace(cost_adv=6.0 * batch.cost_adv)
    cfg = Clipped(passes=10, learning_rate=3e-3, max_kl=0.03)
    steps = {
        "focops": focops_step(cfg, 1.5, 0.02, True),
        "p3o": penalized_step(cfg, 20.0, True),
    }
    free = {"focops": Decision(Mode.IMPROVE), "p3o": Decision(Mode.BALANCE, 1.0)}
    bound = {"focops": Decision(Mode.IMPROVE, price=2.0), "p3o": Decision(Mode.BALANCE, -1.0)}
    for name, step in steps.items():
        loose, _, _ = step.move(step.init(params), params, batch, free[name])
        tight, _, _ = step.move(step.init(params), params, batch, bound[name])
        assert surrogates(loose, batch)[0] > 0.02
        assert surrogates(tight, batch)[1] < min(-0.01, surrogates(loose, batch)[1])


def test_losses_are_the_same_object_for_the_same_numbers():
    """Or every algorithm that is built would compile anew."""
    for loss, numbers in (
        (clipped_loss, (0.2,)),
        (focops_loss, (1.5, 0.02, True)),
        (penalized_loss, (0.2, 20.0, True)),
    ):
        assert loss(*numbers) is loss(*numbers)


@pytest.mark.parametrize("variant", ["corrected", "published"])
def test_recipes_are_these_steps_with_their_numbers(variant):
    params, batch = problem(500)
    batch = batch._replace(cost_adv=6.0 * batch.cost_adv)
    cfg, right = Clipped(passes=6, learning_rate=1e-2, max_kl=9.0), variant == "corrected"
    decision = Decision(Mode.BALANCE, slack=-0.3, price=0.7)

    def sizes(name):
        names = [item.name for item in fields(Passes if name == "focops" else Clipped)]
        return {key: getattr(cfg, key) for key in names}

    steps = {
        "focops": (focops_step(cfg, 1.5, 0.02, right, 5), focops_step(cfg, 1.5, 0.02, not right, 5)),
        "p3o": (penalized_step(cfg, 20.0, right, 5), penalized_step(cfg, 20.0, not right, 5)),
        "cup": (update_and_project_step(cfg, 5.95, 5), update_and_project_step(cfg, 5.0, 5)),
    }
    decisions = {"focops": decision._replace(mode=Mode.IMPROVE), "cup": decision._replace(mode=Mode.IMPROVE)}
    for name, (expected, other) in steps.items():
        asked = decisions.get(name, decision)
        built = make_recipe(name, settings={"variant": variant, "clipped": sizes(name)}).build(Setup(seed=5)).step
        moved, wanted, unwanted = (
            step.move(step.init(params), params, batch, asked)[0] for step in (built, expected, other)
        )
        jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, atol=1e-6), moved, wanted)
        assert np.abs(moved["w"][0] - unwanted["w"][0]).max() > 1e-4


@pytest.mark.parametrize("multiplier", ["adam", "pid"])
@pytest.mark.parametrize("name", ["focops", "cup"])
def test_prices_have_a_ceiling_of_two(name, multiplier):
    gate = make_recipe(name, settings={"multiplier": multiplier}).build(Setup()).gate
    state, costs = gate.init(), np.full(20, 99.0)
    for _ in range(100):
        decision, state, _, *_ = gate.decide(state, Episodes(costs, costs, np.full(20, 100)))
    assert decision.price == 2.0


def test_the_projection_starts_from_where_the_first_phase_ended():
    """Without a price it has nothing to do: only the optimizer's momentum moves the policy on."""
    params, batch = problem(2000)
    cfg = Clipped(passes=10, learning_rate=3e-3, max_kl=0.03)
    step, ppo = update_and_project_step(cfg, 5.95, 1), clipped_step(cfg, 1)
    after_ppo, _, _ = ppo.move(ppo.init(params), params, batch, Decision(Mode.IMPROVE))
    moved, _, log = step.move(step.init(params), params, batch, Decision(Mode.IMPROVE, price=0.0))
    assert log["step/passes_2"] == 10
    assert log["step/kl_2"] < 0.1 * log["step/kl"]
    assert surrogates(moved, batch)[0] == pytest.approx(surrogates(after_ppo, batch)[0], rel=0.1)


def test_p3o_lowers_cost_while_nothing_is_known():
    params, batch = problem(2000)
    step = penalized_step(Clipped(passes=5, learning_rate=3e-3), 20.0, True)
    follow = clipped_step(Clipped(passes=5, learning_rate=3e-3))
    one, two = (item.move(item.init(params), params, batch, Decision(Mode.RECOVER, 0.0))[0] for item in (step, follow))
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, atol=1e-5), one, two)


def test_cup_needs_a_discount():
    with pytest.raises(InputError, match="cost_discount below 1"):
        CUP(cost_discount=1.0).build(Setup())
