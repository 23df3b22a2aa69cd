"""The page about environments of one's own: its examples run, its numbers are the stored ones."""

import csv
import re
import shlex
import sys
from pathlib import Path

import pytest

from steingate.cli import COMMANDS
from steingate.training.config import RunConfig

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "own_environment.md").read_text()


def blocks():
    """Pairs of a file's name, or None, and the text of each Python block."""
    return re.findall(r"^```python(?: file=(\S+))?\n(.*?)^```", PAGE, re.M | re.S)


def test_the_examples_run_one_after_the_other(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    names = {"__name__": "page"}
    found = blocks()
    assert len(found) == 3
    try:
        for file, text in found:
            if file:
                Path(file).write_text(text)
            else:
                exec(compile(text, "page", "exec"), names)
    finally:
        sys.modules.pop("my_env", None)
    assert names["action"] in (0, 1)
    assert names["run"].path.name == "seed-0"
    assert {path.name for path in Path("runs/cpo").iterdir()} == {"my_env-Corridor", "lambda"}


def test_commands_and_options_on_the_page_exist():
    lines = re.findall(r"^\$ steingate (.+)$", PAGE, re.M)
    assert len(lines) == 5
    for line in lines:
        command, *words = shlex.split(line)
        assert command in COMMANDS
        for option in (word for word in words if word.startswith("--")):
            assert hasattr(RunConfig(), option[2:].replace("-", "_"))


def test_the_table_is_the_stored_measurement():
    shown = PAGE.split("<!-- bench_workers: rows -->\n")[1].split("<!-- bench_workers: end -->")[0]
    stored = csv.DictReader((ROOT / "results" / "bench_workers.csv").open())
    expected = [
        "| {computes_ms:g} ms | {one_ms:.2f} ms | {several_ms:.2f} ms | {faster:.2f} |".format(
            **{name: float(value) for name, value in row.items()}
        )
        for row in stored
    ]
    assert expected
    assert shown.splitlines() == expected


@pytest.mark.parametrize("name", ["certificate.md"])
def test_links_lead_somewhere(name):
    assert f"({name})" in PAGE
    assert (ROOT / "docs" / name).is_file()
