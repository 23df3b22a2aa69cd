"""The built-in methods: what each is made of, what was published for single tasks, what they refuse."""

import subprocess
import sys
from dataclasses import fields, is_dataclass

import jax
import numpy as np
import pytest
from steingate.algorithms.common.base import Batch
from steingate.algorithms.common.heads import log_prob
from steingate.algorithms.common.recipe import Setup, make_recipe
from steingate.gates.base import Decision, Episodes, Mode

from steingate.algorithms import METHODS
from steingate.algorithms.common.networks import init_policy, mean
from steingate.algorithms.cpo import CPO
from steingate.algorithms.saute import PPOSaute
from steingate.algorithms.steingate import SteinGate
from steingate.errors import InputError

TASKS = ("SafetyPointGoal1-v0", "SafetyCarCircle1-v0", "SafetyAntVelocity-v1")
BUDGET = {"budget_discount": 0.9999, "unsafe_reward": -0.2}


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
    ours, theirs = (recipe(variant=variant).build(Setup()).step for recipe in (SteinGate, CPO))
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
        gate, step, *_ = CPO(variant=variant).build(Setup())
        decisions[variant] = gate.decide(gate.init(), episodes([5, 15]))[0]
        moves[variant] = step.move((), policy, batch, Decision(Mode.BALANCE, 0.001))[2]
    assert decisions["published"].slack == pytest.approx(15.0)
    assert decisions["corrected"].slack == pytest.approx(15.0 / 100)
    assert moves["corrected"]["step/case"] == moves["published"]["step/case"] == 2
    assert moves["corrected"]["step/lambda"] != moves["published"]["step/lambda"]


def test_steingate_opens_and_shuts_by_its_certificate():
    gate = SteinGate().build(Setup()).gate
    safe, state, _, *_ = gate.decide(gate.init(), episodes([5.0] * 16))
    assert safe.mode == Mode.IMPROVE
    assert safe.slack == pytest.approx(20.0 / 100)
    unsafe, _, _, *_ = gate.decide(state, episodes([10.0] * 14 + [30.0, 30.0]))
    assert unsafe.mode == Mode.RECOVER
    gate = SteinGate(variant="published").build(Setup()).gate
    assert gate.decide(gate.init(), episodes([5.0] * 16))[0].slack == pytest.approx(20.0)


def test_certificate_fields_can_be_overridden():
    costs = episodes([10.0] * 14 + [30.0, 30.0])
    strict = SteinGate().build(Setup()).gate
    wide = SteinGate(certificate={"budget": 0.2, "guard": False, "stein_factor": 0.0}).build(Setup()).gate
    assert strict.decide(strict.init(), costs)[0].mode == Mode.RECOVER
    assert wide.decide(wide.init(), costs)[0].mode == Mode.IMPROVE


def test_every_method_is_a_frozen_recipe_with_its_sentences():
    promised = (
        "steingate cpo pcpo rcpo trpo ppo trpo-lag ppo-lag trpo-saute ppo-saute trpo-simmer ppo-simmer evo "
        "cvar-cpo crpo steingate-ppo focops cup p3o"
    )
    assert set(promised.split()) <= set(METHODS)
    for name, kind in METHODS.items():
        assert is_dataclass(kind)
        about = kind.about
        assert kind().name == about.name == name
        for text in (about.summary, about.paper, about.published, about.corrected):
            assert len(text) > 10
            assert not text.endswith(".")
        assert kind().build(Setup()).uses_cost == ("cost_lam" in {item.name for item in fields(kind)})
        with pytest.raises(AttributeError):
            kind().variant = "published"


def test_methods_have_a_place_and_a_color_of_their_own():
    places = [kind.about.order for kind in METHODS.values()]
    colors = [kind.about.color for kind in METHODS.values()]
    assert places == sorted(set(places))
    assert len(set(colors)) == len(colors)
    assert None not in colors


@pytest.mark.parametrize("name", ["cvar-cpo", "evo", "p3o", "pcpo"])
def test_published_slacks_are_per_episode(name):
    slack = {}
    for variant in ("corrected", "published"):
        gate = METHODS[name](variant=variant).build(Setup(limit=25.0)).gate
        slack[variant] = gate.decide(gate.init(), episodes([10.0] * 40))[0].slack
    # As published, EVO counts the percentile of 10 twice.
    assert slack["published"] == pytest.approx(5.0 if name == "evo" else 15.0)
    assert slack["corrected"] == pytest.approx(15.0 / 100)


@pytest.mark.parametrize("name", ["trpo-saute", "ppo-simmer"])
def test_published_budgets_have_their_quirks(name):
    for variant in ("corrected", "published"):
        seen = METHODS[name](variant=variant).build(Setup()).account.seen
        quirks = (not seen.true_at_end, seen.scale_by_share, seen.restart_full)
        assert quirks == ((variant == "published"),) * 3


@pytest.mark.parametrize(
    ("algo", "env", "settings"),
    [
        ("trpo", TASKS[0], {"search_steps": 15, "critic_lr": 1e-3, "critic_batch": 128}),
        ("cpo", TASKS[0], {"search_steps": 20, "critic_passes": 10, "normalize_obs": True}),
        ("pcpo", TASKS[0], {"search_steps": 200}),
        ("ppo-lag", TASKS[0], {"critic_lr": 3e-4, "critic_batch": 64, "critic_passes": None}),
        ("trpo-saute", TASKS[0], {"normalize_obs": True, **BUDGET}),
        ("trpo-simmer", TASKS[1], BUDGET),
        ("trpo-saute", TASKS[2], {"budget_discount": 0.999, "unsafe_reward": -1.0}),
        ("ppo-saute", TASKS[0], {"normalize_obs": False, "clipped.passes": 80, **BUDGET}),
        ("ppo-saute", TASKS[1], {"normalize_obs": True, "clipped.passes": 80}),
        ("cup", TASKS[2], {"critic_lr": 3e-4, "clipped.max_kl": 0.01}),
        ("p3o", TASKS[0], {"critic_batch": 64, "clipped.passes": 10}),
        ("focops", TASKS[0], {"critic_lr": 3e-4, "clipped.passes": 40}),
        ("steingate-ppo", TASKS[1], {"critic_lr": 3e-4, "clipped.passes": 10}),
        ("ppo-simmer", "steingate/" + TASKS[1], {"normalize_obs": True, "clipped.passes": 80}),
    ],
)
def test_settings_that_were_published_for_single_tasks(algo, env, settings):
    recipe = make_recipe(algo, env)
    for name, value in settings.items():
        first, _, rest = name.partition(".")
        found = getattr(recipe, first)
        assert (getattr(found, rest) if rest else found) == value


def test_the_missing_row_is_missing_as_published_only():
    made = {
        (task, variant): make_recipe("ppo-simmer", f"Safety{task}Circle1-v0", {"variant": variant})
        for task in ("Car", "Point")
        for variant in ("published", "corrected")
    }
    assert {key for key, recipe in made.items() if recipe.clipped.passes == 40} == {("Car", "published")}


def test_given_settings_win_over_those_of_task_and_variant():
    assert make_recipe("ppo-saute", TASKS[0], {"clipped.passes": 3}).clipped.passes == 3
    assert make_recipe("ppo-saute", TASKS[0], {"clipped": {"passes": 3}}) == make_recipe(
        "ppo-saute", TASKS[0], {"clipped.passes": "3"}
    )
    usual = METHODS["evo"](variant="published").resolved(1000)
    assert usual.extreme.count_twice
    assert usual.extreme.clamp == "log_ratio"
    assert usual.replay.everywhere
    assert not usual.replay.whole_epoch
    once = make_recipe("evo", "", {"extreme.count_twice": False, "variant": "published"}).resolved(1000)
    assert not once.extreme.count_twice
    assert once.extreme.quiet_is_safe


def test_evo_takes_the_flags_of_its_variant_when_it_is_built():
    values = {}
    for variant in ("corrected", "published"):
        gate = METHODS["evo"](variant=variant).build(Setup(limit=25.0)).gate
        values[variant] = gate.decide(gate.init(), episodes([10.0] * 40)).log["gate/extreme_cost"]
    assert values == {"corrected": pytest.approx(10.0), "published": pytest.approx(20.0)}


def test_the_budget_takes_the_tasks_length_unless_it_is_given():
    assert PPOSaute().resolved(500).length == 500
    assert PPOSaute(variant="published").resolved(500).length == 1000
    assert PPOSaute(length=77).resolved(500).length == 77


@pytest.mark.parametrize(
    ("algo", "option"),
    [
        ("focops", {"temperature": 0.0}), ("focops", {"radius": -1.0}), ("focops", {"ascent.ceiling": -1.0}),
        ("p3o", {"penalty": -3.0}), ("crpo", {"tolerance": -1.0}), ("cpo", {"discount": 1.5}),
        ("trpo-saute", {"length": 0}), ("trpo-saute", {"budget_discount": 1.5}),
        ("trpo-saute", {"budget_discount": 0.0}),
        ("trpo-simmer", {"controller.memory": 0}), ("trpo-lag", {"ascent.start": -1.0}),
        ("trpo-lag", {"pid.delay": 0}), ("trpo-lag", {"pid.smoothing": 1.1}),
        ("evo", {"extreme.capacity": 0}), ("evo", {"extreme.percentile": 101.0}),
        ("evo", {"extreme.clamp": "never"}), ("evo", {"replay.copies": -1}), ("evo", {"replay.buffer": 0}),
        ("cpo", {"hidden": ()}), ("cpo", {"damping": 0.0}), ("cpo", {"shrink": 1.0}),
        ("cpo", {"critic_decay": "inf"}), ("cpo", {"critic_passes": None}), ("ppo", {"clipped.clip": 0.0}),
        ("steingate", {"preset": "mine"}), ("steingate", {"recovery": "some"}), ("cpo", {"variant": "fixed"}),
    ],
)  # fmt: skip
def test_impossible_values_are_refused_by_name(algo, option):
    (name,) = option
    with pytest.raises(InputError, match=name.rpartition(".")[2]):
        make_recipe(algo, "", option)


@pytest.mark.parametrize(
    ("name", "hint"),
    [("stein-gate", "did you mean steingate"), ("zzz", "cpo, pcpo, .* give module:Class")],
)
def test_unknown_names_are_refused_with_a_hint(name, hint):
    with pytest.raises(InputError, match=hint):
        make_recipe(name)


def test_an_idle_law_of_the_price_is_refused():
    with pytest.raises(InputError, match="pid has no effect with multiplier=adam: set multiplier=pid"):
        make_recipe("trpo-lag", "", {"pid.delay": 3})
    assert make_recipe("trpo-lag", "", {"pid.delay": 3, "multiplier": "pid"}).pid.delay == 3


def test_a_buffer_that_is_not_looked_at_is_refused():
    with pytest.raises(InputError, match="buffer has no effect"):
        make_recipe("evo", "", {"replay.buffer": 50})
    assert make_recipe("evo", "", {"replay.buffer": 50, "replay.whole_epoch": False}).replay.buffer == 50
    assert make_recipe("evo", "", {"replay.buffer": 50, "variant": "published"}).replay.buffer == 50


def test_two_and_two_point_zero_are_one_value_in_a_certificate_too():
    one, two = (SteinGate(certificate={"discrete_weight": weight}) for weight in (2, 2.0))
    assert one == two
    assert str(one.certificate) == str(two.certificate) == "{'discrete_weight': 2.0}"


def test_recipes_need_no_learner():
    code = "import sys, steingate.algorithms; sys.exit('jax' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
