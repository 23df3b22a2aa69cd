"""Run folders and outputs as they should not be: every command answers with a sentence, at once."""

import errno
import io
import json
import os
import shutil
import signal
import subprocess
import sys
import time

import pytest
from tests.report.made_up import write_run
from tests.training.runs_of_probes import facts, tiny

from steingate.cli import main
from steingate.training.runner import train


@pytest.fixture(scope="module")
def good(tmp_path_factory):
    path = train(tiny(tmp_path_factory.mktemp("good"), total_steps=320), quiet=True)
    return path, facts(path)


@pytest.fixture
def run(good, tmp_path):
    return shutil.copytree(good[0], tmp_path / "run")


def said(capsys, *argv):
    """Run a command that must refuse; return its sentence."""
    assert main([str(word) for word in argv]) == 2
    err = capsys.readouterr().err
    assert err.startswith("steingate: ")
    return err


def reported(capsys, run, tmp_path):
    """Make a report and return what it printed on stderr and stdout."""
    assert main(["report", str(run), "--out", str(tmp_path / "page.html")]) in (0, 2)
    captured = capsys.readouterr()
    assert captured.err == "" or captured.err.startswith("steingate: ")
    return captured.err + captured.out


def set_cell(path, column, text, row=-1):
    lines = [line.split(",") for line in path.read_text().splitlines()]
    lines[row][lines[0].index(column)] = text
    path.write_text("\n".join(",".join(line) for line in lines) + "\n")


CELLS = ["text", "", "inf", "9" * 5000, "x" * 200_000, "[/red]"]


@pytest.mark.parametrize("cell", CELLS, ids=lambda cell: cell[:8] or "empty")
@pytest.mark.parametrize("column", ["TotalEnvSteps", "Gate/Mode"])
def test_odd_cells_of_progress(run, tmp_path, capsys, cell, column):
    set_cell(run / "progress.csv", column, cell)
    assert "progress.csv" in said(capsys, "resume", run, "--quiet")
    reported(capsys, run, tmp_path)


@pytest.mark.parametrize("file", ["progress.csv", "episodes.csv"])
@pytest.mark.parametrize("change", ["value", "header", "crlf"])
def test_changed_tables_are_not_carried_on(run, good, capsys, file, change):
    path = run / file
    text = path.read_text()
    if change == "value":
        set_cell(path, {"progress.csv": "Train/EpCost", "episodes.csv": "cost"}[file], "0.125", row=2)
    elif change == "header":
        path.write_text(text.replace("Train/EpCost", "Train/Cost").replace(",cost,", ",costs,"))
    else:
        path.write_bytes(text.replace("\n", "\r\n").encode())
    changed = path.read_bytes()
    assert f"{file} was changed after the checkpoint was written" in said(capsys, "resume", run, "--quiet")
    assert path.read_bytes() == changed
    path.write_text(text)
    assert main(["resume", str(run), "--quiet"]) == 0
    assert facts(run) == good[1]


@pytest.mark.parametrize("file", ["progress.csv", "episodes.csv", "config.json", "checkpoints", "events"])
@pytest.mark.parametrize("kind", ["folder", "pipe"])
def test_something_else_where_a_file_should_be(run, tmp_path, capsys, file, kind):
    path = next(run.glob("events*")) if file == "events" else run / file
    shutil.rmtree(path) if path.is_dir() else path.unlink()
    path.mkdir() if kind == "folder" else os.mkfifo(path)
    reported(capsys, run, tmp_path)
    if (file, kind) in (("checkpoints", "folder"), ("events", "pipe")):
        return  # nothing is wrong with either: there is no checkpoint, or an old file to drop
    sentence = said(capsys, "resume", run, "--quiet")
    assert str(path) in sentence or f"{run} is not a run folder" in sentence
    if file in ("checkpoints", "config.json"):
        said(capsys, "evaluate", run, "--episodes", "1", "--policy", "last")


@pytest.mark.parametrize("name", ["[/red]", "[bold]x", "a[/]b", "\ud800", "\x1b[31m"])
def test_names_are_neither_markup_nor_broken_text(tmp_path, capsys, name):
    folder = write_run(tmp_path, epochs=5)
    record = json.loads((folder / "config.json").read_text())
    record["config"] |= {"algo": name, "env": name}
    (folder / "config.json").write_text(json.dumps(record))
    shown = reported(capsys, tmp_path, tmp_path)
    if name == "\ud800":
        assert "config.json is damaged" in shown
    elif "\x1b" not in name:
        assert shown.count(name) >= 2


@pytest.mark.parametrize("text", ["x" * 200_000, '{"cost": ' + "9" * 400 + "}", "1,2\n" * 2])
def test_odd_lines_for_the_monitor(tmp_path, capsys, text):
    (tmp_path / "costs").write_text(f"1\n{text}\n")
    said(capsys, "monitor", tmp_path / "costs", "--limit", "25", "--column", "2")
    said(capsys, "monitor", tmp_path / "costs", "--limit", "25", "--column", "9" * 5000)


@pytest.mark.parametrize("option", ["FILE", "--state"])
def test_the_monitor_does_not_wait_for_a_pipe_nobody_writes(tmp_path, capsys, option):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "costs").write_text("1\n")
    file, state = ("pipe", "new") if option == "FILE" else ("costs", "pipe")
    argv = ["monitor", tmp_path / file, "--limit", "25", "--state", tmp_path / state]
    assert str(tmp_path / "pipe") in said(capsys, *argv)


class Lost(io.StringIO):
    """An output that takes nothing, and has no descriptor."""

    def __init__(self, number):
        super().__init__()
        self.number = number

    def write(self, text):
        raise OSError(self.number, os.strerror(self.number))


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EPIPE])
def test_an_output_that_cannot_be_written(monkeypatch, capsys, number):
    monkeypatch.setattr(sys, "stdout", Lost(number))
    monkeypatch.setattr(sys, "__stdout__", None)
    assert main(["algos"]) == (141 if number == errno.EPIPE else 2)
    assert capsys.readouterr().err.count("\n") == (number != errno.EPIPE)


WAITING = "print('ready', flush=True); time.sleep(60)"
COMMANDS = {
    "a run": """
from steingate.training.stop import stop_on_signals
class Careless:
    def __del__(self):
        time.sleep(1)
with stop_on_signals(process=True) as stop:
    try:
        kept = Careless()
        print('ready', flush=True)
        while not stop():
            time.sleep(0.01)
        stop.leave()
    finally:
        print('leaving', flush=True)
        del kept
        time.sleep(60)
""",
    "another command": f"""
from steingate import cli
def slow(argv):
    try:
        {WAITING}
    finally:
        print('leaving', flush=True)
        time.sleep(60)
cli._dispatch = slow
cli.command()
""",
}


@pytest.mark.parametrize("pair", [("INT", "INT"), ("TERM", "INT")])
@pytest.mark.parametrize("what", COMMANDS)
def test_two_signals_leave_no_traceback(what, pair):
    process = subprocess.Popen(
        [sys.executable, "-c", "import time\n" + COMMANDS[what]],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stdout.readline() == "ready\n"
    numbers = [getattr(signal, f"SIG{name}") for name in pair]
    process.send_signal(numbers[0])
    if what == "a run" or pair[0] == "INT":
        assert process.stdout.readline() == "leaving\n"
        time.sleep(0.05)
        process.send_signal(numbers[1])
    _, err = process.communicate(timeout=60)
    assert err == ""
    assert process.returncode in {128 + number for number in numbers} | {-number for number in numbers}


def test_a_second_signal_means_what_it_did_where_the_process_is_not_ours():
    from steingate.training.stop import stop_on_signals

    before = signal.getsignal(signal.SIGINT)
    with stop_on_signals() as stop:
        os.kill(os.getpid(), signal.SIGINT)
        assert stop()
        assert signal.getsignal(signal.SIGINT) is before
