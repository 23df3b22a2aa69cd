import io
from dataclasses import replace
from datetime import datetime

import pytest
from rich.console import Console

from steingate.experiments.expected import Speeds
from steingate.experiments.forecast import Forecast
from steingate.experiments.live import LiveTable
from steingate.training.config import make_config


@pytest.fixture
def runs(tmp_path):
    first = make_config(
        {"env": "A", "algo": "cpo", "total_steps": 1000, "steps_per_epoch": 200, "out": str(tmp_path)}
    )
    return [first, replace(first, seed=1), replace(first, env="B", out=str(tmp_path / "limit-5"))]


def write(cfg, epoch, fps, cost=30.0):
    cfg.path.mkdir(parents=True, exist_ok=True)
    header = "Train/Epoch,TotalEnvSteps,Metrics/EpRet,Metrics/EpCost,Gate/Mode,Time/FPS\n"
    rows = [f"{each},{200 * (each + 1)},1.5,{cost},2,{fps}\n" for each in range(epoch + 1)]
    (cfg.path / "progress.csv").write_text(header + "".join(rows))


def text(drawn):
    console = Console(file=io.StringIO(), width=160)
    console.print(drawn)
    return console.file.getvalue()


def plain(tmp_path, runs, done=0, slots=2, tasks=None):
    console = Console(file=io.StringIO(), width=200)
    return table(tmp_path, runs, done, slots, console, tasks), console.file


def table(tmp_path, runs, done, slots, console, tasks=None):
    """A table whose clock stands still at half past eleven at night."""
    known = {"SafetyPointCircle1-v0": 10.0, **(tasks or {})}
    speeds = Speeds(probe=1.0, start=4.0, epoch=0.0, tasks=known, methods={"cpo": 10.0}, passes={})
    forecast = Forecast(runs, speeds=speeds, machine=lambda: 1.0, clock=lambda: 0.0)
    return LiveTable(
        "mine", tmp_path, runs, done, slots, forecast, console, lambda: datetime(2030, 5, 31, 23, 30)
    )


def test_the_end_is_told_as_a_time_left_and_a_time_of_day(tmp_path, runs):
    progress, _ = plain(tmp_path, runs)
    assert progress.summary([]) == "mine: 0 of 3 finished   0 running   3 waiting   ? left"
    progress.event(runs[0], "started")
    write(runs[0], 0, fps=1.0)
    progress.update(runs[:1])
    assert progress.summary(runs[:1]).endswith("? left")  # the first epoch compiles
    write(runs[0], 1, fps=1.0)
    progress.update(runs[:1])
    # 600 s left here; the two that wait take 1000 s and their start each, one of them after these 600 s.
    assert progress.summary(runs[:1]) == (
        "mine: 0 of 3 finished   1 running   2 waiting   26:44 left, done at 23:56"
    )
    progress.event(runs[1], "started")
    progress.event(runs[2], "started")
    write(runs[2], 1, fps=0.1)
    progress.update(runs)
    assert progress.summary(runs) == (
        "mine: 0 of 3 finished   3 running   0 waiting   1:40:00 left, done at 2030-06-01 01:10"
    )


def test_before_the_first_epoch_the_expectation_counts(tmp_path, runs):
    progress, _ = plain(tmp_path, runs, tasks={"A": 20e6, "B": 5e6})
    progress.event(runs[0], "started")
    progress.update(runs[:1])
    # 20,000 s for each run on A, 5000 s for the one on B after them, 4 s for each start.
    assert progress.summary(runs[:1]).endswith("6:56:48 left, done at 2030-06-01 06:26")
    progress.event(runs[0], "lost, to be taken up again: killed")
    assert "0 running   3 waiting" in progress.summary([])


def test_the_screen_has_a_line_for_each_run(tmp_path, runs):
    progress, _ = plain(tmp_path, runs)
    write(runs[0], 1, fps=1234.0)
    progress.update(runs)
    lines = text(progress.screen(runs)).splitlines()
    assert len(lines) == 4
    for word in ("cpo A seed 0", "40%", "1.50", "30.00/25", "recover", "1,234"):
        assert word in lines[1]
    assert "starting" in lines[2]
    assert lines[3].startswith("limit-5: cpo B seed 0")


@pytest.mark.parametrize(
    ("mode", "case", "word"),
    [(1, 0, "recover"), (1, 2, "balance"), (1, 4, "improve"), (0, 0, "improve"), (9, 0, "starting")],
)
def test_the_mode_is_what_the_step_did(tmp_path, runs, mode, case, word):
    monitor, _ = plain(tmp_path, runs)
    runs[0].path.mkdir(parents=True)
    (runs[0].path / "progress.csv").write_text(f"Train/Epoch,Gate/Mode,Step/Case\n1,{mode},{case}\n")
    monitor.update(runs[:1])
    assert word in text(monitor.screen(runs[:1])).splitlines()[1]


def test_plain_lines_off_a_terminal(tmp_path, runs):
    progress, file = plain(tmp_path, runs, done=1)
    with progress:
        for run in runs:
            progress.event(run, "started")
        progress.event(runs[0], "finished")
        progress.event(runs[1], "lost, to be taken up again: killed")
        progress.event(runs[1], "goes on")
        progress.event(runs[2], "failed: It is [bad].")
    assert file.getvalue().splitlines() == [
        "cpo A seed 0 started",
        "cpo A seed 1 started",
        "limit-5: cpo B seed 0 started",
        "cpo A seed 0 finished (2 of 4)",
        "cpo A seed 1 lost, to be taken up again: killed",
        "cpo A seed 1 goes on",
        "limit-5: cpo B seed 0 failed: It is [bad]. (3 of 4)",
    ]


def test_a_terminal_shows_one_screen_and_every_failure(tmp_path, runs):
    console = Console(file=io.StringIO(), width=160, force_terminal=True, highlight=False)
    with table(tmp_path, runs, 0, 2, console) as progress:
        progress.event(runs[0], "started")
        write(runs[0], 2, fps=50.0)
        progress.update(runs[:1])
        progress.event(runs[1], "failed: It is bad.")
    shown = console.file.getvalue()
    assert "60%" in shown
    assert "cpo A seed 1 failed: It is bad." in shown
    assert "cpo A seed 0 started" not in shown
