"""A run that is extended equals one that was longer from the start."""

from tests.training.runs_of_probes import facts, tiny

from steingate.cli import main
from steingate.runs import read_config
from steingate.training.config_file import load_run_config
from steingate.training.runner import resume, train

CPO = {"algo": "cpo", "total_steps": 160}
PPO = {"algo": "ppo", "total_steps": 160, "ppo.epochs": 3, "ppo.batch_size": 16}


def test_equals_a_longer_run(tmp_path, capsys):
    short = train(tiny(tmp_path / "short", **CPO), quiet=True)
    capsys.readouterr()
    assert main(["resume", str(short), "--total-steps", "320", "--quiet"]) == 0
    assert capsys.readouterr().out.strip() == str(short)
    whole = train(tiny(tmp_path / "whole", **{**CPO, "total_steps": 320}), quiet=True)
    assert facts(short) == facts(whole)
    assert len(facts(whole)["progress"]["Train/Epoch"]) == 4
    assert load_run_config(short).total_steps == 320
    assert read_config(short)["identity"] == read_config(whole)["identity"]
    before = (short / "config.json").read_bytes()
    resume(short, quiet=True)
    assert (short / "config.json").read_bytes() == before


def test_is_refused_if_the_learning_rate_decays(tmp_path, capsys):
    decaying = train(tiny(tmp_path / "decaying", **PPO), quiet=True)
    before = (decaying / "config.json").read_bytes()
    capsys.readouterr()
    assert main(["resume", str(decaying), "--total-steps", "320", "--quiet"]) == 2
    message = capsys.readouterr().err
    assert "cannot be extended: the learning rate of ppo falls to 0 over the steps" in message
    assert "--no-ppo.lr-decay" in message
    assert message.count("\n") == 1
    assert (decaying / "config.json").read_bytes() == before
    assert resume(decaying, quiet=True, total_steps=160) == decaying


def test_is_refused_if_it_would_be_shorter_or_no_number(tmp_path, capsys):
    path = train(tiny(tmp_path, **CPO), quiet=True)
    capsys.readouterr()
    judge = f"can only be made longer; to judge it as it is: steingate evaluate {path} --until-certified"
    for steps, message in (("80", judge), ("many", "must be an integer")):
        assert main(["resume", str(path), "--total-steps", steps, "--quiet"]) == 2
        assert message in capsys.readouterr().err
