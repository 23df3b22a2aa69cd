"""Locks on open files, and that nothing which only reads needs them."""

import subprocess
import sys

import pytest

from steingate.storage.locks import try_lock


def test_a_second_holder_is_refused_until_the_first_is_gone(tmp_path):
    path = tmp_path / "lock"
    with open(path, "a+") as first, open(path, "a+") as second:
        assert try_lock(first)
        assert not try_lock(second)
        first.close()
        assert try_lock(second)


@pytest.mark.parametrize(
    "names",
    ["steingate.report.page, steingate.cli.report", "steingate.cli.certify, steingate.cli.plan", "steingate"],
)
def test_reading_and_certifying_need_no_posix_locks(names):
    """As on Windows, where there is no fcntl."""
    code = (
        f"import sys; sys.modules['fcntl'] = None; import {names}; from steingate import Certificate, Monitor"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
