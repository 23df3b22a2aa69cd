"""The README's numbers are those of the files in the repository, its links lead somewhere, its code runs."""

import csv
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from tests.docs.scripts import docs_script

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()


def block(name):
    return re.search(rf"<!-- {name} -->\n(.*?)\n<!-- end -->", README, re.DOTALL)[1].splitlines()[2:]


def cells(line):
    return [cell.strip() for cell in line.strip("|").split("|")]


def rows(path):
    with open(ROOT / "results" / path, newline="") as file:
        return list(csv.DictReader(file))


def test_results_are_the_means_of_the_kept_runs():
    tasks = ("PointGoal1", "PointCircle1", "CarGoal1", "CarCircle1")
    *shown, paper = [cells(line) for line in block("results")]
    assert [row[0].strip("*") for row in shown] == [
        "cpo", "evo", "trpo-saute", "trpo-simmer", "steingate", "allowance"
    ]  # fmt: skip
    for name, seeds, *pairs in shown:
        counts = []
        for task, pair in zip(tasks, pairs, strict=True):
            kept = [
                row
                for row in rows("kept/summary.csv")
                if row["grid"] in ("table1", "allowance")
                and (row["algo"], row["env"]) == (name.strip("*"), f"Safety{task}-v0")
            ]
            counts.append(len(kept))
            ret, over = (float(part) for part in pair.removesuffix(" %").split(" · "))
            assert ret == pytest.approx(np.mean([float(row["return"]) for row in kept]), abs=0.051)
            shares = [int(row["over_count"]) / int(row["episodes"]) for row in kept]
            assert over == pytest.approx(100.0 * np.mean(shares), abs=0.051)
        assert seeds == "–".join(str(count) for count in sorted({min(counts), max(counts)}))
    assert paper[:2] == ["*the paper's steingate, feasible return*", "6"]
    assert paper[2:] == ["9.77 · –", "46.15 · –", "12.65 · –", "16.77 · –"]


def test_what_is_said_of_the_results():
    """The allowance's bounds are told by the tests of its page."""
    stein = [row for row in rows("kept/summary.csv") if (row["grid"], row["algo"]) == ("table1", "steingate")]
    feasible = np.mean([float(row["feasible_by_epoch"]) for row in stein])
    assert f"SteinGate is within the limit in {100.0 * feasible:.0f} of 100 epochs" in README
    over = [1.0 - float(row["feasible_by_episode"]) for row in stein if "Goal" in row["env"]]
    numbers = {5: "five", 6: "six", 7: "seven"}
    assert f"one in {numbers[round(1.0 / np.mean(over))]} of its Goal episodes is over" in README


def test_speeds_are_those_of_the_kept_benchmark():
    kept = [
        [row["task"][6:-3], f"{int(float(row['steps_per_s'])):,}", f"{float(row['ratio']):.2f}"]
        for row in rows("bench_train.csv")
    ]
    assert [cells(line) for line in block("speed")] == kept


def test_links_and_figures_exist():
    for target in re.findall(r"\]\(([^)#:]+)\)", README):
        assert (ROOT / target).exists(), target


def test_the_first_example_runs():
    code = re.search(r"```python\n(from steingate import Certificate.*?)```", README, re.DOTALL)[1]
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("False ")


def test_the_costs_to_try_are_those_of_the_first_figure():
    maker = docs_script("make_readme_figure")
    assert (ROOT / "examples" / "costs.csv").read_text() == maker.costs_file()
    costs = maker.policies()["gambling policy"]
    assert costs.mean() < 12.5  # "far below the limit"
    assert 1 / 8 < (costs > 25.0).mean() < 1 / 6  # "one episode in seven"
