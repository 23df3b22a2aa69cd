import subprocess
import sys

import pytest

from steingate.algos.catalog import FACTS, OVERRIDES, defaults
from steingate.algos.library import ALGOS, make_recipe
from steingate.algos.recipes import CPO, Saute
from steingate.errors import InputError

TASKS = ("SafetyPointGoal1-v0", "SafetyCarCircle1-v0", "SafetyAntVelocity-v1")


@pytest.mark.parametrize(
    ("algo", "env", "run", "recipe"),
    [
        ("trpo", TASKS[0], {"search_steps": 15, "critic_lr": 1e-3, "critic_batch": 128}, {}),
        ("cpo", TASKS[0], {"search_steps": 20, "critic_passes": 10, "normalise_obs": True}, {}),
        ("pcpo", TASKS[0], {"search_steps": 200}, {}),
        ("ppo-lag", TASKS[0], {"critic_lr": 3e-4, "critic_batch": 64}, {}),
        ("trpo-saute", TASKS[0], {"normalise_obs": True}, {"discount": 0.9999, "unsafe_reward": -0.2}),
        ("trpo-simmer", TASKS[1], {}, {"discount": 0.9999, "unsafe_reward": -0.2}),
        ("trpo-saute", TASKS[2], {}, {}),
        (
            "ppo-saute",
            TASKS[0],
            {"normalise_obs": False},
            {"discount": 0.9999, "unsafe_reward": -0.2, "clipped.passes": 80},
        ),
        ("ppo-saute", TASKS[1], {"normalise_obs": True}, {"clipped.passes": 80}),
        ("cup", TASKS[2], {"critic_lr": 3e-4}, {"clipped.max_kl": 0.01}),
        ("p3o", TASKS[0], {"critic_batch": 64}, {"clipped.passes": 10}),
        ("focops", TASKS[0], {"critic_lr": 3e-4}, {}),
        ("steingate-ppo", TASKS[1], {"critic_lr": 3e-4}, {"clipped.passes": 10}),
        ("ppo-simmer", "steingate/" + TASKS[1], {"normalise_obs": True}, {"clipped.passes": 80}),
    ],
)
def test_settings_that_were_published_for_single_tasks(algo, env, run, recipe):
    of_run, of_recipe = defaults(algo, env, "corrected")
    assert run.items() <= of_run.items()
    assert recipe.items() <= of_recipe.items()
    assert bool(recipe) == bool(of_recipe)


def test_the_missing_row_is_missing_as_published_only():
    assert defaults("ppo-simmer", "SafetyCarCircle1-v0", "published")[1] == {}
    assert defaults("ppo-simmer", "SafetyPointCircle1-v0", "published")[1] != {}
    assert defaults("ppo-simmer", "SafetyCarCircle1-v0", "corrected")[1] != {}


def test_every_override_is_an_option_of_its_recipe():
    for algos, _, _, options in OVERRIDES:
        for algo in algos:
            assert make_recipe(algo, options) != make_recipe(algo)


def test_options_reach_into_parts():
    recipe = make_recipe("ppo-lag", {"clipped.passes": 3, "ascent.rate": 1, "multiplier": "pid"})
    assert (recipe.clipped.passes, recipe.ascent.rate, recipe.multiplier) == (3, 1, "pid")
    assert make_recipe("ppo", {"clipped": {"passes": 3}}) == make_recipe("ppo", {"clipped.passes": 3})
    assert make_recipe("trpo-saute", {"length": 500}) == Saute(length=500)
    assert make_recipe("cpo", limit=3.0, clipped=None, nothing=1).limit == 3.0
    assert make_recipe("cpo") == CPO()


def test_options_win_over_what_a_variant_sets():
    usual = make_recipe("evo", variant="published")
    assert usual.extreme.count_twice
    assert usual.replay.everywhere
    once = make_recipe("evo", {"extreme.count_twice": False}, variant="published")
    assert not once.extreme.count_twice
    assert once.extreme.quiet_is_safe


@pytest.mark.parametrize(
    ("algo", "option"),
    [
        ("focops", {"temperature": 0.0}), ("focops", {"radius": -1.0}), ("focops", {"ascent.ceiling": -1.0}),
        ("p3o", {"penalty": -3.0}), ("crpo", {"tolerance": -1.0}), ("cpo", {"window": 0}),
        ("trpo-saute", {"length": 0}), ("trpo-saute", {"discount": 1.5}), ("trpo-saute", {"discount": 0.0}),
        ("trpo-simmer", {"controller.memory": 0}), ("trpo-lag", {"ascent.start": -1.0}),
        ("trpo-lag", {"pid.delay": 0}), ("trpo-lag", {"pid.smoothing": 1.1}),
        ("evo", {"extreme.capacity": 0}), ("evo", {"extreme.percentile": 101.0}),
        ("evo", {"extreme.clamp": "none"}), ("evo", {"replay.copies": -1}), ("evo", {"replay.buffer": 0}),
    ],
)  # fmt: skip
def test_impossible_values_are_refused_by_name(algo, option):
    (name,) = option
    with pytest.raises(InputError, match=name.rpartition(".")[2]):
        make_recipe(algo, option)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"tolerence": 1.0}, "crpo has no option 'tolerence': did you mean tolerance?"),
        ({"region.max": 1.0}, "did you mean max_kl?"),
        ({"limit.x": 1.0}, "limit has no parts"),
        ({"tolerance": "much"}, "cannot take 'much' as tolerance"),
        ({"region": 3}, "cannot take 3 as region"),
    ],
)
def test_impossible_options_are_one_sentence(options, message):
    with pytest.raises(InputError, match=message.replace("?", r"\?")):
        make_recipe("crpo", options)


def test_the_facts_need_no_learner():
    code = "import sys, steingate.algos.catalog; sys.exit('jax' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize("name", ALGOS)
def test_facts_are_sentences_without_a_full_stop(name):
    for text in FACTS[name]:
        assert len(text) > 10
        assert not text.endswith(".")
