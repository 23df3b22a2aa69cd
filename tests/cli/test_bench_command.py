import re
import shutil
from pathlib import Path

import pytest

from steingate.cli import main
from steingate.cli.bench import read_seeds
from steingate.errors import InputError
from steingate.experiments.grid import BUILT_IN


def test_the_grids_are_listed(capsys):
    assert main(["bench", "--list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines[1:]] == list(BUILT_IN)
    assert lines[1].split()[:3] == ["table1", "120", "runs"]


def test_a_dry_run_starts_nothing(tmp_path, capsys):
    out = tmp_path / "out"
    options = ["--seeds", "0-1", "--total-steps", "1e5", "--out", str(out), "--dry-run"]
    assert main(["bench", "limits", *options]) == 0
    said = capsys.readouterr().out
    first = said.splitlines()[0]
    assert re.fullmatch(
        r"6 runs, 6 to do: about [\w ]+ on \d+ cores?, \d at a time, done at about [\d: -]+", first
    )
    assert f"{out}/limit-40/steingate/SafetyPointGoal1-v0/seed-1" in said
    assert "5 epochs" in said
    assert not out.exists()


def test_a_dry_run_for_a_cluster_asks_nobody(tmp_path, capsys):
    shared = ["bench", "limits", "--seeds", "0", "--out", str(tmp_path), "--dry-run", "--engine", "ray"]
    assert main([*shared, "--address", "nowhere:1"]) == 0
    assert re.match(r"3 runs, 3 to do: about [\w ]+ of one core's time\n", capsys.readouterr().out)
    assert main([*shared, "--address", "nowhere:1", "--workers", "2"]) == 0
    assert re.match(r"3 runs, 3 to do: about [\w ]+, 2 at a time, done at about ", capsys.readouterr().out)


class TestKeptRuns:
    source = Path(__file__).parents[2] / "results" / "kept" / "table1"
    place = Path("evo", "SafetyCarGoal1-v0", "seed-0")

    @pytest.fixture
    def kept(self, tmp_path):
        shutil.copytree(self.source / self.place, tmp_path / "kept" / self.place)
        return tmp_path / "kept"

    def asked(self, tmp_path, kept, *more):
        options = ["--seeds", "0", "--out", str(tmp_path / "out"), "--kept", str(kept), "--dry-run"]
        return main(["bench", "table1", *options, *more])

    def test_they_count_as_finished(self, tmp_path, kept, capsys):
        assert self.asked(tmp_path, kept) == 0
        said = capsys.readouterr().out
        assert said.startswith("20 runs, 19 to do: ")
        (line,) = (line for line in said.splitlines() if "already finished" in line)
        assert str(tmp_path / "out" / self.place) in line

    def test_a_grid_that_is_kept_as_a_whole_is_reported_at_once(self, tmp_path, kept, capsys):
        grid = tmp_path / "mine.py"
        grid.write_text("def grid(sizes):\n    return sizes.runs('SafetyCarGoal1-v0', 'evo')\n")
        out = tmp_path / "out"
        words = ["bench", str(grid), "--seeds", "0", "--out", str(out), "--kept", str(kept)]
        assert main(words) == 0
        assert "1 finished" in capsys.readouterr().out
        assert (out / "report.html").exists()
        assert "evo" in (out / "table.md").read_text()

    def test_one_that_is_not_whole_is_done_again(self, tmp_path, kept, capsys):
        config = kept / self.place / "config.json"
        config.write_text(config.read_text().replace("10000000", "20000000"))
        assert self.asked(tmp_path, kept, "--total-steps", "20000000") == 0
        assert capsys.readouterr().out.startswith("20 runs, 20 to do: ")

    def test_other_settings_are_refused(self, tmp_path, kept, capsys):
        assert self.asked(tmp_path, kept, "--total-steps", "1e6") == 2
        said = capsys.readouterr().err
        assert "holds a run with total_steps 10000000 where the grid asks for 1000000" in said
        assert "choose another --kept" in said

    def test_a_folder_that_is_not_there_is_named(self, tmp_path, capsys):
        assert self.asked(tmp_path, tmp_path / "nowhere") == 2
        assert "nowhere is not a folder of archived runs" in capsys.readouterr().err


def test_a_dry_run_of_a_strange_task_says_so(tmp_path, capsys):
    grid = tmp_path / "mine.py"
    grid.write_text("def grid(sizes):\n    return sizes.runs('my.module:Task', 'cpo')\n")
    assert main(["bench", str(grid), "--dry-run", "--out", str(tmp_path / "out")]) == 0
    first = capsys.readouterr().out.splitlines()[0]
    assert first == "6 runs, 6 to do: how long my.module:Task takes is not known yet"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "Give the name of a grid"),
        (["tabel1"], "did you mean table1"),
        (["table1", "--seeds", "a"], "--seeds must be integers and ranges such as 0-5, got 'a'"),
        (["table1", "--seeds", "5-0"], "got '5-0'"),
        (["table1", "--total-steps", "many"], "'many' is not an integer"),
        (["table1", "--total-steps", "10"], "total_steps is 10, less than one epoch"),
        (["table1", "--num-envs", "7"], "7 environments cannot share equally"),
        (["table1", "--workers", "0"], "--workers is 0"),
        (["table1", "--engine", "slurm"], "invalid choice"),
        (["table1", "--address", "auto"], "needs --engine ray"),
        (["table1", "--sedes", "3"], "did you mean --seeds"),
    ],
)
def test_bad_input_is_one_sentence_and_exit_2(tmp_path, monkeypatch, capsys, arguments, message):
    monkeypatch.chdir(tmp_path)
    assert main(["bench", *arguments]) == 2
    said = capsys.readouterr().err
    assert message in said
    assert len(said.strip().splitlines()) == 1
    assert not list(tmp_path.iterdir())


def test_seeds_as_people_write_them():
    assert read_seeds(["0-3"]) == (0, 1, 2, 3)
    assert read_seeds(["4", "2", "2"]) == (4, 2)
    assert read_seeds(["1,2", "5-6"]) == (1, 2, 5, 6)
    for bad in ("", "1.5", "-1", "1--2", "0-999999"):
        with pytest.raises(InputError, match="--seeds must be"):
            read_seeds([bad])
