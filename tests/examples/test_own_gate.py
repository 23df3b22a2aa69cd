"""The example of a gate and a method from outside: what it decides, and a run of it to its end and on."""

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np

from steingate.gates.base import Episodes, Mode

EXAMPLES = Path(__file__).parents[2] / "examples"
ROOT = EXAMPLES.parent
SMALL = [
    "--env", "tests.training.probes:Walk", "--total-steps", "240", "--steps-per-epoch", "80",
    "--num-envs", "4", "--hidden", "8,8", "--cost-limit", "4",
]  # fmt: skip


def steingate(*words):
    command = [sys.executable, "-m", "steingate", *words]
    return subprocess.run(
        command, cwd=EXAMPLES, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": str(ROOT)}
    )


def test_the_gate_waits_for_quiet_epochs():
    spec = importlib.util.spec_from_file_location("own_gate_example", EXAMPLES / "own_gate.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    gate = module.patient_gate(25.0, 2)
    state, modes = gate.init(), []
    for cost in (1.0, 1.0, 1.0, 26.0, 1.0, 1.0):
        costs = np.array([cost, 0.0])
        ruling = gate.decide(state, Episodes(costs, costs, np.array([10, 10])))
        state = ruling.state
        modes.append(ruling.decision.mode)
    shut, opened = Mode.RECOVER, Mode.IMPROVE
    assert modes == [shut, opened, opened, shut, shut, opened]


def test_a_method_from_outside_trains_goes_on_and_is_evaluated(tmp_path):
    out = ["--out", str(tmp_path)]
    done = steingate("train", "--algo", "own_gate:Patient", *SMALL, "--patience", "2", *out, "--quiet")
    assert done.returncode == 0, done.stderr
    folder = Path(done.stdout.strip())
    assert folder.parts[-3] == "patient"
    config = json.loads((folder / "config.json").read_text())["config"]
    assert (config["algo"], config["recipe"]["patience"]) == ("own_gate:Patient", 2)
    longer = steingate("resume", str(folder), "--total-steps", "400", "--quiet")
    assert longer.returncode == 0, longer.stderr
    assert len((folder / "progress.csv").read_text().splitlines()) == 1 + 5
    played = steingate("evaluate", str(folder), "--episodes", "3", "--json")
    assert json.loads(played.stdout)["episodes"] == 3
    wrong = steingate("train", "--algo", "own_gate:Patient", "--patiense", "2")
    assert wrong.returncode == 2
    assert "has no option --patiense (did you mean --patience?)" in wrong.stderr
