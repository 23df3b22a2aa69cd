import json
import os
from dataclasses import replace

import pytest
from tests.training.runs_of_probes import tiny

from steingate.algorithms.common.backend import configure
from steingate.errors import InputError, RunError
from steingate.experiments.folders import Standing, last_row, recent_rows, standing
from steingate.runs import read_progress
from steingate.training.loop import train

configure()


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    cfg = tiny(tmp_path_factory.mktemp("runs"), total_steps=320)
    train(cfg, quiet=True)
    return cfg


def test_finished_begun_and_new(run, tmp_path):
    assert standing(run) == Standing(True, 4, True)
    assert standing(replace(run, seed=1)) == Standing(False, 0, False)
    begun = replace(run, out=str(tmp_path))
    begun.path.mkdir(parents=True)
    (begun.path / "config.json").write_bytes((run.path / "config.json").read_bytes())
    assert standing(begun) == Standing(True, 0, False)
    (begun.path / "checkpoints").mkdir()
    (begun.path / "checkpoints" / "epoch-00000002.safetensors").touch()
    assert standing(begun) == Standing(True, 2, False)


def test_what_leaves_results_untouched_may_differ(run):
    assert standing(replace(run, threads=1, overlap=False, checkpoint_every=7)).finished


@pytest.mark.parametrize(
    "change", [{"total_steps": 640}, {"cost_limit": 5.0}, {"certificate": {"budget": 0.3}}]
)
def test_a_folder_with_another_run_is_refused(run, change):
    (name,) = change
    with pytest.raises(InputError, match=f"holds a run with {name} .* choose another --out"):
        standing(tiny(run.out, **{"total_steps": 320, **change}))


@pytest.mark.parametrize("text", ["{", "[]", "{}", json.dumps({"config": {"color": 3}})])
def test_a_damaged_folder_is_named(run, tmp_path, text):
    damaged = replace(run, out=str(tmp_path))
    damaged.path.mkdir(parents=True)
    (damaged.path / "config.json").write_text(text)
    with pytest.raises(RunError, match=r"config\.json"):
        standing(damaged)


def test_the_last_row_is_the_last_whole_one(run, tmp_path):
    columns = read_progress(run.path)
    row = last_row(run.path)
    assert row["Train/Epoch"] == 3
    assert all(row[name] == column[-1] for name, column in columns.items() if column[-1] is not None)
    text = (run.path / "progress.csv").read_text()
    (tmp_path / "progress.csv").write_text(text[:-5])
    assert last_row(tmp_path)["Train/Epoch"] == 2
    header = text.splitlines()[0]
    for nothing in ("", header, header + "\n", header + "\n0,1"):
        (tmp_path / "progress.csv").write_text(nothing)
        assert last_row(tmp_path) == {}
    assert last_row(tmp_path / "nowhere") == {}


def test_a_long_table_is_read_from_its_end(tmp_path):
    rows = "".join(f"{epoch},{'9' * 300}\n" for epoch in range(1000))
    (tmp_path / "progress.csv").write_text("Train/Epoch,x\n" + rows)
    assert last_row(tmp_path)["Train/Epoch"] == 999.0
    assert [row["Train/Epoch"] for row in recent_rows(tmp_path, 3)] == [997.0, 998.0, 999.0]
    most = [row["Train/Epoch"] for row in recent_rows(tmp_path, 1000)]
    assert len(most) > 200
    assert most == list(range(1000 - len(most), 1000))  # and none of half a row


def test_recent_rows_are_the_last_whole_ones(run, tmp_path):
    text = (run.path / "progress.csv").read_text()
    (tmp_path / "progress.csv").write_text(text[:-5])
    assert [row["Train/Epoch"] for row in recent_rows(tmp_path, 20)] == [0.0, 1.0, 2.0]
    assert recent_rows(tmp_path / "nowhere", 20) == []


@pytest.mark.parametrize("kind", ["pipe", "folder", "device", "odd header", "odd numbers"])
def test_a_table_that_is_none_shows_nothing_and_holds_nobody_up(tmp_path, kind):
    path = tmp_path / "progress.csv"
    if kind == "pipe":
        os.mkfifo(path)  # opening it for reading would wait for ever
    elif kind == "folder":
        path.mkdir()
    elif kind == "device":
        path.symlink_to("/dev/zero")
    elif kind == "odd header":
        path.write_bytes(b"a\rb,c\n1,2\n")
    else:
        path.write_text("Train/Epoch,TotalEnvSteps,x\nnan,inf,text\n")
    assert last_row(tmp_path) == {}
