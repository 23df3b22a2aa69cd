"""``steingate certify``: tables for people, JSON for machines, statuses for scripts."""

import json
import subprocess
import sys

import numpy as np
import pytest

from steingate.cli import main
from steingate.core.certificate import Certificate

COSTS = [3.0, 8.0, 12.0, 0.0, 60.0, 17.5]


@pytest.fixture
def costs_file(tmp_path):
    path = tmp_path / "costs.csv"
    path.write_text("cost\n" + "\n".join(map(str, COSTS)) + "\n")
    return str(path)


@pytest.mark.parametrize("preset", ["paper", "released", "certified", "confident"])
def test_json_is_strict_and_equals_the_library(capsys, costs_file, preset):
    assert main(["certify", costs_file, "--limit", "25", "--preset", preset, "--json"]) == 0
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
    argv = ["certify", str(path), "--limit", "25", "--preset", "confident", "--json"]
    assert main([*argv, "--budget", "0.2", "--delta", "0.01", "--column", "EpCost"]) == 0
    expected = Certificate.preset("confident", limit=25.0, budget=0.2, delta=0.01).evaluate(COSTS)
    assert json.loads(capsys.readouterr().out) == expected.to_dict()


def test_check_tells_open_from_shut(capsys, tmp_path, costs_file):
    assert main(["certify", costs_file, "--limit", "25", "--preset", "released", "--check"]) == 1
    safe = tmp_path / "safe.npy"
    np.save(safe, np.linspace(1.0, 12.0, 20))
    assert main(["certify", str(safe), "--limit", "25", "--preset", "released", "--check"]) == 0
    assert main(["certify", costs_file, "--limit", "25", "--preset", "released", "--check", "--json"]) == 1
    capsys.readouterr()


@pytest.mark.parametrize("preset", ["paper", "released", "certified", "confident"])
def test_the_table_shows_terms_and_diagnosis(capsys, costs_file, preset):
    assert main(["certify", costs_file, "--limit", "25", "--preset", preset]) == 0
    out = capsys.readouterr().out
    result = Certificate.preset(preset, limit=25.0).evaluate(COSTS)
    shown = result.bound if preset == "confident" else result.stein_bound
    assert f"{shown:.4g}" in out
    assert f"{result.decision_value:.4g}" in out
    assert "SHUT" in out
    flat = " ".join(out.split())
    assert result.diagnosis in flat
    assert all(check.text in flat for check in Certificate.preset(preset, limit=25.0).checks)
    assert "\x1b" not in out


def test_the_default_preset_gives_a_guarantee(capsys, costs_file):
    assert main(["certify", costs_file, "--limit", "25", "--json"]) == 0
    values = json.loads(capsys.readouterr().out)
    assert values["preset"] == "confident"
    assert values["delta"] == 0.05


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--limit", "0"], "limit is 0.0"),
        (["--limit", "-5"], "limit is -5.0"),
        (["--limit", "nan"], "limit is nan"),
        (["--limit", "25", "--budget", "1.5"], "budget is 1.5"),
        (["--limit", "25", "--delta", "0"], "delta is 0.0"),
        (["--limit", "25", "--delta", "1e-20"], "delta is 1e-20"),
        (["--limit", "25", "--delta", "0.1", "--preset", "released"], "--delta 0.1 has no effect"),
        (["--limit", "25", "--preset", "certifed"], "preset 'certifed'"),
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
        "--preset",
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
    ("ending", "words"), [("- <&-", "Standard input"), ("'{file}' >/dev/full", "cannot be written")]
)
def test_streams_that_fail_end_with_one_sentence(costs_file, ending, words):
    ending = ending.format(file=costs_file)
    shell = f"'{sys.executable}' -m steingate certify --limit 25 --preset released {ending}"
    done = subprocess.run(["bash", "-c", shell], capture_output=True, text=True, timeout=120)
    assert done.returncode == 2
    assert words in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize(("name", "magic"), [("a.png", b"\x89PNG"), ("a.svg", b"<?xml"), ("a.pdf", b"%PDF")])
def test_plot_writes_the_format_its_name_asks_for(capsys, tmp_path, costs_file, name, magic):
    target = tmp_path / name
    assert main(["certify", costs_file, "--limit", "25", "--preset", "released", "--plot", str(target)]) == 0
    assert target.read_bytes().startswith(magic)
    capsys.readouterr()


def test_plot_to_a_missing_folder_is_a_sentence(capsys, costs_file):
    argv = ["certify", costs_file, "--limit", "25", "--preset", "released", "--plot", "/no/such/folder/a.png"]
    assert main(argv) == 2
    assert "cannot be written" in capsys.readouterr().err


def test_a_risk_may_be_named(capsys, costs_file):
    assert main(["certify", costs_file, "--limit", "25", "--risk", "sigmoid:0.5,0.02", "--json"]) == 0
    values = json.loads(capsys.readouterr().out)
    soft = Certificate.preset("confident", limit=25.0, risk="sigmoid").evaluate(COSTS)
    assert values["bound"] == soft.bound
    assert values["violation_bound"] == pytest.approx(min(2.0 * soft.bound, 1.0))
    assert main(["certify", costs_file, "--limit", "25", "--risk", "exceedence:0.5"]) == 2
    assert "did you mean exceedance?" in capsys.readouterr().err
