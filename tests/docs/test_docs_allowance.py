"""The page on the allowance shows what the kept files say."""

import csv
import re
from pathlib import Path

import pytest
from tests.docs.scripts import docs_script

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs" / "allowance.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def maker():
    return docs_script("make_allowance_page")


def test_the_table_is_that_of_the_kept_runs(maker):
    assert maker.page(TEXT) == TEXT, "run python docs/make_allowance_page.py"


def test_intervals_of_shares_hold_them(maker):
    for row in (*maker.rows("allowance_runs/summary.csv"), *maker.rows("paper_runs/summary.csv")):
        low, high = maker.interval(row)
        assert 0.0 <= low <= float(row["over_limit"]) + 0.001
        assert float(row["over_limit"]) - 0.001 <= high <= float(row["over_limit"]) + 0.03


def test_what_the_text_says_of_the_last_policies(maker):
    for row in maker.rows("allowance_runs/endpoints.csv"):
        assert float(row["over_bound"]) <= (0.03 if "Circle" in row["env"] else 0.1)


def test_the_summary_agrees_with_the_epochs():
    """An independent count: the last fifth of the epochs, each with as many episodes."""
    folder = ROOT / "results" / "allowance_runs"
    with open(folder / "summary.csv", newline="") as file:
        kept = list(csv.DictReader(file))
    for row in kept:
        name = f"{row['algo']}_{row['env']}_seed-{row['seed']}.csv"
        with open(folder / name, newline="") as file:
            epochs = list(csv.DictReader(file))
        shares = [float(epoch["Epoch/OverLimit"]) for epoch in epochs[-len(epochs) // 5 :]]
        assert sum(shares) / len(shares) == pytest.approx(float(row["over_limit"]), abs=0.001)


def test_links_exist():
    for target in re.findall(r"\]\(([^)#:]+)", TEXT):
        assert (ROOT / "docs" / target).exists(), target


def test_what_the_readme_says_of_it(maker):
    kept = {(row["env"], row["algo"]): row for row in maker.rows("allowance_runs/summary.csv")}
    others = [row for row in maker.rows("paper_runs/summary.csv") if row["algo"] == "steingate"]
    for row in others:
        own = kept[row["env"], "allowance"]
        if "Goal" in row["env"]:
            assert float(own["return"]) > float(row["return"])
            assert float(own["over_limit"]) < 0.2 * float(row["over_limit"])
        else:
            assert float(own["return"]) > 0.98 * float(row["return"])
            assert float(own["over_limit"]) < 0.01
