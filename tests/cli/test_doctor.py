"""``steingate doctor``: versions and checks of this machine."""

import json

import steingate
from steingate.cli import doctor, main
from steingate.errors import EXTRA_OF


def test_all_checks_pass_on_this_machine(capsys):
    assert main(["doctor", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["versions"]["steingate"][0] == steingate.__version__
    assert set(EXTRA_OF) < set(found["versions"])
    assert {name: status for name, (status, _) in found["checks"].items()} == dict.fromkeys(doctor.CHECKS, "ok")


def fail():
    raise ValueError("wrong bound 7")


def need_missing_package():
    import no_such_package  # noqa: F401


def test_failed_and_skipped_checks(capsys, monkeypatch):
    monkeypatch.setattr(doctor, "CHECKS", {"first": fail, "second": need_missing_package})
    assert main(["doctor"]) == 1
    out = capsys.readouterr().out
    assert "ValueError: wrong bound 7" in out
    assert "no_such_package is not installed" in out
    monkeypatch.setattr(doctor, "CHECKS", {"second": need_missing_package})
    assert main(["doctor"]) == 0
