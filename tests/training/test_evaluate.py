"""Evaluation: the episodes are those of the policy, the bounds are exact and printed rounded up."""

import re

import numpy as np
import pytest
from scipy.stats import binomtest
from tests.training.probes import Endless, Walk
from tests.training.runs_of_probes import tiny

from steingate.cli import main
from steingate.envs.make import make_vec
from steingate.errors import InputError, RunError
from steingate.monitoring.monitor import Monitor
from steingate.policies.load import load_policy
from steingate.runs import RunFolder
from steingate.training.certification import CertificationTest, certification_report
from steingate.training.config_file import load_run_config
from steingate.training.evaluate import evaluate
from steingate.training.play import load_player, play
from steingate.training.runner import train
from steingate.training.seeding import evaluation_seeds


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return train(tiny(tmp_path_factory.mktemp("runs")), quiet=True)


def by_hand(policy, seed):
    """Return (return, cost, length) of one episode with the NumPy policy in the bare environment."""
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
    policy = load_policy(run, "last")
    expected = np.array([by_hand(policy, seed) for seed in result.seeds])
    np.testing.assert_allclose(result.episodes.ret, expected[:, 0], atol=1e-5)
    np.testing.assert_allclose(result.episodes.cost, expected[:, 1], atol=1e-5)
    np.testing.assert_array_equal(result.episodes.length, expected[:, 2])
    numbers = result.to_dict()
    assert (numbers["episodes"], numbers["epoch"], numbers["step"]) == (11, 6, 480)
    assert numbers["worst"]["cost"] == result.episodes.cost.max()
    assert numbers["violation_rate"] == np.mean(result.episodes.cost > 4.0)


@pytest.mark.parametrize("algo", ["steingate", "trpo"])
def test_the_bound_is_the_exact_binomial_one(tmp_path, algo):
    path = train(tiny(tmp_path, algo=algo, total_steps=80), quiet=True)
    result = evaluate(path, 30, policy="last", limit=1.0)
    exact = binomtest(result.violations, 30).proportion_ci(0.9, method="exact").high
    assert result.bound == pytest.approx(exact)
    assert result.certified == (exact <= 0.1)
    assert (result.risk, result.confidence) == (0.1, 0.95)


def test_an_episode_does_not_depend_on_its_neighbors(run):
    player = load_player(run, print, "last")
    seeds = evaluation_seeds(0, 7)
    for sample in (False, True):
        together = play(make_vec(Walk, 4, copy=False), player, seeds, sample)
        alone = play(make_vec(Walk, 1, copy=False), player, seeds[2:3], sample)
        assert alone.cost[0] == together.cost[2]
        assert alone.ret[0] == together.ret[2]
    assert evaluation_seeds(0, 9)[:7] == seeds


def test_sampled_actions_and_other_seeds_give_other_episodes(run):
    mean, again, drawn = evaluate(run, 8), evaluate(run, 8), evaluate(run, 8, sample=True)
    np.testing.assert_array_equal(mean.episodes.ret, again.episodes.ret)
    assert not np.array_equal(mean.episodes.ret, drawn.episodes.ret)
    assert not np.array_equal(mean.episodes.ret, evaluate(run, 8, seed=1).episodes.ret)


def test_what_cannot_be_evaluated(run, tmp_path):
    with pytest.raises(InputError, match="episodes must be at least 1, got 0"):
        evaluate(run, 0)
    with pytest.raises(RunError, match="not a run folder"):
        evaluate(tmp_path, 1)
    (tmp_path / "config.json").write_text((RunFolder(run).config).read_text())
    with pytest.raises(RunError, match="no checkpoint yet"):
        evaluate(tmp_path, 1)
    with pytest.raises(RunError, match="has not ended after 300 steps"):
        play(make_vec(Endless, 1, copy=False), load_player(run, print, "last"), [1], False, max_steps=300)


def test_until_certified_plays_as_many_episodes_as_the_monitor_needs(run):
    result = evaluate(run, 400, until_certified=True, risk=0.999)
    count = len(result.episodes.cost)
    monitor = Monitor(4.0, 0.999, 0.05)
    monitor.update_many(result.episodes.cost)
    assert (result.certified, result.bound, monitor.certified_at) == (True, monitor.bound, count)
    assert count < 400
    fixed = evaluate(run, count)
    np.testing.assert_array_equal(result.episodes.cost, fixed.episodes.cost)
    assert result.seeds == fixed.seeds
    undecided = evaluate(run, 3, until_certified=True, risk=0.01)
    assert not undecided.certified
    assert len(undecided.episodes.cost) <= 3


def test_negative_costs_warn_and_are_no_violations(tmp_path):
    run = train(tiny(tmp_path, env="tests.training.probes:Paid"), quiet=True)
    warned = []
    fixed = evaluate(run, 6, warn=warned.append)
    assert fixed.episodes.cost.tolist() == [-5.0] * 6
    assert fixed.violations == 0
    assert [text for text in warned if "cost -5: negative costs compensate violations" in text] == warned[-1:]
    result = evaluate(run, 100, until_certified=True, warn=warned.append)
    assert result.certified
    assert result.episodes.cost.tolist() == [-5.0] * 36


def test_the_sentence_says_which_policy_and_what_to_do(run):
    few = str(evaluate(run, 5, policy="last", limit=100.0))
    assert few == (
        "The last policy (step 480), without exploration noise: 0 of 5 episodes cost more than 100 (0.0 %); "
        "with 95 % confidence at most 45.1 % do. Too few episodes to certify 10 %; --until-certified uses as "
        "many as needed."
    )
    assert str(evaluate(run, 29, limit=100.0)).endswith("Certified for 10 %.")
    unsafe = str(evaluate(run, 29, limit=0.0, sample=True))
    assert "with exploration noise: 29 of 29 episodes cost more than 0" in unsafe
    assert unsafe.endswith("Not certified for 10 %: train longer, or accept a higher risk.")


def test_printed_bounds_are_rounded_up(run, capsys):
    """A bound rounded down would promise more than was shown."""

    def printed(text):
        return [float(found) / 100.0 for found in re.findall(r"(?:at most|bound)\s+([\d.]+) %", text)]

    for count in (3, 7, 11, 12):
        result = evaluate(run, count, policy="last")
        words = ["--episodes", str(count), "--policy", "last", "--actions", "mean"]
        assert main(["evaluate", str(run), *words]) == 0
        table = printed(capsys.readouterr().out)
        assert len(table) == 2
        test = CertificationTest(6, count, 1, 0.0, 0.0, 0.10000 + count / 3000, 0.05, True)
        report = certification_report(load_run_config(run), 6, test, [test], True, 1)["sentence"]
        for shown, bound in (*((value, result.bound) for value in table), (printed(report)[0], test.bound)):
            assert bound <= shown + 1e-12 < bound + 0.0011
