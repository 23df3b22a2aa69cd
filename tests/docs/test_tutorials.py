"""The tutorials run with small sizes, and their pages have stored output."""

import pytest
from tests.docs.scripts import docs_script

RUNNER = docs_script("tutorials")


@pytest.mark.filterwarnings("ignore:No policy|This is the last policy")  # too short to certify one
@pytest.mark.parametrize("path", RUNNER.pages(), ids=lambda path: path.stem)
def test_tutorial_runs(path, tmp_path):
    page = path.read_text(encoding="utf-8")
    printed, figure = RUNNER.run(RUNNER.small(page), path.stem)
    assert any(printed)
    assert [bool(text) for text in printed] == [bool(text) for text in stored_output(page)], "run make tutorials"
    figure.savefig(tmp_path / "figure.png")
    assert (RUNNER.FOLDER / "figures" / f"{path.stem}.png").is_file()


def stored_output(page):
    """The output after each Python block of a page, empty where there is none."""
    found = []
    for code in RUNNER.CODE.finditer(page):
        match = RUNNER.OUTPUT.match(page, code.end())
        found.append(match[0] if match else "")
    return found


def test_output_is_replaced_and_sizes_are_small_in_tests():
    page = "text\n\n```python\nSTEPS = 10 * 2  # tests: 3\nprint(STEPS)\nfigure = STEPS\n```\n\nmore\n"
    printed, figure = RUNNER.run(page, "x")
    assert (printed, figure) == (["20"], 20)
    assert RUNNER.run(RUNNER.small(page), "x") == (["3"], 3)
    once = RUNNER.with_output(page, ["20"])
    assert once.count("\n20\n") == 1
    assert RUNNER.with_output(once, ["7"]) == RUNNER.with_output(page, ["7"])
