"""``steingate train``, ``resume``, ``evaluate``, ``render`` and ``export`` on a tiny run."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.training.probes import Walk
from tests.training.runs_of_probes import facts

from steingate.algorithms.common.jax_setup import configure
from steingate.cli import main
from steingate.storage.tables import read_progress
from steingate.training.config_file import load_run_config

configure()

ROOT = Path(__file__).parents[2]
SMALL = [
    "--env", "tests.training.probes:Walk", "--algo", "steingate", "--total-steps", "480", "--steps-per-epoch", "80",
    "--num-envs", "4", "--cost-limit", "4", "--hidden", "8,8", "--vf-epochs", "2", "--vf-batch-size", "32",
    "--cg-iters", "4", "--checkpoint-every", "2",
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
    output = capsys.readouterr()
    path = Path(output.out.strip())
    assert path == tmp_path / "steingate" / "tests.training.probes-Walk" / "seed-2"
    assert len([line for line in output.err.splitlines() if line.startswith("epoch ")]) == 2
    assert read_progress(path)["Gate/Budget"] == [0.25, 0.25]
    assert load_run_config(path).algo.certificate == {"budget": 0.25}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["train", "--env", "SafetyPointGoal7-v0"], "did you mean SafetyPointGoal"),
        (["train", "--cost-limt", "3"], "did you mean --cost-limit"),
        (["train", "--config", "nowhere.toml"], "Cannot read nowhere.toml"),
        (["train", "--algo", "ppo", "--max-kl", "0.5"], "no option --max-kl (did you mean --ppo.max-kl?)"),
        (["train", "--algo", "nowhere:Mine"], "cannot be imported"),
        (["resume", "nowhere"], "nowhere is not a run folder"),
        (["render", "nowhere", "--out", "x.mp4", "--every", "0"], "--every must be at least 1, got 0"),
    ],
)
def test_bad_input_is_one_sentence_and_exit_2(tmp_path, monkeypatch, capsys, arguments, message):
    monkeypatch.chdir(tmp_path)
    assert main(arguments) == 2
    error = capsys.readouterr().err
    assert message in error
    assert len(error.strip().splitlines()) == 1
    assert not list(tmp_path.rglob("config.json"))


def test_training_twice_into_one_folder_is_refused(run, capsys):
    assert main(["train", *SMALL, "--out", str(run.parents[2])]) == 2
    assert "already holds a run" in capsys.readouterr().err
    before = facts(run)
    assert main(["resume", str(run), "--quiet"]) == 0
    assert facts(run) == before


def test_evaluate_prints_a_table_and_a_verdict(run, capsys):
    words = ["evaluate", str(run), "--episodes", "5", "--policy", "last"]
    for actions, noise in (("mean", "without"), ("sampled", "with")):
        assert main([*words, "--actions", actions]) == 0
        output = capsys.readouterr()
        assert output.out.count("Undecided for 10 %") == 1
        assert f"5 episodes of the last policy (step 480), {noise} exploration noise" in output.out
        for word in ("return", "cost", "violations", "CVaR 10%", "worst episode", "bound"):
            assert word in output.out
        assert output.err == ""
        assert main([*words, "--json", "--actions", actions]) == 0
        found = json.loads(capsys.readouterr().out)
        assert (found["policy"], found["actions"]) == ("last", actions)


def test_evaluate_checks_and_writes_costs(run, tmp_path, capsys):
    costs = tmp_path / "costs.csv"
    (run / "evaluations.jsonl").unlink(missing_ok=True)
    words = ["--episodes", "40", "--policy", "last", "--actions", "mean", "--json", "--check"]
    assert main(["evaluate", str(run), *words, "--limit", "1e6", "--costs-out", str(costs)]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["certified"]
    assert found["bound"] == pytest.approx(1.0 - (1.0 - found["confidence"]) ** (1 / 40))  # none of 40 over, exactly
    assert found["limit"] == 1e6
    assert len(costs.read_text().splitlines()) == 40
    assert main(["certify", str(costs), "--limit", "1e6"]) == 0
    assert "0 of 40" in capsys.readouterr().out
    assert main(["evaluate", str(run), *words, "--limit", "1e-6", "--risk", "0.5"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert (found["violations"], found["risk"]) == (40, 0.5)


def test_export_writes_a_policy_that_acts(run, tmp_path, capsys):
    from steingate import Policy, load_policy

    assert main(["export", str(run), "--to", str(tmp_path / "policy.npz"), "--policy", "last"]) == 0
    output = capsys.readouterr()
    assert output.out.splitlines() == [str(tmp_path / "policy.npz"), str(tmp_path / "policy.py")]
    assert "last policy, after epoch 6" in output.err
    robot = Policy.load(tmp_path / "policy.npz")
    obs = [0.5, 3.0, 7.0]
    assert robot(obs).tolist() == pytest.approx(load_policy(run, "last")(obs).tolist())
    assert (robot.about["checkpoint"], robot.about["epoch"]) == ("last", 6)
    assert main(["export", str(run), "--to", str(tmp_path / "policy.pkl"), "--policy", "last"]) == 2


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_stopped_process_says_how_to_continue(tmp_path, number, status):
    options = [*SMALL, "--out", str(tmp_path), "--total-steps", "1e6", "--checkpoint-every", "1000"]
    process = subprocess.Popen(
        [sys.executable, "-m", "steingate", "train", *options],
        cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])},
    )  # fmt: skip
    path = tmp_path / "steingate" / "tests.training.probes-Walk" / "seed-0"
    patience = time.monotonic() + 120
    while time.monotonic() < patience and not (path / "progress.csv").exists():
        time.sleep(0.05)
    process.send_signal(number)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == status, errors
    assert f"continue with: steingate resume {path}" in errors
    assert "Traceback" not in errors
    assert 1 <= len(list((path / "checkpoints").iterdir())) <= 2


def test_ctrl_c_ends_an_evaluation(run, monkeypatch, capsys):
    real = Walk.step

    def step(self, action):
        os.kill(os.getpid(), signal.SIGINT)
        monkeypatch.setattr(Walk, "step", real)
        return real(self, action)

    monkeypatch.setattr(Walk, "step", step)
    assert main(["evaluate", str(run), "--episodes", "1"]) == 130
    assert capsys.readouterr().out == ""
