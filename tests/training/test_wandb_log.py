"""The optional logger: a clear sentence without its package, finite numbers over steps with it."""

import sys
import types

import pytest
from tests.training.runs_of_probes import tiny

from steingate.errors import MissingExtraError
from steingate.report.run_settings import NO_EFFECT
from steingate.training.config import WITHOUT_EFFECT
from steingate.training.logging.wandb_log import WandbLog
from steingate.training.loop import train


def test_a_missing_package_is_named(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "wandb", None)
    with pytest.raises(MissingExtraError, match=r"pip install .*\[wandb\]"):
        WandbLog("project", tmp_path, {}, "abc")


def test_every_epoch_is_sent_once(tmp_path, monkeypatch):
    sent = []
    run = types.SimpleNamespace(
        log=lambda numbers, step: sent.append((step, numbers)), finish=lambda: sent.append("end")
    )
    asked = {}
    package = types.SimpleNamespace(init=lambda **options: asked.update(options) or run)
    monkeypatch.setitem(sys.modules, "wandb", package)
    path = train(tiny(tmp_path, wandb="tails"), quiet=True)
    assert asked["project"] == "tails"
    assert asked["id"].startswith("-".join(path.parts[-3:]) + "-")
    assert asked["config"]["algo"] == "steingate"
    assert sent[-1] == "end"
    assert [step for step, _ in sent[:-1]] == [80 * (k + 1) for k in range(6)]
    assert all(isinstance(value, int | float) for _, numbers in sent[:-1] for value in numbers.values())


def test_reports_know_what_leaves_results_untouched():
    assert set(NO_EFFECT) == {*WITHOUT_EFFECT, "seed"}
