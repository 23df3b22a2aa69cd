"""Lines of growing files: no line is lost or read twice, through truncation, renaming and restarts."""

import io
import json

import pytest

from steingate.errors import InputError
from steingate.monitoring import follow
from steingate.monitoring.follow import FileFollower, pipe


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch):
    monkeypatch.setattr(follow, "POLL", 0.0)


class Watch:
    """A follower of a growing file, advanced until it waits."""

    def __init__(self, path, position=None, **options):
        self.warnings, self.lines = [], []
        self.follower = FileFollower(path, position, grows=True, warn=self.warnings.append, **options)
        self.batches = iter(self.follower)

    def read(self):
        """Return the texts of the lines until the follower has waited three times."""
        new, waits = [], 0
        while waits < 3:
            batch = next(self.batches)
            waits += not batch
            new += batch
        self.lines += new
        return [line.text for line in new]

    def position(self):
        return json.loads(json.dumps(self.follower.position(self.lines[-1])))


def test_lines_of_a_file_and_of_a_pipe(tmp_path):
    path = tmp_path / "costs.txt"
    path.write_bytes(b"cost\n1\n2\n3")
    follower = FileFollower(path)
    lines = [line for batch in follower for line in batch]
    assert [line.text for line in lines] == ["cost", "1", "2", "3"]
    assert [line.text for batch in FileFollower(path, torn=False) for line in batch] == ["cost", "1", "2"]
    with open(path, "a") as file:
        file.write("4\n")
    rest = [line for batch in FileFollower(path, follower.position(lines[2])) for line in batch]
    assert [(line.number, line.text) for line in rest] == [(4, "34")]
    piped = [line for batch in pipe(io.BytesIO(b"\xef\xbb\xbf1\n\xff\n2")) for line in batch]
    assert [(line.number, line.text) for line in piped] == [(1, "1"), (2, "\ufffd"), (3, "2")]
    with pytest.raises(InputError, match="Line 1 is longer than 1 MiB"):
        list(pipe(io.BytesIO(b"1" * (1 << 21))))
    with pytest.raises(InputError, match="not a file that can be followed"):
        list(FileFollower(tmp_path))


@pytest.mark.parametrize("new", ["7\n8\n", "7\n8\n9\n10\n11\n12\n13\n"])
def test_truncation_is_followed(tmp_path, new):
    """Also when the new content is already longer than what was read of the old."""
    path = tmp_path / "log"
    path.write_text("1\n2\n3\n")
    watch = Watch(path)
    assert watch.read() == ["1", "2", "3"]
    path.write_text(new)
    assert watch.read() == new.split()
    assert watch.lines[3].number == 1
    assert "was truncated after line 3" in watch.warnings[0]
    with path.open("a") as file:
        file.write("14\n")
    assert watch.read() == ["14"]
    assert len(watch.warnings) == 1


def test_renaming_is_followed_and_the_rest_of_the_old_file_is_read(tmp_path):
    path, old = tmp_path / "log", tmp_path / "log.1"
    path.write_text("1\n2\n")
    watch = Watch(path)
    assert watch.read() == ["1", "2"]
    path.rename(old)
    with old.open("a") as file:
        file.write("3\n")
    assert watch.read() == ["3"]  # the writer still has the old file
    with old.open("a") as file:
        file.write("4\n5")
    path.write_text("6\n7\n8\n9\n10\n")
    assert watch.read() == ["4", "5", "6", "7", "8", "9", "10"]
    assert "was replaced after line 5" in watch.warnings[0]
    path.rename(old)
    path.write_text("11\n")
    assert watch.read() == ["11"]


def test_a_restart_recognizes_the_file(tmp_path):
    path = tmp_path / "log"
    path.write_text("1\n2\n3\n")
    first = Watch(path)
    first.read()
    with path.open("a") as file:
        file.write("4\n")
    again = Watch(path, first.position())
    assert again.read() == ["4"]
    assert again.warnings == []
    path.write_text("5\n6\n7\n8\n9\n")  # rotated while no process was there
    later = Watch(path, again.position())
    assert later.read() == ["5", "6", "7", "8", "9"]
    assert "does not begin like" in later.warnings[0]
    with pytest.raises(InputError, match="--new-file"):
        list(FileFollower(path, again.position()))
    path.write_text("5\n")
    with pytest.raises(InputError, match="shorter than what was already counted"):
        list(FileFollower(path, again.position()))
    assert [line.text for batch in FileFollower(path, again.position(), new_file=True) for line in batch] == ["5"]


def test_another_file_with_the_same_beginning_stops_a_watch(tmp_path):
    path = tmp_path / "log"
    path.write_text("0\n" * 10)
    first = Watch(path)
    first.read()
    path.rename(tmp_path / "log.1")
    path.write_text("0\n" * 30)
    with pytest.raises(InputError, match="--new-file"):
        Watch(path, first.position()).read()
    assert len(Watch(path, first.position(), new_file=True).read()) == 30
    copied = [line for batch in FileFollower(path, first.position()) for line in batch]
    assert len(copied) == 20  # without --follow it is taken for a longer copy
