"""``steingate certify``: tables for people, JSON for machines, statuses for scripts."""

import json
import subprocess
import sys

import numpy as np
import pytest
from scipy.stats import binomtest

from steingate.certificates.certificate import Certificate
from steingate.cli import main
from steingate.runs import RunFolder, Table, write_config
from steingate.storage.tables import EPISODE_COLUMNS

COSTS = [3.0, 8.0, 12.0, 0.0, 60.0, 17.5]


@pytest.fixture
def costs_file(tmp_path):
    path = tmp_path / "costs.csv"
    path.write_text("cost\n" + "\n".join(map(str, COSTS)) + "\n")
    return str(path)


@pytest.mark.parametrize("preset", ["paper", "released", "certified", "confident"])
def test_json_is_strict_and_equals_the_library(capsys, costs_file, preset):
    assert main(["certify", costs_file, "--limit", "25", "--stein", preset, "--json"]) == 0
    out = capsys.readouterr().out
    values = json.loads(out, parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))
    certificate = Certificate.preset(preset, limit=25.0)
    checks = values["checks"]
    assert [check["name"] for check in checks] == [check.name for check in certificate.checks]
    assert [check["holds"] for check in checks] == [check.holds for check in certificate.checks]
    assert values == certificate.evaluate(COSTS).to_dict()
    assert out.count("\n") == 1


def test_budget_delta_and_column_reach_the_certificate(capsys, tmp_path):
    path = tmp_path / "table.csv"
    path.write_text("step,EpCost\n" + "\n".join(f"{i},{cost}" for i, cost in enumerate(COSTS)))
    argv = ["certify", str(path), "--limit", "25", "--stein", "confident", "--json"]
    assert main([*argv, "--risk", "0.2", "--confidence", "0.99", "--column", "EpCost"]) == 0
    expected = Certificate.preset("confident", limit=25.0, budget=0.2, delta=0.01).evaluate(COSTS)
    assert json.loads(capsys.readouterr().out) == expected.to_dict()


def test_check_tells_open_from_shut(capsys, tmp_path, costs_file):
    assert main(["certify", costs_file, "--limit", "25", "--stein", "released", "--check"]) == 1
    safe = tmp_path / "safe.npy"
    np.save(safe, np.linspace(1.0, 12.0, 20))
    assert main(["certify", str(safe), "--limit", "25", "--stein", "released", "--check"]) == 0
    assert main(["certify", costs_file, "--limit", "25", "--stein", "released", "--check", "--json"]) == 1
    capsys.readouterr()


@pytest.mark.parametrize("preset", ["paper", "released", "certified", "confident"])
def test_the_table_shows_terms_and_diagnosis(capsys, costs_file, preset):
    argv = ["certify", costs_file, "--limit", "25", "--stein", preset]
    assert main(argv) == 0
    short = capsys.readouterr().out
    assert not any(
        word in short for word in ("KSD", "Stein", "reference", "atoms", "interior", "discrepancy")
    )
    assert main([*argv, "--explain"]) == 0
    out = capsys.readouterr().out
    assert out.startswith(short)
    result = Certificate.preset(preset, limit=25.0).evaluate(COSTS)
    shown = result.bound if preset == "confident" else result.stein_bound
    assert f"{shown:.4g}" in out
    assert f"{result.decision_value:.4g}" in out
    assert ": shut" in out
    flat = " ".join(out.split())
    assert result.diagnosis in flat
    assert all(check.text in flat for check in Certificate.preset(preset, limit=25.0).checks)
    assert "\x1b" not in out


def write(path, over, within, limit=25.0):
    path.write_text("\n".join(map(str, [limit + 5.0] * over + [limit / 5.0] * within)))
    return str(path)


def test_the_first_line_is_the_verdict_in_plain_words(capsys, tmp_path):
    """The bound is that of SciPy's own binomial test, rounded up so that what is printed holds."""
    exact = (
        binomtest(130, 1000).proportion_ci(0.9, method="exact").high
    )  # two-sided at 0.1 is one-sided at 0.05
    assert main(["certify", write(tmp_path / "costs.txt", 130, 870), "--limit", "25"]) == 0
    first, *rest = capsys.readouterr().out.splitlines()
    assert first == (
        "130 of 1000 episodes exceeded 25 (13.0 %); with 95 % confidence at most 14.9 %. "
        "Not certified for 10 %."
    )
    assert 0.148 < exact < 0.149
    table = {line.split("  ")[0]: line for line in rest}
    assert table["mean cost"].split()[-1] == "8.25"
    assert table["worst cost"].split()[-1] == "30"
    assert "13.0 %" in table["over 25"]
    assert "more" not in " ".join(rest[:-1]).lower()
    assert rest[-1] == "More episodes of this policy would not help, a safer policy would."


@pytest.mark.parametrize(
    ("over", "within", "verdict", "told"),
    [
        (0, 29, "Certified for 10 %.", "independent episodes of one unchanged policy"),
        (0, 28, "Not certified for 10 %.", "too few: 29 with none over the limit"),
        (1, 29, "Not certified for 10 %.", "too few: 46 with no more than 1 over the limit"),
        (90, 10, "Not certified for 10 %.", "a safer policy would"),
        (1, 3, "Not certified for 10 %.", "so expect to need a safer policy"),  # P may well be under 10 %
    ],
)
def test_the_advice_fits_the_verdict(capsys, tmp_path, over, within, verdict, told):
    assert main(["certify", write(tmp_path / "costs.txt", over, within), "--limit", "25"]) == 0
    out = capsys.readouterr().out
    assert out.splitlines()[0].endswith(f" {verdict}")
    assert told in out.splitlines()[-1]


@pytest.mark.parametrize("risk", ["hinge:0.5", "power:8"])
def test_a_gate_that_opens_over_the_budget_says_so(capsys, tmp_path, risk):
    """All episodes are over the limit by little, which a soft risk hardly counts."""
    path = tmp_path / "costs.txt"
    path.write_text("\n".join(["26"] * 900 + ["0"] * 100))
    argv = ["certify", str(path), "--limit", "25", "--risk-function", risk]
    assert main([*argv, "--check"]) == 1  # a script reads no warnings
    out = capsys.readouterr().out
    assert "900 of 1000 episodes exceeded 25 (90.0 %)" in out
    assert "Not certified" in out
    assert "is open all the same" in out
    assert main([*argv, "--json"]) == 0
    values = json.loads(capsys.readouterr().out)
    assert values["safe"]
    assert not values["certified"]
    assert "90.0 % of these episodes cost more than 25" in values["diagnosis"]
    path.write_text("\n".join(["26"] * 9 + ["0"]))  # too few to open it
    assert main([*argv, "--explain"]) == 0
    out = capsys.readouterr().out
    assert "more without any risk" not in out
    assert "a safer policy would" in out


def test_exceedance_is_of_the_limit_wherever_it_is(capsys, tmp_path):
    path = write(tmp_path / "costs.txt", 1, 99)
    for preset in ("confident", "released"):
        assert (
            main(
                [
                    "certify",
                    path,
                    "--limit",
                    "25",
                    "--stein",
                    preset,
                    "--risk-function",
                    "exceedance",
                    "--json",
                ]
            )
            == 0
        )
        assert json.loads(capsys.readouterr().out)["empirical_risk"] == 0.01
    moved = Certificate.preset("confident", limit=25.0, scale_multiplier=4.0, risk="exceedance")
    assert moved.evaluate([24.9, 25.1, 99.0, 101.0]).empirical_risk == 0.75
    assert moved.violation_factor == 1.0


@pytest.mark.parametrize("preset", ["confident", "certified", "released"])
def test_a_limit_of_0_counts_every_cost(capsys, tmp_path, preset):
    path = tmp_path / "costs.txt"
    path.write_text("\n".join(["1"] * 3 + ["0"] * 97))
    assert main(["certify", str(path), "--limit", "0", "--stein", preset, "--json"]) == 0
    values = json.loads(capsys.readouterr().out)
    assert (values["over"], values["scale"]) == (3, 1.0)
    assert values["empirical_risk"] == pytest.approx(
        0.03
    )  # a cost of 1 is a whole violation, not half of one
    assert values["over_bound"] == pytest.approx(binomtest(3, 100).proportion_ci(0.9, method="exact").high)


def test_a_run_is_known_and_its_mixture_of_policies_told(capsys, tmp_path):
    run = RunFolder(tmp_path)
    write_config(run, {"config": {}})
    table = Table(run.episodes, EPISODE_COLUMNS)
    table.append(
        {"epoch": i // 10, "step": i, "return": 1.0, "cost": 0.0 if i >= 83 else 90.0, "length": 5}
        for i in range(100)
    )
    with open(run.episodes, "a") as file:
        file.write("10,100,1.0,9")  # still being written
    for name in (run.path, run.episodes):
        assert main(["certify", str(name), "--limit", "25"]) == 0
        out = capsys.readouterr().out
        assert "100 training episodes of a run" in out
        assert "The last 20 of them are taken, epochs 8 to 9: a mixture of 2 policies" in out
        assert "3 of 20 episodes exceeded 25 (15.0 %)" in out
        assert "Certified" not in out
        assert "they certify none of them" in out
        assert main(["certify", str(name), "--limit", "25", "--json"]) == 0
        values = json.loads(capsys.readouterr().out)
        assert values["samples"] == 20
        assert values["mixed_policies"] is True


def test_the_last_epoch_of_a_run_is_one_policy_and_costs_below_0_are_none(capsys, tmp_path):
    run = RunFolder(tmp_path)
    write_config(run, {"config": {}})
    table = Table(run.episodes, EPISODE_COLUMNS)
    table.append(
        {"epoch": i // 10, "step": i, "return": 1.0, "cost": -2.5 if i % 2 else 30.0, "length": 5}
        for i in range(50)
    )
    assert main(["certify", str(run.path), "--limit", "25"]) == 0
    out = capsys.readouterr().out
    assert "The last 10 of them are taken, epoch 4: these are of one policy" in out
    assert "5 of 10 episodes exceeded 25" in out
    assert "exploration noise" in out
    assert "Costs below 0 are taken as 0." in out


def test_a_folder_that_is_no_run_is_refused(capsys, tmp_path):
    assert main(["certify", str(tmp_path), "--limit", "25"]) == 2
    assert "no run" in capsys.readouterr().err


def test_monitor_files_of_stable_baselines3_are_read(capsys, tmp_path):
    rows = "\n".join(f"{i / 2},200,{i}.5,{30 if i < 2 else 1}" for i in range(60))
    path = tmp_path / "0.monitor.csv"
    path.write_text('#{"t_start": 1700000000.0, "env_id": "Safe-v0"}\nr,l,t,cost\n' + rows)
    assert main(["certify", str(path), "--limit", "25"]) == 0
    out = capsys.readouterr().out
    assert "2 of 60 episodes exceeded 25" in out
    assert "info['cost'] at the last step" in out
    path.write_text('#{"t_start": 1.0, "env_id": null}\nr,l,t\n1.0,2,3.0\n')
    assert main(["certify", str(path), "--limit", "25"]) == 2
    assert "info_keywords=('cost',)" in capsys.readouterr().err
    path.write_text("#{}\nr,l,t,cost\n1.0,2,3.0,x\n")
    assert main(["certify", str(path), "--limit", "25"]) == 2
    assert "line 3: 'x'" in capsys.readouterr().err


def test_the_default_preset_gives_a_guarantee(capsys, costs_file):
    assert main(["certify", costs_file, "--limit", "25", "--json"]) == 0
    values = json.loads(capsys.readouterr().out)
    assert values["preset"] == "confident"
    assert values["delta"] == 0.05


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--limit", "-5"], "limit is -5.0"),
        (["--limit", "nan"], "limit is nan"),
        (["--limit", "25", "--risk", "1.5"], "budget is 1.5"),
        (["--limit", "25", "--confidence", "0"], "confidence must be between 0 and 1"),
        (["--limit", "25", "--stein", "paper", "--risk-function", "exceedance"], "costs are cut there"),
        (["--limit", "25", "--stein", "certifed"], "preset 'certifed'"),
        (["--limit", "25", "--column", "reward"], "no column 'reward'"),
        (["--limit", "25", "--plot", "figure.gif"], "figure.gif"),
    ],
)
def test_bad_options_end_with_one_sentence(capsys, costs_file, options, words):
    assert main(["certify", costs_file, *options]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert words in err
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    ("text", "words"),
    [("", "empty"), ("1\nx\n", "line 2: 'x'"), ("-1\n", "line 1: '-1'"), ("[1, NaN]", "nan")],
)
def test_bad_files_end_with_one_sentence_and_no_verdict(capsys, tmp_path, text, words):
    path = tmp_path / "bad.csv"
    path.write_text(text)
    assert main(["certify", str(path), "--limit", "25", "--json"]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert words in err


def test_standard_input_in_a_process_of_its_own():
    command = [
        sys.executable,
        "-m",
        "steingate",
        "certify",
        "-",
        "--limit",
        "25",
        "--stein",
        "released",
        "--json",
    ]
    done = subprocess.run(
        command, input="\n".join(map(str, COSTS)), capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0
    assert done.stderr == ""
    assert json.loads(done.stdout)["one_mass"] == pytest.approx(1 / 6)


@pytest.mark.parametrize(
    ("ending", "words"), [("- <&-", "Standard input"), ("'{file}' >/dev/full", "annot write the output")]
)
def test_streams_that_fail_end_with_one_sentence(costs_file, ending, words):
    ending = ending.format(file=costs_file)
    shell = f"'{sys.executable}' -m steingate certify --limit 25 --stein released {ending}"
    done = subprocess.run(["bash", "-c", shell], capture_output=True, text=True, timeout=120)
    assert done.returncode == 2
    assert words in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize(("name", "magic"), [("a.png", b"\x89PNG"), ("a.svg", b"<?xml"), ("a.pdf", b"%PDF")])
def test_plot_writes_the_format_its_name_asks_for(capsys, tmp_path, costs_file, name, magic):
    target = tmp_path / name
    assert main(["certify", costs_file, "--limit", "25", "--stein", "released", "--plot", str(target)]) == 0
    assert target.read_bytes().startswith(magic)
    capsys.readouterr()


def test_plot_to_a_missing_folder_is_a_sentence(capsys, costs_file):
    argv = ["certify", costs_file, "--limit", "25", "--stein", "released", "--plot", "/no/such/folder/a.png"]
    assert main(argv) == 2
    assert "cannot be written" in capsys.readouterr().err


def test_a_risk_may_be_named(capsys, costs_file):
    assert (
        main(["certify", costs_file, "--limit", "25", "--risk-function", "sigmoid:0.5,0.02", "--json"]) == 0
    )
    values = json.loads(capsys.readouterr().out)
    soft = Certificate.preset("confident", limit=25.0, risk="sigmoid").evaluate(COSTS)
    assert values["bound"] == soft.bound
    assert values["violation_bound"] == pytest.approx(min(2.0 * soft.bound, 1.0))
    assert main(["certify", costs_file, "--limit", "25", "--risk-function", "exceedence:0.5"]) == 2
    assert "did you mean exceedance?" in capsys.readouterr().err
