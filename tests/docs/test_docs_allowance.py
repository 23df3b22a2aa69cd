"""The page on the allowance shows what the kept files say."""

import json
import re
import sys
from pathlib import Path

import pytest

from steingate.training.config import make_config

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs" / "allowance.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def maker():
    sys.path.insert(0, str(ROOT / "docs"))
    try:
        import make_allowance_page
    finally:
        sys.path.pop(0)
    return make_allowance_page


def test_the_table_is_that_of_the_kept_runs(maker):
    assert maker.page(TEXT) == TEXT, "run python docs/make_allowance_page.py"


def test_all_kept_runs_have_the_defaults(maker):
    usual = make_config({"env": maker.TASKS[0], "algo": "allowance"}).to_dict()["recipe"]
    runs = maker.rows(grid="allowance")
    assert runs
    for run in runs:
        place = f"allowance/allowance/{run['env']}/seed-{run['seed']}/config.json"
        assert json.loads((ROOT / "results" / "kept" / place).read_text())["config"]["recipe"] == usual


def test_medians_are_medians(maker):
    runs = [{"seed": str(seed), "return": str(value)} for seed, value in enumerate((3.0, 9.0, 4.0))]
    assert maker.median(runs) == {"seed": "median", "return": "4.0"}


def test_intervals_of_shares_hold_them(maker):
    for row in maker.points():
        over, count = int(row["over_count"]), int(row["episodes"])
        low, high = maker.interval(over, count)
        assert low <= over / count <= high <= over / count + 0.03


def test_links_exist():
    for target in re.findall(r"\]\(([^)#:]+)", TEXT):
        assert (ROOT / "docs" / target).exists(), target
