"""Tables of a run folder: round trip, truncation on resume, detection of changes, refused files."""

import pytest

from steingate.errors import RunError
from steingate.storage.tables import EPISODE_COLUMNS, Table, read_episodes, read_progress


def test_round_trip_with_empty_cells(tmp_path):
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


def test_truncate_removes_rows_and_incomplete_lines(tmp_path):
    path = tmp_path / "episodes.csv"
    table = Table(path, EPISODE_COLUMNS)
    table.append({"epoch": i, "step": 8 * i, "return": i / 3, "cost": 0.0, "length": 5} for i in range(4))
    whole = path.read_bytes()
    with open(path, "ab") as file:
        file.write(b"4,32,1.3")
    assert len(read_episodes(tmp_path)["cost"]) == 4
    table.truncate(4)
    assert path.read_bytes() == whole
    table.truncate(2)
    assert read_episodes(tmp_path)["step"].tolist() == [0.0, 8.0]
    table.truncate(0)
    assert path.read_bytes() == b""
    table.append([{"epoch": 9, "step": 1, "return": 0.5, "cost": 2.0, "length": 3}])
    assert path.read_text() == "epoch,step,return,cost,length\n9,1,0.5,2.0,3\n"


def test_missing_rows_are_an_error(tmp_path):
    table = Table(tmp_path / "progress.csv")
    table.truncate(0)
    with pytest.raises(RunError, match="has 0 complete rows"):
        table.truncate(1)
    table.append([{"a": 1}])
    with pytest.raises(RunError, match="has 1 complete rows, but the checkpoint counts 2"):
        table.truncate(2)


def test_damaged_episodes_are_named(tmp_path):
    (tmp_path / "episodes.csv").write_text("epoch,step,return,cost,length\n1,2,x,4,5\n")
    with pytest.raises(RunError, match=r"episodes\.csv is damaged"):
        read_episodes(tmp_path)
    with pytest.raises(RunError, match="no finished epoch"):
        read_progress(tmp_path)


class TestFingerprint:
    """The fingerprint in a checkpoint detects changes of earlier rows and ignores later rows."""

    def table(self, folder, rows=4):
        table = Table(folder / "progress.csv", time_prefixes=("Time/",))
        for i in range(rows):
            table.append([{"step": i, "cost": i / 3, "bound": None, "Time/Total": i + 0.5, "note": "a, b"}])
        return table

    def reopened(self, folder):
        return Table(folder / "progress.csv", time_prefixes=("Time/",))

    def test_later_rows_and_columns_are_removed(self, tmp_path):
        table = self.table(tmp_path)
        fingerprint, whole = table.fingerprint(), table.path.read_bytes()
        table.append([{"step": 4, "late": 1.0}, {"step": 5, "Time/New": 2.0}])
        with open(table.path, "ab") as file:
            file.write(b"6,")
        assert table.fingerprint() != fingerprint
        later = self.reopened(tmp_path)
        later.truncate(4, fingerprint)
        assert later.fingerprint() == fingerprint
        assert "late" not in later.columns
        assert [row.rstrip(b",") for row in later.path.read_bytes().splitlines()[1:]] == whole.splitlines()[1:]

    def test_a_resumed_table_equals_an_uninterrupted_one(self, tmp_path):
        (tmp_path / "a").mkdir()
        (tmp_path / "b").mkdir()
        whole = self.table(tmp_path / "a")
        broken = self.table(tmp_path / "b")
        fingerprint = broken.fingerprint()
        broken.append([{"step": 99, "lost": 7.0}])
        broken = self.reopened(tmp_path / "b")
        broken.truncate(4, fingerprint)
        for table in (whole, broken):
            table.append([{"step": 4, "new": 1.5, "Time/Total": 9.0}])
        assert broken.fingerprint() == whole.fingerprint()
        assert broken.path.read_bytes() == whole.path.read_bytes()

    @pytest.mark.parametrize(
        ("old", "new"),
        [
            (b"0.3333333333333333", b"0.3333333333333334"),
            (b"bound", b"bond"),  # this column is empty
            (b"\n", b"\r\n"),
            (b"step,cost", b"cost,step"),
            (b"2,0.6666666666666666,,2.5", b"2,0.6666666666666666,5,2.5"),
            (b"2,0.6666666666666666,,2.5", b"2,0.6666666666666666,2.5"),
            (b"0.6666666666666666", b"x" * 200_000),
            (b"0.6666666666666666", b"\xff\xfe"),
        ],
    )
    def test_a_change_is_detected_and_the_file_left_alone(self, tmp_path, old, new):
        table = self.table(tmp_path)
        fingerprint = table.fingerprint()
        content = table.path.read_bytes()
        assert old in content
        table.path.write_bytes(content.replace(old, new))
        changed = table.path.read_bytes()
        with pytest.raises(RunError, match=r"progress\.csv (was changed|is damaged|has \d+ complete rows)"):
            self.reopened(tmp_path).truncate(4, fingerprint)
        assert table.path.read_bytes() == changed


@pytest.mark.parametrize("cell", ["9" * 400, "9" * 5000, "1e999", "-" + "9" * 25, "²", "text", "1_0"])
def test_unusual_numbers_become_floats_or_text(tmp_path, cell):
    (tmp_path / "progress.csv").write_text(f"a,b\n1,{cell}\n")
    (found,) = read_progress(tmp_path)["b"]
    assert isinstance(found, float | str)
