"""Evaluation: the episodes are those of the policy, the bounds hold jointly and are printed rounded up."""

import json
import re

import numpy as np
import pytest
from scipy.stats import binomtest
from tests.training.fakes import FakeEnv
from tests.training.probes import Endless, Walk
from tests.training.runs_of_probes import tiny

from steingate.algorithms.base import Episodes
from steingate.cli import main
from steingate.envs.make import make_vec
from steingate.errors import InputError, RunError
from steingate.monitoring.monitor import Monitor
from steingate.policies.load import load_policy
from steingate.runs import RunFolder, load_certification
from steingate.training import evaluate as evaluation
from steingate.training.certification import min_episodes
from steingate.training.evaluate import FILE, evaluate, play_episodes, read_evaluations
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


def test_the_bound_is_the_exact_binomial_one(tmp_path):
    path = train(tiny(tmp_path, algo="trpo", total_steps=80), quiet=True)
    result = evaluate(path, 30, policy="last", limit=1.0)
    delta = 0.05 * 6 / np.pi**2
    exact = binomtest(result.violations, 30).proportion_ci(1.0 - 2.0 * delta, method="exact").high
    assert result.bound == pytest.approx(exact)
    assert result.certified == (exact <= 0.1)
    assert (result.risk, result.confidence, result.joint_confidence) == (0.1, pytest.approx(1.0 - delta), 0.95)


def test_an_episode_does_not_depend_on_its_neighbors(run):
    player = load_player(run, print, "last")
    seeds = evaluation_seeds(0, 7)
    for sample in (False, True):
        together = play(make_vec(Walk, 4, copy=False), player, seeds, sample)
        alone = play(make_vec(Walk, 1, copy=False), player, seeds[2:3], sample)
        assert alone.cost[0] == together.cost[2]
        assert alone.ret[0] == together.ret[2]
    assert evaluation_seeds(0, 9)[:7] == seeds


def test_sampled_actions_other_seeds_and_later_evaluations_give_other_episodes(run):
    player = load_player(run, print)
    mean, again, drawn = (play_episodes(player, range(8), sample, never)[0].ret for sample in (False, False, True))
    np.testing.assert_array_equal(mean, again)
    assert not np.array_equal(mean, drawn)
    seeds = [evaluate(run, 8).seeds, evaluate(run, 8).seeds, evaluate(run, 8, seed=1).seeds]
    assert len(set().union(*seeds)) == 24


def never():
    return False


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
    for sample in (False, True):
        result = evaluate(run, 400, until_certified=True, risk=0.999, sample=sample)
        count = len(result.episodes.cost)
        assert count < 400
        monitor = Monitor(4.0, 0.999, 1.0 - result.confidence)
        monitor.update_many(result.episodes.cost)
        assert (result.certified, monitor.certified_at) == (True, count)
        assert result.bound == pytest.approx(monitor.bound)
        assert result.to_dict()["shift"]["total_variation"] == pytest.approx(0.999 - monitor.bound)
        again, _ = play_episodes(load_player(run, print), result.seeds, sample, never)
        np.testing.assert_array_equal(result.episodes.cost, again.cost)
    undecided = evaluate(run, 3, until_certified=True, risk=0.01)
    assert not undecided.certified
    assert undecided.shift is None
    assert len(undecided.episodes.cost) <= 3


def test_costs_whose_number_they_decided_are_not_written(run, tmp_path, capsys):
    """A fixed-n bound of these costs is wrong in 14 % of runs."""
    costs = tmp_path / "costs.txt"
    assert main(["evaluate", str(run), "--until-certified", "--costs-out", str(costs)]) == 2
    assert "--costs-out needs a number of episodes that is fixed in advance" in capsys.readouterr().err
    assert not costs.exists()


class Simulated:
    """Episodes that violate the limit with a known probability, in place of the environment's."""

    def __init__(self, monkeypatch, chance, seed):
        self.chance, self.rng = chance, np.random.default_rng(seed)
        monkeypatch.setattr(evaluation, "play", self)
        monkeypatch.setattr(evaluation, "make_envs", lambda *args, **options: FakeEnv())

    def __call__(self, envs, player, seeds, *args, **options):
        cost = np.where(self.rng.random(len(seeds)) < self.chance, 9.0, 0.0)
        return Episodes(cost, cost, np.full(len(seeds), 10), truncated=np.ones(len(seeds), bool))


@pytest.mark.slow
def test_bounds_after_stopping_at_a_certificate_are_wrong_in_at_most_five_percent_of_runs(run, monkeypatch):
    """The fixed-n bound at the episode chosen by a monitor was wrong in 14 % of runs."""
    Simulated(monkeypatch, 0.1, 0)
    wrong = {True: 0, False: 0}
    for _ in range(400):
        (run / FILE).unlink(missing_ok=True)
        for sample in wrong:
            wrong[sample] += evaluate(run, 300, until_certified=True, sample=sample).bound < 0.1
    assert max(wrong.values()) <= 0.05 * 400


@pytest.mark.slow
@pytest.mark.parametrize("growing", [False, True])
def test_repeating_until_certified_is_wrong_in_at_most_five_percent_of_runs(run, monkeypatch, growing):
    """Ten evaluations with the whole delta each certify a policy at the accepted risk in 21 % of runs."""
    Simulated(monkeypatch, 0.1, 1 + growing)
    wrong = 0
    for _ in range(400):
        (run / FILE).unlink(missing_ok=True)
        wrong += any(evaluate(run, 50 * (1 + growing * k)).certified for k in range(10))
    assert 0 < wrong <= 0.05 * 400


def test_the_ledger_counts_evaluations_and_notices_changes(tmp_path):
    run = train(tiny(tmp_path, total_steps=80), quiet=True)
    found = [evaluate(run, 5, policy="last", sample=k == 1) for k in range(3)]
    assert [each.number for each in found] == [1, 2, 3]
    assert [1.0 - each.confidence for each in found] == pytest.approx([0.05 * 6 / (np.pi * k) ** 2 for k in (1, 2, 3)])
    assert found[2].bound > found[0].bound or found[2].violations < found[0].violations
    file = run / FILE
    lines = file.read_text().splitlines(keepends=True)
    assert [json.loads(line)["actions"] for line in lines] == ["mean", "sampled", "mean"]
    assert read_evaluations(run)[1]["bound"] == found[1].bound
    assert json.loads(lines[0])["sha256"] == load_policy(run, "last").sha256
    for changed in (
        lines[1:],
        lines[:1] + lines[2:],
        [lines[0].replace('"violations": ', '"violations": 1'), *lines[1:]],
        ["x\n", *lines[1:]],
    ):
        file.write_text("".join(changed))
        with pytest.raises(RunError, match=r"evaluations\.jsonl was changed: line [12] is not"):
            evaluate(run, 5)
    spaced = "".join(json.dumps(json.loads(line), separators=(" , ", " : ")) + "\n" for line in lines)
    file.write_text(spaced + lines[0][:30])  # cut by a crash
    assert evaluate(run, 5, policy="last").number == 4
    assert len(read_evaluations(run)) == 4


def test_negative_costs_warn_and_are_no_violations(tmp_path):
    run = train(tiny(tmp_path, env="tests.training.probes:Paid"), quiet=True)
    warned = []
    fixed = evaluate(run, 6, warn=warned.append)
    assert fixed.episodes.cost.tolist() == [-5.0] * 6
    assert fixed.violations == 0
    assert [text for text in warned if "cost -5: negative costs compensate violations" in text] == warned[-1:]
    result = evaluate(run, 100, until_certified=True, warn=warned.append)
    assert result.certified
    assert result.episodes.cost.tolist() == [-5.0] * min_episodes(0.1, 0.05 * 6 / (2 * np.pi) ** 2)


def test_the_sentence_says_which_policy_which_evaluation_and_what_to_do(run):
    (run / FILE).unlink(missing_ok=True)
    few = str(evaluate(run, 5, policy="last", limit=100.0))
    assert few == (
        "Undecided for 10 %: the last policy (step 480), without exploration noise: 0 of 5 episodes cost more "
        "than 100 (0.0 %); with 96.9 % confidence at most 50.3 % do. Too few episodes to tell: give more "
        "(--episodes), or as many as needed (--until-certified). "
        "Evaluation 1 of this run; all together have 95 % confidence."
    )
    safe = str(evaluate(run, 50, limit=100.0))
    assert safe.startswith("Certified for 10 %: the ")
    assert "Next: export it (steingate export), and monitor it where it acts (steingate monitor). Evalu" in safe
    unsafe = str(evaluate(run, 29, limit=0.0, sample=True))
    assert "with exploration noise: 29 of 29 episodes cost more than 0" in unsafe
    assert " do. Train longer, or accept a higher risk (--risk). Evaluation 3" in unsafe


def test_an_environment_that_ignores_its_seed_is_not_certified(tmp_path):
    run = train(tiny(tmp_path, env="tests.training.probes:Constant", cost_limit=6.0, total_steps=80), quiet=True)
    assert "episodes repeat although their seeds differ" in load_certification(run)["sentence"]
    result = evaluate(run, 50, policy="last", limit=100.0)
    assert not result.certified
    assert "They certify nothing: its 50 episodes repeat although their seeds differ" in str(result)


def test_printed_bounds_are_rounded_up(run, capsys):
    """A bound rounded down would promise more than was shown."""
    for count in (3, 7, 11, 12):
        (run / FILE).unlink(missing_ok=True)
        bound = evaluate(run, count, policy="last").bound
        (run / FILE).unlink()
        assert main(["evaluate", str(run), "--episodes", str(count), "--policy", "last"]) == 0
        found = re.findall(r"(?:at most|bound)\s+([\d.]+) %", capsys.readouterr().out)
        assert len(found) == 2
        assert all(bound <= float(shown) / 100.0 + 1e-12 < bound + 0.0011 for shown in found)
