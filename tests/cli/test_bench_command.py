import pytest

from steingate.cli import main
from steingate.cli.bench import read_seeds
from steingate.errors import InputError
from steingate.experiments.grids import GRIDS


def test_the_grids_are_listed(capsys):
    assert main(["bench", "--list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines[1:]] == list(GRIDS)
    assert lines[1].split()[:3] == ["table1", "120", "runs"]


def test_a_dry_run_starts_nothing(tmp_path, capsys):
    out = tmp_path / "out"
    options = ["--seeds", "0-1", "--total-steps", "1e5", "--out", str(out), "--dry-run"]
    assert main(["bench", "limits", *options]) == 0
    stdout = capsys.readouterr().out
    assert stdout.splitlines()[0] == "6 runs, 6 to do"
    assert f"{out}/limit-40/steingate/SafetyPointGoal1-v0/seed-1" in stdout
    assert "5 epochs" in stdout
    assert not out.exists()


def test_tasks_and_algorithms_are_chosen(tmp_path, capsys):
    options = ["--tasks", "CarGoal1", "--algos", "cpo", "evo", "--out", str(tmp_path / "out"), "--dry-run"]
    assert main(["bench", "table1", *options]) == 0
    assert capsys.readouterr().out.startswith("12 runs, 12 to do\n")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "Give the name of a grid"),
        (["tabel1"], "did you mean table1"),
        (["table1", "--seeds", "a"], "--seeds must be integers and ranges such as 0-5, got 'a'"),
        (["table1", "--tasks", "Goal"], "The grid has no task 'Goal'"),
        (["table1", "--total-steps", "many"], "total_steps must be an integer, got 'many'"),
        (["table1", "--num-envs", "7"], "must be a multiple of num_envs (7)"),
        (["table1", "--sedes", "3"], "did you mean --seeds"),
    ],
)
def test_bad_input_is_one_sentence_and_exit_2(tmp_path, monkeypatch, capsys, arguments, message):
    monkeypatch.chdir(tmp_path)
    assert main(["bench", *arguments]) == 2
    stderr = capsys.readouterr().err
    assert message in stderr
    assert len(stderr.strip().splitlines()) == 1
    assert not list(tmp_path.iterdir())


def test_seeds_as_people_write_them():
    assert read_seeds(["0-3"]) == (0, 1, 2, 3)
    assert read_seeds(["4", "2", "2"]) == (4, 2)
    assert read_seeds(["1,2", "5-6"]) == (1, 2, 5, 6)
    for bad in ("", "1.5", "-1", "1--2", "0-999999"):
        with pytest.raises(InputError, match="--seeds must be"):
            read_seeds([bad])
