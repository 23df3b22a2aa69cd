"""Times to the end, against a brute-force simulation and on a clock that the tests turn by hand."""

import json
from dataclasses import replace

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from steingate.experiments.expected import Speeds
from steingate.experiments.forecast import RECENT, Forecast, finish_after
from steingate.training.config import make_config

CIRCLE, GOAL = "SafetyPointCircle1-v0", "SafetyPointGoal1-v0"
# A hundredth of a second per step on the base task, a fiftieth on the other; evo needs as much again.
TASKS, METHODS = {CIRCLE: 1e4, GOAL: 2e4}, {"cpo": 1e4, "evo": 2e4}
SPEEDS = Speeds(probe=1.0, start=8.0, epoch=0.0, tasks=TASKS, methods=METHODS, passes={})


class Clock:
    now = 0.0

    def __call__(self):
        return self.now


def config(tmp_path, seed=0, env=CIRCLE, algo="cpo", **settings):
    sizes = {"total_steps": 1000, "steps_per_epoch": 200, "out": str(tmp_path)}
    return make_config({**sizes, "env": env, "algo": algo, "seed": seed, **settings})


def forecast(todo, seen=(), machine=1.0, crowd=1.0, clock=lambda: 0.0):
    return Forecast(todo, seen, crowd, SPEEDS, lambda: machine, clock)


def row(epoch, fps):
    return {"Train/Epoch": float(epoch), "TotalEnvSteps": 200.0 * (epoch + 1), "Time/FPS": fps}


def leave(cfg, epochs, fps, saved=None):
    """Leave a run folder behind: so many epochs at a speed (or speeds), a checkpoint of so many."""
    (cfg.path / "checkpoints").mkdir(parents=True)
    (cfg.path / "config.json").write_text(json.dumps({"config": cfg.to_dict()}))
    (cfg.path / "checkpoints" / f"epoch-{epochs if saved is None else saved:08d}.safetensors").touch()
    rows = [row(epoch, fps[epoch] if isinstance(fps, list) else fps) for epoch in range(epochs)]
    lines = [",".join(rows[0]), *(",".join(map(str, each.values())) for each in rows)]
    (cfg.path / "progress.csv").write_text("\n".join(lines) + "\n")


def simulated(running, waiting, slots):
    """The second in which the last run ends, found by living through every second."""
    now, queue, going = 0, list(waiting), list(running)
    while queue or going:
        while queue and len(going) < slots:
            going.append(queue.pop(0))
        going = [left - 1 for left in going if left > 1]
        now += 1
    return now


whole = st.integers(1, 30)


@given(st.integers(1, 5).flatmap(
    lambda slots: st.tuples(st.just(slots), st.lists(whole, max_size=slots), st.lists(whole, max_size=12))
))  # fmt: skip
@example((2, [], [3, 3, 30]))
def test_the_end_is_that_of_a_simulation(case):
    slots, running, waiting = case
    found = finish_after(running, waiting, slots)
    assert found == simulated(running, waiting, slots)
    work, longest = sum(running + waiting), max(running + waiting, default=0)
    assert max(work / slots, longest) <= found <= work / slots + (1 - 1 / slots) * longest + 1e-9


def test_nothing_seen_counts_as_expected_on_this_machine(tmp_path):
    runs = [config(tmp_path), config(tmp_path, env=GOAL), config(tmp_path, env=GOAL, algo="evo")]
    once, slow = forecast(runs), forecast(runs, machine=3.0, crowd=2.0)
    for cfg, seconds in zip(runs, (10.0, 20.0, 30.0), strict=True):
        assert once.seconds(cfg) == pytest.approx(8.0 + seconds)
        assert slow.seconds(cfg) == pytest.approx(6.0 * (8.0 + seconds))
    assert once.left([], runs, 1) == pytest.approx(84.0)
    assert once.left([], runs, 2) == pytest.approx(18.0 + 38.0)
    assert forecast(runs, crowd=0.5).left([], runs, 2) == pytest.approx(18.0 + 38.0)  # a core to spare


def test_a_finished_run_tells_about_its_like_and_a_begun_one_has_less_to_do(tmp_path):
    done, begun, new = (config(tmp_path, seed) for seed in range(3))
    other = config(tmp_path, env=GOAL)
    leave(done, 5, fps=50.0)
    leave(begun, 4, fps=25.0, saved=3)  # the fourth epoch is in the log, but not in the checkpoint
    known = forecast([begun, new, other], [done, begun, new, other], machine=99.0)
    # Of seven epochs after a first one four took twice as long as expected, three four times as long.
    assert known.seconds(begun) == pytest.approx(2 * 8.0 + 400 / 25.0)
    assert known.seconds(new) == pytest.approx(2 * 8.0 + 1000 / 50.0)
    assert known.seconds(other) == pytest.approx(2 * (8.0 + 1000 * 0.02))


def test_the_speed_of_others_corrects_the_expectation(tmp_path):
    done, new = config(tmp_path), config(tmp_path, env=GOAL, algo="evo")
    leave(done, 5, fps=[1.0, 20.0, 20.0, 20.0, 20.0])
    assert forecast([new], [done], machine=99.0).seconds(new) == pytest.approx(5.0 * (8.0 + 30.0))


def test_a_runs_own_speed_comes_first_then_that_of_its_folder(tmp_path):
    first, second = config(tmp_path / "wide"), config(tmp_path / "wide", seed=1)
    far = config(tmp_path / "narrow")
    new = forecast([first, second, far])
    for cfg in (first, far):
        new.started(cfg)
    for epoch in (0, 1, 2):
        new.row(first, row(epoch, 10.0))
        new.row(far, row(epoch, 40.0))
    assert new.seconds(first) == pytest.approx(400 / 10.0)
    assert new.seconds(far) == pytest.approx(400 / 40.0)
    waits = new.seconds(second)
    assert waits == pytest.approx(1000 / 10.0 + 8.0 * (10.0 + 2.5) / 2)


def test_a_machine_that_sleeps_does_no_harm_and_a_slower_one_is_noticed(tmp_path):
    cfg = config(tmp_path, total_steps=200_000)
    new = forecast([cfg])
    new.started(cfg)
    for epoch in range(2 * RECENT):
        new.row(cfg, row(epoch, 0.001 if epoch % 3 == 1 else 100.0))
    assert new.seconds(cfg) == pytest.approx((200_000 - 400 * RECENT) / 100.0)
    for epoch in range(2 * RECENT, 3 * RECENT):
        new.row(cfg, row(epoch, 50.0))
    assert new.seconds(cfg) == pytest.approx((200_000 - 600 * RECENT) / 50.0)


def test_time_goes_on_between_epochs_but_not_past_the_one_that_is_due(tmp_path):
    cfg, clock = config(tmp_path), Clock()
    new = forecast([cfg], clock=clock)
    clock.now = 100.0
    assert new.seconds(cfg) == pytest.approx(18.0)  # it waits
    new.started(cfg)
    clock.now = 105.0
    assert new.seconds(cfg) == pytest.approx(13.0)
    clock.now = 1000.0
    assert new.seconds(cfg) == pytest.approx(8.0)  # the first epoch must be near
    new.row(cfg, row(0, 1.0))
    new.row(cfg, row(1, 100.0))
    clock.now = 1000.5
    assert new.seconds(cfg) == pytest.approx(5.5)
    clock.now = 2000.0
    assert new.seconds(cfg) == pytest.approx(4.0)
    new.row(cfg, row(4, 100.0))
    assert new.seconds(cfg) == 0.0


def test_a_lost_run_goes_back_to_its_checkpoint(tmp_path):
    cfg = config(tmp_path)
    new = forecast([cfg])
    new.started(cfg)
    for epoch in range(4):
        new.row(cfg, row(epoch, 100.0))
    assert new.seconds(cfg) == pytest.approx(2.0)
    leave(cfg, 4, fps=100.0, saved=2)
    new.lost(cfg)
    assert new.seconds(cfg) == pytest.approx(6.0 + 8.0)


def test_nobody_knows_a_strange_task_until_it_has_run(tmp_path):
    strange, second = config(tmp_path, env="my.module:Task"), config(tmp_path, 1, env="my.module:Other")
    known = config(tmp_path)
    new = forecast([strange, second, known])
    assert new.seconds(strange) is None
    assert new.left([], [known, strange], 2) is None
    assert [new.known(cfg) for cfg in (strange, second, known)] == [False, False, True]
    new.started(strange)
    new.row(strange, row(1, 10.0))
    assert new.known(strange)
    assert not new.known(second)
    assert new.seconds(second) == pytest.approx(1000 / 10.0 + 8.0)  # while running, better than nothing
    other = replace(strange, algo=config(tmp_path, algo="evo").algo)
    assert new.seconds(other) == pytest.approx(1000 / 10.0 + 8.0)


@given(st.lists(st.tuples(st.sampled_from([CIRCLE, GOAL]), st.integers(1, 20)), min_size=1, max_size=8),
       st.integers(1, 3), st.floats(0.2, 5.0))  # fmt: skip
def test_a_whole_grid_ends_when_it_was_said(tmp_path_factory, kinds, slots, machine):
    """Runs of a machine that behaves: at every event the end that is told is the end that comes."""
    tmp_path = tmp_path_factory.getbasetemp() / "never written"
    todo = [config(tmp_path, seed, env, total_steps=200 * epochs) for seed, (env, epochs) in enumerate(kinds)]
    clock = Clock()
    new = forecast(todo, machine=machine, clock=clock)
    told = [new.left([], todo, slots)]
    waiting, going = list(todo), []  # (time of the next event, run, epochs done)
    while waiting or going:
        while waiting and len(going) < slots:
            cfg = waiting.pop(0)
            new.started(cfg)
            each = 200 * SPEEDS.step(cfg) * machine
            going.append((clock.now + 8.0 * machine + each, cfg, 0))
        event = min(going, key=lambda item: item[0])
        going.remove(event)
        clock.now, cfg, epoch = event
        each = 200 * SPEEDS.step(cfg) * machine
        new.row(cfg, row(epoch, 200 / each))
        if epoch + 1 < cfg.epochs:
            going.append((clock.now + each, cfg, epoch + 1))
        told.append(clock.now + new.left([item[1] for item in going], waiting, slots))
    assert told == pytest.approx([clock.now] * len(told))
