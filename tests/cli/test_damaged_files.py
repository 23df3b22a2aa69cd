"""Run folders and outputs as they should not be: every command answers with a sentence, at once."""

import os
import shutil
import signal
import subprocess
import sys
import time

import pytest
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


@pytest.mark.parametrize("option", ["FILE", "--state"])
def test_the_monitor_does_not_wait_for_a_pipe_nobody_writes(tmp_path, capsys, option):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "costs").write_text("1\n")
    file, state = ("pipe", "new") if option == "FILE" else ("costs", "pipe")
    argv = ["monitor", tmp_path / file, "--limit", "25", "--state", tmp_path / state]
    assert str(tmp_path / "pipe") in said(capsys, *argv)


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
