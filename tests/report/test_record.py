import json
import tomllib

import pytest
from steingate.report.loading import load_runs, setting
from steingate.report.record import NO_EFFECT, Look, canonical, look_of, settings, to_toml
from tests.report.made_up import write_run

from steingate.algorithms import METHODS
from steingate.training.config import make_config

OLDER = {
    "algo": "trpo-saute", "env": "steingate/X", "seed": 3, "threads": 2, "out": "x", "variant": "published",
    "discount": 0.99, "certificate": {"budget": 0.1},
    "algo_options": {"discount": 0.9999, "clipped.passes": 40},
}  # fmt: skip
TODAY = {
    "algo": "trpo-saute", "env": "X", "seed": 3, "window": 100,
    "recipe": {
        "variant": "published", "discount": 0.99, "budget_discount": 0.9999, "clipped": {"passes": 40},
        "certificate": {"budget": 0.1},
    },
}  # fmt: skip


def test_both_forms_give_the_same_names():
    shared = {
        "algo": "trpo-saute", "env": "X", "variant": "published", "discount": 0.99, "budget_discount": 0.9999,
        "clipped.passes": 40, "certificate.budget": 0.1,
    }  # fmt: skip
    then = {"first_std": 1.0, "places": False, "inward": 0.0}  # what was no setting yet
    assert settings(OLDER) == shared
    assert settings(TODAY) == {**shared, **then, "window": 100}


@pytest.mark.parametrize("config", [OLDER, TODAY])
def test_one_accessor_for_both_forms(tmp_path, config):
    write_run(tmp_path, **{name: value for name, value in config.items() if name not in ("seed", "out")})
    (run,) = load_runs([tmp_path])[0]
    assert setting(run, "variant") == "published"
    assert setting(run, "clipped.passes") == 40
    assert setting(run, "certificate") == {"budget": 0.1}
    assert setting(run, "certificate.budget") == 0.1
    assert setting(run, "discount") == 0.99
    assert setting(run, "cost_limit") == 25.0
    assert setting(run, "certificate.alpha") is None
    assert setting(run, "no.such.name", 7) == 7


def test_settings_without_effect_are_left_out():
    assert settings(dict.fromkeys(NO_EFFECT, 1) | {"algo": "cpo"}) == {"algo": "cpo"}


def test_equal_values_have_one_text():
    assert canonical({"a": 2.0, "b": [1, 2.5]}) == canonical({"b": [1.0, 2.5], "a": 2})
    values = [1, True, "1", None, 1.5, "true", [1], {"1": 1}, float("inf"), "default"]
    assert len({canonical(value) for value in values}) == len(values)


def test_looks_that_make_no_sense_count_as_none():
    assert look_of({"look": {"order": 40, "color": "#2F6F9F"}}) == Look(40.0, "#2f6f9f")
    assert look_of({}) == look_of({"look": []}) == Look(None, None)
    for color in ("red", "#12345", "#1234567", "url(x)", 7, None):
        assert look_of({"look": {"order": True, "color": color}}) == Look(None, None)
    assert look_of({"look": {"order": float("nan")}}).order is None
    assert look_of({"look": {"order": "inf"}}).order is None


def test_the_toml_gives_the_configuration_back():
    odd = {"budget": 0.2, "kernel": 'a"b\\c', "a b": [1, True], "none": None, "k": {"x": 1.5, "y": {"z": 1}}}
    plain = {"algo": "cpo", "seed": 3, "env_options": odd, "hidden": [8, 8], "wandb": None}
    recipe = {"variant": "published", "certificate": odd, "clipped": {"passes": 40}, "none": None}
    options = {"clipped.passes": 40, "variant": "published", "certificate": odd}
    expected = canonical(without_none(plain | recipe))
    assert canonical(tomllib.loads(to_toml(plain | {"recipe": recipe}))) == expected
    older = to_toml(plain | {"algo_options": options})
    assert canonical(tomllib.loads(older)) == expected
    assert older.startswith("# From an earlier version")
    assert tomllib.loads(to_toml(OLDER))["budget_discount"] == 0.9999
    for damaged in ("text", 7, [1]):  # shown as far as it goes
        assert tomllib.loads(to_toml({"seed": 3, "recipe": damaged, "algo_options": damaged})) == {"seed": 3}


def without_none(table):
    """TOML knows no null, and an empty table says nothing."""
    pairs = {k: without_none(v) if isinstance(v, dict) else v for k, v in table.items()}
    return {key: value for key, value in pairs.items() if value is not None and value != {}}


@pytest.mark.parametrize("algo", METHODS)
def test_the_toml_is_what_training_reads(tmp_path, algo):
    given = {"algo": algo, "seed": 3, "hidden": [8, 4], "env_options": {"max_episode_steps": 9}, "lam": 0.5}
    if "steingate" in algo:
        given["certificate"] = {"budget": 0.2}
    config = make_config(given)
    stored = json.loads(json.dumps(config.to_dict()))
    (tmp_path / "run.toml").write_text(to_toml(stored))
    assert json.loads(json.dumps(make_config({}, tmp_path / "run.toml").to_dict())) == stored
