"""Whole runs: the folder they leave, equal results when repeated or resumed, signals and errors."""

import json
import os
import shutil
import signal
from dataclasses import replace

import numpy as np
import pytest
from tests.training.runs_of_probes import facts, tiny

from steingate.algorithms.cpo import CPO
from steingate.errors import InputError, RunError
from steingate.runs import newest_checkpoint
from steingate.storage.checkpoint import checkpoint_files
from steingate.storage.tables import read_episodes, read_progress
from steingate.training import runner
from steingate.training.config_file import load_run_config
from steingate.training.epoch import run_epoch
from steingate.training.runner import resume, train

NATIVE = {"env": "SafetyPointGoal1-v0", "cost_limit": 25.0, "steps_per_epoch": 400, "total_steps": 1600}
SIGNALS = [(signal.SIGINT, KeyboardInterrupt), (signal.SIGTERM, SystemExit)]


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """Return an uninterrupted run and its results."""
    path = train(tiny(tmp_path_factory.mktemp("whole")), quiet=True)
    return path, facts(path)


class Killed(BaseException):
    """No code of the package catches this."""


def kill():
    raise Killed


def before_epoch(monkeypatch, epochs, action):
    """Call ``action`` before the epoch after ``epochs`` further ones."""
    left = iter(range(epochs))

    def acting(*args):
        if next(left, None) is None:
            action()
        return run_epoch(*args)

    monkeypatch.setattr(runner, "epoch_function", lambda algorithm: acting)


def train_and_kill(monkeypatch, cfg, epochs):
    with monkeypatch.context() as patch:
        before_epoch(patch, epochs, kill)
        with pytest.raises(Killed):
            train(cfg, quiet=True)


def test_run_folder(whole):
    path, found = whole
    assert path.parts[-3:] == ("steingate", "tests.training.probes-Walk", "seed-0")
    record = json.loads((path / "config.json").read_text())
    assert record["config"]["num_envs"] == 4
    assert record["config"]["algorithm"]["preset"] == "released"
    assert record["plot_style"] == {"name": "steingate", "order": 200, "color": "#1f8a7d"}
    assert {"python", "numpy", "jax", "steingate"} <= record["versions"].keys()
    assert record["learner"]["threads"] == "1"
    assert any("After every epoch the gate evaluates" in note for note in record["notes"])
    assert load_run_config(path) == tiny(path.parents[2])
    progress = found["progress"]
    assert progress["Train/Epoch"] == list(range(6))
    assert progress["TotalEnvSteps"] == [80 * (k + 1) for k in range(6)]
    assert None not in progress["Metrics/EpRet"] + progress["Gate/Bound"]
    assert "Time/FPS" in read_progress(path)
    assert [epoch for epoch, _ in checkpoint_files(path / "checkpoints")] == [4, 6]
    assert len(list(path.glob("events.out.tfevents.*"))) == 1


def test_progress_agrees_with_the_episodes(whole):
    path, found = whole
    episodes, progress = read_episodes(path), found["progress"]
    for epoch in range(6):
        now, past = episodes["epoch"] == epoch, episodes["epoch"] <= epoch
        assert progress["Train/Episodes"][epoch] == now.sum()
        assert progress["Train/EpCost"][epoch] == pytest.approx(episodes["cost"][now].mean())
        assert progress["Train/ViolationRate"][epoch] == pytest.approx(np.mean(episodes["cost"][now] > 4.0))
        assert progress["Metrics/EpRet"][epoch] == pytest.approx(episodes["return"][past][-100:].mean())
    assert (np.diff(episodes["step"]) >= 0).all()
    assert episodes["length"].max() <= 12


class TestSameResults:
    def test_repeated_without_overlap(self, whole, tmp_path):
        assert facts(train(tiny(tmp_path, overlap=False), quiet=True)) == whole[1]
        other = facts(train(tiny(tmp_path, seed=1), quiet=True))
        assert other["checkpoint"] != whole[1]["checkpoint"]
        assert other["progress"]["Train/EpRet"] != whole[1]["progress"]["Train/EpRet"]

    def test_with_any_number_of_threads(self, tmp_path):
        found = []
        for threads, overlap in ((1, False), (2, True)):
            options = {"env_options": {"max_episode_steps": 40}, "threads": threads, "overlap": overlap}
            found.append(facts(train(tiny(tmp_path / str(threads), **NATIVE, **options), quiet=True)))
        assert found[0] == found[1]
        assert found[0]["episodes"].count("\n") > 16

    @pytest.mark.parametrize("epochs", [0, 5])
    def test_after_a_kill_and_a_torn_row(self, whole, tmp_path, monkeypatch, epochs):
        cfg = tiny(tmp_path)
        train_and_kill(monkeypatch, cfg, epochs)
        with open(cfg.path / "progress.csv", "a") as torn:
            torn.write("1.5,2.")
        for _ in range(2):  # the second time there is nothing left to do
            assert resume(cfg.path, quiet=True) == cfg.path
            assert facts(cfg.path) == whole[1]

    def test_after_a_damaged_checkpoint(self, whole, tmp_path, monkeypatch, capsys):
        cfg = tiny(tmp_path)
        train_and_kill(monkeypatch, cfg, 5)
        _, newest = checkpoint_files(cfg.path / "checkpoints")[-1]
        newest.write_bytes(newest.read_bytes()[:-1])
        resume(cfg.path)
        assert f"{newest.name} is unusable" in capsys.readouterr().err.replace("\n", " ")
        assert newest.with_name(newest.name + ".damaged").exists()
        assert facts(cfg.path) == whole[1]

    def test_with_carried_episodes_of_a_native_task(self, tmp_path, monkeypatch):
        cfg = tiny(tmp_path / "a", carry_episodes=True, **NATIVE)
        expected = facts(train(cfg, quiet=True))
        interrupted = replace(cfg, out=str(tmp_path / "b"))
        train_and_kill(monkeypatch, interrupted, 3)
        resume(interrupted.path, quiet=True)
        assert facts(interrupted.path) == expected


def test_epochs_without_a_finished_episode(tmp_path):
    path = train(tiny(tmp_path, env="tests.training.probes:Endless", total_steps=240), quiet=True)
    progress = read_progress(path)
    assert progress["Gate/Fallback"] == [1, 1, 1]
    assert progress["Train/Episodes"] == [0, 0, 0]
    assert progress["Gate/Mode"] == [2, 2, 2]
    assert progress["Metrics/EpCost"] == [None] * 3
    assert "nan" not in (path / "progress.csv").read_text().lower()
    assert len(read_episodes(path)["cost"]) == 0


class TestErrors:
    """An error stops the run after the last good state was saved."""

    @pytest.mark.parametrize(
        ("what", "message"),
        [
            ("reward", "gave a reward that is not finite at step 280"),
            ("cost", r"gave a cost \(inf\) that is not finite at step 280"),
            ("obs", "gave an observation that is not finite at step 280"),
            ("raise", r"failed at step 280 with ZeroDivisionError: lost .*probes\.py, line \d+\)"),
        ],
    )
    def test_of_the_environment(self, tmp_path, what, message):
        options = {"env_options": {"what": what, "at": 70}, "checkpoint_every": 100}
        cfg = tiny(tmp_path, env="tests.training.probes:Broken", **options)
        hint = "the state before this epoch is kept; fix the environment"
        with pytest.raises(RunError, match=rf"tests\.training\.probes:Broken \(number 0 of 4\) {message}; {hint}\."):
            train(cfg, quiet=True)
        assert newest_checkpoint(cfg.path).epoch == 3
        assert read_progress(cfg.path)["Train/Epoch"] == [0, 1, 2]

    def test_of_an_update_that_is_not_finite(self, tmp_path, monkeypatch):
        real, left = CPO.update, iter(range(3))

        def update(*args):
            state, policy, metrics = real(*args)
            if next(left, None) is None:
                policy = {**policy, "log_std": policy["log_std"] * np.nan}
            return state, policy, metrics

        monkeypatch.setattr(CPO, "update", update)
        cfg = tiny(tmp_path, algo="cpo")
        with pytest.raises(RunError, match=r"epoch 3 \(step 320\): the policy/log_std is not finite"):
            train(cfg, quiet=True)
        assert newest_checkpoint(cfg.path).epoch == 3

    @pytest.mark.parametrize("overlap", [True, False])
    def test_of_critics_that_are_not_finite(self, tmp_path, overlap):
        cfg = tiny(tmp_path, vf_lr=1e30, overlap=overlap)
        with pytest.raises(RunError, match=r"the reward critic.* is not finite|an advantage is not finite"):
            train(cfg, quiet=True)
        assert all(np.isfinite(w).all() for w in newest_checkpoint(cfg.path).tree["critics"][0]["w"])

    def test_of_a_full_disk(self, whole, tmp_path, monkeypatch):
        cfg = tiny(tmp_path)
        real, calls = os.fsync, iter(range(8))

        def fsync(descriptor):
            if next(calls, None) is None:
                raise OSError(28, "No space left on device")
            return real(descriptor)

        with monkeypatch.context() as patch:
            patch.setattr("steingate.storage.files.os.fsync", fsync)
            with pytest.raises(RunError, match="the disk is full"):
                train(cfg, quiet=True)
        assert newest_checkpoint(cfg.path).epoch == 2
        resume(cfg.path, quiet=True)
        assert facts(cfg.path) == whole[1]


class TestFolder:
    def test_a_run_without_a_finished_epoch_is_replaced(self, tmp_path, monkeypatch):
        cfg = tiny(tmp_path, env="tests.training.probes:Costless", seed=7)
        with pytest.raises(InputError, match="gives no cost"):
            train(cfg, quiet=True)
        assert (cfg.path / "config.json").exists()
        corrected = replace(cfg, env_options={"cost": "tests.training.probes:no_cost"})
        assert corrected.path == cfg.path
        train_and_kill(monkeypatch, corrected, 1)
        assert load_run_config(cfg.path) == corrected
        assert read_progress(cfg.path)["Train/Epoch"] == [0]
        resume(cfg.path, quiet=True)
        with pytest.raises(RunError, match="already holds a run"):
            train(corrected, quiet=True)

    def test_other_versions_are_reported(self, whole, tmp_path, capsys):
        copy = tmp_path / "copy"
        shutil.copytree(whole[0], copy)
        record = json.loads((copy / "config.json").read_text())
        record["versions"]["jax"] = "0.0.1"
        (copy / "config.json").write_text(json.dumps(record))
        resume(copy)
        assert "started with jax 0.0.1" in capsys.readouterr().err


class TestSignals:
    @pytest.mark.parametrize(("number", "kind"), SIGNALS)
    def test_write_a_checkpoint_first(self, whole, tmp_path, monkeypatch, number, kind):
        cfg = tiny(tmp_path, checkpoint_every=100)
        with monkeypatch.context() as patch:
            before_epoch(patch, 3, lambda: os.kill(os.getpid(), number))
            with pytest.raises(kind) as stopped:
                train(cfg, quiet=True)
        if kind is SystemExit:
            assert stopped.value.code == 143
        assert newest_checkpoint(cfg.path).epoch == 3
        resume(cfg.path, quiet=True)
        assert facts(cfg.path) == whole[1]

    @pytest.mark.parametrize("where", ["configure", "first_state"])
    @pytest.mark.parametrize(("number", "kind"), SIGNALS)
    def test_during_start_up_leave_no_folder(self, tmp_path, monkeypatch, where, number, kind):
        real = getattr(runner, where)

        class Garbage:
            def __del__(self):  # an exception raised here would not reach the caller
                os.kill(os.getpid(), number)

        def signaled(*args, **options):
            Garbage()
            return real(*args, **options)

        monkeypatch.setattr(runner, where, signaled)
        monkeypatch.setattr(runner, "train_epochs", lambda *args: pytest.fail("training began"))
        cfg = tiny(tmp_path)
        before = signal.getsignal(number)
        with pytest.raises(kind):
            train(cfg, quiet=True)
        assert not cfg.path.exists()
        assert signal.getsignal(number) is before
