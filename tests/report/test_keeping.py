"""Small copies of runs say in every report what the runs say."""

import json
import lzma

import numpy as np
import pytest
from steingate.report.evidence import gather
from steingate.report.loading import load_run, load_runs, run_id
from steingate.report.report_tables import write_tables
from tests.report.made_up import write_run

from steingate.cli import main
from steingate.errors import InputError, RunError
from steingate.report.archive import keep_run, keep_runs, pack
from steingate.report.dashboard import Source
from steingate.storage.tables import read_episodes, read_progress, table_content


@pytest.fixture
def runs(tmp_path):
    for algo in ("cpo", "steingate"):
        for seed in (0, 1):
            write_run(tmp_path / "runs" / "nested", algo=algo, seed=seed)
    return tmp_path / "runs"


def test_a_kept_run_reads_like_the_run(runs, tmp_path):
    for run in load_runs([runs])[0]:
        kept = load_run(keep_run(run, tmp_path / "kept" / run.algo / str(run.seed)))
        assert kept.record == run.record | {"config": {**run.config, "out": "runs"}, "env_folder": None}
        np.testing.assert_array_equal(kept.modes, run.modes)
        np.testing.assert_array_equal(kept.episodes["cost"], run.episodes["cost"])
        np.testing.assert_array_equal(kept.episodes["epoch"], run.episodes["epoch"])
        np.testing.assert_allclose(kept.episodes["return"], run.episodes["return"], rtol=5e-4)
        np.testing.assert_array_equal(kept.recent["over"], run.recent["over"])
        assert set(kept.progress) <= set(run.progress)
        for name, cells in kept.progress.items():
            np.testing.assert_allclose(cells, run.progress[name], rtol=5e-4)


def test_tables_made_of_copies_are_those_of_the_runs(runs, tmp_path):
    found = gather([runs])
    keep_runs(found.runs, [runs], tmp_path / "kept")
    again = gather([tmp_path / "kept"])
    assert [run.path.relative_to(tmp_path / "kept") for run in again.runs] == [
        run.path.relative_to(runs) for run in found.runs
    ]
    write_tables(found, tmp_path / "a.md")
    write_tables(again, tmp_path / "b.md")
    first, second = ((tmp_path / name).read_text().split() for name in ("a.md", "b.md"))
    assert len(first) == len(second)
    # Returns are rounded to four digits, so a second decimal may differ by one.
    differ = [(a, b) for a, b in zip(first, second, strict=True) if a != b]
    assert all(abs(float(a.strip("[],")) - float(b.strip("[],"))) < 0.011 for a, b in differ)


def test_equal_runs_give_equal_files(runs, tmp_path):
    run = load_runs([runs])[0][0]
    one, two = keep_run(run, tmp_path / "one"), keep_run(run, tmp_path / "two")
    for file in one.iterdir():
        assert file.read_bytes() == (two / file.name).read_bytes()
    assert {file.name for file in one.iterdir()} == {"config.json", "episodes.csv.xz", "progress.csv.xz"}


def test_a_copy_of_a_copy_is_the_copy(runs, tmp_path):
    kept = load_run(keep_run(load_runs([runs])[0][0], tmp_path / "one"))
    again = keep_run(kept, tmp_path / "two")
    for file in kept.path.iterdir():
        assert file.read_bytes() == (again / file.name).read_bytes()


def test_the_verdict_goes_along(runs, tmp_path):
    run = load_runs([runs])[0][0]
    (run.path / "certification.json").write_text(json.dumps({"certified": False, "sentence": "None is."}))
    assert (
        json.loads((keep_run(run, tmp_path / "kept") / "certification.json").read_text())["sentence"]
        == "None is."
    )


def test_packed_cells():
    text = lzma.decompress(pack({"a": np.array([1.0, np.nan, 1e7]), "b": np.array([-6.12345, 0.0, 28461.7])}))
    assert text == b"a,b\n1,-6.123\n,0\n10000000,28460\n"


def test_a_whole_table_wins_over_a_packed_one(runs, tmp_path):
    run = load_runs([runs])[0][0]
    (run.path / "episodes.csv.xz").write_bytes(b"nothing")
    assert len(read_episodes(run.path)["cost"]) == len(run.episodes["cost"])


@pytest.mark.parametrize("content", [b"nothing", lzma.compress(b"epoch\n" * 1000)[:-20], b""])
def test_damaged_packed_tables_are_named(runs, tmp_path, content):
    kept = keep_run(load_runs([runs])[0][0], tmp_path / "kept")
    (kept / "progress.csv.xz").write_bytes(content)
    with pytest.raises(RunError, match=r"progress\.csv\.xz is damaged"):
        read_progress(kept)


def test_two_runs_never_take_one_place(runs, tmp_path):
    write_run(tmp_path / "more" / "nested", algo="cpo", seed=0, hidden=[32])
    found = load_runs([runs, tmp_path / "more"])[0]
    with pytest.raises(InputError, match="would both be kept"):
        keep_runs(found, [runs, tmp_path / "more"], tmp_path / "kept")
    with pytest.raises(InputError, match="in itself"):
        keep_run(found[0], found[0].path)


def test_the_command(runs, tmp_path, capsys):
    write_run(runs, algo="evo", epochs=3, planned=9)
    assert main(["archive", str(runs), "--out", str(tmp_path / "kept")]) == 0
    said = capsys.readouterr()
    assert said.out.startswith("4 runs, 0.0 MB in ")
    assert "evo/SafetyPointGoal1-v0/seed-0: 3 of 9 epochs" in said.err
    assert main(["archive", str(runs), "--out", str(tmp_path / "all"), "--all"]) == 0
    assert capsys.readouterr().out.startswith("5 runs")
    single = runs / "nested" / "cpo" / "SafetyPointGoal1-v0" / "seed-1"
    assert main(["archive", str(single), "--out", str(tmp_path / "single")]) == 0
    assert (tmp_path / "single" / "cpo" / "SafetyPointGoal1-v0" / "seed-1" / "config.json").exists()
    assert main(["archive", str(tmp_path / "nowhere"), "--out", str(tmp_path / "x")]) == 2
    assert main(["archive", str(runs / "evo"), "--out", str(tmp_path / "x")]) == 2
    assert "no finished run" in capsys.readouterr().err


def test_what_cannot_be_done_with_a_copy_says_so(runs, tmp_path, capsys):
    kept = keep_run(load_runs([runs])[0][0], tmp_path / "kept")
    for command in (["resume", str(kept)], ["evaluate", str(kept)]):
        assert main(command) == 2
        assert capsys.readouterr().err.count("\n") == 1
    capsys.readouterr()
    assert main(["certify", str(kept), "--limit", "25"]) == main(
        ["certify", str(runs / "nested" / "cpo" / "SafetyPointGoal1-v0" / "seed-0"), "--limit", "25"]
    )


def test_the_dashboard_serves_packed_tables_as_tables(runs, tmp_path):
    kept = keep_run(load_runs([runs])[0][0], tmp_path / "kept")
    found = Source([tmp_path / "kept"]).file(run_id(kept), "episodes.csv")
    assert table_content(found).startswith(b"epoch,step,return,cost,length\n0,")
