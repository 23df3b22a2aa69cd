"""Run folders and archives read back, damaged ones named, and runs grouped by their settings."""

import json
import lzma
import os

import numpy as np
import pytest
from tests.report.made_up import set_columns, write_run

from steingate.algorithms import ALGORITHMS
from steingate.cli import main
from steingate.errors import InputError, RunError
from steingate.report.archive import read_archive, write_archive
from steingate.report.groups import group_runs
from steingate.report.load import load_run, load_runs, require_runs, run_files, to_toml
from steingate.report.summary import load_report
from steingate.report.tables import full_table
from steingate.runs import RunFolder, write_certification
from steingate.training.config import make_config


def test_recent_means_are_of_100_episodes_whatever_the_log_averages(tmp_path):
    run = load_run(write_run(tmp_path, epochs=40, window=5))
    for name, column in (("return", "Metrics/EpRet"), ("cost", "Metrics/EpCost")):
        values = run.episodes[name]
        expected = [values[max(4 * epoch - 100, 0) : 4 * epoch].mean() for epoch in range(1, 41)]
        np.testing.assert_allclose(run.recent[name], expected)
        assert not np.allclose(run.recent[name], run.progress[column])


def test_unfinished_run_is_read_up_to_its_last_complete_epoch(tmp_path):
    folder = write_run(tmp_path, epochs=5, planned=9)
    with open(folder / "episodes.csv", "a") as file:
        file.write("5,5250,1.0,2.0,250\n5,5500,1.0")
    with open(folder / "progress.csv", "a") as file:
        file.write("6000,5,1.0,")
    run = load_run(folder)
    assert (run.n_epochs, run.planned_epochs, run.complete) == (5, 9, False)
    assert run.episodes["epoch"].max() == 4


def edit_config(folder, **entries):
    record = json.loads((folder / "config.json").read_text())
    record["config"] |= entries
    (folder / "config.json").write_text(json.dumps(record))


def append(folder, name, line):
    with open(folder / name, "a") as file:
        file.write(line)


def deep_list(depth):
    return [deep_list(depth - 1)] if depth else []


DAMAGE = {
    "config.json is damaged": lambda run: (run / "config.json").write_text("{"),
    "cost_limit is None": lambda run: edit_config(run, cost_limit=None),
    "seed is out of range": lambda run: edit_config(run, seed=10**400),
    "nested too deeply": lambda run: edit_config(run, hidden=deep_list(400)),
    "no finished epoch yet": lambda run: (run / "progress.csv").unlink(),
    "no column Metrics/EpRet": lambda run: (run / "progress.csv").write_text("TotalEnvSteps\n1\n"),
    "is not a table": lambda run: (run / "progress.csv").write_bytes(bytes(range(256)) * 9 + b"\n"),
    "row of epoch 0": lambda run: set_columns(run, TotalEnvSteps=[""] * 20),
    "every row needs numbers": lambda run: append(run, "episodes.csv", "4,x,y,z,w\n"),
    "in the row of episode 80": lambda run: append(run, "episodes.csv", "19,20000,1.0,inf,9\n"),
}


@pytest.mark.parametrize("reason", DAMAGE)
def test_damaged_run_is_named_and_the_others_are_read(tmp_path, reason):
    write_run(tmp_path, seed=0)
    bad = write_run(tmp_path, seed=1)
    DAMAGE[reason](bad)
    runs, skipped = load_runs([tmp_path])
    assert [run.seed for run in runs] == [0]
    assert [item.path for item in skipped] == [bad]
    assert reason in skipped[0].reason
    assert "\n" not in skipped[0].reason


def test_runs_count_once(tmp_path):
    folder = write_run(tmp_path / "a")
    assert len(run_files([tmp_path, folder, tmp_path / "a"])) == 1
    write_run(tmp_path / "b")
    runs, skipped = load_runs([tmp_path])
    assert len(runs) == 1
    assert f"configuration and seed of {folder}" in skipped[0].reason
    os.symlink(folder, tmp_path / "link")
    assert [run.n_epochs for run in load_runs([tmp_path / "link"])[0]] == [20]
    with pytest.raises(InputError, match=r"no folder or archive .*nowhere"):
        require_runs([tmp_path, tmp_path / "nowhere"])


# Archives


@pytest.fixture
def folders(tmp_path):
    for algo in ("cpo", "steingate"):
        for seed in (0, 1):
            folder = write_run(tmp_path / "runs" / "nested", algo=algo, seed=seed)
    write_certification(RunFolder(folder), {"certified": False, "sentence": "None is."})
    return tmp_path / "runs"


def test_archived_runs_equal_the_folders(folders, tmp_path):
    runs = load_runs([folders])[0]
    write_archive(runs, [folders], tmp_path / "all.jsonl.xz")
    again, skipped = load_runs([tmp_path / "all.jsonl.xz"])
    assert not skipped
    for run, other in zip(runs, again, strict=True):
        assert other.path == tmp_path / "all.jsonl.xz" / run.path.relative_to(folders)
        assert other.config == run.config | {"out": "runs"}
        assert other.certification == run.certification
        for table, copy in ((run.progress, other.progress), (run.episodes, other.episodes)):
            assert list(table) == list(copy)
            for name in table:
                np.testing.assert_array_equal(table[name], copy[name])
    assert again[-1].certification["sentence"] == "None is."
    first, second = (full_table(load_report([root]).summaries) for root in (folders, tmp_path / "all.jsonl.xz"))
    assert first == second


def test_equal_runs_give_equal_files_and_rounding_is_stable(folders, tmp_path):
    runs = load_runs([folders])[0]
    for name in ("a", "b"):
        write_archive(runs, [folders], tmp_path / f"{name}.jsonl.xz", digits=4)
    archive = tmp_path / "a.jsonl.xz"
    assert archive.read_bytes() == (tmp_path / "b.jsonl.xz").read_bytes()
    write_archive(load_runs([archive])[0], [archive], tmp_path / "c.jsonl.xz", digits=4)
    assert archive.read_bytes() == (tmp_path / "c.jsonl.xz").read_bytes()
    for run, other in zip(runs, load_runs([archive])[0], strict=True):
        np.testing.assert_array_equal(other.episodes["cost"], run.episodes["cost"])
        np.testing.assert_allclose(other.episodes["return"], run.episodes["return"], rtol=5e-4)
    assert str(folders).encode() not in lzma.decompress(archive.read_bytes())


def test_two_runs_with_one_name_are_refused(folders, tmp_path):
    write_run(tmp_path / "more" / "nested", algo="cpo", cost_limit=3.0)
    roots = [folders, tmp_path / "more"]
    with pytest.raises(InputError, match="would both be archived as nested/cpo"):
        write_archive(load_runs(roots)[0], roots, tmp_path / "x.jsonl.xz")
    with pytest.raises(InputError, match=r"end the name with \.jsonl\.xz"):
        write_archive([], [], tmp_path / "x.csv")
    with pytest.raises(InputError, match="there is no folder"):
        write_archive([], [], tmp_path / "no" / "x.jsonl.xz")


def entry(**changes):
    table = {"epoch": [0], "step": [9], "return": [1], "cost": [2], "length": [3]}
    return {"run": "r", "config": {}, "certification": None, "progress": {}, "episodes": table} | changes


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ([], "is not an archive"),
        (["x"], "is not JSON"),
        ([["["] * 100_000], "is not JSON"),
        ([None, 7], "one of its runs"),
        ([None, entry(progress={"a": [1], "b": [1, 2]})], "different lengths"),
        ([None, entry(progress={"a": [10**400]})], "one of its runs"),
        ([None, entry(episodes={"epoch": [0]})], "lack a column"),
    ],
)
def test_damaged_archives_are_named(tmp_path, content, reason):
    header = {"format": "steingate-archive", "version": 1}
    lines = [
        "".join(line) if isinstance(line, list) else line if line == "x" else json.dumps(line or header)
        for line in content
    ]
    path = tmp_path / "a.jsonl.xz"
    path.write_bytes(lzma.compress("".join(f"{line}\n" for line in lines).encode()))
    with pytest.raises(RunError, match=reason):
        list(read_archive(path))


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (lzma.compress(b"x" * 100_000)[:-20], "ends too early"),
        (lzma.compress(b'{"format"'), "last line has no end"),
        (lzma.compress(bytes(80 << 20), preset=0), "larger than any archive"),
    ],
)
def test_broken_compression_is_named_in_bounded_memory(tmp_path, content, reason):
    (tmp_path / "a.jsonl.xz").write_bytes(content)
    runs, skipped = load_runs([tmp_path])
    assert not runs
    assert reason in skipped[0].reason


def test_archive_command(folders, tmp_path, capsys):
    write_run(folders, algo="evo", epochs=3, planned=9)
    out = str(tmp_path / "all.jsonl.xz")
    assert main(["archive", str(folders), "--out", out]) == 0
    said = capsys.readouterr()
    assert said.out.startswith("4 runs, 0.0 MB in ")
    assert "evo/SafetyPointGoal1-v0/seed-0: 3 of 9 epochs" in said.err
    assert main(["archive", str(folders), "--out", out, "--all"]) == 0
    assert capsys.readouterr().out.startswith("5 runs")
    assert main(["report", out, "--out", str(tmp_path / "page.html")]) == 0
    assert main(["archive", str(folders / "evo"), "--out", out]) == 2
    assert "no finished run" in capsys.readouterr().err


# Settings and groups


def grouped(*roots):
    return group_runs(load_runs(roots)[0])


@pytest.mark.parametrize("algo", ALGORITHMS)
def test_toml_repeats_the_run(tmp_path, algo):
    given = {"algo": algo, "seed": 3, "hidden": [8, 4], "env_options": {"max_episode_steps": 9}}
    if "steingate" in algo:
        given["certificate"] = {"budget": 0.2}
    stored = json.loads(json.dumps(make_config(given).to_dict()))
    (tmp_path / "run.toml").write_text(to_toml(stored))
    assert json.loads(json.dumps(make_config({}, tmp_path / "run.toml").to_dict())) == stored


def test_groups_differ_in_more_than_their_seed(tmp_path):
    write_run(tmp_path / "a", seed=1)
    write_run(tmp_path / "a", seed=0, env="steingate/SafetyPointGoal1-v0", cost_limit=25)
    write_run(tmp_path / "b", algorithm={"variant": "published", "preset": "corrected", "certificate": {"budget": 0.2}})
    write_run(tmp_path / "a", algo="cpo")
    write_run(tmp_path / "a", algo="home\nmade", env="Other-v3")
    found = [(group.env, group.label, [run.seed for run in group.runs]) for group in grouped(tmp_path)]
    assert found == [
        ("Other-v3", "home?made", [0]),
        ("SafetyPointGoal1-v0", "cpo", [0]),
        ("SafetyPointGoal1-v0", "steingate (preset corrected, hidden default, budget 0.2)", [0]),
        ("SafetyPointGoal1-v0", "steingate (preset released, hidden [64, 64], budget default)", [0, 1]),
    ]


def test_means_over_seeds_of_different_length(tmp_path):
    for seed, epochs in ((0, 6), (1, 4), (2, 6)):
        write_run(tmp_path, seed=seed, epochs=epochs, planned=6)
    (group,) = grouped(tmp_path)
    steps, mean, std = group.mean_and_std("return")
    columns = [run.progress["Metrics/EpRet"] for run in group.runs]
    assert steps.tolist() == [1000.0 * k for k in range(1, 7)]
    np.testing.assert_allclose(mean[:4], np.mean([c[:4] for c in columns], axis=0))
    np.testing.assert_allclose(mean[4:], np.mean([columns[0][4:], columns[2][4:]], axis=0))
    np.testing.assert_allclose(std[:4], np.std([c[:4] for c in columns], axis=0, ddof=1))
    (one,) = grouped(group.runs[0].path)
    assert np.isnan(one.mean_and_std("return")[2]).all()
