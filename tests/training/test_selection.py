"""Which policies are tried: a front of risk and return, a max_risk that follows the tests."""

import numpy as np
import pytest

from steingate.policies.normalizer import Stats
from steingate.training.certification import CertificationTest
from steingate.training.selection import (
    MAX_CANDIDATES,
    Candidate,
    SelectionState,
    add_candidate,
    add_test,
    make_candidate,
    next_candidate,
    selection_from_tree,
)
from steingate.training.state import plain

STATS = Stats(2, np.zeros(1), np.ones(1))


def candidate(epoch, risk, ret, error=0.1):
    return Candidate(epoch, risk, ret, error, 10, {"w": (np.ones((1, 1), np.float32),)}, STATS, 1.0)


def trial(epoch, ret, certified, bound=0.09):
    return CertificationTest(epoch, 40, 0, ret, 1.0, bound, 0.01, certified)


def listed(*pairs):
    candidates = ()
    for epoch, (risk, ret) in enumerate(pairs):
        candidates = add_candidate(candidates, candidate(epoch, risk, ret))
    return [(one.risk, one.ret) for one in candidates]


class TestShortlist:
    def test_those_that_another_beats_in_both_go(self):
        assert listed((0.5, 1.0), (0.6, 0.9), (0.4, 0.5), (0.5, 1.0)) == [(0.4, 0.5), (0.5, 1.0)]

    def test_it_is_the_front_of_everything_seen_when_that_is_small(self):
        rng = np.random.default_rng(0)
        pairs = [tuple(pair) for pair in rng.random((30, 2))]
        front = [a for a in pairs if not any(b != a and b[0] <= a[0] and b[1] >= a[1] for b in pairs)]
        assert 1 < len(front) <= MAX_CANDIDATES
        assert listed(*pairs) == sorted(front)

    def test_over_the_limit_only_the_least_risky_is_kept_and_only_alone(self):
        assert listed((3.0, 5.0), (2.0, 4.0), (4.0, 9.0)) == [(2.0, 4.0)]
        assert listed((3.0, 5.0), (2.0, 4.0), (1.0, 0.0)) == [(1.0, 0.0)]

    def test_it_stays_small_and_keeps_its_ends(self):
        found = listed(*((0.05 * i, float(i)) for i in range(20)))
        assert len(found) == MAX_CANDIDATES
        assert found[0] == (0.0, 0.0)
        assert found[-1] == pytest.approx((0.95, 19.0))


class TestChoice:
    def test_the_best_return_under_the_ceiling_is_tried(self):
        kept = SelectionState((candidate(1, 0.2, 1.0), candidate(2, 0.7, 2.0)))
        assert next_candidate(kept).epoch == 2
        assert next_candidate(kept._replace(max_risk=0.5)).epoch == 1
        assert next_candidate(kept._replace(max_risk=0.1)) is None

    def test_it_must_beat_the_certified_one_by_its_error(self):
        best = (candidate(0, 0.3, 1.9), trial(0, 5.0, True))
        kept = SelectionState((candidate(2, 0.7, 2.05),), best=best)
        assert next_candidate(kept) is not None
        assert next_candidate(kept._replace(best=(candidate(0, 0.3, 1.96), trial(0, 5.0, True)))) is None

    def test_a_failure_lowers_the_ceiling_and_a_success_raises_it(self):
        one, other = candidate(1, 0.6, 1.0), candidate(2, 0.9, 2.0)
        kept = add_test(SelectionState((one, other)), other, trial(2, 2.0, False, bound=0.4), 100)
        assert kept.candidates == (one,)
        assert (kept.tests, kept.steps) == (1, 100)
        assert kept.max_risk == pytest.approx(0.72)
        assert kept.best is None
        assert kept.closest.epoch == 2
        kept = add_test(kept, one, trial(1, 1.0, True), 50)
        assert (kept.tests, kept.steps) == (2, 150)
        assert kept.best == (one, trial(1, 1.0, True))
        assert kept.max_risk == pytest.approx(0.72)
        kept = add_test(kept, candidate(3, 0.7, 3.0), trial(3, 3.0, True), 50)
        assert kept.max_risk == pytest.approx(0.84)

    def test_the_highest_tested_return_stays_and_the_lowest_bound_is_closest(self):
        kept = SelectionState()
        for epoch, (ret, certified, bound) in enumerate(
            [(1.0, True, 0.09), (0.5, True, 0.01), (9.0, False, 0.3), (9.0, False, 0.2), (9.0, False, 0.5)]
        ):
            kept = add_test(kept, candidate(epoch, 0.5, ret), trial(epoch, ret, certified, bound), 1)
        assert kept.best[1].epoch == 0
        assert kept.closest.epoch == 3


def test_a_candidate_is_judged_by_the_worst_fifth_of_its_episodes():
    episodes = np.array([[float(i), 0.0 if i < 8 else 10.0 * (i - 7), 5 + i] for i in range(10)])
    found = make_candidate(7, episodes, {}, STATS, 0.5, limit=25.0)
    assert found.risk == pytest.approx(15.0 / 25.0)  # the two worst cost 10 and 20
    assert found.ret == pytest.approx(4.5)
    assert found.ret_error == pytest.approx(np.std(np.arange(10.0)) / 10**0.5)
    assert (found.epoch, found.length, found.budget) == (7, 14, 0.5)
    assert make_candidate(7, episodes, {}, STATS, 0.5, limit=0.0).risk == pytest.approx(0.2 / 0.2)


def test_what_is_kept_survives_a_checkpoint():
    one = candidate(3, 0.5, 1.0)
    kept = SelectionState(
        (one,), 0.8, 4, 900, (candidate(2, 0.4, 0.5), trial(2, 0.6, True)), trial(1, 0.2, False)
    )
    back = selection_from_tree(
        plain(kept), lambda params: {name: tuple(value) for name, value in params.items()}
    )
    assert back._replace(candidates=(), best=None) == kept._replace(candidates=(), best=None)
    assert back.best[1] == kept.best[1]
    assert back.candidates[0][:5] == one[:5]
    np.testing.assert_array_equal(back.candidates[0].policy["w"][0], one.policy["w"][0])
    assert back.candidates[0].stats.count == 2
