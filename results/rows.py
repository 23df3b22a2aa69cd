"""Rows of CSV files, as the scripts of this folder read and write them."""

import csv
from pathlib import Path

Row = dict[str, str]


def read_rows(path: Path) -> list[Row]:
    """Return the rows of a CSV file, none if it is not there."""
    if not path.exists():
        return []
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


def write_rows(path: Path, rows: list[Row]) -> None:
    """Write a CSV file."""
    with open(path, "w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
