"""The policy a run delivers: what a folder says and holds after training, stopping, killing and going on."""

import json
import os
import signal
import warnings

import numpy as np
import pytest
from tests.training.runs_of_probes import facts, tiny

from steingate.errors import InputError, RunError
from steingate.monitoring.wealth import upper_bound
from steingate.policies.policy import load
from steingate.runs import RunFolder, certified_checkpoint, latest_checkpoint, load_certification
from steingate.training import loop
from steingate.training import selection as module
from steingate.training.certification import CertificationTest
from steingate.training.config_file import load_run_config
from steingate.training.evaluate import evaluate
from steingate.training.loop import resume, train

LONG = {
    "total_steps": 80 * 40,
    "checkpoint_every": 3,
    "certify.max_step_fraction": 0.5,
}


def delivered(path):
    """The bytes that a run delivers."""
    run = RunFolder(path)
    return {file.name: file.read_bytes() for file in (run.certified, run.certification) if file.exists()}


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    path = train(tiny(tmp_path_factory.mktemp("whole"), **LONG), quiet=True)
    return path, facts(path), delivered(path)


class Killed(BaseException):
    pass


def kill(*args, **options):
    raise Killed


def test_the_delivered_policy_is_what_the_verdict_says(whole):
    path = whole[0]
    verdict, held = load_certification(path), certified_checkpoint(path)
    assert verdict["certified"]
    assert verdict["finished"]
    trial = CertificationTest(**held.tree["test"])
    assert trial.certified
    assert verdict["policy"]["epoch"] == held.epoch == trial.epoch
    assert (verdict["policy"]["violations"], verdict["policy"]["episodes"]) == (
        trial.violations,
        trial.episodes,
    )
    assert trial.bound == upper_bound(trial.violations, trial.episodes - trial.violations, trial.delta) <= 0.1
    for word in (
        f"{trial.violations} of {trial.episodes} fresh episodes",
        "95 %",
        f"step {80 * held.epoch:,}",
    ):
        assert word in verdict["sentence"]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        loaded = load(path)
    assert (loaded.which, loaded.epoch, loaded.certification) == ("certified", held.epoch, verdict)
    fresh = evaluate(path, 200, seed=5)
    assert fresh.which == "certified"
    assert np.mean(fresh.episodes.cost > 4.0) <= 0.1
    assert load(path, "last").which == "last"


def test_tests_happened_while_training_within_their_share(whole):
    kept = latest_checkpoint(whole[0] / "checkpoints").tree["selection"]
    _, _, tests, steps, *_ = kept
    assert tests >= 1
    assert steps <= 0.5 * 80 * 40 + 300 * 12


def test_training_itself_is_untouched(whole, tmp_path):
    cfg = tiny(tmp_path, **{**LONG, "certify.enabled": False})
    path = train(cfg, quiet=True)
    assert facts(path)["progress"] == whole[1]["progress"]
    assert facts(path)["episodes"] == whole[1]["episodes"]
    one, other = (latest_checkpoint(run / "checkpoints").tree for run in (path, whole[0]))
    for mine, others in zip(one["policy"]["w"], other["policy"]["w"], strict=True):
        np.testing.assert_array_equal(mine, others)
    assert delivered(path) == {}
    with pytest.warns(UserWarning, match="Certification is disabled"):
        load(path)


@pytest.mark.parametrize("when", [2, 20])
def test_a_killed_run_delivers_the_same(whole, tmp_path, monkeypatch, when):
    cfg = tiny(tmp_path, **LONG)
    real, calls = loop.CertifiedCheckpointSelector.consider, iter(range(when))

    def after(self, *states):
        kept = real(self, *states)
        if next(calls, None) is None:
            raise Killed  # after a test, before anything of its epoch is written
        return kept

    with monkeypatch.context() as patch:
        patch.setattr(loop.CertifiedCheckpointSelector, "consider", after)
        with pytest.raises(Killed):
            train(cfg, quiet=True)
    resume(cfg.path, quiet=True)
    assert facts(cfg.path) == whole[1]
    assert delivered(cfg.path) == whole[2]


@pytest.mark.parametrize("what", ["certify_checkpoint", "write_certification"])
def test_so_does_one_killed_in_its_last_tests(whole, tmp_path, monkeypatch, what):
    cfg = tiny(tmp_path, **{**LONG, "certify.max_step_fraction": 0.0})
    plain = train(tiny(tmp_path / "plain", **{**LONG, "certify.max_step_fraction": 0.0}), quiet=True)
    with monkeypatch.context() as patch:
        patch.setattr(module, what, kill)
        with pytest.raises(Killed):
            train(cfg, quiet=True)
    resume(cfg.path, quiet=True)
    assert delivered(cfg.path) == delivered(plain)
    again = delivered(cfg.path)
    resume(cfg.path, quiet=True)  # nothing left to test
    assert delivered(cfg.path) == again


def test_a_signal_in_a_test_stops_before_its_epoch_and_nothing_is_lost(whole, tmp_path, monkeypatch):
    cfg = tiny(tmp_path, **LONG)
    real = module.certify_checkpoint

    def signaled(*given, **options):
        os.kill(os.getpid(), signal.SIGINT)
        return real(*given, **options)

    with monkeypatch.context() as patch:
        patch.setattr(module, "certify_checkpoint", signaled)
        with pytest.raises(KeyboardInterrupt):
            train(cfg, quiet=True)
    resume(cfg.path, quiet=True)
    assert facts(cfg.path) == whole[1]
    assert delivered(cfg.path) == whole[2]


def test_a_run_made_longer_learns_as_if_it_had_been_longer(whole, tmp_path):
    short = tiny(tmp_path, **{**LONG, "total_steps": 80 * 25})
    train(short, quiet=True)
    ends = load_certification(short.path)["final_tests"]
    assert ends >= 1
    resume(short.path, quiet=True, total_steps=80 * 40)
    assert facts(short.path) == whole[1]
    verdict = load_certification(short.path)
    assert verdict["final_tests"] > ends  # delta went on being spent
    assert verdict["epoch"] == 40


def test_where_none_is_certified_everyone_is_told(tmp_path, capsys):
    cfg = tiny(tmp_path, cost_limit=1e-9)
    path = train(cfg)
    verdict = load_certification(path)
    assert not verdict["certified"]
    assert verdict["closest"]["violations"] > 0
    assert verdict["sentence"] in capsys.readouterr().err
    with pytest.warns(UserWarning, match="is not certified. No policy is certified for cost limit 1e-09"):
        assert load(path).which == "last"
    with pytest.raises(RunError, match="has no certified policy"):
        load(path, "certified")
    with pytest.raises(InputError, match="'best'"):
        load(path, "best")


def test_an_environment_that_never_ends_does_not_hang(tmp_path):
    path = train(tiny(tmp_path, env="tests.training.probes:Endless", total_steps=160), quiet=True)
    assert "no episode ended during training" in load_certification(path)["sentence"]


def test_a_test_that_fails_does_not_take_the_training_with_it(tmp_path, monkeypatch):
    def broken(*given, **options):
        raise OSError("only one robot")

    monkeypatch.setattr(module, "make_envs", broken)
    path = train(tiny(tmp_path), quiet=True)
    verdict = load_certification(path)
    assert not verdict["certified"]
    assert "only one robot" in verdict["sentence"]


def test_a_damaged_certified_policy_is_named(whole, tmp_path):
    import shutil

    copy = tmp_path / "copy"
    shutil.copytree(whole[0], copy)
    file = RunFolder(copy).certified
    file.write_bytes(file.read_bytes()[:-1])
    with pytest.warns(UserWarning, match=r"certified\.safetensors is unusable"):
        assert load(copy).which == "last"
    RunFolder(copy).certification.write_text("{")
    said = []
    assert load(copy, warn=said.append).certification is None
    assert any("certification.json is damaged" in text for text in said)


def test_another_runs_certified_policy_is_refused(whole, tmp_path):
    other = train(tiny(tmp_path, seed=1), quiet=True)
    RunFolder(other).certified.write_bytes(RunFolder(whole[0]).certified.read_bytes())
    with pytest.warns(UserWarning, match="does not belong to this run"):
        assert load(other).which == "last"


def test_settings_are_part_of_the_run(tmp_path):
    cfg = tiny(tmp_path, **{"certify.budget": "0.2", "certify.enabled": False})
    assert (cfg.certify.budget, cfg.certify.enabled) == (0.2, False)
    assert cfg.identity == tiny(tmp_path).identity
    path = train(cfg, quiet=True)
    assert json.loads((path / "config.json").read_text())["config"]["certify"]["budget"] == 0.2
    assert load_run_config(path) == cfg
    for name, value in (("budget", 0.0), ("delta", 1.0), ("max_step_fraction", 2.0), ("max_episodes", 0)):
        with pytest.raises(InputError, match=f"certify.{name} is"):
            tiny(tmp_path, **{f"certify.{name}": value})
    with pytest.raises(InputError, match=r"did you mean certify\.budget"):
        tiny(tmp_path, **{"certify.budgt": 0.2})
