from dataclasses import fields, is_dataclass

import jax
import numpy as np
import pytest

from steingate.algos.base import Batch
from steingate.algos.catalog import FACTS
from steingate.algos.library import ALGOS, make_recipe
from steingate.algos.networks import init_policy, log_prob, mean
from steingate.algos.recipes import CPO, SteinGate
from steingate.algos.trust_region import TrustRegion
from steingate.errors import InputError
from steingate.gates.base import Decision, Episodes, Mode


def toy_problem():
    rng = np.random.default_rng(0)
    policy = init_policy(rng, 2, 1, (4,))
    obs = rng.normal(size=(200, 2)).astype(np.float32)
    act = (np.asarray(mean(policy, obs)) + rng.normal(size=(200, 1))).astype(np.float32)
    logp = np.asarray(log_prob(policy, obs, act))
    return policy, Batch(obs, act, logp, act[:, 0] * obs[:, 0], 0.1 * act[:, 0] * obs[:, 1])


def episodes(costs, length=100):
    costs = np.asarray(costs, np.float64)
    return Episodes(costs, np.zeros_like(costs), np.full(len(costs), length, np.int64))


@pytest.mark.parametrize("variant", ["corrected", "published"])
def test_cpo_and_steingate_share_their_step(variant):
    policy, batch = toy_problem()
    ours, theirs = (recipe(variant=variant).build().step for recipe in (SteinGate, CPO))
    for mode in Mode:
        decision = Decision(mode, slack=0.001)
        one, _, log_one = ours.move(ours.init(policy), policy, batch, decision)
        two, _, log_two = theirs.move(theirs.init(policy), policy, batch, decision)
        jax.tree.map(np.testing.assert_array_equal, one, two)
        assert log_one == log_two
        assert log_one["step/fraction"] > 0 or variant == "published"


def test_variants_of_cpo_differ_in_units_and_signs():
    """The slack's unit is the gate's; the signs show where the limit cuts the trust region."""
    decisions, moves = {}, {}
    policy, batch = toy_problem()
    for variant in ("corrected", "published"):
        gate, step, *_ = CPO(limit=25.0, variant=variant).build()
        decisions[variant] = gate.decide(gate.init(), episodes([5, 15]))[0]
        moves[variant] = step.move((), policy, batch, Decision(Mode.BALANCE, 0.001))[2]
    assert decisions["published"].slack == pytest.approx(15.0)
    assert decisions["corrected"].slack == pytest.approx(15.0 / 100)
    assert moves["corrected"]["step/case"] == moves["published"]["step/case"] == 2
    assert moves["corrected"]["step/lambda"] != moves["published"]["step/lambda"]


def test_steingate_opens_and_shuts_by_its_certificate():
    gate = SteinGate(limit=25.0).build().gate
    safe, state, _ = gate.decide(gate.init(), episodes([5.0] * 16))
    assert safe.mode == Mode.IMPROVE
    assert safe.slack == pytest.approx(20.0 / 100)
    unsafe, _, _ = gate.decide(state, episodes([10.0] * 14 + [30.0, 30.0]))
    assert unsafe.mode == Mode.RECOVER
    gate = SteinGate(limit=25.0, variant="published").build().gate
    assert gate.decide(gate.init(), episodes([5.0] * 16))[0].slack == pytest.approx(20.0)


def test_certificate_fields_can_be_overridden():
    costs = episodes([10.0] * 14 + [30.0, 30.0])
    strict = SteinGate().build().gate
    wide = SteinGate(certificate={"budget": 0.2, "guard": False, "stein_factor": 0.0}).build().gate
    assert strict.decide(strict.init(), costs)[0].mode == Mode.RECOVER
    assert wide.decide(wide.init(), costs)[0].mode == Mode.IMPROVE


def test_every_entry_is_a_frozen_recipe_with_its_sentences():
    promised = (
        "steingate cpo pcpo rcpo trpo ppo trpo-lag ppo-lag trpo-saute ppo-saute trpo-simmer ppo-simmer evo "
        "cvar-cpo crpo steingate-ppo focops cup p3o"
    )
    assert set(promised.split()) == set(ALGOS) == set(FACTS)
    for name, entry in ALGOS.items():
        assert is_dataclass(entry.recipe)
        assert {"limit", "variant", "region"} <= {f.name for f in fields(entry.recipe)}
        assert all(entry.facts)
        ignores = name in ("trpo", "ppo") or name.endswith(("saute", "simmer"))
        assert make_recipe(name).build().uses_cost != ignores
        with pytest.raises(AttributeError):
            make_recipe(name).limit = 3.0


def test_recipes_take_the_settings_they_have():
    recipe = make_recipe("cpo", limit=7.0, preset="paper", region=TrustRegion(max_kl=0.02))
    assert recipe == CPO(limit=7.0, region=TrustRegion(max_kl=0.02))


@pytest.mark.parametrize(
    ("name", "hint"), [("stein-gate", "did you mean steingate"), ("zzz", "cpo, steingate")]
)
def test_unknown_names_are_refused_with_a_hint(name, hint):
    with pytest.raises(InputError, match=hint):
        make_recipe(name)


@pytest.mark.parametrize("recipe", [CPO, SteinGate])
def test_unknown_variants_are_refused_by_name(recipe):
    with pytest.raises(InputError, match="fixed"):
        recipe(variant="fixed").build()


@pytest.mark.parametrize("name", ["cvar-cpo", "evo", "p3o", "pcpo"])
def test_published_slacks_are_per_episode(name):
    slack = {}
    for variant in ("corrected", "published"):
        gate = make_recipe(name, {}, variant=variant, limit=25.0).build().gate
        slack[variant] = gate.decide(gate.init(), episodes([10.0] * 40))[0].slack
    # As published, EVO counts the percentile of 10 twice.
    assert slack["published"] == pytest.approx(5.0 if name == "evo" else 15.0)
    assert slack["corrected"] == pytest.approx(15.0 / 100)


@pytest.mark.parametrize("name", ["trpo-saute", "ppo-simmer"])
def test_published_budgets_have_their_quirks(name):
    for variant in ("corrected", "published"):
        account = make_recipe(name, variant=variant).build().account
        quirks = (not account.true_at_end, account.scale_by_share, account.restart_full)
        assert quirks == ((variant == "published"),) * 3
