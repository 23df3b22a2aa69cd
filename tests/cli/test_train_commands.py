import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.training.runs_of_probes import facts

from steingate.algorithms import METHODS
from steingate.algorithms.common.backend import configure
from steingate.cli import main
from steingate.runs import read_progress
from steingate.training.config_file import load_run_config

configure()

ROOT = Path(__file__).parents[2]
SMALL = [
    "--env", "tests.training.probes:Walk", "--total-steps", "480", "--steps-per-epoch", "80",
    "--num-envs", "4", "--cost-limit", "4", "--hidden", "8,8", "--critic-passes", "2",
    "--critic-batch", "32", "--cg-iters", "4", "--checkpoint-every", "2",
]  # fmt: skip


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    out = tmp_path_factory.mktemp("runs")
    assert main(["train", *SMALL, "--out", str(out), "--quiet"]) == 0
    return out / "steingate" / "tests.training.probes-Walk" / "seed-0"


def test_train_prints_its_folder_and_its_progress(tmp_path, capsys):
    settings = tmp_path / "run.toml"
    settings.write_text("seed = 2\ntotal_steps = 160\n[certificate]\nbudget = 0.25\n")
    options = [word for word in SMALL if word not in ("--total-steps", "480")]
    assert main(["train", *options, "--config", str(settings), "--out", str(tmp_path)]) == 0
    said = capsys.readouterr()
    path = Path(said.out.strip())
    assert path == tmp_path / "steingate" / "tests.training.probes-Walk" / "seed-2"
    assert len([line for line in said.err.splitlines() if line.startswith("epoch ")]) == 2
    assert read_progress(path)["Gate/Budget"] == [0.25, 0.25]
    assert load_run_config(path).algo.certificate == {"budget": 0.25}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["train", "--env", "SafetyPointGoal7-v0"], "did you mean 'SafetyPointGoal"),
        (["train", "--algo", "stingate"], "did you mean steingate"),
        (["train", "--cost-limt", "3"], "did you mean --cost-limit"),
        (["train", "--cost-limit", "-3"], "cost_limit is -3.0"),
        (["train", "--config", "nowhere.toml"], "Cannot read nowhere.toml"),
        (["train", "--certificate", "budgt=3"], "no option 'budgt'"),
        (
            ["train", "--algo", "ppo", "--max-kl", "0.5"],
            "no option --max-kl (did you mean --clipped.max-kl?)",
        ),
        (["train", "--algo", "ppo", "--preset", "confident"], "ppo has no option --preset"),
        (["train", "--algo", "nowhere:Mine"], "cannot be imported"),
        (["resume", "nowhere"], "nowhere is not a run folder"),
        (["evaluate", "nowhere"], "nowhere is not a run folder"),
        (["evaluate", "nowhere", "--episodes", "many"], "invalid int value"),
        (["render", "nowhere", "--out", "x.mp4"], "nowhere is not a run folder"),
        (["render", "nowhere", "--out", "x.mp4", "--every", "0"], "--every must be at least 1, got 0"),
    ],
)
def test_bad_input_is_one_sentence_and_exit_2(tmp_path, monkeypatch, capsys, arguments, message):
    monkeypatch.chdir(tmp_path)
    assert main(arguments) == 2
    said = capsys.readouterr()
    assert message in said.err
    assert len(said.err.strip().splitlines()) == 1
    assert not list(tmp_path.rglob("config.json"))


def test_training_twice_into_one_folder_is_refused(run, capsys):
    assert main(["train", *SMALL, "--out", str(run.parents[2])]) == 2
    assert "already holds a run" in capsys.readouterr().err
    before = facts(run)
    assert main(["resume", str(run), "--quiet"]) == 0
    assert facts(run) == before


def test_evaluate_prints_a_table_json_and_a_plot(run, tmp_path, capsys):
    assert main(["evaluate", str(run), "--episodes", "6"]) == 0
    text = capsys.readouterr().out
    for word in ("6 episodes", "return", "cost", "violations", "CVaR 10%", "worst episode", "bound"):
        assert word in text
    plot = tmp_path / "run.png"
    assert main(["evaluate", str(run), "--episodes", "6", "--json", "--plot", str(plot)]) == 0
    numbers = json.loads(capsys.readouterr().out)
    assert numbers["episodes"] == 6
    assert numbers["cost"]["limit"] == 4.0
    assert plot.read_bytes().startswith(b"\x89PNG")


def test_evaluate_names_the_policy_and_both_kinds_of_actions(run, capsys):
    assert main(["evaluate", str(run), "--episodes", "5", "--policy", "last"]) == 0
    said = capsys.readouterr()
    assert "5 episodes of the last policy (after epoch 6), mean actions" in said.out
    assert "The same policy, sampled actions" in said.out
    assert said.err == ""
    assert main(["evaluate", str(run), "--episodes", "5", "--json", "--policy", "last"]) == 0
    both = json.loads(capsys.readouterr().out)
    assert (both["policy"], both["actions"], both["sampled"]["actions"]) == ("last", "mean", "sampled")
    assert both["return"] != both["sampled"]["return"]
    words = ["--episodes", "5", "--json", "--policy", "last", "--actions"]
    assert main(["evaluate", str(run), *words, "mean"]) == 0
    alone = json.loads(capsys.readouterr().out)
    assert alone["sampled"] is None
    assert alone["return"] == both["return"]
    assert main(["evaluate", str(run), *words, "sampled"]) == 0
    assert json.loads(capsys.readouterr().out)["return"] == both["sampled"]["return"]


def test_evaluate_checks_and_writes_costs(run, tmp_path, capsys):
    costs = tmp_path / "costs.csv"
    words = ["--episodes", "40", "--policy", "last", "--actions", "mean", "--json", "--check"]
    assert main(["evaluate", str(run), *words, "--limit", "1e6", "--costs-out", str(costs)]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["certified"]
    assert found["bound"] == pytest.approx(1.0 - 0.05 ** (1 / 40))  # none of 40 over, exactly
    assert found["cost"]["limit"] == 1e6
    assert len(costs.read_text().splitlines()) == 40
    assert main(["certify", str(costs), "--limit", "1e6", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["samples"] == 40
    assert main(["evaluate", str(run), *words, "--limit", "1e-6"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert found["violations"] == 40
    assert found["gate"]["preset"] == "released"


def test_export_writes_a_policy_that_acts(run, tmp_path, capsys):
    from steingate import RobotPolicy, load

    assert main(["export", str(run), "--to", str(tmp_path / "policy.npz"), "--policy", "last"]) == 0
    said = capsys.readouterr()
    assert said.out.splitlines() == [str(tmp_path / "policy.npz"), str(tmp_path / "policy.py")]
    assert "last policy, after epoch 6" in said.err
    robot = RobotPolicy(tmp_path / "policy.npz")
    obs = [0.5, 3.0, 7.0]
    assert robot(obs).tolist() == pytest.approx(load(run, "last").policy(obs).tolist())
    assert (robot.about["policy"], robot.about["epoch"]) == ("last", 6)
    assert main(["export", str(run), "--to", str(tmp_path / "policy.pkl"), "--policy", "last"]) == 2


def sentences(name):
    about = METHODS[name].about
    return about.summary, about.paper, about.published, about.corrected


def test_algos_are_listed(capsys):
    assert main(["algos"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == list(METHODS)
    assert main(["algos", "--variants"]) == 0
    assert "published: " in capsys.readouterr().out
    assert main(["algos", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["cpo"]["paper"]


def test_all_about_some_algorithms(capsys):
    assert main(["algos", "cup", "focops"]) == 0
    out = capsys.readouterr().out
    assert all(text in out for name in ("cup", "focops") for text in sentences(name))
    assert "evo" not in out
    assert main(["algos", "focop"]) == 2
    assert "did you mean focops?" in capsys.readouterr().err


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_stopped_process_says_how_to_go_on(tmp_path, number, status):
    options = [*SMALL, "--out", str(tmp_path), "--total-steps", "1e6", "--checkpoint-every", "1000"]
    process = subprocess.Popen(
        [sys.executable, "-m", "steingate", "train", *options],
        cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    path = tmp_path / "steingate" / "tests.training.probes-Walk" / "seed-0"
    patience = time.monotonic() + 120
    while time.monotonic() < patience and not (path / "progress.csv").exists():
        time.sleep(0.05)
    process.send_signal(number)
    _, said = process.communicate(timeout=60)
    assert process.returncode == status, said
    assert f"continue with: steingate resume {path}" in said
    assert "Traceback" not in said
    assert len(list((path / "checkpoints").iterdir())) == 1


@pytest.mark.parametrize("command", ["train", "resume", "evaluate", "render"])
def test_ctrl_c_while_the_learner_is_imported_ends_the_command(run, tmp_path, monkeypatch, command):
    module = "evaluate" if command in ("evaluate", "render") else "loop"
    full = f"steingate.training.{module}"

    class Garbage:
        def __del__(self):  # what is raised here never reaches the caller
            os.kill(os.getpid(), signal.SIGINT)

    class Finder:
        def find_spec(self, name, path=None, target=None):
            if name == full:
                Garbage()

    monkeypatch.setattr(f"steingate.training.{module}", sys.modules[full])  # put back after the test
    monkeypatch.delitem(sys.modules, full)
    monkeypatch.setattr(sys, "meta_path", [Finder(), *sys.meta_path])
    arguments = {
        "train": [*SMALL, "--out", str(tmp_path), "--quiet"],
        "resume": [str(run), "--quiet"],
        "evaluate": [str(run), "--episodes", "1"],
        "render": [str(run), "--out", str(tmp_path / "film.gif")],
    }
    assert main([command, *arguments[command]]) == 130
    assert not list(tmp_path.iterdir())


def test_ctrl_c_ends_an_evaluation(run, monkeypatch, capsys):
    from tests.training.probes import Walk

    real = Walk.step

    def step(self, action):
        os.kill(os.getpid(), signal.SIGINT)
        monkeypatch.setattr(Walk, "step", real)
        return real(self, action)

    monkeypatch.setattr(Walk, "step", step)
    assert main(["evaluate", str(run), "--episodes", "1"]) == 130
    assert capsys.readouterr().out == ""
