import re

import numpy as np
import pytest
from scipy.stats import binomtest
from tests.training.probes import Walk
from tests.training.runs_of_probes import tiny

from steingate.envs.make import make_vec
from steingate.errors import InputError, RunError
from steingate.monitoring.monitor import Monitor
from steingate.policies.policy import load
from steingate.runs import RunFolder
from steingate.training import evaluate as module
from steingate.training.certification import CertificationTest, certification_report
from steingate.training.config_file import load_run_config
from steingate.training.evaluate import evaluate, load_player, play
from steingate.training.loop import train
from steingate.training.rollout_kernels import FROZEN
from steingate.training.seeding import evaluation_seeds


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return train(tiny(tmp_path_factory.mktemp("runs")), quiet=True)


def by_hand(policy, seed):
    """One episode with the NumPy policy in the bare environment."""
    env = Walk()
    obs, _ = env.reset(seed=seed)
    ret = cost = length = 0.0
    while True:
        obs, reward, terminated, truncated, info = env.step(np.clip(policy(obs), -2.0, 2.0))
        ret, cost, length = ret + reward, cost + info["cost"], length + 1
        if terminated or truncated:
            return ret, cost, length


def test_episodes_are_those_of_the_policy(run):
    result = evaluate(run, 11, seed=3, policy="last")
    policy = load(run, "last").policy
    expected = np.array([by_hand(policy, seed) for seed in result.seeds])
    np.testing.assert_allclose(result.episodes.ret, expected[:, 0], atol=1e-5)
    np.testing.assert_allclose(result.episodes.cost, expected[:, 1], atol=1e-5)
    np.testing.assert_array_equal(result.episodes.length, expected[:, 2])
    numbers = result.to_dict()
    assert numbers["episodes"] == 11
    assert numbers["epoch"] == 6
    assert numbers["worst"]["cost"] == result.episodes.cost.max()
    assert numbers["violation_rate"] == np.mean(result.episodes.cost > 4.0)
    assert numbers["gate"]["samples"] == 11


@pytest.mark.parametrize("algo", ["steingate", "trpo"])
def test_the_bound_is_the_exact_binomial_one_and_only_steingate_has_a_gate(tmp_path, algo):
    path = train(tiny(tmp_path, algo=algo, total_steps=80), quiet=True)
    result = evaluate(path, 30, policy="last", limit=1.0)
    exact = binomtest(result.violations, 30).proportion_ci(0.9, method="exact").high
    assert result.bound == pytest.approx(exact)
    assert result.certified == (exact <= 0.1)
    assert (result.budget, result.delta) == (0.1, 0.05)
    if algo == "trpo":
        assert result.gate is None
    else:
        own = load_run_config(path).algo.certificate_for(1.0)
        assert result.gate.bound == own.evaluate(result.episodes.cost).bound


def test_an_episode_does_not_depend_on_its_neighbors(run):
    player = load_player(run, print, "last")
    seeds = evaluation_seeds(0, 7)
    for sample in (False, True):
        together = play(make_vec(Walk, 4, copy=False), player, seeds, sample)
        alone = play(make_vec(Walk, 1, copy=False), player, seeds[2:3], sample)
        assert alone.cost[0] == together.cost[2]
        assert alone.ret[0] == together.ret[2]
    assert evaluation_seeds(0, 9)[:7] == seeds
    assert player.mode == FROZEN


def test_sampling_is_another_policy_and_seeds_matter(run):
    mean, again, drawn = evaluate(run, 8), evaluate(run, 8), evaluate(run, 8, sample=True)
    np.testing.assert_array_equal(mean.episodes.ret, again.episodes.ret)
    assert not np.array_equal(mean.episodes.ret, drawn.episodes.ret)
    assert not np.array_equal(mean.episodes.ret, evaluate(run, 8, seed=1).episodes.ret)


def test_what_cannot_be_evaluated(run, tmp_path, monkeypatch):
    with pytest.raises(InputError, match="episodes must be at least 1, got 0"):
        evaluate(run, 0)
    with pytest.raises(RunError, match="not a run folder"):
        evaluate(tmp_path, 1)
    (tmp_path / "config.json").write_text((RunFolder(run).config).read_text())
    with pytest.raises(RunError, match="no checkpoint yet"):
        evaluate(tmp_path, 1)
    from tests.training.probes import Endless

    monkeypatch.setattr(module, "MAX_STEPS", 300)
    with pytest.raises(RunError, match="has not ended after 300 steps"):
        play(make_vec(Endless, 1, copy=False), load_player(run, print, "last"), [1], False)


def test_an_evaluation_stops_once_its_monitor_is_sure(run):
    sure = evaluate(run, 400, until_certified=True, budget=0.999)
    fixed = evaluate(run, sure.monitor.episodes)
    assert sure.monitor.certified
    assert sure.monitor.episodes < 400
    np.testing.assert_array_equal(sure.episodes.cost, fixed.episodes.cost)
    assert sure.seeds == fixed.seeds
    undecided = evaluate(run, 3, until_certified=True, budget=0.01)
    assert not undecided.monitor.certified
    assert undecided.monitor.episodes == len(undecided.episodes.cost) <= 3


def test_costs_below_0_are_told_and_counted_as_none(tmp_path):
    run = train(tiny(tmp_path, env="tests.training.probes:Paid"), quiet=True)
    told = []
    fixed = evaluate(run, 6, warn=told.append)
    assert fixed.episodes.cost.tolist() == [-5.0] * 6
    assert (fixed.violations, fixed.gate.mean_cost) == (0, 0.0)
    assert [text for text in told if "cost -5: negative costs compensate violations" in text] == told[-1:]
    sure = evaluate(run, 100, until_certified=True, warn=told.append)
    assert sure.certified
    assert sure.episodes.cost.tolist() == [-5.0] * 36


def test_printed_bounds_hold(run, capsys):
    """A bound rounded down would promise more than was shown."""
    from steingate.cli import main

    def printed(text):
        return [float(found) / 100.0 for found in re.findall(r"at most\s+([\d.]+) %", text)]

    for count in (3, 7, 11, 12):
        found = evaluate(run, count, policy="last")
        assert (
            main(["evaluate", str(run), "--episodes", str(count), "--policy", "last", "--actions", "mean"])
            == 0
        )
        table = printed(capsys.readouterr().out)
        assert len(table) == 2
        trial = CertificationTest(6, count, 1, 0.0, 0.0, 0.10000 + count / 3000, 0.05, True)
        verdict = certification_report(load_run_config(run), 6, trial, [trial], True, 1)["sentence"]
        watch = Monitor(4.0)
        watch.update_many([0.0] * count)
        for shown, bound in (
            *((value, found.bound) for value in (*table, *printed(found.sentence))),
            (printed(verdict)[0], trial.bound),
            (printed(watch.summary)[0], watch.bound),
        ):
            assert bound <= shown + 1e-12 < bound + 0.0011
