"""``steingate certify`` and ``steingate plan``: tables, JSON, exit statuses and errors."""

import json
import re
import subprocess
import sys

import pytest
from scipy.stats import binomtest

from steingate import SteinCertificate
from steingate import certify as certify_costs
from steingate.certificates.tail import cvar_bound, mean_bound
from steingate.cli import main
from steingate.storage.tables import EPISODE_COLUMNS

COSTS = [3.0, 8.0, 12.0, 0.0, 60.0, 17.5]


@pytest.fixture
def costs_file(tmp_path):
    path = tmp_path / "costs.csv"
    path.write_text("cost\n" + "\n".join(map(str, COSTS)) + "\n")
    return str(path)


def write(path, over, within):
    path.write_text("\n".join(map(str, [30.0] * over + [5.0] * within)))
    return str(path)


def read_json(capsys, *argv):
    assert main([*argv, "--json"]) == 0
    out = capsys.readouterr().out
    assert out.count("\n") == 1
    return json.loads(out, parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))


def test_json_has_the_numbers_of_the_library(capsys, costs_file):
    values = read_json(capsys, "certify", costs_file, "--limit", "25", "--risk", "0.2", "--confidence", "0.99")
    assert values == certify_costs(COSTS, 25.0, 0.2, 0.99).to_dict()


@pytest.mark.parametrize("preset", ["paper", "released", "corrected"])
def test_a_stein_certificate_comes_on_top(capsys, costs_file, preset):
    argv = ["certify", costs_file, "--limit", "25", "--stein", preset, "--certificate", "zero_mass=0.1"]
    values = read_json(capsys, *argv, "--risk", "0.2")
    certificate = SteinCertificate.from_name(preset, 25.0, budget=0.2, zero_mass=0.1)
    result = certificate.evaluate(COSTS)
    assert values["stein"] == json.loads(json.dumps(result.to_dict()))
    assert values["bound"] == certify_costs(COSTS, 25.0).bound
    assert main([*argv, "--risk", "0.2", "--explain"]) == 0
    out = " ".join(capsys.readouterr().out.split())
    for text in (f"{result.stein_bound:.4g}", f"{result.decision_value:.4g}", "gate closed", result.advice):
        assert text in out
    assert "fixed before looking" in out
    assert "\x1b" not in out


def test_the_last_line_is_the_verdict(capsys, tmp_path):
    """The bound is that of SciPy's binomial test, rounded up so that the printed bound holds."""
    exact = binomtest(130, 1000).proportion_ci(0.9, method="exact").high  # one-sided at 0.05
    file = write(tmp_path / "costs.txt", 130, 870)
    assert main(["certify", file, "--limit", "25"]) == 0
    first, *rest = capsys.readouterr().out.splitlines()
    assert first == f"1,000 episodes of {file}"
    assert 0.148 < exact < 0.149
    table = {line.split("  ")[0]: line for line in rest}
    assert table["mean cost"].split()[-1] == "8.25"
    assert table["largest cost"].split()[-1] == "30"
    assert rest[-1] == (
        f"Not certified for 10 %: the policy of {file}: 130 of 1,000 episodes cost more than 25 (13.0 %); with 95 % "
        "confidence at most 14.9 % do. The violation probability is above 10 %: lower the cost of the policy."
    )
    assert not any(word in "".join(rest) for word in ("KSD", "Stein", "reference", "atoms", "interior"))


@pytest.mark.parametrize(("over", "within", "status"), [(0, 29, 0), (0, 28, 1), (1, 29, 1), (0, 8, 1), (90, 10, 1)])
@pytest.mark.parametrize("options", [[], ["--stein", "released"], ["--json"]])
def test_check_means_certified(capsys, tmp_path, over, within, status, options):
    """The released Stein certificate opens after 8 episodes, which certify nothing."""
    path = write(tmp_path / "costs.txt", over, within)
    assert main(["certify", path, "--limit", "25", "--check", *options]) == status
    assert main(["certify", path, "--limit", "25", *options]) == 0
    capsys.readouterr()


def test_training_episodes_are_refused(capsys, tmp_path):
    (tmp_path / "config.json").write_text("{}")
    (tmp_path / "episodes.csv").write_text(",".join(EPISODE_COLUMNS) + "\n0,1,1.0,0.0,5\n")
    for source in (tmp_path, tmp_path / "episodes.csv"):
        assert main(["certify", str(source), "--limit", "25"]) == 2
        assert "steingate evaluate" in capsys.readouterr().err


def test_the_smallest_limit(capsys, tmp_path):
    """With 60 episodes one may be over the limit at 10 % and 95 %, so it is the second largest cost."""
    path = tmp_path / "costs.txt"
    path.write_text("\n".join(str(cost / 2) for cost in range(60)))
    values = read_json(capsys, "certify", str(path), "--smallest-limit")
    assert (values["smallest_limit"], values["episodes"]) == (29.0, 60)
    assert main(["certify", str(path), "--smallest-limit", "--check"]) == 0
    assert capsys.readouterr().out.startswith("Smallest limit: 29. With 95 % confidence at most 10 % of the episodes")
    assert main(["certify", str(path), "--smallest-limit", "--risk", "0.01", "--check"]) == 1
    assert "60 episodes certify no limit for 1 %: at least 299 are needed." in capsys.readouterr().out


def test_mean_and_cvar(capsys, costs_file):
    values = read_json(capsys, "certify", costs_file, "--limit", "25", "--cap", "100", "--risk", "0.2")
    expected = mean_bound(COSTS, 100.0), cvar_bound(COSTS, 0.2, 25.0, 100.0)
    assert (values["cap"], values["mean_bound"], values["cvar_bound"]) == (100.0, *expected)
    assert main(["certify", costs_file, "--limit", "25", "--cap", "100", "--risk", "0.2"]) == 0
    out = " ".join(capsys.readouterr().out.split())
    for name, bound in zip(("mean cost", "CVaR 20 %"), expected, strict=True):
        shown = float(re.search(rf"{name} ([\d.]+) bound", out)[1])
        assert bound <= shown <= bound * 1.001


def test_clusters(capsys, tmp_path):
    """Forty days of ten episodes; on one day all of them cost too much."""
    path = tmp_path / "costs.csv"
    path.write_text("day,cost\n" + "\n".join(f"d{i // 10},{30 if i < 10 else 3}" for i in range(400)))
    argv = ["certify", str(path), "--limit", "25", "--cluster", "day"]
    values = read_json(capsys, *argv)
    assert (values["clusters"], values["violations"], values["certified"]) == (40, 10, False)
    assert values["violation_rate"] == pytest.approx(1 / 40)
    assert certify_costs([30.0] * 10 + [3.0] * 390, 25.0).certified
    assert main([*argv, "--explain", "--check"]) == 1
    out = capsys.readouterr().out
    assert "10 of 400 episodes in 40 clusters" in out
    assert "The clusters are independent" in out
    assert "The episodes are independent" not in out


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--limit", "-5"], "limit is -5.0"),
        (["--limit", "25", "--risk", "1.5"], "risk is 1.5"),
        (
            ["--limit", "25", "--stein", "paper", "--certificate", "risk_function=exceedance"],
            "or a text such as exceedance:0.5",
        ),
        (
            ["--limit", "25", "--stein", "corrected", "--certificate", "risk_function=exceedence:0.5"],
            "did you mean exceedance?",
        ),
        (["--limit", "25", "--certificate", "zero_mass=0.1"], "--certificate needs --stein"),
        (["--limit", "25", "--smallest-limit"], "not allowed with"),
        (["--smallest-limit", "--stein", "paper"], "need --limit"),
        (["--smallest-limit", "--cap", "50"], "need --limit"),
        (["--limit", "25", "--cap", "20"], "--cap is 20.0; give a number in (25, inf)"),
        (["--limit", "25", "--cap", "50", "--cluster", "cost"], "--cap needs independent episodes"),
        (["--limit", "25", "--plot", "/no/such/folder/a.png"], "cannot be written"),
    ],
)
def test_bad_options_end_with_one_sentence(capsys, costs_file, options, words):
    assert main(["certify", costs_file, *options]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert words in err
    assert err.count("\n") == 1


def test_standard_input_in_a_process_of_its_own():
    command = [sys.executable, "-m", "steingate", "certify", "-", "--limit", "25", "--json"]
    done = subprocess.run(command, input="\n".join(map(str, COSTS)), capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout)["violations"] == 1


@pytest.mark.parametrize(
    ("ending", "words"), [("- <&-", "Standard input"), ("'{file}' >/dev/full", "annot write the output")]
)
def test_streams_that_fail_end_with_one_sentence(costs_file, ending, words):
    shell = f"'{sys.executable}' -m steingate certify --limit 25 {ending.format(file=costs_file)}"
    done = subprocess.run(["bash", "-c", shell], capture_output=True, text=True, timeout=120)
    assert done.returncode == 2
    assert words in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("name", "magic", "options"),
    [("a.png", b"\x89PNG", ()), ("a.svg", b"<?xml", ("--stein", "released")), ("a.pdf", b"%PDF", ())],
)
def test_plot_writes_the_format_of_its_name(capsys, tmp_path, costs_file, name, magic, options):
    target = tmp_path / name
    assert main(["certify", costs_file, "--limit", "25", *options, "--plot", str(target)]) == 0
    assert target.read_bytes().startswith(magic)
    assert capsys.readouterr().out.endswith(f"\nFigure: {target}\n")


# plan


@pytest.mark.parametrize(("risk", "episodes"), [("0.1", 29), ("0.05", 59), ("0.01", 299)])
def test_episodes_without_violations(capsys, risk, episodes):
    plan = read_json(capsys, "plan", "--risk", risk, "--confidence", "0.95")
    assert plan["episodes_needed"] == episodes
    assert "certifiable_risk" not in plan


def test_the_power_of_a_plan(capsys):
    plan = read_json(capsys, "plan", "--expect", "0.03", "--power", "0.9")
    assert (plan["episodes_for_power"], plan["violations_allowed"]) == (103, 5)
    assert main(["plan", "--expect", "0.03"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "Probability of certifying 10 % if 3 % of the episodes are violations"
    assert [line.split() for line in lines[1:3]] == [["29", "episodes", "41.3", "%"], ["103", "episodes", "91.0", "%"]]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--risk", "0"], "risk is 0.0"),
        (["--expect", "0.1"], "--expect must be below the risk, 0.1, got 0.1"),
        (["--violations", "-2"], "number of violations is -2"),
        (["--episodes", "5", "--violations", "9"], "whole number from 0 to 5"),
        (["--episodes", "many"], "'many'"),
        (["--rsik", "0.1"], "did you mean --risk?"),
    ],
)
def test_bad_options_of_plan_are_one_sentence(capsys, options, words):
    assert main(["plan", *options]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert words in err
    assert err.count("\n") == 1
