import os
import signal
import subprocess
import sys
import urllib.request

import pytest
from tests.report.made_up import write_run

from steingate.cli import main


def test_report_writes_page_tables_and_figure(tmp_path, capsys):
    write_run(tmp_path / "runs")
    broken = write_run(tmp_path / "runs", seed=1)
    (broken / "config.json").write_text("{")
    files = [tmp_path / name for name in ("p.html", "t.md", "t.csv", "t.tex", "f.png", "g.png")]
    options = ["--out", str(files[0]), "--figure", str(files[4]), "--frontier", str(files[5])]
    for file in files[1:4]:
        options += ["--table", str(file)]
    assert main(["report", str(tmp_path / "runs"), *options]) == 0
    said = capsys.readouterr()
    assert said.out.splitlines()[-6:] == [str(file) for file in files]
    assert "PointGoal1" in said.out
    assert said.err.count("\n") == 1
    assert str(broken) in said.err
    assert all(file.stat().st_size > 100 for file in files)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["report", "nowhere"], "There is no folder or archive nowhere"),
        (["report", "EMPTY"], "There is no run in"),
        (["report", "RUN", "--out", "no/such/page.html"], "there is no folder no/such"),
        (["report", "RUN", "--out", "OUT", "--table", "t.doc"], "end the name with .md"),
        (["report", "RUN", "--out", "OUT", "--figure", "f.jpg"], "end the name with .png"),
        (["dashboard", "EMPTY", "--port", "99999"], "Port 99999"),
    ],
)
def test_bad_input_is_one_sentence(tmp_path, capsys, arguments, message):
    run = write_run(tmp_path / "runs")
    (tmp_path / "empty").mkdir()
    places = {"RUN": str(run), "EMPTY": str(tmp_path / "empty"), "OUT": str(tmp_path / "out.html")}
    assert main([places.get(word, word) for word in arguments]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert message in said.err
    assert said.err.count("\n") == 1


def test_reports_need_no_learner_and_no_simulator(tmp_path):
    run = write_run(tmp_path)
    code = (
        "import sys; from steingate.cli import main; import steingate.report.dashboard;"
        f"assert main(['report', {str(run)!r}, '--out', {str(tmp_path / 'p.html')!r}]) == 0;"
        "heavy = {'jax', 'mujoco', 'gymnasium', 'numba', 'matplotlib', 'steingate.training'};"
        "assert not heavy & set(sys.modules), heavy & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.DEVNULL, timeout=120)


def test_the_dashboard_ends_with_ctrl_c(tmp_path):
    write_run(tmp_path)
    command = [sys.executable, "-m", "steingate", "dashboard", str(tmp_path), "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            address = process.stdout.readline().strip()
            with urllib.request.urlopen(address, timeout=60) as answer:
                assert b"SteinGate" in answer.read()
            os.kill(process.pid, signal.SIGINT)
            _, complaint = process.communicate(timeout=60)
        finally:
            process.kill()  # or leaving the block would wait for ever
        assert process.returncode == 130
        assert complaint == ""
