"""Regenerate the picture of a report page: ``python docs/make_page_figure.py RUNS...`` (needs Chromium).

The page of the runs is opened in a headless browser, 1100 points wide, and its upper part is kept: what
stands at the top, the curves, the frontier and the performance profiles.
"""

import sys
import tempfile
from pathlib import Path

from PIL import Image

ROOT = Path(__file__).parents[1]
TARGET = ROOT / "docs" / "figures" / "report_page.png"
WIDTH = 1100

sys.path.insert(0, str(ROOT))
from tests.report.browser import Browser  # noqa: E402

from steingate.report.evidence import gather  # noqa: E402
from steingate.report.page import write_page  # noqa: E402


def draw(roots: list[str], target: Path) -> None:
    """Write the picture of the page of some runs."""
    with tempfile.TemporaryDirectory() as folder:
        page, shot = Path(folder) / "page.html", Path(folder) / "page.png"
        write_page(gather(roots), page)
        with Browser(str(Path(folder) / "profile")) as browser:
            browser.size(WIDTH, 900)
            browser.open(page.as_uri(), "document.querySelector('#run h2') !== null")
            browser.size(WIDTH, browser.ask("document.documentElement.scrollHeight"))
            end = browser.ask("document.querySelector('#tables').getBoundingClientRect().top + scrollY")
            browser.screenshot(shot)
        picture = Image.open(shot).convert("RGB").crop((0, 0, WIDTH, round(end)))
        picture.quantize(128).save(target, optimize=True)


if __name__ == "__main__":
    if len(sys.argv) < 2:
        raise SystemExit(__doc__)
    draw(sys.argv[1:], TARGET)
