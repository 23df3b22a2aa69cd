import argparse
from dataclasses import fields

import pytest

from steingate.errors import InputError
from steingate.training.config import RunConfig
from steingate.training.options import add_options, build, from_mapping


def parsed(text):
    parser = argparse.ArgumentParser()
    add_options(parser, RunConfig)
    return vars(parser.parse_args(text.split()))


def test_every_field_is_an_option():
    parser = argparse.ArgumentParser()
    add_options(parser, RunConfig)
    known = {option for action in parser._actions for option in action.option_strings}
    assert {"--" + field.name.replace("_", "-") for field in fields(RunConfig)} <= known
    assert parsed("") == {}
    assert build(RunConfig, {}) == RunConfig()


def test_what_cannot_be_written_down_is_refused():
    with pytest.raises(InputError, match=r"env_options\['cost'\] is .*give it as text, 'module:function'"):
        build(RunConfig, {"env_options": {"cost": lambda obs, action, following, info: 0.0}})
    with pytest.raises(InputError, match=r"certificate\['budget'\] .*config\.json cannot hold it"):
        build(RunConfig, {"certificate": {"budget": {1, 2}}})


def test_text_becomes_the_type_of_the_field():
    cfg = build(
        RunConfig,
        parsed(
            "--env a:B --total-steps 1e6 --steps-per-epoch 10_000 --hidden 32,16 --no-overlap "
            "--carry-episodes --certificate budget=0.2 --certificate guard=none --env-options limit=5 "
            "--threads none --max-kl 1e-3"
        ),
    )
    assert (cfg.env, cfg.total_steps, cfg.steps_per_epoch, cfg.hidden) == ("a:B", 10**6, 10_000, (32, 16))
    assert (cfg.overlap, cfg.carry_episodes, cfg.threads, cfg.max_kl) == (False, True, None, 1e-3)
    assert cfg.certificate == {"budget": 0.2, "guard": "none"}
    assert cfg.env_options == {"limit": 5}


def test_a_file_lies_below_the_options(tmp_path):
    file = tmp_path / "run.toml"
    file.write_text("seed = 3\ncost-limit = 10\nhidden = [8]\n[certificate]\nbudget = 0.3\n")
    cfg = build(RunConfig, parsed("--seed 5"), file)
    assert (cfg.seed, cfg.cost_limit, cfg.hidden, cfg.certificate) == (5, 10.0, (8,), {"budget": 0.3})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("seeed = 1", r"no setting in .*run\.toml called 'seeed' \(did you mean seed\?\)"),
        ("total-stepz = 1", r"'total-stepz' \(did you mean total_steps\?\)"),
        ("seed = 'x'", r"seed in .*run\.toml is 'x': an integer is expected"),
        ("seed = true", "an integer is expected"),
        ("seed = 1.5", "an integer is expected"),
        ("overlap = 1", "true or false is expected"),
        ("hidden = 64", "a list of whole numbers"),
        ("hidden = ['a']", "an integer is expected"),
        ("variant = 'mine'", "one of corrected, published is expected"),
        ("certificate = 3", "a table of names and values"),
        ("seed = ", "not valid TOML"),
    ],
)
def test_bad_files_are_one_sentence(tmp_path, text, message):
    file = tmp_path / "run.toml"
    file.write_text(text)
    with pytest.raises(InputError, match=message):
        build(RunConfig, {}, file)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(InputError, match=r"nowhere\.toml cannot be read: No such file"):
        build(RunConfig, {}, tmp_path / "nowhere.toml")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("--seed x", "seed is 'x': an integer is expected"),
        ("--seed 1.5", "an integer is expected"),
        ("--max-kl small", "max_kl is 'small': a number is expected"),
        ("--hidden 64,a", "hidden is '64,a'"),
        ("--preset mine", "one of paper, released, certified, confident is expected"),
        ("--certificate budget", "KEY=VALUE is expected"),
    ],
)
def test_bad_options_are_one_sentence(text, message):
    with pytest.raises(InputError, match=message):
        build(RunConfig, parsed(text))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"total_steps": 0}, "total_steps is 0: it must be greater than zero"),
        ({"steps_per_epoch": 30}, "8 environments cannot share equally"),
        ({"total_steps": 8}, "less than one epoch"),
        ({"cost_limit": float("nan")}, "cost_limit is nan"),
        ({"discount": 1.5}, "discount is 1.5: it must be between 0 and 1"),
        ({"shrink": 1.0}, "shrink is 1.0"),
        ({"seed": -1}, "seed is -1"),
        ({"threads": 0}, "threads is 0"),
        ({"hidden": ()}, "hidden is ()"),
        ({"damping": 0.0}, "damping is 0.0"),
        ({"critic_decay": float("inf")}, "critic_decay is inf"),
    ],
)
def test_bad_values_name_their_field(changes, message):
    with pytest.raises(InputError, match=message.replace("(", r"\(").replace(")", r"\)")):
        RunConfig(**changes)


def test_unknown_python_settings_are_refused():
    with pytest.raises(InputError, match=r"no option called 'num_env' \(did you mean num_envs\?\)"):
        build(RunConfig, {"num_env": 3})


def test_a_configuration_survives_json():
    cfg = RunConfig(hidden=(3, 4), certificate={"budget": 0.2}, threads=2)
    assert RunConfig(**from_mapping(RunConfig, cfg.to_dict(), "here")) == cfg


def test_sizes_follow():
    cfg = RunConfig(total_steps=65_000, steps_per_epoch=20_000, num_envs=8)
    assert (cfg.epochs, cfg.horizon) == (3, 2500)
