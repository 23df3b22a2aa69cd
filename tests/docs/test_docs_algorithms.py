import importlib.util
from pathlib import Path

from steingate.algorithms import METHODS

DOCS = Path(__file__).parents[2] / "docs"


def test_the_page_is_what_the_table_says():
    spec = importlib.util.spec_from_file_location("make_algorithms_page", DOCS / "make_algorithms_page.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    text = (DOCS / "algorithms.md").read_text(encoding="utf-8")
    told = [name for name in METHODS if f"\n## {name}\n" in text]
    assert len(told) >= 19
    for name in told:
        assert module.section(name) in text, "run python docs/make_algorithms_page.py"
    if told == list(METHODS):
        assert text == module.page(), "run python docs/make_algorithms_page.py"
