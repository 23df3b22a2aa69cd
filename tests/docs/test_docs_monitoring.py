"""The page about monitoring shows the stored numbers, and a few of them are computed again."""

import re
from pathlib import Path

import numpy as np
import pytest
from tests.docs.scripts import docs_script
from tests.monitoring.walks import chance_certified

from steingate import Monitor
from steingate.cli import COMMANDS
from steingate.cli.monitor import add_arguments
from steingate.cli.parser import Parser

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "monitoring.md").read_text()


def test_the_tables_are_those_of_the_stored_numbers():
    assert docs_script("make_monitor_figures").with_numbers(PAGE) == PAGE


def test_stored_numbers_are_what_is_computed():
    script = docs_script("make_monitor_figures")
    rows = [row for row in script.read(script.PEEKING) if row["episodes"] <= 600]
    for risk in script.RISKS:
        fixed = script.ever(risk, script.fixed_rule(risk, 600), 600)
        watched = chance_certified(risk, risk, script.DELTA, 600)  # another way to the same number
        for row in rows:
            if row["risk"] == risk:
                assert row["fixed_n"] == pytest.approx(fixed[int(row["episodes"])], rel=1e-3, abs=1e-12)
                assert row["monitor"] == pytest.approx(watched[int(row["episodes"])], rel=1e-3, abs=1e-12)
    for row in script.read(script.PRICE):
        if row["monitor_q90"] <= 500:
            done = chance_certified(row["risk"], row["budget"], script.DELTA, 500)
            assert row["monitor_median"] == np.searchsorted(done, 0.5)
            assert row["monitor_q90"] == np.searchsorted(done, 0.9)


def test_the_monitor_keeps_its_promise_and_the_other_does_not():
    script = docs_script("make_monitor_figures")
    last = [row for row in script.read(script.PEEKING) if row["episodes"] == script.EPISODES]
    assert len(last) == len(script.RISKS)
    assert all(row["monitor"] <= script.DELTA < 0.3 < row["fixed_n"] for row in last)


def test_names_on_the_page_exist():
    rows = re.findall(r"^\| (`[^|]+) \|", PAGE.split("## What a monitor knows")[1].split("##")[0], re.M)
    names = [name for row in rows for name in re.findall(r"`(\w+)", row)]
    assert len(names) > 10
    assert all(hasattr(Monitor(), name) for name in names)
    assert "monitor" in COMMANDS
    parser = Parser(prog="x", description="x")
    add_arguments(parser)
    known = {option for action in parser._actions for option in action.option_strings}
    part = PAGE.split("## On the command line")[1].split("\n## ")[0]
    assert set(re.findall(r"--[a-z-]+", part)) <= known
    for target in re.findall(r"\]\(([^)#:]+)\)", PAGE):
        assert (ROOT / "docs" / target).is_file()


def test_the_number_for_clean_episodes_is_right():
    for n in (100, 10_000):
        monitor = Monitor()
        monitor.update_many(np.zeros(n))
        assert 3.3 < n * monitor.bound < 3.9
