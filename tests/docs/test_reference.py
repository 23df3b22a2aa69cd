"""Every public name is in the reference and says what it is; the pages of the site are current."""

import ast
import importlib
import inspect
import re
from pathlib import Path

import pytest
from tests.docs.scripts import docs_script

import steingate

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
DIRECTIVE = re.compile(r"^\.\. auto(class|function|module):: (\S+)", re.MULTILINE)
NAMES = [
    found.groups()
    for page in sorted(DOCS.glob("reference/*.md"))
    for found in DIRECTIVE.finditer(page.read_text())
]
FOREIGN = {"steingate.integrations.sb3"}  # needs Stable-Baselines3
PAGES = sorted([*DOCS.glob("*.md"), *DOCS.glob("howto/*.md"), *DOCS.glob("tutorials/*.md")])


def found(name):
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError:
        home, _, last = name.rpartition(".")
        return getattr(importlib.import_module(home), last)


def public_members(value):
    """Yield what a reader of the reference sees of a module or class, with names."""
    for name, member in vars(value).items():
        if name.startswith("_") or type(member).__name__ == "_tuplegetter":
            continue
        home = getattr(member, "__module__", None)
        if inspect.ismodule(value) and home != value.__name__:
            continue
        if callable(member) or isinstance(member, property | classmethod | staticmethod):
            yield name, member


def test_every_public_name_is_in_the_reference():
    listed = {name for _, name in NAMES}
    missing = [name for name in steingate.__all__ if f"steingate.{name}" not in listed]
    assert not missing, f"add them to a page of docs/reference: {missing}"
    assert len(listed) == len(NAMES), "a name is there twice"


@pytest.mark.parametrize("name", [name for _, name in NAMES if name not in FOREIGN])
def test_what_is_in_the_reference_says_what_it_is(name):
    value = found(name)
    assert inspect.getdoc(value), name
    if inspect.ismodule(value) or inspect.isclass(value):
        silent = [part for part, member in public_members(value) if not inspect.getdoc(member)]
        assert not silent, f"{name}: {silent}"


def test_the_page_of_commands_is_current():
    page = (DOCS / "reference" / "commands.md").read_text(encoding="utf-8")
    assert page == docs_script("make_commands_page").page(), "run python docs/make_commands_page.py"


def test_the_table_of_sizes_is_that_of_the_measurement():
    page = (DOCS / "install.md").read_text(encoding="utf-8")
    assert docs_script("make_install_page").page(page) == page, "run python docs/make_install_page.py"


def test_every_page_is_in_the_site():
    """A page that no table of contents names would be built and never found."""
    listed = set()
    for page in [DOCS / "index.md", *DOCS.glob("*.md"), *DOCS.glob("*/index.md")]:
        for block in re.findall(r"```\{toctree\}\n(.*?)```", page.read_text(), re.DOTALL):
            for line in block.splitlines():
                entry = re.sub(r".*<(.+)>", r"\1", line.strip())
                if entry.endswith("*"):
                    folder, _, name = entry.rpartition("/")
                    listed |= {path.resolve() for path in (page.parent / folder).glob(f"{name}.md")}
                elif entry and not entry.startswith(":"):
                    listed.add((page.parent / f"{entry}.md").resolve())
    assert {path for path in listed if not path.exists()} == set()
    assert set(DOCS.glob("**/*.md")) - listed == {DOCS / "index.md"}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\((?!\w+:|#)([^)#\s]+)", page.read_text()):
        assert (page.parent / target).exists(), target


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_python_on_the_pages_compiles_and_imports_what_there_is(page):
    for code in re.findall(r"```python\n(.*?)```", page.read_text(), re.DOTALL):
        for node in ast.walk(ast.parse(code)):
            if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("steingate"):
                if node.module in FOREIGN:
                    continue
                module = importlib.import_module(node.module)
                for alias in node.names:
                    assert hasattr(module, alias.name), f"{node.module}.{alias.name}"


def test_code_that_is_marked_runs(capsys):
    marked = [
        code
        for page in PAGES
        for code in re.findall(r"<!-- run -->\n```python\n(.*?)```", page.read_text(), re.DOTALL)
    ]
    assert marked
    for code in marked:
        exec(compile(code, "page", "exec"), {})
    assert "True" in capsys.readouterr().out


def test_the_check_of_the_site_notices_what_is_wrong(tmp_path):
    check = docs_script("check_site")
    names = "".join(f'<dt id="steingate.{name}">' for name in steingate.__all__)
    (tmp_path / "whole.html").write_text(
        f'{names}<a href="other.html#here">x</a><a href="https://x.org">y</a>'
    )
    (tmp_path / "other.html").write_text('<h1 id="here">')
    assert check.problems(tmp_path) == []
    (tmp_path / "other.html").write_text('<img src="https://x.org/a.png"><a href="gone.html">')
    (tmp_path / "a.css").write_text("@import 'https://fonts.example/f.css'; a { background: url(data:x) }")
    assert check.problems(tmp_path) == [
        "other.html loads https://x.org/a.png",
        "other.html leads to gone.html, which is not there",
        "whole.html leads to other.html#here, which has no such place",
        "a.css loads https://fonts.example/f.css",
    ]
    (tmp_path / "whole.html").write_text("")
    assert "steingate.Monitor is not in the reference" in check.problems(tmp_path)
