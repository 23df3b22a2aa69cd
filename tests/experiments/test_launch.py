"""The state of run folders, and launching on an engine that follows a script."""

import json
from dataclasses import replace

import pytest

from steingate.errors import InputError, RunError
from steingate.experiments.launch import MAX_RESTARTS, Outcome, RunStatus, find_todo, launch, run_status
from steingate.experiments.worker import WorkerExit
from steingate.runs import RunFolder, write_certification
from steingate.training.config import make_config

FINISHED, FAILED, LOST = (WorkerExit("finished"), WorkerExit("failed", "It is bad."), WorkerExit("lost", "killed"))


def config(tmp_path, seed=0, **options):
    sizes = {"total_steps": 1000, "steps_per_epoch": 200, "out": str(tmp_path)}
    return make_config({**sizes, "algo": "steingate", "seed": seed, **options})


def write(cfg, epoch, certified_at=None):
    """Write a run folder with a checkpoint, and a certification at some epoch."""
    (cfg.path / "checkpoints").mkdir(parents=True, exist_ok=True)
    (cfg.path / "config.json").write_text(json.dumps({"config": cfg.to_dict()}))
    if epoch:
        (cfg.path / "checkpoints" / f"epoch-{epoch:08d}.safetensors").touch()
    if certified_at is not None:
        report = {"certified": False, "sentence": "", "finished": True, "epoch": certified_at}
        write_certification(RunFolder(cfg.path), report)


def test_not_started_started_and_finished(tmp_path):
    cfg = config(tmp_path)
    assert run_status(cfg) == RunStatus(False, 0, False)
    write(cfg, 0)
    assert run_status(cfg) == RunStatus(True, 0, False)
    write(cfg, 3)
    assert run_status(cfg) == RunStatus(True, 3, False)
    write(cfg, 5, certified_at=5)
    assert run_status(cfg) == RunStatus(True, 5, True)
    assert run_status(replace(cfg, threads=1, overlap=False, checkpoint_every=7)).finished


def test_a_run_without_its_certification_is_not_finished(tmp_path):
    cfg = config(tmp_path)
    write(cfg, 5)
    assert run_status(cfg) == RunStatus(True, 5, False)
    write(cfg, 5, certified_at=4)
    assert not run_status(cfg).finished
    uncertified = config(tmp_path / "off", **{"certify.enabled": False})
    write(uncertified, 5)
    assert run_status(uncertified).finished


def test_a_damaged_folder_is_one_sentence(tmp_path):
    cfg = config(tmp_path)
    write(cfg, 5)
    record = json.loads((cfg.path / "config.json").read_text())
    record["config"]["algorithm"] = 3
    (cfg.path / "config.json").write_text(json.dumps(record))
    with pytest.raises(RunError, match="is damaged: it has no settings"):
        run_status(cfg)


@pytest.mark.parametrize("change", [{"total_steps": 2000}, {"cost_limit": 5.0}, {"certificate": {"budget": 0.3}}])
def test_a_folder_of_another_run_is_refused(tmp_path, change):
    write(config(tmp_path), 5)
    with pytest.raises(InputError, match=f"contains a run with {next(iter(change))} .* choose another --out"):
        run_status(config(tmp_path, **change))


def test_what_is_left_to_do(tmp_path):
    new, started, done, damaged = (config(tmp_path, seed) for seed in range(4))
    write(started, 2)
    write(done, 5, certified_at=5)
    write(damaged, 0)
    (damaged.path / "config.json").write_text("{")
    todo, outcomes = find_todo([new, started, done, damaged])
    assert todo == [started, new]
    assert outcomes[0] == Outcome(done, "already finished")
    assert outcomes[1].status == "failed"
    assert "damaged" in outcomes[1].message
    write(replace(new, cost_limit=3.0), 0)
    with pytest.raises(InputError, match="cost_limit"):
        find_todo([new])


class Script:
    """An engine that ends each run as listed: (exit, epochs saved by then) by seed."""

    def __init__(self, slots, exits):
        self.slots, self.exits = slots, {seed: list(ends) for seed, ends in exits.items()}
        self.running, self.started, self.most, self.stopped = [], [], 0, False

    def start(self, cfg):
        self.running.append(cfg)
        self.started.append(cfg.seed)
        self.most = max(self.most, len(self.running))

    def wait(self, timeout):
        cfg = self.running[0]
        if not self.exits[cfg.seed]:
            return []
        self.running.pop(0)
        end, saved = self.exits[cfg.seed].pop(0)
        write(cfg, saved, certified_at=saved)
        return [(cfg, end)]

    def stop(self):
        self.stopped = True


def outcomes(tmp_path, slots, exits, stop=lambda: False):
    engine, notes = Script(slots, exits), []
    found = launch(
        [config(tmp_path, seed) for seed in exits],
        engine,
        lambda cfg, text: notes.append((cfg.seed, text)),
        stop,
        poll=0.0,
    )
    return {outcome.run.seed: (outcome.status, outcome.message) for outcome in found}, engine, notes


def test_a_failed_run_does_not_stop_the_others(tmp_path):
    found, engine, notes = outcomes(tmp_path, 2, {0: [(FINISHED, 5)], 1: [(FAILED, 0)], 2: [(FINISHED, 5)]})
    assert found == {0: ("finished", ""), 1: ("failed", "It is bad."), 2: ("finished", "")}
    assert engine.most == 2
    assert (1, "failed: It is bad.") in notes


def test_a_killed_run_is_restarted_while_it_makes_progress(tmp_path):
    many = [(LOST, epoch) for epoch in (1, 1, 1, 2, 2, 2, 3, 4)]
    found, engine, notes = outcomes(tmp_path, 1, {0: [*many, (FINISHED, 5)]})
    assert found == {0: ("finished", "")}
    assert engine.started == [0] * 9
    assert notes.count((0, "restarted: killed")) == 8


def test_a_run_that_is_killed_without_progress_fails(tmp_path):
    found, engine, _ = outcomes(tmp_path, 1, {0: [(LOST, 2)] * 20, 1: [(FINISHED, 5)]})
    assert found[0] == ("failed", "killed 4 times without a new checkpoint, last time killed.")
    assert engine.started == [0] * (MAX_RESTARTS + 1) + [1]


def test_a_worker_that_finished_elsewhere_is_reported(tmp_path):
    found, *_ = outcomes(tmp_path, 1, {0: [(FINISHED, 3)]})
    assert found[0][0] == "failed"
    assert "all machines share" in found[0][1]


def test_stopping_leaves_the_rest_for_the_next_time(tmp_path):
    asked = iter([False, False, True])
    exits = {0: [(FINISHED, 5)], 1: [], 2: []}
    found, engine, _ = outcomes(tmp_path, 1, exits, stop=lambda: next(asked, True))
    assert [found[seed][0] for seed in range(3)] == ["finished", "stopped", "not started"]
    assert engine.stopped
