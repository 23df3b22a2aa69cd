"""The table of installation sizes: measuring a part of it keeps the rest."""

import csv

from tests.release_check import EXTRAS, _keep

from steingate.cli.doctor import extras


def test_what_is_measured_anew_replaces_what_was_known_and_nothing_else(tmp_path):
    path = tmp_path / "sizes.csv"
    path.write_text("python,extra,packages,mb\n3.11,,7,179\n3.13,train,38,990\n")
    _keep(
        [
            {"python": "3.11", "extra": "train", "packages": 38, "mb": 982},
            {"python": "3.11", "extra": "", "packages": 7, "mb": 180},
        ],
        path,
    )
    with open(path, newline="") as file:
        rows = [tuple(row.values()) for row in csv.DictReader(file)]
    assert rows == [("3.11", "", "7", "180"), ("3.11", "train", "38", "982"), ("3.13", "train", "38", "990")]


def test_every_extra_for_users_is_tried():
    assert set(EXTRAS) == set(extras())
