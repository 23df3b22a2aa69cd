import pytest

from steingate.errors import RunError
from steingate.storage.tables import EPISODE_COLUMNS, Table, read_episodes, read_progress


def test_rows_come_back_and_gaps_stay_gaps(tmp_path):
    table = Table(tmp_path / "progress.csv")
    table.append([{"Train/Epoch": 0, "Gate/Bound": 0.1 + 0.2, "Gate/Cause": "atoms, mostly"}])
    table.append([{"Train/Epoch": 1, "Gate/Bound": float("nan"), "Gate/Cause": None}])
    assert read_progress(tmp_path) == {
        "Train/Epoch": [0, 1],
        "Gate/Bound": [0.1 + 0.2, None],
        "Gate/Cause": ["atoms, mostly", None],
    }
    assert "nan" not in (tmp_path / "progress.csv").read_text()


def test_a_new_column_is_added_for_all_rows(tmp_path):
    table = Table(tmp_path / "progress.csv")
    table.append([{"a": 1}])
    table.append([{"a": 2, "b": 3.5}])
    Table(tmp_path / "progress.csv").append([{"b": 4.0, "a": 5}])
    assert read_progress(tmp_path) == {"a": [1, 2, 5], "b": [None, 3.5, 4.0]}


def test_keep_cuts_rows_and_torn_lines(tmp_path):
    path = tmp_path / "episodes.csv"
    table = Table(path, EPISODE_COLUMNS)
    table.append({"epoch": i, "step": 8 * i, "return": i / 3, "cost": 0.0, "length": 5} for i in range(4))
    whole = path.read_bytes()
    with open(path, "ab") as file:
        file.write(b"4,32,1.3")
    assert len(read_episodes(tmp_path)["cost"]) == 4
    table.keep(4)
    assert path.read_bytes() == whole
    table.keep(2)
    assert read_episodes(tmp_path)["step"].tolist() == [0.0, 8.0]
    table.keep(0)
    assert path.read_bytes() == b""
    table.append([{"epoch": 9, "step": 1, "return": 0.5, "cost": 2.0, "length": 3}])
    assert path.read_text() == "epoch,step,return,cost,length\n9,1,0.5,2.0,3\n"


def test_missing_rows_are_an_error(tmp_path):
    table = Table(tmp_path / "progress.csv")
    table.keep(0)
    with pytest.raises(RunError, match="gone"):
        table.keep(1)
    table.append([{"a": 1}])
    with pytest.raises(RunError, match="has 1 whole rows, but the checkpoint counts 2"):
        table.keep(2)


def test_damaged_episodes_are_named(tmp_path):
    (tmp_path / "episodes.csv").write_text("epoch,step,return,cost,length\n1,2,x,4,5\n")
    with pytest.raises(RunError, match=r"episodes\.csv is damaged"):
        read_episodes(tmp_path)
    with pytest.raises(RunError, match="no finished epoch"):
        read_progress(tmp_path)
