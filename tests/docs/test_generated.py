"""Generated tables are current, and computed numbers agree with a second computation."""

import re

import numpy as np
import pytest
from tests.docs.scripts import ROOT, docs_script
from tests.monitoring.walks import chance_certified, fixed_sample_rule, peeking

from steingate import Monitor
from steingate.certificates.violation import certification_power, clopper_pearson_upper

NUMBER = re.compile(r"-?\d+(?:\.\d+)?")
TABLES = docs_script("build_tables")


@pytest.mark.parametrize("name", [name for name in [*TABLES.BLOCKS, *TABLES.PAGES] if "certificate" not in name])
def test_page_is_current(name):
    assert TABLES.generate(name) == (ROOT / name).read_text(encoding="utf-8"), "run python docs/build_tables.py"


@pytest.mark.slow
@pytest.mark.parametrize("name", ["certificate", "stein_certificate"])
def test_numbers_of_the_certificate_pages_are_current(name):
    page = (ROOT / "docs" / f"{name}.md").read_text(encoding="utf-8")
    blocks = dict(re.findall(r"<!-- (\w+) -->\n((?!```).*?)\n<!-- end -->", page, re.DOTALL))
    fresh = TABLES.BLOCKS[f"docs/{name}.md"]()
    assert set(blocks) == set(fresh)
    for name, text in fresh.items():
        assert NUMBER.sub("#", blocks[name]) == NUMBER.sub("#", text), name
        shown, computed = ([float(number) for number in NUMBER.findall(part)] for part in (blocks[name], text))
        assert shown == pytest.approx(computed, rel=0.05, abs=0.011), name  # quantiles depend on the generator


def test_monitor_numbers_are_current():
    stored = docs_script("summary").rows
    assert list(peeking(600)) == [row for row in stored("monitor_peeking.csv") if int(row["episodes"]) <= 600]
    for n, most in enumerate(fixed_sample_rule(0.1, 100)):
        assert most == -1 or clopper_pearson_upper(most, n) <= 0.1
        assert n == 0 or most == n or clopper_pearson_upper(most + 1, n) > 0.1
    for row in stored("monitor_price.csv"):
        p, budget = float(row["risk"]), float(row["budget"])
        stopped = chance_certified(p, budget, 0.05, 500)
        for name, level in (("median", 0.5), ("q90", 0.9)):
            n = int(row[f"fixed_{name}"])
            assert certification_power(n - 1, p, budget) < level <= certification_power(n, p, budget)
            if int(row[f"monitor_{name}"]) <= 500:
                assert int(row[f"monitor_{name}"]) == np.searchsorted(stopped, level)


def test_the_monitor_keeps_its_promise_and_a_fixed_sample_bound_does_not():
    last = docs_script("summary").rows("monitor_peeking.csv", episodes="10000")
    assert len(last) == 3
    assert all(float(row["monitor"]) <= 0.05 < 0.3 < float(row["fixed_n"]) for row in last)
    for n in (100, 10_000):  # "n episodes show a rate of about 3.7 / n at best"
        monitor = Monitor(25)
        monitor.update_many(np.zeros(n))
        assert 3.3 < n * monitor.bound < 3.9


def test_example_costs_are_those_of_the_first_figure():
    figures = docs_script("build_figures")
    assert (ROOT / "examples" / "costs.csv").read_text() == figures.costs_file()
    steady, gambling = figures.example_policies().values()
    assert steady.mean() == pytest.approx(gambling.mean(), abs=1.0)
    assert 1 / 8 < (gambling > 25.0).mean() < 1 / 6  # "every seventh episode"


def test_every_figure_of_a_page_is_drawn():
    drawn = {f"{name}.png" for name in docs_script("build_figures").DRAWINGS}
    pages = [ROOT / "README.md", *(ROOT / "docs").glob("*.md"), *(ROOT / "docs" / "howto").glob("*.md")]
    shown = {name for page in pages for name in re.findall(r"\]\((?:docs/)?figures/(.*?)\)", page.read_text())}
    assert shown == drawn == {path.name for path in (ROOT / "docs" / "figures").iterdir()}
