"""The public functions, used as their documentation does, on tiny runs; what environments and signals do to them."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from tests.training.probes import Walk
from tests.training.runs_of_probes import TINY, facts, tiny

import steingate
from steingate.cli import main
from steingate.errors import InputError, RunError
from steingate.runs import RunFolder, load_certification
from steingate.storage.checkpoint import latest_checkpoint
from steingate.training.runner import resume, train


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    settings = {**TINY, "env": "tests.training.probes:Walk", "certify.budget": 0.5}
    return steingate.train(**{"out": tmp_path_factory.mktemp("runs"), "quiet": True, **settings})


def test_a_run_prints_its_folder_and_its_certification(run):
    assert str(run).splitlines() == [str(run.path), run.certification["sentence"]]
    assert run.certified  # half of the episodes may be over


def test_a_run_is_plotted(run, tmp_path):
    figure = run.plot(tmp_path / "run.png")
    assert (tmp_path / "run.png").read_bytes().startswith(b"\x89PNG")
    assert len(figure.axes) >= 3


def test_evaluate_takes_a_run_or_its_folder(run):
    one, other = steingate.evaluate(run, 6), steingate.evaluate(str(run.path), 6, policy="certified")
    assert (one.which, other.which, one.number + 1) == ("certified", "certified", other.number)
    assert steingate.evaluate(run, 6, limit=0.001).violations > one.violations
    with pytest.raises(InputError, match="episodes must be at least 1, got 0"):
        steingate.evaluate(run, 0)


def test_certify_policy_agrees_with_the_run(run):
    policy = steingate.load_policy(run)
    assert steingate.certify_policy(policy, Walk(), limit=4.0, budget=0.6, seed=7).certified


def test_make_vec_makes_what_training_uses(run):
    envs = steingate.make_vec("tests.training.probes:Walk", 3)
    obs, _ = envs.reset(seed=0)
    action = steingate.load_policy(run)(obs)
    assert action.shape == (3, 2)
    assert envs.step(action)[4]["cost"].shape == (3,)


def test_a_stopped_run_says_how_to_judge_it(run):
    with pytest.raises(InputError, match=f"can only be made longer; .*steingate evaluate {run.path} --until-certified"):
        resume(run.path, total_steps=80)


class Ending(Walk):
    """Calls sys.exit in its twentieth step."""

    steps = 0

    def step(self, action):
        self.steps += 1
        if self.steps == 20:
            sys.exit(7)
        return super().step(action)


class NaNCost(Walk):
    """The cost of the fifth step of an episode is not a number."""

    def step(self, action):
        *result, info = super().step(action)
        return *result, {"cost": np.nan if self.t == 5 else info["cost"]}


class Forgetful(Walk):
    """The fifth step of an episode has no cost."""

    def step(self, action):
        *result, info = super().step(action)
        return *result, {} if self.t == 5 else info


class Huge(Walk):
    """Observations whose squares are not finite."""

    def _obs(self):
        return super()._obs() * 1e300


@pytest.mark.parametrize(
    ("env", "algo", "message"),
    [
        ("Ending", "steingate", r"failed at step \d+ with SystemExit: 7 .*fix the environment"),
        ("NaNCost", "allowance", r"gave a cost \(nan\) that is not finite"),
        ("NaNCost", "ppo-saute", r"gave a cost \(nan\) that is not finite"),
        ("Forgetful", "cpo", "gives no cost at step 5: put it into info"),
        ("Huge", "steingate", "the variance of an observation is not finite"),
    ],
)
def test_errors_of_environments_are_named(tmp_path, env, algo, message):
    with pytest.raises((RunError, InputError), match=message):
        train(tiny(tmp_path, env=f"tests.training.test_api:{env}", algo=algo), quiet=True)


def test_a_folder_that_cannot_be_created_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(RunError, match=r"Cannot create the folder .*file.*: Not a directory; choose another --out\."):
        train(tiny(tmp_path / "file"), quiet=True)


def test_a_limit_of_0_works_from_training_to_the_report(tmp_path, capsys):
    path = train(tiny(tmp_path, cost_limit=0.0), quiet=True)
    out = str(tmp_path / "report.html")
    assert main(["report", str(path), "--out", out]) == 0
    assert main(["evaluate", str(path), "--episodes", "3"]) == 0
    assert main(["archive", str(path), "--out", str(tmp_path / "runs.jsonl.xz")]) == 0
    shown = capsys.readouterr()
    assert "damaged" not in shown.out + shown.err
    assert "damaged" not in Path(out).read_text()


def test_a_changed_environment_is_reported_and_its_certificate_does_not_carry_over(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    source = tmp_path / "moving_env.py"
    source.write_text("from tests.training.probes import Walk\n\n\nclass Mine(Walk):\n    pass\n")
    path = train(tiny(tmp_path, env="./moving_env.py:Mine", **{"certify.budget": 0.5}), quiet=True)
    before = load_certification(path)
    assert before["certified"]
    source.write_text(source.read_text() + "    # now the floor is wet\n")
    warned = []
    steingate.evaluate(path, 2, warn=warned.append)
    assert any("has changed since this policy was stored" in text for text in warned)
    resume(path)
    assert "moving_env.py:Mine has changed since the last checkpoint" in capsys.readouterr().err
    after = load_certification(path)
    assert after["ledger"]["final_tests"] > before["ledger"]["final_tests"]
    assert set(after["seeds"] or []).isdisjoint(before["seeds"])
    assert RunFolder(path).certified.with_name("certified.safetensors.old-environment").exists()


def start(tmp_path, shell):
    """Train in a shell, as a user does; return the run folder and the process."""
    cfg = tiny(tmp_path, total_steps=80 * 400, **{"certify.enabled": False})
    words = " ".join(f"--{name.replace('_', '-')} {value}" for name, value in TINY.items() if name != "hidden")
    words = words.replace("--total-steps 480", f"--total-steps {cfg.total_steps} --no-certify.enabled --hidden 8,8")
    command = shell.format(f"{sys.executable} -m steingate train {words} --out {tmp_path}")
    root = str(Path(__file__).parents[2])
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([root, os.environ.get("PYTHONPATH", "")])}
    return cfg.path, subprocess.Popen(["bash", "-c", command], cwd=root, env=env, stdout=subprocess.PIPE)


@pytest.mark.slow
@pytest.mark.parametrize("shell", ["{} 2>&1 | head -n 3", "{} 2> /dev/full"])
def test_training_survives_its_display(tmp_path, shell):
    path, process = start(tmp_path, shell)
    process.communicate(timeout=300)
    assert latest_checkpoint(path / "checkpoints").epoch == 400
    assert process.returncode == 0


@pytest.mark.slow
@pytest.mark.parametrize(("shell", "ends"), [("exec {}", True), ("trap '' HUP; exec {}", False)])
def test_a_hangup_writes_a_checkpoint_and_nohup_goes_on(tmp_path, shell, ends):
    path, process = start(tmp_path, shell)
    while not (path / "progress.csv").exists():
        assert process.poll() is None
    process.send_signal(signal.SIGHUP)
    process.communicate(timeout=300)
    assert process.returncode == (128 + signal.SIGHUP if ends else 0)
    epoch = latest_checkpoint(path / "checkpoints").epoch
    assert 0 < epoch < 400 if ends else epoch == 400
    assert facts(path)["epoch"] == epoch == len(facts(path)["progress"]["Train/Epoch"])
