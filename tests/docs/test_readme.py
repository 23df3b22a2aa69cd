"""The README's numbers are those of the files in the repository, its links lead somewhere, its code runs."""

import csv
import re
import subprocess
import sys
from pathlib import Path

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


def test_results_are_those_of_the_kept_runs():
    kept = {(row["env"][6:-3], row["algo"], row["seed"]): row for row in rows("paper_runs/summary.csv")}
    shown = [cells(line) for line in block("results")]
    assert {tuple(row[:3]) for row in shown} == set(kept)
    for task, algo, seed, *numbers in shown:
        row = kept[task, algo, seed]
        expected = [
            f"{float(row['return']):.1f}",
            f"{float(row['cost']):.1f}",
            f"{float(row['feasible_by_epoch']):.2f}",
            f"{float(row['return_if_feasible_by_epoch']):.1f}",
            f"{float(row['paper_feasible']):.3f}" if row["paper_feasible"] else "–",
            f"{float(row['paper_return_if_feasible']):.2f}" if row["paper_feasible"] else "–",
            f"{float(row['feasible_by_episode']):.2f}",
            f"{float(row['cvar90']):.0f}",
        ]
        assert numbers == expected


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


def test_the_figure_of_results_is_drawn_from_the_kept_runs(tmp_path):
    maker = docs_script("make_safety_figure")
    tasks = maker.scores_by_task(ROOT / "results" / "paper_runs")
    kept = rows("paper_runs/summary.csv")
    assert sum(len(seeds) for scores in tasks.values() for seeds in scores.values()) == len(kept)
    row = kept[0]
    assert (float(row["over_limit"]), float(row["return"])) in tasks[row["env"]][row["algo"]]
    algos = sorted({row["algo"] for row in kept})
    assert len(set(maker.colours_of(algos).values())) == len(algos)
    assert maker.colours_of(["cpo"]) == {"cpo": "#2f6f9f"}  # as on every page
    maker.draw(ROOT / "results" / "paper_runs", tmp_path / "figure.png")
    assert (tmp_path / "figure.png").stat().st_size > 10_000
