"""The doctor: facts of this machine, a self-test that passes here and notices what is broken."""

import json

import pytest

import steingate
from steingate.cli import doctor, main, self_test
from steingate.errors import install_command


def test_it_passes_here_and_says_what_there_is(capsys):
    assert main(["doctor", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    facts = {fact["name"]: fact["value"] for fact in told["facts"]}
    assert facts["steingate"] == steingate.__version__
    assert int(facts["cores"]) >= 1
    assert "learning (JAX)" in facts
    assert [test["name"] for test in told["tests"]] == list(self_test.TESTS)
    assert {test["status"] for test in told["tests"]} <= {"ok"}, told["tests"]


def broken():
    raise self_test.WrongError("the bound is 7")


def lacking():
    import no_such_package  # noqa: F401


def test_failures_and_missing_extras_are_told_apart(capsys, monkeypatch):
    monkeypatch.setattr(doctor, "TESTS", {"a": (broken, ""), "b": (lacking, "train"), "c": (lacking, "")})
    assert main(["doctor"]) == 1
    out = capsys.readouterr().out
    assert "Self-test: 2 failed" in out
    rows = {line.split()[0]: line for line in out[out.index("Self-test") :].splitlines()[1:]}
    assert "failed" in rows["a"]
    assert "WrongError: the bound is 7" in rows["a"]
    assert "skipped" in rows["b"]
    assert install_command("train") in rows["b"]
    assert "failed" in rows["c"]
    assert "no no_such_package, which is always needed" in rows["c"]
    assert main(["doctor", "--no-test"]) == 0
    assert "Self-test" not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("name", "change", "words"),
    [
        (
            "certificate",
            ("steingate.certificates.confidence.clopper_pearson_upper", lambda *_: 0.05),
            "the bound is",
        ),
        ("monitor", ("steingate.Monitor.certified", True), "at episode 0 instead of 36"),
    ],
)
def test_the_self_test_can_fail(monkeypatch, name, change, words):
    monkeypatch.setattr(*change)
    test, extra = self_test.TESTS[name]
    outcome = self_test.attempt(name, test, extra)
    assert (outcome.status, words in outcome.note) == ("failed", True), outcome


def test_extras_are_read_from_the_metadata(monkeypatch):
    lines = [
        "numpy>=2",
        "jax>=0.6; extra == 'train'",
        "steingate[envs]; extra == 'train'",
        'x; extra == "test"',
    ]
    monkeypatch.setattr(doctor.metadata, "requires", lambda name: lines)
    assert doctor.extras() == {"": ["numpy"], "train": ["jax"]}
    monkeypatch.setattr(doctor, "installed", lambda name: None if name == "jax" else "1")
    notes = {fact.name: fact.note for fact in doctor.packages()}
    assert notes["extra train"] == f"without jax: {install_command('train')}"
    monkeypatch.setattr(doctor, "install_command", lambda extra: f"pip install -e '/a clone[{extra}]'")
    notes = {fact.name: fact.note for fact in doctor.packages()}
    assert notes["extra train"] == "without jax: pip install -e '/a clone[train]'"
