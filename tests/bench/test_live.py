import io
from dataclasses import replace

import pytest
from rich.console import Console

from steingate.bench.live import LiveTable
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


def plain(tmp_path, runs, done=0, slots=2):
    console = Console(file=io.StringIO(), width=200)
    return LiveTable("mine", tmp_path, runs, done, slots, console), console.file


def test_time_left_is_the_work_over_the_slots_but_no_less_than_one_run(tmp_path, runs):
    progress, _ = plain(tmp_path, runs)
    progress.event(runs[0], "started")
    write(runs[0], 0, fps=1.0)
    progress.update(runs[:1])
    assert progress.seconds_left(runs[:1]) is None  # the first epoch compiles
    write(runs[0], 1, fps=100.0)
    progress.update(runs[:1])
    # 600 steps left here and twice 1000 waiting, at 100 steps a second on two slots.
    assert progress.seconds_left(runs[:1]) == pytest.approx((600 + 2000) / 100 / 2)
    progress.event(runs[1], "started")
    progress.event(runs[2], "started")
    write(runs[2], 1, fps=10.0)
    progress.update(runs)
    assert progress.seconds_left(runs) == pytest.approx(600 / 10)
    assert progress.summary(runs) == "mine: 0 of 3 finished   3 running   0 waiting   1:00 left"


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
    with LiveTable("mine", tmp_path, runs, 0, 2, console) as progress:
        progress.event(runs[0], "started")
        write(runs[0], 2, fps=50.0)
        progress.update(runs[:1])
        progress.event(runs[1], "failed: It is bad.")
    shown = console.file.getvalue()
    assert "60%" in shown
    assert "cpo A seed 1 failed: It is bad." in shown
    assert "cpo A seed 0 started" not in shown
