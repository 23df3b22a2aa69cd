import json
import os

import numpy as np
import pytest
from steingate.report.loading import inside, load_run, load_runs, require_runs, run_folders, setting
from steingate.report.stats import window_means
from tests.report.made_up import write_run

from steingate.errors import InputError, RunError


def test_a_run_is_read_whole(tmp_path):
    folder = write_run(tmp_path, epochs=30, seed=3)
    run = load_run(folder)
    assert (run.algo, run.env, run.seed, run.limit) == ("steingate", "SafetyPointGoal1-v0", 3, 25.0)
    assert (run.epochs, run.planned, run.complete, run.steps) == (30, 30, True, 30_000)
    assert len(run.episodes["cost"]) == 120
    # What the log calls the mean of the last hundred episodes can be had from the episodes alone.
    again = window_means(run.episodes["cost"], run.episodes["epoch"], 30)
    np.testing.assert_allclose(again, run.progress["Metrics/EpCost"])


def test_a_run_still_being_written_is_read_up_to_its_last_whole_epoch(tmp_path):
    folder = write_run(tmp_path, epochs=5, planned=9)
    with open(folder / "episodes.csv", "a") as file:
        file.write("5,5250,1.0,2.0,250\n5,5500,1.0")
    with open(folder / "progress.csv", "a") as file:
        file.write("6000,5,1.0,")
    run = load_run(folder)
    assert (run.epochs, run.planned, run.complete) == (5, 9, False)
    assert run.episodes["epoch"].max() == 4


def spoil(folder, kind):
    if kind == "config is no JSON":
        (folder / "config.json").write_text("{")
    elif kind == "config is a list":
        (folder / "config.json").write_text("[]")
    elif kind == "config lacks a limit":
        record = json.loads((folder / "config.json").read_text())
        del record["config"]["cost_limit"]
        (folder / "config.json").write_text(json.dumps(record))
    elif kind == "limit is text":
        record = json.loads((folder / "config.json").read_text())
        record["config"]["cost_limit"] = "much"
        (folder / "config.json").write_text(json.dumps(record))
    elif kind == "no progress":
        (folder / "progress.csv").unlink()
    elif kind == "empty progress":
        (folder / "progress.csv").write_text("")
    elif kind == "progress is binary":
        (folder / "progress.csv").write_bytes(bytes(range(256)) * 9 + b"\n")
    elif kind == "progress lacks a column":
        text = (folder / "progress.csv").read_text()
        (folder / "progress.csv").write_text(text.replace("Gate/Mode", "Gate/Mood"))
    elif kind == "a row of progress is torn":
        lines = (folder / "progress.csv").read_text().splitlines()
        lines[4] = lines[4][:3]
        (folder / "progress.csv").write_text("\n".join(lines) + "\n")
    elif kind == "a mode is unknown":
        lines = (folder / "progress.csv").read_text().splitlines()
        cells = lines[4].split(",")
        cells[6] = "7"
        lines[4] = ",".join(cells)
        (folder / "progress.csv").write_text("\n".join(lines) + "\n")
    elif kind == "an episode is text":
        with open(folder / "episodes.csv", "a") as file:
            file.write("4,x,y,z,w\n")
    elif kind == "an episode is infinite":
        with open(folder / "episodes.csv", "a") as file:
            file.write("19,20000,1.0,inf,9\n")
    elif kind == "progress is a folder":
        (folder / "progress.csv").unlink()
        (folder / "progress.csv").mkdir()


DAMAGE = {
    "config is no JSON": "config.json is damaged",
    "config is a list": "config.json is not a configuration",
    "config lacks a limit": "cost_limit is None",
    "limit is text": "cost_limit is 'much'",
    "no progress": "no finished epoch yet",
    "empty progress": "no finished epoch yet",
    "progress is binary": "progress.csv is damaged: it is not a table",
    "progress lacks a column": "no column Gate/Mode",
    "a row of progress is torn": "damaged in the row of epoch 3",
    "a mode is unknown": "damaged in the row of epoch 3",
    "an episode is text": "episodes.csv is damaged",
    "an episode is infinite": "episodes.csv is damaged in the row of episode 80",
    "progress is a folder": "cannot be read",
}


@pytest.mark.parametrize("kind", DAMAGE)
def test_a_damaged_run_is_named_and_the_others_are_read(tmp_path, kind):
    write_run(tmp_path, seed=0)
    bad = write_run(tmp_path, seed=1)
    spoil(bad, kind)
    runs, skipped = load_runs([tmp_path])
    assert [run.seed for run in runs] == [0]
    assert [item.path for item in skipped] == [bad]
    assert DAMAGE[kind] in skipped[0].reason
    assert "\n" not in skipped[0].reason


def test_links_out_of_the_folders_are_refused(tmp_path):
    secret = tmp_path / "secret.csv"
    secret.write_text("a,b\n1,2\n")
    runs = tmp_path / "runs"
    folder = write_run(runs)
    (folder / "episodes.csv").unlink()
    os.symlink(secret, folder / "episodes.csv")
    with pytest.raises(RunError, match="leads out of the run folders"):
        load_run(folder, runs)
    assert not inside(folder / "episodes.csv", runs)
    loop = tmp_path / "loop"
    os.symlink(loop, loop)
    assert not inside(loop / "x", runs)


def test_a_folder_may_itself_be_reached_through_a_link(tmp_path):
    folder = write_run(tmp_path / "elsewhere")
    os.symlink(folder, tmp_path / "shortcut")
    assert [run.epochs for run in load_runs([tmp_path / "shortcut"])[0]] == [20]


def test_runs_count_once(tmp_path):
    folder = write_run(tmp_path / "a")
    assert len(run_folders([tmp_path, folder, tmp_path / "a"])) == 1
    write_run(tmp_path / "b")
    runs, skipped = load_runs([tmp_path])
    assert len(runs) == 1
    assert str(folder) in skipped[0].reason
    assert "counted once" in skipped[0].reason


def test_paths_that_are_no_folders_are_named(tmp_path):
    with pytest.raises(InputError, match=r"no folder .*nowhere"):
        require_runs([tmp_path, tmp_path / "nowhere"])


def test_means_are_over_a_hundred_episodes_whatever_the_log_averages(tmp_path):
    run = load_run(write_run(tmp_path, epochs=40, window=5))
    for name, column in (("return", "Metrics/EpRet"), ("cost", "Metrics/EpCost")):
        values = run.episodes[name]
        expected = [values[max(4 * epoch - 100, 0) : 4 * epoch].mean() for epoch in range(1, 41)]
        np.testing.assert_allclose(run.recent[name], expected)
        assert not np.allclose(run.recent[name], run.progress[column])
    assert setting(run, "window") == 5


@pytest.mark.parametrize(("mode", "case", "shown"), [(1, 0, 2), (1, 1, 1), (1, 4, 0), (0, 0, 0), (1, "", 1)])
def test_modes_are_what_the_steps_did(tmp_path, mode, case, shown):
    folder = write_run(tmp_path, epochs=2)
    lines = [line.split(",") for line in (folder / "progress.csv").read_text().splitlines()]
    lines[0].append("Step/Case")
    for cells in lines[1:]:
        cells[6] = str(mode)
        cells.append(str(case))
    (folder / "progress.csv").write_text("\n".join(map(",".join, lines)) + "\n")
    assert load_run(folder).modes.tolist() == [shown, shown]
