"""The page about environments of one's own: its examples run, what it names is there."""

import re
import shlex
import sys
from pathlib import Path

from steingate.cli import COMMANDS
from steingate.envs import worker_speed as pace
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


def test_links_and_scripts_are_there():
    links = re.findall(r"\]\((\w+\.md)[#)]", PAGE)
    assert links
    assert all((ROOT / "docs" / name).is_file() for name in links)
    assert (ROOT / re.findall(r"`python (benchmarks/\w+\.py)`", PAGE)[0]).is_file()


def test_the_numbers_of_the_measurement_are_those_of_the_code():
    words = " ".join(PAGE.split())
    assert f"times {pace.STEPS} steps (at most {pace.SECONDS:g} s)" in words
    assert f"at least {pace.GAIN:g} times faster" in words
