"""Generated tables are current, and computed numbers agree with a second computation."""

import re

import numpy as np
import pytest
from tests.docs.scripts import ROOT, docs_script
from tests.monitoring.walks import chance_certified

from steingate import Monitor

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


def test_monitor_numbers_agree_with_a_second_computation():
    stored = [row for row in docs_script("summary").rows("monitor_peeking.csv") if int(row["episodes"]) <= 600]
    for rate in TABLES.RATES:
        fixed = TABLES.stopping_probability(rate, TABLES.fixed_sample_rule(rate, 600), 600)
        monitor = chance_certified(rate, rate, TABLES.DELTA, 600)
        for row in (row for row in stored if float(row["risk"]) == rate):
            n = int(row["episodes"])
            assert float(row["fixed_n"]) == pytest.approx(fixed[n], rel=1e-3, abs=1e-12)
            assert float(row["monitor"]) == pytest.approx(monitor[n], rel=1e-3, abs=1e-12)
    for row in docs_script("summary").rows("monitor_price.csv"):
        if int(row["monitor_q90"]) <= 500:
            stopped = chance_certified(float(row["risk"]), float(row["budget"]), TABLES.DELTA, 500)
            assert int(row["monitor_median"]) == np.searchsorted(stopped, 0.5)
            assert int(row["monitor_q90"]) == np.searchsorted(stopped, 0.9)


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
