import json
import os

import numpy as np
import pytest
from tests.report.made_up import write_run

from steingate.errors import InputError, RunError
from steingate.report.groups import group_runs, mean_and_spread
from steingate.report.loading import flat, inside, load_run, load_runs, require_runs, run_folders
from steingate.report.stats import window_means


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
    "progress is binary": "damaged: progress.csv or episodes.csv",
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


def test_groups_differ_in_more_than_their_seed(tmp_path):
    write_run(tmp_path / "a", seed=1)
    write_run(tmp_path / "a", seed=0)
    write_run(tmp_path / "b", seed=0, preset="certified", certificate={"budget": 0.2})
    write_run(tmp_path / "a", algo="cpo")
    write_run(tmp_path / "a", algo="home-made", env="Other-v3")
    groups = group_runs(load_runs([tmp_path])[0])
    assert [(group.env, group.label, group.seeds) for group in groups] == [
        ("Other-v3", "home-made", [0]),
        ("SafetyPointGoal1-v0", "cpo", [0]),
        ("SafetyPointGoal1-v0", "steingate (preset certified, budget 0.2)", [0]),
        ("SafetyPointGoal1-v0", "steingate (preset released, budget default)", [0, 1]),
    ]


def test_options_without_effect_do_not_part_runs():
    config = {"algo": "cpo", "seed": 3, "threads": 2, "out": "x", "certificate": {"budget": 0.1}}
    assert flat(config) == {"algo": "cpo", "certificate.budget": 0.1}


def test_means_over_seeds_of_different_length(tmp_path):
    for seed, epochs in ((0, 6), (1, 4), (2, 6)):
        write_run(tmp_path, seed=seed, epochs=epochs, planned=6)
    (group,) = group_runs(load_runs([tmp_path])[0])
    steps, mean, spread = mean_and_spread(group, "Metrics/EpRet")
    columns = [run.progress["Metrics/EpRet"] for run in group.runs]
    assert steps.tolist() == [1000.0 * k for k in range(1, 7)]
    np.testing.assert_allclose(mean[:4], np.mean([c[:4] for c in columns], axis=0))
    np.testing.assert_allclose(mean[4:], np.mean([columns[0][4:], columns[2][4:]], axis=0))
    np.testing.assert_allclose(spread[:4], np.std([c[:4] for c in columns], axis=0, ddof=1))
    one = group_runs(load_runs([group.runs[0].path])[0])[0]
    assert np.isnan(mean_and_spread(one, "Metrics/EpRet")[2]).all()
