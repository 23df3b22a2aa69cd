"""Several costs at once: delta is split, refusals are all or nothing, the state comes back."""

import json

import numpy as np
import pytest

from steingate import InputError, Monitors


def test_delta_is_split_and_the_verdict_is_joint(tmp_path):
    budgets = {"hazards": 0.1, "speed": 0.2, "falls": 0.05}
    monitors = Monitors({"hazards": 25, "speed": 10, "falls": 0.5}, budget=budgets)
    assert [monitor.delta for monitor in monitors.values()] == [0.05 / 3] * 3
    for _ in range(60):
        monitors.update({"hazards": 3.0, "speed": 1, "falls": 0})
    assert monitors["speed"].certified
    assert not monitors.certified
    monitors.update_many({"hazards": np.ones(60), "speed": np.ones(60), "falls": np.zeros(60)})
    assert monitors.certified
    assert monitors.episodes == 120
    monitors.save(tmp_path / "m.json")
    again = Monitors.load(tmp_path / "m.json")
    assert json.dumps(again.to_dict()) == json.dumps(monitors.to_dict())
    assert again.sentence.startswith("hazards: Certified")
    monitors.update_many({"hazards": np.ones(99), "speed": np.full(99, 30.0), "falls": np.zeros(99)})
    assert monitors.unsafe
    assert monitors.drift
    assert monitors.numbers()["bound"] == max(monitors.bounds.values()) == monitors.bounds["speed"]
    monitors.rearm()
    assert not monitors.drift
    monitors.reset()
    assert monitors.episodes == 0


@pytest.mark.parametrize(
    ("costs", "words"),
    [
        ({"a": 1.0}, "'b' is missing"),
        ({"a": 1.0, "b": 2.0, "c": 3.0}, "'c'"),
        ({"a": 1.0, "b": float("nan")}, "b: "),
        ({"a": 1.0, "b": "2"}, "b: "),
        (3.0, "dictionary"),
    ],
)
def test_a_refused_episode_changes_none_of_them(costs, words):
    monitors = Monitors({"a": 25, "b": 10})
    monitors.update({"a": 1, "b": 2})
    before = json.dumps(monitors.to_dict())
    with pytest.raises(InputError, match=r"\.$") as refusal:
        monitors.update(costs)
    assert words in str(refusal.value)
    assert json.dumps(monitors.to_dict()) == before


def test_settings_are_checked():
    for limits in ({}, None, 25):
        with pytest.raises(InputError, match="at least one name"):
            Monitors(limits)
    with pytest.raises(InputError, match="budgets"):
        Monitors({"a": 1}, budget={"b": 0.1})
    with pytest.raises(InputError, match="different lengths"):
        Monitors({"a": 1, "b": 1}).update_many({"a": [1, 2], "b": [1]})
    with pytest.raises(InputError, match="delta"):
        Monitors({"a": 1}, delta=2.0)


def test_watch_takes_each_bound_for_its_baseline():
    known = Monitors({"a": 25, "b": 10})
    known.update_many({"a": np.ones(100), "b": np.ones(100)})
    watching = Monitors.watch(known)
    assert watching["a"].baseline == known["a"].bound
    assert watching["a"].delta == 0.025
    other = Monitors.watch({"a": np.ones(100), "b": np.ones(100)}, limits={"a": 25, "b": 10})
    assert other.to_dict() == watching.to_dict()
