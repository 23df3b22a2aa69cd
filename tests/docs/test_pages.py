"""Code on the pages runs, links lead somewhere, and every public name is in the reference."""

import ast
import importlib
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from tests.docs.scripts import DOCS, ROOT

import steingate
from steingate.cli import COMMANDS, load_command

PAGES = sorted([*ROOT.glob("*.md"), ROOT / "results" / "README.md", *DOCS.rglob("*.md")])
FOREIGN = {"steingate.integrations.sb3"}  # needs Stable-Baselines3
REFERENCE = [
    name
    for page in sorted(DOCS.glob("reference/*.md"))
    for name in re.findall(r"^\.\. auto(?:class|function|module):: (\S+)", page.read_text(), re.MULTILINE)
]


def code(page, language):
    return re.findall(rf"^```{language}\n(.*?)^```", page.read_text(), re.MULTILINE | re.DOTALL)


def resolve(name):
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError:
        home, _, last = name.rpartition(".")
        return getattr(importlib.import_module(home), last)


@pytest.mark.filterwarnings("default:This is the last policy")  # too short to certify one
def test_readme_blocks_run(capsys, tmp_path, monkeypatch):
    """The Python blocks run, with fewer steps of training; the shell reads the other ones."""
    monkeypatch.chdir(tmp_path)
    blocks = code(ROOT / "README.md", "python")
    assert len(blocks) == 2
    for block in blocks:
        space = {}
        exec(compile(block.replace("total_steps=1_000_000", "total_steps=20_000"), "README.md", "exec"), space)
    assert space["done"]
    assert "with exploration noise" not in str(space["run"])
    assert capsys.readouterr().out.startswith("True 0.089\n")
    shell = code(ROOT / "README.md", "sh")
    assert any("make train" in block and "make test" in block for block in shell)
    for block in shell:
        subprocess.run(["bash", "-n"], input=block, text=True, check=True)


def test_marked_blocks_run(capsys):
    for page in PAGES:
        space = {}
        for block in re.findall(r"<!-- run -->\n```python\n(.*?)```", page.read_text(), re.DOTALL):
            exec(compile(block, str(page), "exec"), space)
    assert "True" in capsys.readouterr().out


def test_own_environment_examples_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    space = {"__name__": "page"}
    text = (DOCS / "own_environment.md").read_text()
    blocks = re.findall(r"^```python(?: file=(\S+))?\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    assert len(blocks) == 3
    try:
        for file, block in blocks:
            if file:
                Path(file).write_text(block)
            else:
                exec(compile(block, "page", "exec"), space)
    finally:
        sys.modules.pop("my_env", None)
    assert space["action"] in (0, 1)
    assert {path.name for path in Path("runs/cpo").iterdir()} == {"my_env-Corridor", "lambda"}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_page(page):
    """Links lead somewhere; Python parses and imports what there is; commands and options exist."""
    for target in re.findall(r"\]\((?!\w+:|#)([^)#\s]+)", page.read_text()):
        assert (page.parent / target).exists(), target
    for block in code(page, "python"):
        for node in ast.walk(ast.parse(block)):
            source = node.module if isinstance(node, ast.ImportFrom) else None
            if source and source.startswith("steingate") and source not in FOREIGN:
                module = importlib.import_module(source)
                missing = [alias.name for alias in node.names if not hasattr(module, alias.name)]
                assert not missing, (source, missing)
        for name in re.findall(r"\bsteingate\.([a-z]\w*)\(", block):
            assert hasattr(steingate, name), name
    for block in [*code(page, "sh"), *code(page, "console")]:
        for line in re.findall(r"^(?:\$ )?steingate (.+)$", block.replace("\\\n", ""), re.MULTILINE):
            check_command(shlex.split(line, comments=True))


def check_command(words):
    name, *rest = words
    assert name in COMMANDS, name
    _, parser = load_command(name, rest[:1] if name == "evidence" else ())
    known = {option for action in parser._actions for option in action.option_strings}
    for option in (word.partition("=")[0] for word in rest if word.startswith("--")):
        assert option in known or name in ("train", "bench"), (name, option)


def test_every_public_name_is_in_the_reference():
    missing = [name for name in steingate.__all__ if f"steingate.{name}" not in REFERENCE]
    assert not missing, f"add them to a page of docs/reference: {missing}"
    assert len(set(REFERENCE)) == len(REFERENCE), "a name is there twice"


def test_documented_names_exist():
    for name in set(REFERENCE) - FOREIGN:
        resolve(name)


def test_every_page_is_in_a_table_of_contents():
    listed = set()
    for page in DOCS.rglob("*.md"):
        for block in re.findall(r"```\{toctree\}\n(.*?)```", page.read_text(), re.DOTALL):
            for line in block.splitlines():
                entry = re.sub(r".*<(.+)>", r"\1", line.strip())
                if entry and not entry.startswith(":"):
                    listed.add((page.parent / f"{entry}.md").resolve())
    assert {path for path in listed if not path.exists()} == set()
    unlisted = {DOCS / "index.md", DOCS / "research" / "allowance_notes.md"}
    assert set(DOCS.rglob("*.md")) - listed == unlisted
