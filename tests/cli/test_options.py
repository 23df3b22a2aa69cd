"""Options of ``steingate train``: one for every field. ``tests/training/test_run_config.py`` tests their values."""

import argparse
import json
from dataclasses import replace

import pytest

from steingate.algorithms import ALGORITHMS
from steingate.cli import load_command, main
from steingate.cli.parser import add_options
from steingate.cli.train import EXAMPLES, RUN_GROUPS
from steingate.settings import list_options, option_names
from steingate.training.config import RunConfig, make_config


def flags(name):
    return "--" + name.replace("_", "-")


def parse(text, algo="steingate"):
    parser = argparse.ArgumentParser()
    run = [option for option in list_options(RunConfig()) if option.path[0] != "algo"]
    add_options(parser, [*run, *list_options(ALGORITHMS[algo]())])
    return {"algo": algo, **vars(parser.parse_args(text.split()))}


@pytest.mark.parametrize("algo", ALGORITHMS)
def test_every_field_is_an_option(algo):
    _, parser = load_command("train", ["--algo", algo])
    known = {option for action in parser._actions for option in action.option_strings}
    own = {name for name in option_names(RunConfig()) if not name.startswith("algo.")}
    assert {flags(name) for name in own - {"algo"}} <= known
    assert {flags(name) for name in option_names(ALGORITHMS[algo]())} <= known
    assert parse("", algo) == {"algo": algo}


def test_the_help_groups_the_options_and_shows_examples(capsys):
    assert main(["train", "--algo", "ppo-lag", "--help"]) == 0
    out = capsys.readouterr().out
    titles = [*(f"{title}:" for title in RUN_GROUPS), "ppo-lag:", "examples:"]
    places = [out.index(f"\n{title}\n") for title in titles]
    assert places == sorted(places)


def test_the_examples_of_the_help_are_valid():
    lines = [line.split() for line in EXAMPLES.splitlines() if line.startswith("  steingate")]
    assert len(lines) >= 4
    for _, command, *words in lines:
        if "--help" not in words and "--config" not in words:
            assert load_command(command, words)[1].parse() is not None


@pytest.mark.parametrize("algo", ALGORITHMS)
def test_config_of_a_run_is_a_config_file(tmp_path, algo):
    run = make_config(
        {"algo": algo, "variant": "published", "env": "SafetyPointCircle1-v0", "cost_limit": 7, "seed": 4}
    )
    (tmp_path / "config.json").write_text(json.dumps({"config": run.to_dict(), "started": "today"}))
    assert make_config({"seed": 5}, tmp_path / "config.json").to_dict() == replace(run, seed=5).to_dict()


@pytest.mark.parametrize("text", ["{", "[]", "{}", '{"config": 3}', '{"config": {"seed": 3}}', "\xff"])
def test_other_json_is_refused_in_one_sentence(tmp_path, capsys, text):
    (tmp_path / "a.json").write_text(text, encoding="latin-1")
    assert main(["train", "--config", str(tmp_path / "a.json")]) == 2
    error = capsys.readouterr().err
    assert error.startswith(f"steingate: {tmp_path / 'a.json'} ")
    assert "is not the config.json of a run." in error or "cannot be used: algorithm is None" in error
    assert error.count("\n") == 1
