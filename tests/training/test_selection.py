"""Selection of the certified checkpoint: the candidates, and what a run folder holds after training."""

import json
import platform
import shutil
import warnings

import numpy as np
import pytest
from tests.training.probes import Walk
from tests.training.runs_of_probes import facts, tiny

from steingate import runs
from steingate.envs.make import make_vec
from steingate.errors import InputError, RunError
from steingate.monitoring.wealth import upper_bound
from steingate.policies.load import load_policy
from steingate.policies.normalizer import Stats
from steingate.runs import RunFolder, certified_checkpoint, load_certification
from steingate.storage.checkpoint import latest_checkpoint, write_tree
from steingate.training import loop, selection
from steingate.training.certification import CertificationTest
from steingate.training.config_file import load_run_config
from steingate.training.evaluate import evaluate
from steingate.training.play import load_player, play
from steingate.training.runner import resume, train
from steingate.training.selection import (
    MAX_CANDIDATES,
    Candidate,
    SelectionState,
    add_candidate,
    add_test,
    make_candidate,
    next_candidate,
)

STATS = Stats(2, np.zeros(1), np.ones(1))
LONG = {"total_steps": 80 * 40, "checkpoint_every": 3, "certify.max_step_fraction": 0.5}


def candidate(epoch, risk, ret, error=0.1):
    return Candidate(epoch, risk, ret, error, 10, {"w": (np.ones((1, 1), np.float32),)}, STATS, 1.0)


def result(epoch, ret, certified, bound=0.09):
    return CertificationTest(epoch, 40, 0, ret, 1.0, bound, 0.01, certified)


def front(*pairs):
    candidates = ()
    for epoch, (risk, ret) in enumerate(pairs):
        candidates = add_candidate(candidates, candidate(epoch, risk, ret))
    return [(one.risk, one.ret) for one in candidates]


def test_candidates_are_the_pareto_front_of_risk_and_return():
    assert front((0.5, 1.0), (0.6, 0.9), (0.4, 0.5), (0.5, 1.0)) == [(0.4, 0.5), (0.5, 1.0)]
    pairs = [tuple(pair) for pair in np.random.default_rng(0).random((30, 2))]
    best = [a for a in pairs if not any(b != a and b[0] <= a[0] and b[1] >= a[1] for b in pairs)]
    assert 1 < len(best) <= MAX_CANDIDATES
    assert front(*pairs) == sorted(best)


def test_over_the_limit_only_the_least_risky_candidate_remains_and_only_alone():
    assert front((3.0, 5.0), (2.0, 4.0), (4.0, 9.0)) == [(2.0, 4.0)]
    assert front((3.0, 5.0), (2.0, 4.0), (1.0, 0.0)) == [(1.0, 0.0)]


def test_the_front_stays_small_and_its_ends_remain():
    found = front(*((0.05 * i, float(i)) for i in range(20)))
    assert len(found) == MAX_CANDIDATES
    assert found[0] == (0.0, 0.0)
    assert found[-1] == pytest.approx((0.95, 19.0))


def test_the_best_return_within_the_risk_is_next_if_it_beats_the_certified_one():
    state = SelectionState((candidate(1, 0.2, 1.0), candidate(2, 0.7, 2.05)))
    assert next_candidate(state).epoch == 2
    assert next_candidate(state._replace(max_risk=0.5)).epoch == 1
    assert next_candidate(state._replace(max_risk=0.1)) is None
    for ret, better in ((1.9, True), (1.96, False)):  # the error of the return is 0.1
        best = (candidate(0, 0.3, ret), result(0, 5.0, True))
        assert (next_candidate(state._replace(best=best)) is not None) == better


def test_a_failure_lowers_the_maximum_risk_and_a_success_raises_it():
    one, other = candidate(1, 0.6, 1.0), candidate(2, 0.9, 2.0)
    state = add_test(SelectionState((one, other)), other, result(2, 2.0, False, bound=0.4), 100)
    assert (state.candidates, state.tests, state.steps, state.best) == ((one,), 1, 100, None)
    assert state.max_risk == pytest.approx(0.72)
    assert state.closest.epoch == 2
    state = add_test(state, one, result(1, 1.0, True), 50)
    assert (state.tests, state.steps) == (2, 150)
    assert state.best == (one, result(1, 1.0, True))
    assert state.max_risk == pytest.approx(0.72)
    state = add_test(state, candidate(3, 0.7, 3.0), result(3, 3.0, True), 50)
    assert state.max_risk == pytest.approx(0.84)


def test_the_highest_tested_return_is_best_and_the_lowest_bound_is_closest():
    state = SelectionState()
    for epoch, (ret, certified, bound) in enumerate(
        [(1.0, True, 0.09), (0.5, True, 0.01), (9.0, False, 0.3), (9.0, False, 0.2), (9.0, False, 0.5)]
    ):
        state = add_test(state, candidate(epoch, 0.5, ret), result(epoch, ret, certified, bound), 1)
    assert state.best[1].epoch == 0
    assert state.closest.epoch == 3


def test_the_risk_of_a_candidate_is_the_mean_cost_of_its_worst_fifth():
    episodes = np.array([[float(i), 0.0 if i < 8 else 10.0 * (i - 7), 5 + i] for i in range(10)])
    found = make_candidate(7, episodes, {}, STATS, 0.5, limit=25.0)
    assert found.risk == pytest.approx(15.0 / 25.0)  # the two worst cost 10 and 20
    assert found.ret == pytest.approx(4.5)
    assert found.ret_error == pytest.approx(np.std(np.arange(10.0)) / 10**0.5)
    assert (found.epoch, found.length, found.cost_budget_fraction) == (7, 14, 0.5)
    assert make_candidate(7, episodes, {}, STATS, 0.5, limit=0.0).risk == pytest.approx(0.2 / 0.2)


def stored(path):
    """The bytes of the certified checkpoint and its report."""
    run = RunFolder(path)
    return {file.name: file.read_bytes() for file in (run.certified, run.certification) if file.exists()}


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    path = train(tiny(tmp_path_factory.mktemp("whole"), **LONG), quiet=True)
    return path, facts(path), stored(path)


class Killed(BaseException):
    pass


def kill(*args, **options):
    raise Killed


def test_the_certified_checkpoint_is_the_one_that_was_tested(whole):
    path = whole[0]
    report, checkpoint = load_certification(path), certified_checkpoint(path)
    test = CertificationTest(**checkpoint.tree["test"])
    assert report["certified"]
    assert report["finished"]
    assert test.certified
    assert report["policy"] == {"step": 80 * checkpoint.epoch, **test._asdict()}
    assert test.bound == upper_bound(test.violations, test.episodes - test.violations, test.delta) <= 0.1
    assert (test.budget, test.limit, report["versions"]["python"]) == (0.1, 4.0, platform.python_version())
    assert report["ledger"]["delta_spent"] <= 0.05
    assert test.sha256 == load_policy(path).sha256 != load_policy(path, "last").sha256
    again = play(make_vec(Walk, 4, copy=False), load_player(path, print), report["seeds"], False)
    assert (np.sum(again.cost > 4.0), np.mean(again.ret)) == (test.violations, pytest.approx(test.mean_return))
    fresh = report["fresh_episodes"]
    assert (fresh["episodes"], set(fresh["seeds"]) & set(report["seeds"])) == (100, set())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        policy = load_policy(path)
    assert (policy.certified, policy.about["epoch"]) == (True, checkpoint.epoch)
    assert policy.about["certification"] == report["sentence"]
    fresh = evaluate(path, 200, seed=5)
    assert fresh.which == "certified"
    assert np.mean(fresh.episodes.cost > 4.0) <= 0.1
    assert load_policy(path, "last").about["checkpoint"] == "last"


def test_tests_do_not_change_training(whole, tmp_path):
    path = train(tiny(tmp_path, **{**LONG, "certify.enabled": False}), quiet=True)
    assert all(facts(path)[name] == whole[1][name] for name in ("progress", "episodes"))
    one, other = (latest_checkpoint(run / "checkpoints").tree for run in (path, whole[0]))
    for mine, others in zip(one["policy"]["w"], other["policy"]["w"], strict=True):
        np.testing.assert_array_equal(mine, others)
    assert stored(path) == {}
    with pytest.warns(UserWarning, match="Certification is disabled"):
        load_policy(path)


@pytest.mark.parametrize("epochs", [2, 20])
def test_a_killed_run_certifies_the_same_policy(whole, tmp_path, monkeypatch, epochs):
    cfg = tiny(tmp_path, **LONG)
    real, calls = loop.CertifiedCheckpointSelector.consider, iter(range(epochs))

    def consider(self, *states):
        state = real(self, *states)
        if next(calls, None) is None:
            raise Killed  # after a test, before anything of its epoch is written
        return state

    with monkeypatch.context() as patch:
        patch.setattr(loop.CertifiedCheckpointSelector, "consider", consider)
        with pytest.raises(Killed):
            train(cfg, quiet=True)
    resume(cfg.path, quiet=True)
    assert facts(cfg.path) == whole[1]
    assert stored(cfg.path) == whole[2]


@pytest.mark.parametrize("function", ["certify_checkpoint", "write_certification"])
def test_a_run_killed_in_its_final_tests_certifies_the_same_policy(tmp_path, monkeypatch, function):
    settings = {**LONG, "certify.max_step_fraction": 0.0}
    cfg = tiny(tmp_path, **settings)
    unbroken = train(tiny(tmp_path / "unbroken", **settings), quiet=True)
    with monkeypatch.context() as patch:
        patch.setattr(selection if hasattr(selection, function) else runs, function, kill)
        with pytest.raises(Killed):
            train(cfg, quiet=True)
    for _ in range(2):  # the second time there is nothing left to test
        resume(cfg.path, quiet=True)
        assert stored(cfg.path) == stored(unbroken)


def test_an_extended_run_equals_a_longer_one(whole, tmp_path):
    short = tiny(tmp_path, **{**LONG, "total_steps": 80 * 25})
    train(short, quiet=True)
    tests = load_certification(short.path)["ledger"]["final_tests"]
    assert tests >= 1
    resume(short.path, quiet=True, total_steps=80 * 40)
    assert facts(short.path) == whole[1]
    report = load_certification(short.path)
    assert report["ledger"]["final_tests"] > tests  # the error probability of earlier tests stays spent
    assert report["epoch"] == 40


def test_without_a_certified_policy_every_user_is_warned(tmp_path, capsys):
    path = train(tiny(tmp_path, cost_limit=1e-9))
    report = load_certification(path)
    assert not report["certified"]
    assert report["closest"]["violations"] > 0
    assert report["sentence"] in capsys.readouterr().err
    with pytest.warns(UserWarning, match="This is the last policy of .*Training certified no policy."):
        assert load_policy(path).about["checkpoint"] == "last"
    with pytest.raises(RunError, match="has no certified policy"):
        load_policy(path, "certified")
    with pytest.raises(InputError, match="'best'"):
        load_policy(path, "best")


def test_endless_episodes_and_failing_tests_do_not_end_training(tmp_path, monkeypatch):
    path = train(tiny(tmp_path, env="tests.training.probes:Endless", total_steps=160), quiet=True)
    assert "no episode ended during training" in load_certification(path)["sentence"]

    def broken(*given, **options):
        raise OSError("only one robot")

    monkeypatch.setattr(selection, "make_envs", broken)
    report = load_certification(train(tiny(tmp_path), quiet=True))
    assert not report["certified"]
    assert "only one robot" in report["sentence"]


@pytest.fixture
def copy(whole, tmp_path):
    """A copy of the finished run."""
    return shutil.copytree(whole[0], tmp_path / "copy")


def edit(file, *keys, value):
    """Change one number of a JSON file, as an editor does."""
    content = json.loads(file.read_text())
    parent = content
    for key in keys[:-1]:
        parent = parent[key]
    parent[keys[-1]] = value
    file.write_text(json.dumps(content, indent=2))


def test_a_checkpoint_copied_into_place_is_not_certified(whole, copy, tmp_path):
    run = RunFolder(copy)
    shutil.copy(latest_checkpoint(run.checkpoints).path, run.certified)
    with pytest.warns(UserWarning, match="holds no certification test, so it is not certified"):
        policy = load_policy(copy)
    assert (policy.certified, policy.about["checkpoint"]) == (False, "last")
    with pytest.raises(RunError, match="no certified policy"):
        load_player(copy, print, "certified")
    # the tested policy's test beside another policy
    found, last = certified_checkpoint(whole[0]), latest_checkpoint(run.checkpoints)
    write_tree(run.certified, found.epoch, {**found.tree, "policy": last.tree["policy"]})
    with pytest.warns(UserWarning, match="another policy than the one that was tested"):
        assert not load_policy(copy).certified
    exported = load_policy(whole[0])
    assert exported.certified
    exported.arrays = {**exported.arrays, "b0": exported.arrays["b0"] + 1e-6}
    assert not exported.certified


@pytest.mark.parametrize(("name", "value"), [("budget", 0.01), ("delta", 0.001)])
def test_edited_settings_of_certification_are_refused_and_count_for_nothing(tmp_path, name, value):
    cfg = tiny(tmp_path, **{**LONG, "certify.budget": 0.6, "certify.delta": 0.5})
    path = train(cfg, quiet=True)
    assert load_certification(path)["certified"]
    edit(path / "config.json", "config", "certify", name, value=value)
    with pytest.raises(RunError, match=f"certify.{name} is {value}, but was 0.[56]"):
        resume(path, quiet=True, total_steps=cfg.total_steps + 80)
    report = load_certification(path)
    assert (report["budget"], report["delta"], report["policy"]["budget"]) == (0.6, 0.5, 0.6)
    test = CertificationTest(**certified_checkpoint(path).tree["test"])
    assert test.holds_for(cfg)
    assert not test.holds_for(load_run_config(path))
    assert not test._replace(violations=test.episodes).holds_for(cfg)


def test_a_damaged_or_edited_report_is_not_believed_and_written_again(whole, copy, capsys):
    file = RunFolder(copy).certification
    for change in (
        lambda: edit(file, "certified", value=False),
        lambda: edit(file, "policy", "violations", value=99),
        lambda: file.write_text("{"),
        lambda: file.write_text("null"),
        lambda: file.unlink(),
    ):
        change()
        if file.exists():
            with pytest.raises(RunError, match=r"certification\.json (was edited|is damaged)"):
                load_certification(copy)
        assert not load_policy(copy, warn=lambda text: None).certified
        resume(copy)
        assert stored(copy) == whole[2]
        assert load_policy(copy).certified
    assert "certification.json was edited: it is written again" in capsys.readouterr().err


def test_no_file_gives_delta_back(whole, copy):
    before = load_certification(copy)["ledger"]
    RunFolder(copy).certification.unlink()
    RunFolder(copy).certified.unlink()
    resume(copy, quiet=True, total_steps=80 * 41)
    after = load_certification(copy)["ledger"]
    assert after["final_tests"] > before["final_tests"]
    assert before["delta_spent"] < after["delta_spent"] <= 0.05
