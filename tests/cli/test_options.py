import argparse
import json

import pytest

from steingate.algorithms import METHODS
from steingate.algorithms.steingate import SteinGate
from steingate.cli import load_command, main
from steingate.cli.parser import add_options
from steingate.cli.train import EXAMPLES, RUN_GROUPS
from steingate.errors import InputError
from steingate.settings import list_options, option_names
from steingate.training.config import RunConfig, make_config, read_stored


def parsed(text):
    return vars(whole_parser().parse_args(text.split()))


def whole_parser():
    parser = argparse.ArgumentParser()
    run = [option for option in list_options(RunConfig()) if option.path[0] != "algo"]
    add_options(parser, [*run, *list_options(SteinGate())])
    return parser


def test_every_field_is_an_option():
    known = {option for action in whole_parser()._actions for option in action.option_strings}
    own = [name for name in option_names(RunConfig()) if not name.startswith("algo.")]
    names = own + option_names(SteinGate())
    assert {"certify.enabled", "cost_limit"} <= set(own)
    assert {"--" + name.replace("_", "-") for name in names} <= known
    assert parsed("") == {}
    assert make_config({}) == RunConfig()


def test_what_cannot_be_written_down_is_refused():
    with pytest.raises(InputError, match=r"'cost' of env_options is .*give it as text, 'module:function'"):
        make_config({"env_options": {"cost": lambda obs, action, following, info: 0.0}})
    with pytest.raises(InputError, match="budget"):
        make_config({"certificate": {"budget": {1, 2}}})


def test_text_becomes_the_type_of_the_field():
    cfg = make_config(
        parsed(
            "--env a:B --total-steps 1e6 --steps-per-epoch 10_000 --hidden 32,16 --no-overlap "
            "--carry-episodes --certificate budget=0.2 --certificate guard=none --env-options limit=5 "
            "--threads none --max-kl 1e-3"
        ),
    )
    assert (cfg.env, cfg.total_steps, cfg.steps_per_epoch, cfg.algo.hidden) == (
        "a:B",
        10**6,
        10_000,
        (32, 16),
    )
    assert (cfg.overlap, cfg.carry_episodes, cfg.threads, cfg.algo.max_kl) == (False, True, None, 1e-3)
    assert cfg.algo.certificate == {"budget": 0.2, "guard": "none"}
    assert cfg.env_options == {"limit": 5}


def test_a_file_lies_below_the_options(tmp_path):
    file = tmp_path / "run.toml"
    file.write_text("seed = 3\ncost-limit = 10\nhidden = [8]\n[certificate]\nbudget = 0.3\n")
    cfg = make_config(parsed("--seed 5"), file)
    assert (cfg.seed, cfg.cost_limit, cfg.algo.hidden, cfg.algo.certificate) == (
        5,
        10.0,
        (8,),
        {"budget": 0.3},
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("seeed = 1", r"steingate has no option 'seeed' \(did you mean seed\?\)"),
        ("total-stepz = 1", r"'total_stepz' \(did you mean total_steps\?\)"),
        ("seed = 'x'", "seed must be an integer, got 'x'"),
        ("seed = true", "must be an integer"),
        ("seed = 1.5", "must be an integer"),
        ("overlap = 1", "must be true or false"),
        ("hidden = 64", "a list of integers"),
        ("hidden = ['a']", "must be an integer"),
        ("variant = 'mine'", "one of corrected, published, got"),
        ("certificate = 3", "a table of names and values"),
        ("seed = ", "not valid TOML"),
    ],
)
def test_bad_files_are_one_sentence(tmp_path, text, message):
    file = tmp_path / "run.toml"
    file.write_text(text)
    with pytest.raises(InputError, match=message):
        make_config({}, file)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(InputError, match=r"nowhere\.toml: No such file"):
        make_config({}, tmp_path / "nowhere.toml")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("--seed x", "seed must be an integer, got 'x'"),
        ("--seed 1.5", "must be an integer"),
        ("--max-kl small", "max_kl must be a number, got 'small'"),
        ("--hidden 64,a", "hidden must be an integer, got 'a'"),
        ("--preset mine", "one of paper, released, certified, confident, got"),
        ("--certificate budget", "must be KEY=VALUE"),
    ],
)
def test_bad_options_are_one_sentence(text, message):
    with pytest.raises(InputError, match=message):
        make_config(parsed(text))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"total_steps": 0}, "total_steps is 0: it must be greater than zero"),
        ({"steps_per_epoch": 30}, "8 environments cannot share equally"),
        ({"total_steps": 8}, "less than one epoch"),
        ({"cost_limit": float("nan")}, "cost_limit is nan"),
        ({"seed": -1}, "seed is -1"),
        ({"threads": 0}, "threads is 0"),
    ],
)
def test_bad_values_name_their_field(changes, message):
    with pytest.raises(InputError, match=message.replace("(", r"\(").replace(")", r"\)")):
        RunConfig(**changes)


def test_unknown_python_settings_are_refused():
    with pytest.raises(InputError, match=r"no option 'num_env' \(did you mean num_envs\?\)"):
        make_config({"num_env": 3})


def test_a_configuration_survives_json():
    cfg = RunConfig(algo=SteinGate(hidden=(3, 4), certificate={"budget": 0.2}), threads=2)
    assert read_stored(json.loads(json.dumps(cfg.to_dict())), "here") == cfg


def test_sizes_follow():
    cfg = RunConfig(total_steps=65_000, steps_per_epoch=20_000, num_envs=8)
    assert (cfg.epochs, cfg.horizon) == (3, 2500)


def test_the_help_groups_the_options_and_shows_examples(capsys):
    assert main(["train", "--algo", "ppo-lag", "--help"]) == 0
    out = capsys.readouterr().out
    titles = [*(f"{title}:" for title in RUN_GROUPS), "ppo-lag:", "examples:"]
    places = [out.index(f"\n{title}\n") for title in titles]
    assert places == sorted(places)
    for option in list_options(METHODS["ppo-lag"]()):
        assert f"--{option.name.replace('_', '-')} " in out or f"--{option.name.replace('_', '-')}," in out


def test_the_examples_of_the_help_are_valid():
    lines = [line.split() for line in EXAMPLES.splitlines() if line.startswith("  steingate")]
    assert len(lines) >= 4
    for _, command, *words in lines:
        if "--help" not in words and "--config" not in words:
            assert load_command(command, words)[1].parse() is not None
