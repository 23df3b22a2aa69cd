"""The table of installed sizes, and the extras that ``make release-check`` installs."""

import csv
import re
import tomllib
from pathlib import Path

from tests.release_check import EXTRAS, update_sizes

from steingate.errors import EXTRA_OF

PROJECT = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())["project"]
DEVELOPMENT = {"all", "test", "docs"}


def test_measured_rows_replace_earlier_ones(tmp_path):
    path = tmp_path / "sizes.csv"
    path.write_text("python,extra,packages,mb\n3.11,,7,179\n3.13,train,38,990\n")
    measured = [("3.11", "train", 38, 982), ("3.11", "", 7, 180)]
    update_sizes([dict(zip(("python", "extra", "packages", "mb"), row, strict=True)) for row in measured], path)
    with open(path, newline="") as file:
        rows = [tuple(row.values()) for row in csv.DictReader(file)]
    assert rows == [("3.11", "", "7", "180"), ("3.11", "train", "38", "982"), ("3.13", "train", "38", "990")]


def test_every_extra_for_users_is_installed():
    assert set(EXTRAS) - {""} == set(PROJECT["optional-dependencies"]) - DEVELOPMENT


def test_error_messages_name_the_extra_of_each_package():
    names = {package.lower().replace("_", "-"): extra for package, extra in EXTRA_OF.items()}
    for extra, lines in PROJECT["optional-dependencies"].items():
        packages = {re.match(r"[\w-]+", line)[0].lower() for line in lines} - {"steingate"}
        for package in packages if extra not in DEVELOPMENT else ():
            assert extra == names[package] or extra == "sb3", (package, extra)
