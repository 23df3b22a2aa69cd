"""The page on grids shows what the kept measurement says."""

import csv
import re
from pathlib import Path

import pytest
from tests.docs.scripts import docs_script

from steingate.experiments.grid import BUILT_IN, load_grid, plan, resize

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs" / "grids.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def maker():
    return docs_script("make_grids_page")


def test_the_table_is_that_of_the_kept_measurement(maker):
    assert maker.page(TEXT) == TEXT, "run python docs/make_grids_page.py"


def test_side_by_side_is_faster_as_the_page_says(maker):
    if maker.MEASURED.exists():
        with open(maker.MEASURED, newline="") as file:
            assert all(float(row["ratio_median"]) > 1.0 for row in csv.DictReader(file))


def test_a_row_for_each_task(maker, tmp_path):
    file = tmp_path / "bench_grid.csv"
    file.write_text(
        "task,algo,steps,runs,cores,one_after_the_other_s,side_by_side_s,ratio,ratio_low,ratio_high\n"
        "SafetyCarCircle1-v0,cpo,400000,2,2,32.6,19.4,1.68,1.6,1.725\n"
    )
    assert maker.measured(file).splitlines()[2:] == [
        "| SafetyCarCircle1-v0, cpo, 400,000 | 2 on 2 | 32.6 s | 19.4 s | 1.68 (1.60–1.73) |"
    ]


def test_the_number_of_runs_of_each_grid():
    told = dict(re.findall(r"^\| `([\w-]+)` \| (\d+) \|", TEXT, re.MULTILINE))
    counts = {}
    for name in BUILT_IN:
        grid = load_grid(name)
        counts[name] = str(len(plan(grid, resize(grid, {}))))
    assert told == counts
