"""The example of an algorithm: its decisions, and a run that is extended and evaluated."""

import json
from pathlib import Path

from tests.algorithms.problems import episodes

from steingate.algorithms.base import Mode, RunContext
from steingate.algorithms.common.jax_setup import configure
from steingate.cli import main

configure()

EXAMPLES = Path(__file__).parents[2] / "examples"
SMALL = [
    "--env", "tests.training.probes:Walk", "--total-steps", "240", "--steps-per-epoch", "80",
    "--num-envs", "4", "--hidden", "8,8", "--cost-limit", "4", "--patience", "2",
]  # fmt: skip


def test_reward_counts_after_violation_free_epochs(monkeypatch):
    monkeypatch.syspath_prepend(str(EXAMPLES))
    from own_algorithm import Patient

    patient, context, modes = Patient(patience=2), RunContext(cost_limit=25.0), []
    state = patient.init(context, {})
    for cost in (1.0, 1.0, 1.0, 26.0, 1.0, 1.0):
        state, output = patient.decide(context, state, episodes([cost, 0.0]))
        modes.append(output.objective.mode)
    recover, improve = Mode.RECOVER, Mode.IMPROVE
    assert modes == [recover, improve, improve, recover, recover, improve]


def test_it_trains_is_extended_and_evaluated(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(EXAMPLES)
    monkeypatch.syspath_prepend(str(EXAMPLES))
    assert main(["train", "--algo", "own_algorithm:Patient", *SMALL, "--out", str(tmp_path), "--quiet"]) == 0
    (folder,) = (path.parent for path in tmp_path.rglob("config.json"))
    config = json.loads((folder / "config.json").read_text())["config"]
    assert config["algo"] == "own_algorithm:Patient"
    assert main(["resume", str(folder), "--total-steps", "400", "--quiet"]) == 0
    assert len((folder / "progress.csv").read_text().splitlines()) == 1 + 5
    capsys.readouterr()
    assert main(["evaluate", str(folder), "--episodes", "3", "--policy", "last", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["episodes"] == 3
    assert main(["train", "--algo", "own_algorithm:Patient", "--patiense", "2"]) == 2
    assert "did you mean" in capsys.readouterr().err
