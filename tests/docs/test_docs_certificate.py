"""The certificate's page shows the numbers its script computes, and the example runs."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from tests.docs.scripts import docs_script

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "certificate.md").read_text()
NUMBER = re.compile(r"-?\d+(?:\.\d+)?")


def test_the_numbers_on_the_page_are_current():
    blocks = dict(re.findall(r"<!-- (\w+) -->\n(.*?)\n<!-- end -->", PAGE, re.DOTALL))
    fresh = docs_script("make_certificate_figures").numbers()
    assert set(blocks) == set(fresh)
    for name, text in fresh.items():
        assert NUMBER.sub("#", blocks[name]) == NUMBER.sub("#", text), name
        shown, computed = (
            [float(number) for number in NUMBER.findall(part)] for part in (blocks[name], text)
        )
        # Simulated quantiles may move a little with the version of the random generator.
        assert shown == pytest.approx(computed, rel=0.05, abs=0.003), name


def test_figures_and_links_of_the_page_exist():
    for target in re.findall(r"\]\(([^)#:]+)\)", PAGE):
        assert (ROOT / "docs" / target).is_file(), target
    assert PAGE.count("![") == 2


def test_the_example_is_short_and_runs():
    path = ROOT / "examples" / "certify_costs.py"
    assert len(path.read_text().splitlines()) < 60
    done = subprocess.run([sys.executable, str(path)], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    steady, gambling = done.stdout.split("gambling:")
    for preset in ("released", "certified", "confident"):
        assert re.search(rf"{preset} +open", steady)
        assert re.search(rf"{preset} +shut", gambling)
