"""``steingate plan``: the numbers of episodes, and refusals."""

import json

import pytest

from steingate.cli import main


def planned(capsys, *options):
    assert main(["plan", *options, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


@pytest.mark.parametrize(("budget", "episodes"), [("0.1", 29), ("0.05", 59), ("0.01", 299)])
def test_episodes_without_violations(capsys, budget, episodes):
    plan = planned(capsys, "--budget", budget, "--delta", "0.05")
    assert plan["episodes_needed"] == episodes
    assert plan["certifiable_budget"] is None
    assert plan["certifiable"] is None


def test_what_n_episodes_can_certify(capsys):
    plan = planned(capsys, "--budget", "0.1", "--episodes", "29")
    assert plan["certifiable"] is True
    assert plan["certifiable_budget"] == pytest.approx(1.0 - 0.05 ** (1 / 29))
    assert planned(capsys, "--budget", "0.1", "--episodes", "28")["certifiable"] is False
    with_one = planned(capsys, "--budget", "0.1", "--episodes", "29", "--violations", "1")
    assert with_one["certifiable"] is False
    assert with_one["episodes_needed"] == 46


def test_the_table_is_for_people(capsys):
    assert main(["plan", "--budget", "0.1", "--delta", "0.05", "--violations", "7"]) == 0
    out = capsys.readouterr().out
    assert "29 episodes" in out
    assert "7 violations" in out
    assert "0.1707" not in out  # sixteen episodes with seven violations are another matter
    assert main(["plan"]) == 0
    assert "0.1707" in capsys.readouterr().out


def test_many_violations_add_one_row(capsys):
    assert main(["plan", "--violations", "100000"]) == 0
    out = capsys.readouterr().out
    rows = [line for line in out.splitlines() if "violation" in line and "episodes" in line]
    assert len(rows) == 8  # none to five, the requested number, and the title of the second table
    assert "100000 violations" in rows[6]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--budget", "0"], "budget is 0.0"),
        (["--budget", "1"], "budget is 1.0"),
        (["--delta", "-1"], "delta is -1.0"),
        (["--delta", "nan"], "delta is nan"),
        (["--violations", "-2"], "violations is -2"),
        (["--episodes", "0"], "n is 0"),
        (["--episodes", "5", "--violations", "9"], "only 5 episodes"),
        (["--episodes", "many"], "'many'"),
        (["--budget", "1e-320"], "budget is 1e-320"),
        (["--delta", "1e-320"], "delta is 1e-320"),
        (["--violations", "1" + "0" * 400], "violations is 1"),
        (["--budgte", "0.1"], "did you mean --budget?"),
    ],
)
def test_bad_options_are_one_sentence(capsys, options, words):
    assert main(["plan", *options]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert words in err
    assert err.count("\n") == 1
