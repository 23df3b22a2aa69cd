"""The tutorials run, in small, and their pages are those of the scripts."""

import importlib.util
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"
SPEC = importlib.util.spec_from_file_location("run_tutorials", DOCS / "run_tutorials.py")
runner = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(runner)


@pytest.mark.filterwarnings("default:This is the last policy")  # too short to certify one
@pytest.mark.parametrize("path", runner.tutorials(), ids=lambda path: path.stem)
def test_it_runs_and_draws(path, tmp_path):
    source = path.read_text(encoding="utf-8")
    printed, figure = runner.run(runner.shortened(source), path.stem)
    assert any(text.strip() for text in printed)
    figure.savefig(tmp_path / "figure.png")
    assert (tmp_path / "figure.png").stat().st_size > 10_000


@pytest.mark.parametrize("path", runner.tutorials(), ids=lambda path: path.stem)
def test_the_page_is_that_of_the_script(path):
    source = path.read_text(encoding="utf-8")
    silent = [""] * len(runner.cells(source))
    stored = path.with_suffix(".md").read_text(encoding="utf-8")
    assert runner.without_output(stored) == runner.page(source, path.stem, silent), "run make tutorials"
    assert stored != runner.without_output(stored)
    assert (DOCS / "tutorials" / "figures" / f"{path.stem}.png").is_file()


def test_there_are_the_five():
    assert [path.stem for path in runner.tutorials()] == [
        "certify",
        "own_environment",
        "own_gate",
        "train",
        "watch",
    ]


def test_sizes_are_cut_for_tests_and_left_alone_on_pages():
    source = (
        "# %% [markdown]\n# Text\n#\n# more\n# %%\nSTEPS = 10 * 2  # short: 3\nprint(STEPS)\nfigure = STEPS\n"
    )
    assert runner.cells(source)[0] == ("markdown", "Text\n\nmore")
    assert runner.run(source, "x") == (["", "20\n"], 20)
    assert runner.run(runner.shortened(source), "x") == (["", "3\n"], 3)
    page = runner.page(source, "x", ["", "20\n"])
    assert "STEPS = 10 * 2\nprint" in page
    assert "20\n```" in page
    assert "20\n```" not in runner.without_output(page)
