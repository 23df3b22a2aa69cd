"""The table of installed sizes, and the extras that ``make release-check`` installs."""

import re
import tomllib
from pathlib import Path

from tests.release_check import EXTRAS

from steingate.errors import EXTRA_OF

PROJECT = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())["project"]
DEVELOPMENT = {"all", "test", "docs"}


def test_every_extra_for_users_is_installed():
    assert set(EXTRAS) - {""} == set(PROJECT["optional-dependencies"]) - DEVELOPMENT


def test_error_messages_name_the_extra_of_each_package():
    names = {package.lower().replace("_", "-"): extra for package, extra in EXTRA_OF.items()}
    for extra, lines in PROJECT["optional-dependencies"].items():
        packages = {re.match(r"[\w-]+", line)[0].lower() for line in lines} - {"steingate"}
        for package in packages if extra not in DEVELOPMENT else ():
            assert extra == names[package] or extra == "sb3", (package, extra)
