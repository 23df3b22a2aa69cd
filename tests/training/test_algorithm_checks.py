"""Mistakes in own algorithms are one sentence that names the class; early termination changes training only."""

import sys
from pathlib import Path

import numpy as np
import pytest
from tests.training.runs_of_probes import tiny

from steingate.cli import main
from steingate.errors import InputError
from steingate.report.load import load_run
from steingate.training.config import make_config
from steingate.training.evaluate import evaluate
from steingate.training.runner import train

sys.path.append(str(Path(__file__).parents[2] / "examples"))

MISTAKES = {
    "NoMethods": "Algorithm NoMethods lacks decide, init, update: it needs init, decide and update.",
    "Undecorated": "Algorithm Undecorated is not a dataclass: write @dataclass(frozen=True) above the class",
    "NoDefault": "Algorithm NoDefault has no default for foo: give every setting one.",
    "OnlyObjective": "OnlyObjective.decide returned a Objective: the next state and a GateOutput with an Objective",
    "NoObjective": "NoObjective.decide returned (tuple, Objective): the next state and a GateOutput",
    "SetInState": "SetInState.init returned a state with a set: NamedTuples, dicts, lists and tuples of numbers, texts",
    "FunctionInState": "FunctionInState.decide returned a state with a builtin_function_or_method: NamedTuples",
    "TextInMetrics": "TextInMetrics.decide returned the metric 'Gate/Phase' = 'warm-up': metrics are numbers",
    "OneMessage": "OneMessage.decide returned (tuple, GateOutput): the next state and a GateOutput with an Objective",
    "OnlyPolicy": "OnlyPolicy.update returned a dict: the next state, the updated policy (a dict) and metrics",
    "OtherShapes": "OtherShapes.update returned a policy with the arrays {'w': ",
    "TextInLoss": "TextInLoss.update returned the metric 'Loss/Kind' = 'none': metrics are numbers",
}


@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes_are_one_sentence_that_names_the_class(name, tmp_path, capsys):
    words = ["--env", "tests.training.probes:Walk", "--total-steps", "80", "--steps-per-epoch", "80", "--num-envs", "4"]
    assert main(["train", "--algo", f"tests.training.broken_algorithms:{name}", *words, "--out", str(tmp_path)]) == 2
    assert MISTAKES[name] in capsys.readouterr().err.splitlines()[-1]


def test_a_class_from_python_is_checked():
    from tests.training.broken_algorithms import NoMethods

    with pytest.raises(InputError, match="NoMethods lacks decide, init, update"):
        make_config({"algo": NoMethods})


@pytest.mark.parametrize("options", [{}, {"workers": 2}])
def test_early_termination_changes_training_only(tmp_path, options):
    """Every step of an episode of 10 steps costs 0.5: with limit 2 a training episode ends at its fifth step."""
    given = {"env": "tests.training.probes:Constant", "cost_limit": 2.0, "total_steps": 160, **options}
    run = train(tiny(tmp_path, algo="early_termination:EarlyTerminatedTRPO", **given), quiet=True)
    episodes = load_run(run).episodes
    assert set(episodes["length"].tolist()) == {5}
    assert episodes["cost"].tolist() == [2.5] * (2 * 80 // 5)
    whole = evaluate(run, 8, policy="last").episodes
    np.testing.assert_array_equal(whole.length, 10)
    np.testing.assert_array_equal(whole.cost, 5.0)
