import json
import os
import shutil
import signal
import threading
from dataclasses import replace

import numpy as np
import pytest
from tests.training.runs_of_probes import facts, tiny

from steingate.errors import InputError, RunError
from steingate.runs import RunFolder, folder_lock, latest_checkpoint, read_episodes, read_progress
from steingate.storage.checkpoint import checkpoint_files
from steingate.training import loop
from steingate.training.config_file import load_run_config
from steingate.training.runner import resume, train


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """An unbroken run, and what it computed."""
    path = train(tiny(tmp_path_factory.mktemp("whole")), quiet=True)
    return path, facts(path)


def stop_after(monkeypatch, epochs, how):
    """Make the epoch after ``epochs`` further ones do ``how`` instead."""
    real, left = loop.run_epoch, iter(range(epochs))

    def run_epoch(*args):
        if next(left, None) is None:
            how()
        return real(*args)

    monkeypatch.setattr(loop, "run_epoch", run_epoch)


NATIVE = {"steps_per_epoch": 800, "total_steps": 3200}


class Killed(BaseException):
    """Nothing in the package catches this."""


def kill():
    raise Killed


def test_a_run_leaves_the_promised_folder(whole):
    path, found = whole
    assert path.parts[-3:] == ("steingate", "tests.training.probes-Walk", "seed-0")
    record = json.loads((path / "config.json").read_text())
    assert record["config"]["num_envs"] == 4
    assert record["config"]["recipe"]["preset"] == "released"
    assert record["plot_style"] == {"order": 200, "color": "#1f8a7d"}
    assert {"python", "numpy", "jax", "steingate"} <= record["versions"].keys()
    assert record["learner"]["threads"] == "1"
    progress = found["progress"]
    assert progress["Train/Epoch"] == list(range(6))
    assert progress["TotalEnvSteps"] == [80 * (k + 1) for k in range(6)]
    for name in (
        "Metrics/EpRet",
        "Metrics/EpCost",
        "Metrics/EpLen",
        "Gate/Mode",
        "Gate/Bound",
        "Gate/Budget",
    ):
        assert None not in progress[name]
    assert "Time/FPS" in read_progress(path)
    assert [epoch for epoch, _ in checkpoint_files(path / "checkpoints")] == [4, 6]
    assert len(list(path.glob("events.out.tfevents.*"))) == 1


def test_the_log_agrees_with_the_episodes(whole):
    path, found = whole
    episodes = read_episodes(path)
    progress = found["progress"]
    for epoch in range(6):
        mine = episodes["epoch"] == epoch
        assert progress["Train/Episodes"][epoch] == mine.sum()
        assert progress["Train/EpCost"][epoch] == pytest.approx(episodes["cost"][mine].mean())
        assert progress["Train/ViolationRate"][epoch] == pytest.approx(np.mean(episodes["cost"][mine] > 4.0))
        past = episodes["epoch"] <= epoch
        assert progress["Metrics/EpRet"][epoch] == pytest.approx(episodes["return"][past][-100:].mean())
    assert (np.diff(episodes["step"]) >= 0).all()
    assert episodes["length"].max() <= 12


def test_the_same_run_again_is_the_same(whole, tmp_path):
    assert facts(train(tiny(tmp_path), quiet=True)) == whole[1]
    other = facts(train(tiny(tmp_path, seed=1), quiet=True))
    assert other["checkpoint"] != whole[1]["checkpoint"]
    assert other["progress"]["Train/EpRet"] != whole[1]["progress"]["Train/EpRet"]


def test_overlap_changes_nothing(whole, tmp_path):
    assert facts(train(tiny(tmp_path, overlap=False), quiet=True)) == whole[1]


@pytest.mark.parametrize("epochs", [0, 1, 2, 3, 5])
def test_a_resumed_run_equals_an_unbroken_one(whole, tmp_path, monkeypatch, epochs):
    cfg = tiny(tmp_path)
    with monkeypatch.context() as patch:
        stop_after(patch, epochs, kill)
        with pytest.raises(Killed):
            train(cfg, quiet=True)
    with open(cfg.path / "progress.csv", "a") as torn:
        torn.write("1.5,2.")
    resume(cfg.path, quiet=True)
    assert facts(cfg.path) == whole[1]
    assert resume(cfg.path, quiet=True) == cfg.path  # nothing left to do
    assert facts(cfg.path) == whole[1]


def test_a_damaged_checkpoint_is_passed_over(whole, tmp_path, monkeypatch, capsys):
    cfg = tiny(tmp_path)
    with monkeypatch.context() as patch:
        stop_after(patch, 5, kill)
        with pytest.raises(Killed):
            train(cfg, quiet=True)
    _, newest = checkpoint_files(cfg.path / "checkpoints")[-1]
    newest.write_bytes(newest.read_bytes()[:-1])
    resume(cfg.path)
    assert f"{newest.name} is unusable" in capsys.readouterr().err.replace("\n", " ")
    assert newest.with_name(newest.name + ".damaged").exists()
    assert facts(cfg.path) == whole[1]


@pytest.mark.parametrize("change", [{"seed": 1}, {"discount": 0.5}, {"hidden": (6, 6)}])
def test_a_foreign_checkpoint_is_put_aside_for_an_older_one(whole, tmp_path, monkeypatch, capsys, change):
    cfg = tiny(tmp_path / "mine")
    other = train(tiny(tmp_path / "other", **change), quiet=True)
    with monkeypatch.context() as patch:
        stop_after(patch, 5, kill)
        with pytest.raises(Killed):
            train(cfg, quiet=True)
    _, newest = checkpoint_files(cfg.path / "checkpoints")[-1]
    foreign = other / "checkpoints" / newest.name
    newest.write_bytes(foreign.read_bytes())
    resume(cfg.path)
    assert f"{newest.name} does not belong to this run" in capsys.readouterr().err.replace("\n", " ")
    assert newest.with_name(newest.name + ".damaged").read_bytes() == foreign.read_bytes()
    assert facts(cfg.path) == whole[1]


def test_episodes_may_outlive_epochs(tmp_path, monkeypatch):
    cfg = tiny(tmp_path / "a", carry_episodes=True, env_options={"limit": 50, "out": 9.0})
    expected = facts(train(cfg, quiet=True))
    lengths = read_episodes(cfg.path)["length"]
    assert lengths.max() > 20  # longer than an epoch's twenty vector steps
    broken = replace(cfg, out=str(tmp_path / "b"))
    with monkeypatch.context() as patch:
        stop_after(patch, 3, kill)
        with pytest.raises(Killed):
            train(broken, quiet=True)
    resume(broken.path, quiet=True)
    found = facts(broken.path)
    assert found["checkpoint"] == expected["checkpoint"]
    assert found == expected


def test_carrying_needs_an_environment_that_can_be_saved(tmp_path):
    cfg = tiny(tmp_path, env="tests.training.probes:Constant", carry_episodes=True)
    with pytest.raises(InputError, match="snapshot"):
        train(cfg, quiet=True)


@pytest.mark.parametrize("algo", ["steingate", "cpo"])
def test_epochs_without_a_finished_episode_fall_back(tmp_path, algo):
    cfg = tiny(tmp_path, env="tests.training.probes:Endless", algo=algo, total_steps=240)
    path = train(cfg, quiet=True)
    progress = read_progress(path)
    assert progress["Gate/Fallback"] == [1, 1, 1]
    assert progress["Train/Episodes"] == [0, 0, 0]
    assert progress["Gate/Mode"] == [2, 2, 2]
    assert progress["Metrics/EpCost"] == [None] * 3
    assert "nan" not in (path / "progress.csv").read_text().lower()
    assert len(read_episodes(path)["cost"]) == 0


@pytest.mark.parametrize("what", ["reward", "cost", "obs"])
def test_what_is_not_finite_stops_the_run_with_the_last_good_state(tmp_path, what):
    cfg = tiny(tmp_path, env="tests.training.probes:Broken", env_options={"what": what, "at": 70})
    with pytest.raises(RunError, match=r"tests\.training\.probes:Broken .* is not finite at step 280"):
        train(cfg, quiet=True)
    assert latest_checkpoint(cfg.path / "checkpoints").epoch == 3
    assert read_progress(cfg.path)["Train/Epoch"] == [0, 1, 2]


def test_a_run_that_never_finished_an_epoch_makes_way(whole, tmp_path, monkeypatch):
    cfg = tiny(tmp_path, env="tests.training.probes:Costless", seed=7)
    with pytest.raises(InputError, match="gives no cost"):
        train(cfg, quiet=True)
    assert (cfg.path / "config.json").exists()
    corrected = replace(cfg, env_options={"cost": "tests.training.probes:no_cost"})
    assert corrected.path == cfg.path
    stop_after(monkeypatch, 1, kill)
    with pytest.raises(Killed):
        train(corrected, quiet=True)
    assert load_run_config(cfg.path) == corrected
    assert read_progress(cfg.path)["Train/Epoch"] == [0]
    monkeypatch.undo()
    resume(cfg.path, quiet=True)  # nothing of the first attempt is in the way
    with pytest.raises(RunError, match="already holds a run"):
        train(corrected, quiet=True)


def test_what_an_environment_raises_names_it_after_the_last_good_state_is_saved(tmp_path):
    cfg = tiny(
        tmp_path,
        env="tests.training.probes:Broken",
        env_options={"what": "raise", "at": 70},
        checkpoint_every=100,
    )
    message = (
        r"tests\.training\.probes:Broken \(number 0 of 4\) failed at step 280 with ZeroDivisionError: lost .*"
        r"probes\.py, line \d+\); the state before this epoch is kept; fix the environment\."
    )
    with pytest.raises(RunError, match=message) as failed:
        train(cfg, quiet=True)
    assert isinstance(failed.value.__cause__, ZeroDivisionError)
    assert latest_checkpoint(cfg.path / "checkpoints").epoch == 3


def test_any_error_in_an_epoch_saves_the_last_good_state(tmp_path, monkeypatch):
    cfg = tiny(tmp_path, checkpoint_every=100)

    def fail():
        raise FloatingPointError("from the learner")

    stop_after(monkeypatch, 3, fail)
    with pytest.raises(FloatingPointError, match="from the learner"):
        train(cfg, quiet=True)
    assert latest_checkpoint(cfg.path / "checkpoints").epoch == 3


def test_a_row_that_cannot_be_written_is_not_counted_on(whole, tmp_path, monkeypatch):
    cfg = tiny(tmp_path, checkpoint_every=100)
    real, left = loop.RunWriter.add, iter(range(3))

    def add(self, row, episodes):
        if next(left, None) is None:
            raise RunError("the disk is full")
        real(self, row, episodes)

    with monkeypatch.context() as patch:
        patch.setattr(loop.RunWriter, "add", add)
        with pytest.raises(RunError, match="the disk is full"):
            train(cfg, quiet=True)
    resume(cfg.path, quiet=True)
    assert facts(cfg.path)["progress"] == whole[1]["progress"]


def test_an_update_that_is_not_finite_stops_the_run(tmp_path, monkeypatch):
    cfg = tiny(tmp_path)
    real = loop.build_algorithm

    def poisoned(cfg):
        algo = real(cfg)
        moves = iter(range(3))

        def move(state, params, batch, decision):
            policy, state, log = algo.step.move(state, params, batch, decision)
            if next(moves, None) is None:
                policy = {**policy, "log_std": policy["log_std"] * np.nan}
            return policy, state, log

        return algo._replace(step=algo.step._replace(move=move))

    monkeypatch.setattr(loop, "build_algorithm", poisoned)
    with pytest.raises(RunError, match=r"epoch 3 \(step 320\): the policy/log_std is not finite"):
        train(cfg, quiet=True)
    assert latest_checkpoint(cfg.path / "checkpoints").epoch == 3


@pytest.mark.parametrize("overlap", [True, False])
def test_critics_that_are_not_finite_stop_the_run(tmp_path, overlap):
    cfg = tiny(tmp_path, critic_lr=1e30, overlap=overlap)
    with pytest.raises(RunError, match=r"the reward critic.* is not finite|an advantage is not finite"):
        train(cfg, quiet=True)
    saved = latest_checkpoint(cfg.path / "checkpoints")
    assert saved is not None
    assert all(np.isfinite(w).all() for w in saved.tree["critics"][0]["w"])


def test_two_runs_on_one_folder_are_refused(whole, tmp_path):
    with pytest.raises(RunError, match="already holds a run"):
        train(tiny(whole[0].parents[2]), quiet=True)
    run = RunFolder(whole[0])
    with folder_lock(run), pytest.raises(RunError, match=f"in use by process {os.getpid()}"):
        resume(whole[0], quiet=True)


@pytest.mark.parametrize(
    ("number", "kind"), [(signal.SIGINT, KeyboardInterrupt), (signal.SIGTERM, SystemExit)]
)
def test_signals_write_a_checkpoint_first(whole, tmp_path, monkeypatch, number, kind):
    cfg = tiny(tmp_path, checkpoint_every=100)
    with monkeypatch.context() as patch:
        stop_after(patch, 3, lambda: os.kill(os.getpid(), number))
        with pytest.raises(kind) as stopped:
            train(cfg, quiet=True)
    if kind is SystemExit:
        assert stopped.value.code == 143
    assert latest_checkpoint(cfg.path / "checkpoints").epoch == 3
    assert signal.getsignal(number) is not None
    resume(cfg.path, quiet=True)
    assert facts(cfg.path)["progress"] == whole[1]["progress"]
    assert facts(cfg.path)["checkpoint"] == whole[1]["checkpoint"]


@pytest.mark.parametrize("where", ["configure", "make_envs", "first_state"])
@pytest.mark.parametrize(
    ("number", "kind"), [(signal.SIGINT, KeyboardInterrupt), (signal.SIGTERM, SystemExit)]
)
def test_a_signal_during_start_up_is_not_lost_and_leaves_no_folder(
    tmp_path, monkeypatch, where, number, kind
):
    real = getattr(loop, where)

    class Garbage:
        def __del__(self):  # what is raised here never reaches the caller
            os.kill(os.getpid(), number)

    def signaled(*args, **options):
        Garbage()
        return real(*args, **options)

    monkeypatch.setattr(loop, where, signaled)
    monkeypatch.setattr(loop, "run_epoch", lambda *args: pytest.fail("training began"))
    cfg = tiny(tmp_path)
    before = signal.getsignal(number)
    with pytest.raises(kind):
        train(cfg, quiet=True)
    assert not cfg.path.exists()
    assert signal.getsignal(number) is before


def test_a_run_in_another_thread_leaves_signals_alone(whole, tmp_path):
    results = []
    worker = threading.Thread(target=lambda: results.append(facts(train(tiny(tmp_path), quiet=True))))
    worker.start()
    worker.join()
    assert results == [whole[1]]


def test_a_full_disk_stops_the_run_and_keeps_the_old_checkpoint(whole, tmp_path, monkeypatch):
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
    assert latest_checkpoint(cfg.path / "checkpoints").epoch == 2
    resume(cfg.path, quiet=True)
    assert facts(cfg.path) == whole[1]


def test_other_versions_are_noticed(whole, tmp_path, capsys):
    copy = tmp_path / "copy"
    shutil.copytree(whole[0], copy)
    record = json.loads((copy / "config.json").read_text())
    record["versions"]["jax"] = "0.0.1"
    (copy / "config.json").write_text(json.dumps(record))
    resume(copy)
    assert "started with jax 0.0.1" in capsys.readouterr().err


def test_threads_change_nothing(tmp_path):
    settings = {"env": "SafetyPointGoal1-v0", "env_options": {"max_episode_steps": 40}, "cost_limit": 25.0}
    found = []
    for threads, overlap in ((1, False), (2, True)):
        cfg = tiny(tmp_path / str(threads), threads=threads, overlap=overlap, **settings, **NATIVE)
        found.append(facts(train(cfg, quiet=True)))
    assert found[0] == found[1]
    assert found[0]["episodes"].count("\n") > 16


def test_native_episodes_may_outlive_epochs(tmp_path, monkeypatch):
    cfg = tiny(tmp_path / "a", env="SafetyPointGoal1-v0", carry_episodes=True, **NATIVE)
    expected = facts(train(cfg, quiet=True))
    broken = replace(cfg, out=str(tmp_path / "b"))
    with monkeypatch.context() as patch:
        stop_after(patch, 3, kill)
        with pytest.raises(Killed):
            train(broken, quiet=True)
    resume(broken.path, quiet=True)
    assert facts(broken.path) == expected


def test_settings_survive_the_folder(whole, tmp_path):
    cfg = load_run_config(whole[0])
    assert cfg == tiny(whole[0].parents[2])
    (tmp_path / "config.json").write_text('{"config": {"nonsense": 1}}')
    with pytest.raises(RunError, match=r"config\.json cannot be used"):
        resume(tmp_path, quiet=True)
    (tmp_path / "config.json").write_text('{"other": 1}')
    with pytest.raises(RunError, match="no table 'config'"):
        resume(tmp_path, quiet=True)


def test_what_the_certificate_can_promise_is_said_at_the_start(tmp_path, capsys):
    path = train(tiny(tmp_path))
    notes = json.loads((path / "config.json").read_text())["notes"]
    assert any("promises nothing about the policy that training ends with" in note for note in notes)
    shown = capsys.readouterr().err
    assert all(note in shown for note in notes)
