"""Run the code of the tutorials and store what it prints: ``python docs/tutorials.py [NAME...]``.

The Python blocks of docs/tutorials/NAME.md run in order. The block of class ``output`` after each block is
replaced by what it printed, and the variable ``figure`` is saved as docs/tutorials/figures/NAME.png. In
tests, which run every tutorial with small sizes, a line that ends with ``# tests: VALUE`` assigns that value.
"""

import argparse
import io
import os
import re
import tempfile
from contextlib import chdir, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent / "tutorials"
CODE = re.compile(r"```python\n(.*?)```\n", re.DOTALL)
OUTPUT = re.compile(r"\n```\{code-block\} text\n:class: output\n\n.*?```\n", re.DOTALL)
SMALL = re.compile(r"^(\w+ = ).+?  # tests: (.+)$", re.MULTILINE)


def pages() -> list[Path]:
    """Return the tutorials."""
    return sorted(path for path in FOLDER.glob("*.md") if path.stem != "index")


def small(page: str) -> str:
    """Return a page with the sizes of the tests."""
    return SMALL.sub(r"\1\2", page)


def run(page: str, name: str) -> tuple[list[str], Any]:
    """Run the Python blocks in an empty folder; return what each printed, and the figure."""
    space: dict[str, Any] = {"__name__": "__main__"}
    printed = []
    with tempfile.TemporaryDirectory() as folder, chdir(folder):
        for code in CODE.findall(page):
            out = io.StringIO()
            with redirect_stdout(out), redirect_stderr(io.StringIO()):
                exec(compile(code, f"{name}.md", "exec"), space)
            printed.append(out.getvalue().strip("\n"))
    return printed, space["figure"]


def with_output(page: str, printed: list[str]) -> str:
    """Return a page in which the output blocks are those given."""
    rest = iter(printed)

    def block(match: re.Match[str]) -> str:
        out = next(rest)
        return match[0] + (f"\n```{{code-block}} text\n:class: output\n\n{out}\n```\n" if out else "")

    return CODE.sub(block, OUTPUT.sub("", page))


def main() -> None:
    """Run tutorials at full size and write their output and figures."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("names", nargs="*", metavar="NAME")
    names = options.parse_args().names
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    for path in pages():
        if not names or path.stem in names:
            text = path.read_text(encoding="utf-8")
            printed, figure = run(text, path.stem)
            path.write_text(with_output(text, printed), encoding="utf-8")
            figure.savefig(FOLDER / "figures" / f"{path.stem}.png", dpi=120)
            print(path.stem)


if __name__ == "__main__":
    main()
