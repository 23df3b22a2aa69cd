"""``steingate monitor``: every kind of input, growth, restarts, alarms, statuses, figures."""

import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from steingate import Monitor, Monitors
from steingate.cli import main

COMMAND = [sys.executable, "-m", "steingate", "monitor"]


def costs(seed=0, n=300, p=0.02):
    rng = np.random.default_rng(seed)
    return np.where(rng.random(n) < p, 40.0, np.round(20.0 * rng.random(n), 2))


def write(path, values):
    path.write_text("".join(f"{value}\n" for value in values))
    return str(path)


def wait_for(state, episodes):
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and not (state.exists() and Monitor.load(state).episodes >= episodes):
        time.sleep(0.01)


def run_json(capsys, *argv):
    status = main(["monitor", *argv, "--json"])
    return status, json.loads(capsys.readouterr().out)


def test_numbers_are_those_of_the_library(tmp_path, capsys):
    values = costs()
    status, shown = run_json(capsys, write(tmp_path / "c.txt", values), "--limit", "25", "--check")
    monitor = Monitor(25)
    monitor.update_many(values)
    assert status == 0
    assert shown == json.loads(json.dumps(monitor.to_dict()))


@pytest.mark.parametrize(
    ("text", "options"),
    [
        ("3\n40\n5\n", ()),
        ("cost\n3\n40\n5\n", ()),
        ("\ufeffreturn,cost\n1,3\n2,40\n3,5\n", ()),
        ("return;spent\n1;3\n2;40\n3;5\n", ("--column", "spent")),
        ('{"cost": 3}\n{"cost": 40.0, "x": null}\n{"cost": 5}\n', ()),
        ('{"c": 3}\n{"c": 40.0}\n{"c": 5}\n', ("--column", "c")),
    ],
)
def test_kinds_of_lines(tmp_path, capsys, text, options):
    (tmp_path / "c").write_text(text, encoding="utf-8")
    _, shown = run_json(capsys, str(tmp_path / "c"), "--limit", "25", *options)
    assert (shown["episodes"], shown["violations"], shown["max_cost"]) == (3, 1, 40.0)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("3\nnan\n", "Line 2: 'nan'"),
        ("3\n1_000\n", "Line 2: '1_000'"),
        ('{"other": 3}\n', "no key 'cost'"),
        ("{broken\n", "not JSON"),
        ("a,b\n1,2\n", "no column 'cost'"),
        ("x,cost\n1,2\n3\n", "Line 3: has 1 columns"),
    ],
)
def test_bad_lines_are_one_sentence_and_status_2(tmp_path, capsys, text, words):
    (tmp_path / "c").write_text(text)
    assert main(["monitor", str(tmp_path / "c"), "--limit", "25", "--state", str(tmp_path / "s")]) == 2
    _, err = capsys.readouterr()
    assert words in err
    assert err.count("\n") == 1
    assert Monitor.load(tmp_path / "s").episodes <= 1  # what came before the bad line is kept


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (["c"], "--limit"),
        (["c", "--limit", "a=1", "--limit", "2"], "different names"),
        (["c", "--limit", "25", "--risk", "2"], "budget is 2.0"),
        (["c", "--limit", "25", "--baseline", "7"], "baseline is 7.0"),
        (["none", "--limit", "25"], "cannot be read"),
    ],
)
def test_wrong_options_are_one_sentence(tmp_path, capsys, monkeypatch, argv, words):
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "c", [1.0])
    assert main(["monitor", *argv]) == 2
    err = capsys.readouterr().err
    assert words in err
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    ("values", "status"), [([1.0] * 40, 0), ([1.0] * 20, 1), ([40.0] * 40, 3), ([1.0] * 40 + [40.0] * 3, 4)]
)
def test_statuses_for_scripts(tmp_path, values, status):
    file = write(tmp_path / "c", values)
    options = ["--limit", "25", "--baseline", "0.01"]
    assert main(["monitor", file, *options, "--check"]) == status
    assert main(["monitor", file, *options]) == 0


def test_a_restart_continues(tmp_path, capsys):
    values, file, state = costs(1), tmp_path / "c.csv", str(tmp_path / "s.json")
    file.write_text("episode,cost\n" + "".join(f"{i},{c}\n" for i, c in enumerate(values[:120])) + "120,3")
    _, first = run_json(capsys, str(file), "--limit", "25", "--state", state)
    assert first["episodes"] == 120  # the unfinished line waits
    file.write_text("episode,cost\n" + "".join(f"{i},{c}\n" for i, c in enumerate(values)))
    _, second = run_json(capsys, str(file), "--state", state)
    monitor = Monitor(25)
    monitor.update_many(values)
    assert second == json.loads(json.dumps(monitor.to_dict()))
    assert Monitor.load(state).state_dict() == monitor.state_dict()
    assert run_json(capsys, str(file), "--state", state)[1]["episodes"] == len(values)
    assert main(["monitor", str(file), "--limit", "26", "--state", state]) == 2
    assert "limit 25, not 26" in capsys.readouterr().err
    assert main(["monitor", str(file), "--limit", "a=26", "--state", state]) == 2
    assert "other costs" in capsys.readouterr().err
    file.write_text("cost\n1\n")
    assert main(["monitor", str(file), "--state", state]) == 2
    assert "shorter" in capsys.readouterr().err


def test_several_costs_with_one_limit_each(tmp_path, capsys):
    file, state = tmp_path / "c", tmp_path / "s.json"
    file.write_text("".join(f'{{"a": {i % 3}, "b": 1}}\n' for i in range(60)))
    argv = [str(file), "--limit", "a=1", "--limit", "b=5", "--state", str(state)]
    _, shown = run_json(capsys, *argv)
    assert (shown["a"]["violations"], shown["b"]["violations"]) == (20, 0)
    assert shown["b"]["delta"] == 0.025
    assert main(["monitor", *argv, "--check"]) == 3
    out = capsys.readouterr().out
    assert "Monitor of a: UNSAFE" in out
    assert "Monitor of b: CERTIFIED" in out
    assert Monitors.load(state).episodes == 60


def test_the_alarm_command_runs_once_and_may_fail(tmp_path, capfd):
    values = [1.0] * 100 + [40.0] * 30
    file, state, log = write(tmp_path / "c", values), str(tmp_path / "s"), tmp_path / "log"
    command = f"echo $STEINGATE_EVENT $STEINGATE_EPISODE >> '{log}'; exit 3"
    argv = ["monitor", file, *["--limit", "25", "--baseline", "0.01", "--state"], state, "--alarm-command", command]
    assert main(argv) == 0
    out, err = capfd.readouterr()
    events = [line.split() for line in log.read_text().splitlines()]
    assert [event for event, _ in events] == ["drift", "unsafe"]
    assert f"episode {events[0][1]}: drift" in out
    assert "episode 36: certified" in out
    assert err.count("returned 3") == 2
    assert main(argv) == 0
    assert len(log.read_text().splitlines()) == 2
    assert Monitor.load(state).drift
    assert main([*argv, "--rearm"]) == 0
    assert not Monitor.load(state).drift


def test_until_stops_at_the_episode_that_decides(tmp_path, capsys):
    file = write(tmp_path / "c", [1.0] * 100 + [40.0] * 100)
    assert run_json(capsys, file, "--limit", "25", "--until", "certified")[1]["episodes"] == 36
    assert run_json(capsys, file, "--limit", "25", "--until", "decided")[1]["episodes"] == 36
    assert 100 < run_json(capsys, file, "--limit", "25", "--until", "drift")[1]["episodes"] < 200


def test_a_pipe_is_read_as_it_comes_and_ctrl_c_saves_the_state(tmp_path):
    state = tmp_path / "s"
    argv = [*COMMAND, "-", "--limit", "25", "--state", str(state)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    child = subprocess.Popen(argv, text=True, **pipes)
    child.stdin.write("1\n" * 40)
    child.stdin.flush()
    assert child.stdout.readline() == "episode 36: certified\n"
    wait_for(state, 40)
    child.send_signal(signal.SIGINT)
    _, err = child.communicate(timeout=30)
    assert child.returncode == 130
    assert err == ""
    assert Monitor.load(state).episodes == 40


def test_ctrl_c_while_a_line_is_counted(tmp_path, monkeypatch):
    state, real = tmp_path / "s", Monitor.update

    def interrupted(self, cost):
        if self.episodes == 7:
            os.kill(os.getpid(), signal.SIGINT)
        real(self, cost)

    monkeypatch.setattr(Monitor, "update", interrupted)
    file = write(tmp_path / "c", range(20))
    assert main(["monitor", file, "--limit", "25", "--state", str(state)]) == 130
    assert Monitor.load(state).episodes == 8
    monkeypatch.setattr(Monitor, "update", real)
    assert main(["monitor", file, "--state", str(state)]) == 0
    exact = Monitor(25)
    exact.update_many(np.arange(20.0))
    assert Monitor.load(state).state_dict() == exact.state_dict()


def test_a_terminal_shows_the_state_until_the_end(tmp_path):
    import pty

    controller, terminal = pty.openpty()
    argv = [*COMMAND, "-", "--limit", "25"]
    env = {**os.environ, "TERM": "xterm", "COLUMNS": "120"}
    child = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=terminal, stderr=subprocess.PIPE, env=env)
    os.close(terminal)
    child.stdin.write(b"3\n" * 20)
    child.stdin.flush()
    seen = b""
    deadline = time.monotonic() + 60
    while b"cost undecided" not in seen and time.monotonic() < deadline:
        seen += os.read(controller, 1 << 16)
    child.stdin.close()
    try:
        while block := os.read(controller, 1 << 16):
            seen += block
    except OSError:  # the other end is closed
        pass
    os.close(controller)
    assert child.wait(30) == 0
    assert child.stderr.read() == b""
    child.stderr.close()
    live, _, rest = seen.rpartition(b"\x1b[2K")  # the state is removed before the summary
    assert b"20 episodes: cost undecided" in live
    assert b"mean cost" in rest


def test_a_growing_file_is_followed_through_kill_9(tmp_path):
    """Lines are appended while the command is killed and restarted: each counts once."""
    file, state, values = tmp_path / "c", tmp_path / "s", costs(2, 400, 0.1)
    file.write_text("")
    argv = [*COMMAND, str(file), "--limit", "25", "--follow", "--state", str(state)]
    done = 0
    for kill in range(2):
        child = subprocess.Popen(argv, stdout=subprocess.DEVNULL)
        target = done + 100
        with file.open("a") as out:
            while done < target:
                out.write(f"{values[done]}\n")
                out.flush()
                done += 1
        wait_for(state, 100 * kill + 1)
        os.kill(child.pid, signal.SIGKILL)
        child.wait()
    assert main(["monitor", str(file), "--state", str(state)]) == 0
    exact = Monitor(25)
    exact.update_many(values[:done])
    assert Monitor.load(state).state_dict() == exact.state_dict()


def test_a_rotated_log_is_followed(tmp_path, capsys):
    """Fifty good lines, a new file with sixty violations: all 110 are counted."""
    file, state = tmp_path / "log.csv", tmp_path / "s"
    file.write_text("episode,cost\n" + "".join(f"{i},3\n" for i in range(50)))
    argv = [*COMMAND, str(file), "--limit", "25", "--follow", "--state", str(state), "--until", "unsafe"]
    child = subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    wait_for(state, 50)
    assert main(["monitor", str(file), "--state", str(state)]) == 2  # a second monitor with this state
    assert f"is in use by process {child.pid}" in capsys.readouterr().err
    file.rename(tmp_path / "log.csv.1")
    file.write_text("step,cost\n" + "".join(f"{i},30\n" for i in range(60)))
    out, err = child.communicate(timeout=60)
    assert child.returncode == 0
    assert "was replaced after line 51" in err
    assert "unsafe" in out
    assert main(["monitor", str(file), "--state", str(state)]) == 0
    assert (Monitor.load(state).episodes, Monitor.load(state).violations) == (110, 60)


def test_an_invalid_line_raises_the_alarm_and_the_watch_goes_on(tmp_path):
    log, state = tmp_path / "alarms", tmp_path / "s"
    command = f"echo $STEINGATE_EVENT $STEINGATE_SUMMARY >> '{log}'"
    argv = [*COMMAND, "-", "--limit", "25", "--state", str(state), "--alarm-command", command]
    lines = "3\n" * 20 + "nan\nhello\n\xff\n" + "3\n" * 20
    done = subprocess.run(argv, input=lines.encode("latin-1"), capture_output=True)
    assert done.returncode == 0
    assert done.stderr.count(b"The line is not counted.") == 3
    assert [line.split()[:3] for line in log.read_text().splitlines()] == [
        ["invalid", "Line", f"{number}:"] for number in (21, 22, 23)
    ]
    assert Monitor.load(state).episodes == 40


def test_the_figure_shows_bound_tail_and_alarms(tmp_path):
    from steingate.report.monitor_figure import monitor_figure

    file = write(tmp_path / "c", np.concatenate([costs(3, 400), costs(4, 200, 0.4)]))
    assert main(["monitor", file, "--limit", "25", "--baseline", "0.05", "--plot", str(tmp_path / "m.png")]) == 0
    assert (tmp_path / "m.png").read_bytes().startswith(b"\x89PNG")
    monitor = Monitor(25, baseline=0.05)
    monitor.update_many(np.concatenate([costs(3, 400), costs(4, 200, 0.4)]))
    figure = monitor_figure(monitor)
    left, right = figure.axes
    labels = [text.get_text() for text in left.get_legend().get_texts()]
    assert f"certified at {monitor.certified_at}" in labels
    assert f"drift at {monitor.detector.alarms[0]}" in labels
    assert [line.get_xydata()[-1].tolist() for line in left.lines[:2]] == [
        [600, monitor.bound],
        [600, monitor.violations / 600],
    ]
    assert right.get_xlim() == (0.0, 100.0)
    monitor_figure(Monitor(25))
    monitor_figure(Monitors({"a": 1, "b": 2}))
