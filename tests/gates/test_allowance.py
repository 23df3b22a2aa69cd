from dataclasses import replace
from math import inf

import numpy as np
import pytest
from steingate.certificates.bounds import clopper_pearson_upper
from steingate.certificates.certificate import Certificate
from steingate.gates.account import Spent, priced_beyond
from steingate.gates.allowance import Allowed, Pace, allowance_gate
from steingate.gates.base import Episodes, Mode

from steingate.certificates.risk import Exceedance
from steingate.errors import InputError

CERTIFICATE = Certificate.preset("confident", limit=25.0, budget=0.05, risk=Exceedance(0.5))
PACE = Pace(start=0.5, floor=0.2, tighten=0.8, loosen=1.25, settled=1.25, block=100)


def block(over, returns=None, n=100, safe_cost=3.0):
    costs = np.full(n, safe_cost)
    costs[:over] = 26.0
    earned = np.tile([9.0, 11.0], n // 2) if returns is None else np.asarray(returns, np.float64)
    return Episodes(costs, earned, np.full(n, 1000, np.int64))


def played(blocks, pace=PACE, noise=PACE.quiet):
    gate = allowance_gate(CERTIFICATE, pace, noise)
    state, shares = gate.init(), []
    for episodes in blocks:
        decision, state, log, _ = gate.decide(state, episodes)
        assert (decision.mode, decision.slack, decision.price) == (Mode.IMPROVE, inf, 0.0)
        assert decision.budget == log["gate/share"] == state.share
        shares.append(decision.budget)
    return shares


def test_too_many_episodes_over_the_limit_tighten_once_a_block_down_to_the_floor():
    # The first block has none before it to compare with: its return counts as growth.
    assert played([block(6)] * 8) == pytest.approx([0.5, 0.4, 0.32, 0.256, 0.2048, 0.2, 0.2, 0.2])


def test_a_block_within_the_budget_does_not_tighten():
    pace = replace(PACE, loosen=1.0 + 1e-12, settled=1.0 + 1e-12)
    assert played([block(5)] * 20, pace) == pytest.approx([0.5] * 20, abs=1e-9)


def test_exploration_fades_with_every_block_without_growth_and_ends():
    gate = allowance_gate(CERTIFICATE, replace(PACE, fade=0.5, quiet=0.2), first=2.0)
    state, noise = gate.init(), []
    for level in (0.0, 1.0, 1.0, 2.0, 2.0, 2.0, 2.0):
        decision, state, log, _ = gate.decide(state, block(0, level + np.tile([-0.1, 0.1], 50)))
        assert decision.noise == log["gate/noise"] == state.noise
        noise.append(decision.noise)
    assert noise == [2.0, 2.0, 1.0, 1.0, 0.5, 0.25, 0.2]


def test_the_share_rises_by_another_factor_once_exploration_has_ended():
    pace = replace(PACE, start=0.3, loosen=1.25, settled=1.1, fade=0.5, quiet=0.5)
    # The first block counts as growth; the second ends exploration, and still rises by the first factor.
    expected = 0.3 * np.array([1.25, 1.25**2, 1.25**2 * 1.1, 1.25**2 * 1.1**2])
    assert played([block(0)] * 4, pace, noise=1.0) == pytest.approx(expected)


def test_while_exploration_is_larger_than_its_end_as_many_times_the_risk_only_holds():
    pace = replace(PACE, fade=1.0, quiet=0.4)
    # Twice the end: up to 10 of 100 hold, 11 tighten; neither counts for the certificate.
    assert played([block(k) for k in (6, 10, 11, 10)], pace, noise=0.8) == pytest.approx([0.5, 0.5, 0.4, 0.4])
    assert played([block(2), block(9), block(2), block(2)], pace, noise=0.8) == [0.5, 0.5, 0.5, 0.625]
    assert played([block(2), block(9), block(2), block(2)], pace) == pytest.approx([0.5, 0.4, 0.4, 0.5])


def test_the_share_holds_while_returns_grow_and_tightens_when_they_stop():
    noise = np.tile([-1.0, 1.0], 50)
    growing = [block(20, level + noise) for level in (0.0, 1.0, 2.0, 3.0)]
    error = np.sqrt(2.0 / 100)
    assert played(growing) == [0.5] * 4
    assert played([*growing, block(20, 3.0 + 0.9 * error + noise)])[-1] == pytest.approx(0.4)
    assert played([*growing, block(20, 3.0 + 1.1 * error + noise)])[-1] == 0.5


@pytest.mark.parametrize("patience", [0.5, 1.0])
def test_growth_is_no_excuse_for_a_mean_cost_above_what_is_borne(patience):
    pace, borne = replace(PACE, patience=patience), 25.0 * patience
    for mean, expected in ((borne - 0.1, [0.5, 0.5, 0.5]), (borne + 0.1, [0.4, 0.32, 0.256])):
        cost = (100 * mean - 40 * 26.0) / 60
        growing = [block(40, np.full(100, level), safe_cost=cost) for level in (0.0, 1.0, 2.0)]
        assert all(episodes.cost.mean() == pytest.approx(mean) for episodes in growing)
        assert played(growing, pace) == pytest.approx(expected)


def test_growth_does_not_depend_on_the_unit_of_the_return():
    rng = np.random.default_rng(0)
    blocks = [block(20, rng.normal(level, 1.0, 100)) for level in np.cumsum(rng.normal(0.1, 0.2, 30))]
    scaled = [episodes._replace(ret=1000.0 * episodes.ret - 7.0) for episodes in blocks]
    assert played(blocks) == played(scaled)
    assert len(set(played(blocks))) > 3  # it tightens in some blocks and holds in others


def test_the_share_loosens_when_the_certificate_opens_on_all_blocks_since_the_last_change():
    # 2 of 100 do not certify 5 %, 4 of 200 do; by the exact binomial bound, written independently.
    assert clopper_pearson_upper(2, 100, 0.05) > 0.05 > clopper_pearson_upper(4, 200, 0.0499)
    assert played([block(2)] * 6) == pytest.approx([0.5, 0.625, 0.625, 0.78125, 0.78125, 0.9765625])


def test_a_block_over_the_budget_throws_away_the_good_ones_before_it():
    shares = played([block(2), block(6), block(2), block(2)])
    assert shares == pytest.approx([0.5, 0.4, 0.4, 0.5])


def test_the_share_never_exceeds_the_limit():
    assert max(played([block(0)] * 30)) == 1.0


@pytest.mark.parametrize(("p", "low", "high"), [(0.2, 0.2, 0.2), (0.005, 0.95, 1.0)])
def test_it_ends_where_it_should_for_a_policy_that_does_not_answer(p, low, high):
    rng = np.random.default_rng(1)
    blocks = [block(0)._replace(cost=np.where(rng.random(100) < p, 30.0, 0.0)) for _ in range(60)]
    assert low <= np.mean(played(blocks)[-10:]) <= high


def test_it_settles_within_the_budget_for_a_policy_that_answers():
    # The share of episodes over the limit is 0.12 m: 5 % is m = 0.42.
    pace = replace(PACE, tighten=0.9, settled=1.05)
    gate, rng = allowance_gate(CERTIFICATE, pace, pace.quiet), np.random.default_rng(2)
    state, shares = gate.init(), [0.5]
    for _ in range(400):
        cost = np.where(rng.random(100) < 0.12 * shares[-1], 30.0, 0.0)
        decision, state, *_ = gate.decide(state, block(0)._replace(cost=cost))
        shares.append(decision.budget)
    rate = 0.12 * np.array(shares[100:])
    assert 0.025 < rate.mean() < 0.04
    assert rate.max() < 0.06


@pytest.mark.parametrize("slope", [0.03, 0.06])
def test_by_default_it_comes_to_rest_at_half_the_budget(slope):
    certificate, pace = Certificate.preset("confident", limit=25.0, budget=0.015), Pace()
    gate, rng = allowance_gate(certificate, pace, pace.quiet), np.random.default_rng(0)
    state, rates = gate.init(), [0.01]
    for _ in range(700):
        cost = np.where(rng.random(160) < rates[-1], 30.0, 0.0)
        earned = np.full(160, rng.normal())
        decision, state, *_ = gate.decide(state, Episodes(cost, earned, np.full(160, 500, np.int64)))
        rates.append(slope * decision.budget)
    assert 0.4 * 0.015 < np.mean(rates[200:]) < 0.6 * 0.015


def test_blocks_fill_over_epochs_and_an_empty_epoch_changes_nothing():
    gate = allowance_gate(CERTIFICATE, PACE, PACE.quiet)
    state, found = gate.init(), []
    part = block(6)
    for epoch in range(30):
        rows = slice(10 * (epoch % 10), 10 * (epoch % 10) + 10)
        decision, state, log, _ = gate.decide(state, Episodes(part.cost[rows], part.ret[rows], part.length[rows]))
        empty = Episodes(np.zeros(0), np.zeros(0), np.zeros(0, np.int64))
        again, state, nothing, _ = gate.decide(state, empty)
        assert (again, nothing["gate/fallback"], log["gate/fallback"]) == (decision, 1.0, 0.0)
        assert np.isfinite(log["gate/bound"]) == (epoch % 10 == 9)
        found.append(decision.budget)
    assert found == pytest.approx([0.5] * 19 + [0.4] * 10 + [0.32])


def test_a_state_from_a_checkpoint_goes_on_as_if_nothing_had_happened():
    gate = allowance_gate(CERTIFICATE, PACE, PACE.quiet)
    state = gate.init()
    for count in (2, 6, 1):
        _, state, *_ = gate.decide(state, block(count)._replace(cost=block(count).cost[:70], ret=np.arange(70.0)))
    ahead = gate.decide(state, block(6))
    resumed = gate.decide(Allowed(*list(state)), block(6))
    assert isinstance(resumed[1], Allowed)
    assert ahead[0] == resumed[0]
    assert ahead[2] == resumed[2]


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        ({"start": 0.05}, "start"),
        ({"start": 1.5}, "start"),
        ({"tighten": 1.0}, "tighten"),
        ({"settled": 1.0}, "settled"),
        ({"block": 0}, "block"),
    ],
)
def test_impossible_paces_are_refused(settings, named):
    with pytest.raises(InputError, match=named):
        Pace(**settings)


def test_prices_are_counted_in_the_size_of_recent_returns():
    gate = allowance_gate(CERTIFICATE, PACE, PACE.quiet)
    state, worth = gate.init(), []
    empty = Episodes(np.zeros(0), np.zeros(0), np.zeros(0, np.int64))
    for episodes in (empty, block(0, np.tile([-6.0, 2.0], 50)), empty, block(0, np.full(100, 14.0)), empty):
        decision, state, log, _ = gate.decide(state, episodes)
        assert decision.worth == log["gate/worth"] == state.worth
        worth.append(decision.worth)
    assert worth == pytest.approx([0.0, 4.0, 4.0, 0.9 * 4.0 + 0.1 * 14.0, 5.0])


def test_steps_shrink_as_exploration_fades():
    pace = replace(PACE, fade=0.5, quiet=0.5)
    gate = allowance_gate(CERTIFICATE, pace, first=2.0)
    state, found = gate.init(), []
    for _ in range(4):
        decision, state, *_ = gate.decide(state, block(0))
        found.append((decision.noise, decision.part))
    half = np.sqrt(0.5)
    np.testing.assert_allclose(found, [(2.0, 1.0), (1.0, half), (0.5, 0.5), (0.5, 0.5)])


def test_a_run_that_starts_with_less_than_the_end_of_exploration_keeps_it():
    gate = allowance_gate(CERTIFICATE, PACE, first=0.3)
    state = gate.init()
    for _ in range(3):
        decision, state, *_ = gate.decide(state, block(0))
        assert (decision.noise, decision.part) == (0.3, 1.0)


def test_what_is_spent_is_counted_in_limits_and_beyond_the_share_cost_is_dear():
    account, rule = Spent(25.0), priced_beyond(0.1)
    number = np.full(3, account.first(0.4, after_end=True))
    cost, reward = np.array([0.0, 4.0, 5.0]), np.full(3, 2.0)
    number = account.following(account.following(number, cost, 0.4), cost, 0.4)
    np.testing.assert_allclose(number, [0.0, -0.32, -0.4], atol=1e-12)
    number[2] = -0.4
    dear = 0.1 / 0.16
    np.testing.assert_allclose(rule(number, reward, cost, 0.4, 7.0), [2.0, 2.0, -dear * 5.0])
    early = priced_beyond(0.1, early=0.25)(number, reward, cost, 0.4, 7.0)
    np.testing.assert_allclose(early, [2.0, 2.0 - 0.25 * dear * 4.0, -dear * 5.0])
    kept = priced_beyond(0.1, early=0.25, kept=0.5)(number, reward, cost, 0.4, 7.0)
    np.testing.assert_allclose(kept, [2.0, 2.0 - 0.25 * dear * 4.0, 1.0 - dear * 5.0])
    for worth, times in ((6.0, 1.0), (20.0, 2.0), (200.0, 20.0)):  # at least a hundredth of the worth
        least = priced_beyond(0.1, least=0.01)(number, reward, cost, 0.4, worth)
        np.testing.assert_allclose(least, [2.0, 2.0, -times * dear * 5.0])
    extra = account.extra(0.4)
    assert extra.start == 0.0
    assert extra.following(extra.following(0.0, 4.0), 4.0) == pytest.approx(-0.32)
    assert extra.plain() == [0.0, -0.04, 1.0]
    ends = Spent(25.0, lowest=-1.5)
    assert ends.extra(0.4).following(-0.32, 40.0) == -1.5
    assert ends.extra(0.4).plain() == [0.0, -0.04, 1.0, -1.5]
    np.testing.assert_array_equal(ends.following(number, np.full(3, 40.0), 0.4), -1.5)
    assert account.true_at_end


@pytest.mark.parametrize("share", [0.2, 0.9])
def test_what_is_seen_does_not_depend_on_the_share(share):
    """A share that moves must not move the observations of episodes that have spent nothing."""
    account = Spent(25.0)
    assert account.first(share, False) == account.first(share, True) == account.extra(share).start == 0.0
    assert account.following(np.zeros(1), np.ones(1), share) == -0.04


def test_with_the_reward_kept_an_episode_pays_a_convex_function_of_its_cost():
    """Steps that end within the allowance are cheap, others dear: what is paid grows ever steeper."""
    account, rule = Spent(10.0), priced_beyond(0.1, early=0.25, kept=1.0)
    paid = []
    for total in range(12):
        number, sum_ = np.zeros(1), 0.0
        for _ in range(total):
            number = account.following(number, np.ones(1), 0.45)
            sum_ += 2.0 - float(rule(number, np.full(1, 2.0), np.ones(1), 0.45, 3.0)[0])
        paid.append(sum_)
    dear = 0.1 / 0.45**2
    np.testing.assert_allclose(paid, [dear * (0.25 * min(n, 4) + max(n - 4, 0)) for n in range(12)])
    assert (np.diff(paid, 2) >= -1e-12).all()
