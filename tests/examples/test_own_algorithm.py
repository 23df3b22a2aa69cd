"""The example of an algorithm: a run that is extended and evaluated."""

import json
from pathlib import Path

from steingate.algorithms.common.jax_setup import configure
from steingate.cli import main

configure()

EXAMPLES = Path(__file__).parents[2] / "examples"
SMALL = [
    "--env", "tests.training.probes:Walk", "--total-steps", "240", "--steps-per-epoch", "80",
    "--num-envs", "4", "--hidden", "8,8", "--cost-limit", "4", "--patience", "2",
]  # fmt: skip


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
