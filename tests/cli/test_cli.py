"""The dispatcher: help, version, exit statuses, and one sentence for every mistake."""

import os
import signal
import subprocess
import sys
import time

import pytest

from steingate import __version__
from steingate.cli import COMMANDS, main


def run(*args, stdin="", **options):
    return subprocess.run(
        [sys.executable, "-m", "steingate", *args], input=stdin, capture_output=True, text=True, timeout=120, **options
    )


def complaint(capsys, *argv):
    assert main(list(argv)) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1
    assert "Traceback" not in err
    return err


def test_overview_lists_every_command(capsys):
    assert main(["--help"]) == 0
    out = capsys.readouterr().out
    assert all(f"  {name}" in out for name in COMMANDS)
    assert main([]) == 0
    assert capsys.readouterr().out == out


@pytest.mark.parametrize("name", COMMANDS)
def test_each_command_explains_itself(capsys, name):
    assert main([name, "--help"]) == 0
    assert f"usage: steingate {name}" in capsys.readouterr().out


def test_version(capsys):
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"steingate {__version__}\n"


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (["certfy"], "'certfy' (did you mean certify?)"),
        (["--verbose"], "no option '--verbose'"),
        (["certify"], "required: FILE"),
        (["certify", "x.csv", "--limt", "25"], "no option --limt (did you mean --limit?)"),
        (["certify", "x.csv", "--limit=abc"], "'abc'"),
        (["certify", "x.csv", "--limit", "25", "-q"], "'-q'"),
        (["certify", "no such file.csv", "--limit", "25"], "There is no file no such file.csv"),
    ],
)
def test_mistakes_are_one_sentence_and_status_2(capsys, argv, words):
    assert words in complaint(capsys, *argv)


def test_module_and_script_run_the_same_program(tmp_path):
    shown = run("--version")
    assert (shown.returncode, shown.stdout, shown.stderr) == (0, f"steingate {__version__}\n", "")
    script = os.path.join(os.path.dirname(sys.executable), "steingate")
    assert subprocess.run([script, "--version"], capture_output=True, text=True, timeout=60).stdout == shown.stdout
    wrong = run("certify", str(tmp_path / "missing.csv"), "--limit", "25")
    assert wrong.returncode == 2
    assert wrong.stdout == ""
    assert wrong.stderr.startswith("steingate: There is no file")
    assert "Traceback" not in wrong.stderr


def test_ctrl_c_ends_with_status_130_and_no_traceback():
    process = subprocess.Popen(
        [sys.executable, "-m", "steingate", "certify", "-", "--limit", "25", "--stein", "released"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    # The program waits for standard input once it has imported everything; interrupt it there.
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and "wait" not in _sleeping_in(process.pid):
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert out == ""
    assert "Traceback" not in err


def _sleeping_in(pid):
    """Return "wait" once the process is blocked reading its standard input."""
    try:
        with open(f"/proc/{pid}/syscall") as file:
            fields = file.read().split()
    except OSError:
        time.sleep(3.0)  # no such interface here: give the imports time instead
        return "wait"
    return "wait" if fields[:2] == ["0", "0x0"] else ""


def test_a_closed_pipe_is_quiet():
    costs = "1\n" * 100
    shell = f"'{sys.executable}' -m steingate certify - --limit 25 --stein released | head -n 1"
    done = subprocess.run(["bash", "-c", shell], input=costs, capture_output=True, text=True, timeout=60)
    assert done.stderr == ""
    assert done.stdout == "Stein certificate released: gate open\n"
    closed = f"'{sys.executable}' -m steingate certify - --limit 25 --stein released >&-; echo status $?"
    done = subprocess.run(["bash", "-c", closed], input=costs, capture_output=True, text=True, timeout=60)
    assert "Traceback" not in done.stderr
