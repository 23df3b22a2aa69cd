"""The launcher's decisions, on an engine that is nothing but a script of endings."""

import json
from dataclasses import replace

import pytest

from steingate.errors import InputError
from steingate.experiments.launch import RETRIES, Outcome, launch, sort_out
from steingate.experiments.process import Ending
from steingate.training.config import RunConfig

FINISHED, FAILED, LOST = Ending("finished"), Ending("failed", "It is bad."), Ending("lost", "killed")


def config(tmp_path, seed):
    return RunConfig(seed=seed, total_steps=1000, steps_per_epoch=200, out=str(tmp_path))


def write(cfg, epoch):
    """Leave a folder behind as a run of so many epochs would."""
    (cfg.path / "checkpoints").mkdir(parents=True, exist_ok=True)
    (cfg.path / "config.json").write_text(json.dumps({"config": cfg.to_dict()}))
    if epoch:
        (cfg.path / "checkpoints" / f"epoch-{epoch:08d}.safetensors").touch()


class Script:
    """Ends each run as told: a list per seed of (ending, epochs saved by then)."""

    def __init__(self, slots, endings):
        self.slots, self.endings = slots, {seed: list(list_) for seed, list_ in endings.items()}
        self.running, self.started, self.most, self.stopped = [], [], 0, False

    def start(self, cfg):
        self.running.append(cfg)
        self.started.append(cfg.seed)
        self.most = max(self.most, len(self.running))

    def ended(self, timeout):
        cfg = self.running[0]
        if not self.endings[cfg.seed]:
            return []
        self.running.pop(0)
        end, saved = self.endings[cfg.seed].pop(0)
        write(cfg, saved)
        return [(cfg, end)]

    def stop(self):
        self.stopped = True


class Notes:
    def __init__(self):
        self.events, self.looks = [], 0

    def event(self, cfg, what):
        self.events.append((cfg.seed, what))

    def update(self, running):
        self.looks += 1


def outcomes(tmp_path, slots, endings, stop=lambda: False):
    engine, notes = Script(slots, endings), Notes()
    todo = [config(tmp_path, seed) for seed in endings]
    found = launch(todo, engine, notes, stop, tick=0.0)
    return {outcome.run.seed: (outcome.status, outcome.message) for outcome in found}, engine, notes


def test_a_failed_run_does_not_stop_the_others(tmp_path):
    found, engine, notes = outcomes(tmp_path, 2, {0: [(FINISHED, 5)], 1: [(FAILED, 0)], 2: [(FINISHED, 5)]})
    assert found == {0: ("finished", ""), 1: ("failed", "It is bad."), 2: ("finished", "")}
    assert engine.most == 2
    assert (1, "failed: It is bad.") in notes.events


def test_a_lost_run_goes_on_as_long_as_it_gets_further(tmp_path):
    many = [(LOST, epoch) for epoch in (1, 1, 1, 2, 2, 2, 3, 4)]
    found, engine, notes = outcomes(tmp_path, 1, {0: [*many, (FINISHED, 5)]})
    assert found == {0: ("finished", "")}
    assert engine.started == [0] * 9
    assert [what for _, what in notes.events].count("goes on") == 8


def test_a_run_that_is_lost_without_progress_fails_in_the_end(tmp_path):
    found, engine, _ = outcomes(tmp_path, 1, {0: [(LOST, 2)] * 20, 1: [(FINISHED, 5)]})
    assert found[0][0] == "failed"
    assert "lost 4 times without a new checkpoint; the last time killed" in found[0][1]
    assert engine.started == [0] * (RETRIES + 1) + [1]
    assert found[1] == ("finished", "")


def test_a_run_killed_after_its_last_checkpoint_is_finished(tmp_path):
    found, engine, _ = outcomes(tmp_path, 1, {0: [(LOST, 5)]})
    assert found == {0: ("finished", "")}
    assert engine.started == [0]


def test_a_result_that_cannot_be_seen_is_a_failure(tmp_path):
    found, *_ = outcomes(tmp_path, 1, {0: [(FINISHED, 3)]})
    assert found[0][0] == "failed"
    assert "all machines share" in found[0][1]


def test_stopping_leaves_the_rest_for_the_next_time(tmp_path):
    asked = iter([False, False, True])
    found, engine, _ = outcomes(
        tmp_path, 1, {0: [(FINISHED, 5)], 1: [], 2: []}, stop=lambda: next(asked, True)
    )
    assert {seed: status for seed, (status, _) in found.items()} == {
        0: "finished", 1: "stopped", 2: "not started",
    }  # fmt: skip
    assert engine.stopped


def test_sorting_out_what_is_left(tmp_path):
    new, begun, done, damaged = (config(tmp_path, seed) for seed in range(4))
    write(begun, 2)
    write(done, 5)
    write(damaged, 0)
    (damaged.path / "config.json").write_text("{")
    todo, known = sort_out([new, begun, done, damaged])
    assert todo == [begun, new]
    assert known[0] == Outcome(done, "already finished")
    assert known[1].status == "failed"
    assert "damaged" in known[1].message
    write(replace(new, cost_limit=3.0), 0)
    with pytest.raises(InputError, match="cost_limit"):
        sort_out([new])
