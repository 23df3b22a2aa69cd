"""``steingate plan``: the numbers of episodes, and refusals."""

import json

import pytest

from steingate.cli import main


def planned(capsys, *options):
    assert main(["plan", *options, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


@pytest.mark.parametrize(("budget", "episodes"), [("0.1", 29), ("0.05", 59), ("0.01", 299)])
def test_episodes_without_violations(capsys, budget, episodes):
    plan = planned(capsys, "--risk", budget, "--confidence", "0.95")
    assert plan["episodes_needed"] == episodes
    assert plan["certifiable_risk"] is None
    assert plan["certifiable"] is None


def test_what_n_episodes_can_certify(capsys):
    plan = planned(capsys, "--risk", "0.1", "--episodes", "29")
    assert plan["certifiable"] is True
    assert plan["certifiable_risk"] == pytest.approx(1.0 - 0.05 ** (1 / 29))
    assert planned(capsys, "--risk", "0.1", "--episodes", "28")["certifiable"] is False
    with_one = planned(capsys, "--risk", "0.1", "--episodes", "29", "--violations", "1")
    assert with_one["certifiable"] is False
    assert with_one["episodes_needed"] == 46


def test_the_table_is_for_people(capsys):
    assert main(["plan", "--risk", "0.1", "--confidence", "0.95", "--violations", "7"]) == 0
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
    assert len(rows) == 8  # 0 to 5 violations, the given number, the title of the second table
    assert "100000 violations" in rows[6]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--risk", "0"], "budget is 0.0"),
        (["--risk", "1"], "budget is 1.0"),
        (["--confidence", "2"], "confidence must be between 0 and 1"),
        (["--confidence", "nan"], "confidence must be between 0 and 1"),
        (["--violations", "-2"], "violations is -2"),
        (["--episodes", "0"], "n is 0"),
        (["--episodes", "5", "--violations", "9"], "only 5 episodes"),
        (["--episodes", "many"], "'many'"),
        (["--risk", "1e-320"], "budget is 1e-320"),
        (["--violations", "1" + "0" * 400], "violations is 1"),
        (["--rsik", "0.1"], "did you mean --risk?"),
    ],
)
def test_bad_options_are_one_sentence(capsys, options, words):
    assert main(["plan", *options]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert words in err
    assert err.count("\n") == 1
