"""Fill the table of docs/install.md from results/install_sizes.csv: ``python docs/make_install_page.py``."""

import csv
from pathlib import Path

from blocks import fill

PAGE = Path(__file__).with_name("install.md")
SIZES = Path(__file__).parents[1] / "results" / "install_sizes.csv"


def table() -> str:
    """Return sizes by extra and version of Python."""
    with open(SIZES, newline="") as file:
        rows = list(csv.DictReader(file))
    pythons = list(dict.fromkeys(row["python"] for row in rows))
    extras = list(dict.fromkeys(row["extra"] for row in rows))
    sizes = {(row["extra"], row["python"]): row for row in rows}
    heads = "".join(f" Python {python} |" for python in pythons)
    lines = [f"| installed | packages |{heads}", f"|---|---:|{'---:|' * len(pythons)}"]
    for extra in extras:
        found = [sizes.get((extra, python)) for python in pythons]
        cells = "".join(f" {row['mb']} MB |" if row else " – |" for row in found)
        packages = next(row["packages"] for row in found if row)
        lines.append(f"| `steingate{f'[{extra}]' if extra else ''}` | {packages} |{cells}")
    return "\n".join(lines)


def page(text: str) -> str:
    """Return the page with its table filled."""
    return fill(text, {"sizes": table()})


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
