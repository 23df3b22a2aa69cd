"""Comparison of two runs: pairs with equal seeds, early stop, one sentence; runs that cannot be compared."""

import json

import numpy as np
import pytest
from tests.training.runs_of_probes import tiny

from steingate.cli import main
from steingate.envs.make import make_vec
from steingate.errors import InputError
from steingate.training.compare import compare
from steingate.training.play import load_player, play
from steingate.training.runner import train
from steingate.training.seeding import evaluation_seeds


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    made = [train(tiny(tmp_path_factory.mktemp(f"runs{seed}"), seed=seed), quiet=True) for seed in (0, 1)]
    played = []
    for run in made:
        player = load_player(run, print, "last")
        played.append(play(make_vec(player.cfg.env, 4, copy=False), player, evaluation_seeds(0, 60, 0), False))
    return made, played


def test_pairs_are_episodes_with_equal_seeds(runs):
    (a, b), (one, two) = runs
    limit = float(np.median(np.concatenate([one.cost, two.cost])))
    result = compare(a, b, 60, limit=limit, confidence=1 - 1e-12, policy="last")
    over_a, over_b = one.cost > limit, two.cost > limit
    monitor = result.monitor
    assert (monitor.pairs, monitor.violations_a, monitor.violations_b) == (60, over_a.sum(), over_b.sum())
    assert (monitor.only_a, monitor.only_b) == ((over_a & ~over_b).sum(), (over_b & ~over_a).sum())
    assert (result.mean_return_a, result.mean_return_b) == pytest.approx((one.ret.mean(), two.ret.mean()))
    assert not monitor.decided
    assert "undecided" in str(result)


def test_the_command_stops_when_one_is_safer(runs, capsys):
    (a, b), (one, two) = runs
    limits = np.sort(np.concatenate([one.cost, two.cost]))
    gaps = [abs(int((one.cost > x).sum()) - int((two.cost > x).sum())) for x in limits]
    limit = limits[int(np.argmax(gaps))]
    assert max(gaps) > 20
    words = ["compare", str(a), str(b), "--policy", "last", "--limit", repr(float(limit))]
    assert main([*words, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["a_is_safer"] != found["b_is_safer"]
    assert found["a_is_safer"] == (sum(one.cost > limit) < sum(two.cost > limit))
    assert found["pairs"] < 60
    assert found["e_value"] >= 20
    assert main(words) == 0
    out = capsys.readouterr().out
    assert f"e-value {found['e_value']:.3g}" in out
    assert str(a) in out
    assert str(b) in out
    assert "with 95 % confidence" in out


def test_the_same_policy_is_no_safer(runs):
    (a, _), _ = runs
    result = compare(a, a, 12, policy="last")
    assert (result.monitor.pairs, result.monitor.e_value, result.monitor.return_e_value) == (12, 1.0, 1.0)


def test_runs_that_cannot_be_compared(runs, tmp_path):
    (a, _), _ = runs
    other = train(tiny(tmp_path, cost_limit=3.0, total_steps=80), quiet=True)
    with pytest.raises(InputError, match="choose one with limit"):
        compare(a, other, 4, policy="last")
    for settings in ({"episodes": 0}, {"confidence": 1.5}):
        with pytest.raises(InputError):
            compare(a, a, policy="last", **settings)
