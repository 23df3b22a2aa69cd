"""Run the tutorials and write their pages: ``python docs/run_tutorials.py [NAME...]``.

A tutorial is a script of cells, as editors and Jupyter know them: ``# %% [markdown]`` begins text, ``# %%``
code. The page of a tutorial has the text, the code, what the code printed, and the picture at its end, the
Matplotlib figure that the script calls ``figure``. A line that ends with ``# short: VALUE`` has that value in
tests, which run every tutorial in small.
"""

import argparse
import io
import os
import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any, NamedTuple

FOLDER = Path(__file__).parent / "tutorials"
_SHORT = re.compile(r"^(\w+ = )(.+?)  # short: (.+)$", re.MULTILINE)
_OUTPUT = re.compile(r"```\{code-block\} text\n:class: output\n\n(.*?)```\n\n", re.DOTALL)


class Cell(NamedTuple):
    """One cell: Markdown, or Python."""

    kind: str
    text: str


def tutorials() -> list[Path]:
    """Return the scripts."""
    return sorted(FOLDER.glob("*.py"))


def cells(source: str) -> list[Cell]:
    """Return the cells of a script."""
    found = []
    for part in re.split(r"^# %%", source, flags=re.MULTILINE)[1:]:
        head, _, body = part.partition("\n")
        if head.strip() == "[markdown]":
            body = "\n".join(line.removeprefix("#").removeprefix(" ") for line in body.strip().splitlines())
            found.append(Cell("markdown", body))
        else:
            found.append(Cell("python", body.strip()))
    return found


def shortened(source: str) -> str:
    """Return the script with the sizes of the tests."""
    return _SHORT.sub(r"\1\3", source)


def run(source: str, name: str) -> tuple[list[str], Any]:
    """Run the code cells one after the other; return what each printed, and the figure."""
    space: dict[str, Any] = {"__name__": "__main__"}
    printed = []
    with _elsewhere():
        for cell in cells(source):
            out = io.StringIO()
            if cell.kind == "python":
                with redirect_stdout(out), redirect_stderr(io.StringIO()):
                    exec(compile(cell.text, f"{name}.py", "exec"), space)
            printed.append(out.getvalue())
    return printed, space["figure"]


@contextmanager
def _elsewhere() -> Iterator[None]:
    """Work in a folder that is removed afterwards."""
    before = Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            yield
        finally:
            os.chdir(before)


def page(source: str, name: str, printed: list[str]) -> str:
    """Return the page of a tutorial."""
    lines = [f"<!-- Written by docs/run_tutorials.py from tutorials/{name}.py; do not edit by hand. -->\n"]
    for cell, out in zip(cells(_SHORT.sub(r"\1\2", source)), printed, strict=True):
        if cell.kind == "markdown":
            lines.append(f"{cell.text}\n")
            continue
        lines.append(f"```python\n{cell.text}\n```\n")
        if out.strip():
            lines.append("```{code-block} text\n:class: output\n\n" + out.strip("\n") + "\n```\n")
    lines.append(f"![What the script draws](figures/{name}.png)\n")
    lines.append(
        f"The script is {{download}}`{name}.py <{name}.py>`; its cells also open in Jupyter and in editors."
    )
    return "\n".join(lines) + "\n"


def kept_output(text: str, source: str) -> list[str]:
    """Return what each cell had printed when the page was written."""
    printed, rest = [], text
    for cell in cells(_SHORT.sub(r"\1\2", source)):
        found = ""
        if cell.kind == "python":
            rest = rest.partition("```python\n")[2]
            rest = rest.partition("\n```\n\n")[2]
            match = _OUTPUT.match(rest)
            found = match[1] if match else ""
        printed.append(found)
    return printed


def without_output(text: str) -> str:
    """Return a page without what the code printed: what must agree with the script."""
    return _OUTPUT.sub("", text)


def main() -> None:
    """Run those that are asked for at full size; write pages and pictures."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("names", nargs="*", help="only these (default: all)")
    options.add_argument("--short", action="store_true", help="with the sizes of the tests, writing nothing")
    options.add_argument(
        "--text", action="store_true", help="run nothing: new text beside the output of before"
    )
    args = options.parse_args()
    for path in tutorials():
        if args.names and path.stem not in args.names:
            continue
        source = path.read_text(encoding="utf-8")
        if args.text:
            kept = kept_output(path.with_suffix(".md").read_text(encoding="utf-8"), source)
            path.with_suffix(".md").write_text(page(source, path.stem, kept), encoding="utf-8")
            continue
        printed, figure = run(shortened(source) if args.short else source, path.stem)
        if not args.short:
            (FOLDER / "figures").mkdir(exist_ok=True)
            figure.savefig(FOLDER / "figures" / f"{path.stem}.png", dpi=120)
            path.with_suffix(".md").write_text(page(source, path.stem, printed), encoding="utf-8")
        print(path.stem)


if __name__ == "__main__":
    main()
