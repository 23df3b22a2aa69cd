"""The certificate as a gate: published decisions, the epoch without episodes, and the recovery diagnosis."""

import numpy as np
import pytest
from steingate.certificates.certificate import Certificate
from steingate.gates.base import Decision, Episodes, Mode
from steingate.gates.stein import LONG_SHUT, first_words, stein_gate, why_shut


def episodes(costs):
    costs = np.asarray(costs, dtype=np.float64)
    return Episodes(costs, np.zeros_like(costs), np.full(costs.size, 1000))


@pytest.fixture(scope="module")
def released():
    return Certificate.preset("released", limit=25.0)


# Decisions of the original code for limit 25: costs, mean risk, mass at the top, interior mass, discrepancy,
# Stein bound, value compared with the budget, and whether it took a reward step.
VECTORS = [
    ([0] * 16, 0.0, 0, 0, 0, 0.11305, 0.0, True),
    ([5] * 16, 0.0, 0, 1, 20.757, 2.18878, 0.0, True),
    ([10] * 15 + [30], 0.06208, 0, 1, 18.799, 1.99293, 0.06208, True),
    ([10] * 14 + [30, 30], 0.12416, 0, 1, 17.708, 1.88388, 1.88388, False),
    ([10] * 15 + [60], 0.06250, 0.0625, 0.9375, 20.000, 2.05055, 2.05055, False),
    ([22] * 16, 0.04743, 0, 1, 20.584, 2.17149, 0.04743, True),
    ([23] * 16, 0.11920, 0, 1, 20.673, 2.18039, 2.18039, False),
    (range(0, 16, 2), 0.0, 0, 0.875, 4.137, 0.47508, 0.0, True),
]


@pytest.mark.parametrize(("costs", "risk", "top", "weight", "ksd", "bound", "value", "improves"), VECTORS)
def test_released_decisions(released, costs, risk, top, weight, ksd, bound, value, improves):
    result = released.evaluate(list(costs))
    assert result.empirical_risk == pytest.approx(risk, abs=2e-5)
    assert result.one_mass == top
    assert result.interior_mass == weight
    assert result.interior_discrepancy == pytest.approx(ksd, abs=5e-4)
    assert result.stein_bound == pytest.approx(bound, abs=5e-6)
    assert result.bound == pytest.approx(value, abs=2e-5)
    gate = stein_gate(released)
    decision, _, log, *_ = gate.decide(gate.init(), episodes(list(costs)))
    assert decision.mode == (Mode.IMPROVE if improves else Mode.RECOVER)
    assert decision.slack == pytest.approx(25.0 - np.mean(list(costs)))
    assert log["gate/bound"] == result.bound
    assert log["gate/fallback"] == 0.0


def test_the_released_gate_is_a_threshold_on_soft_exceedances(released):
    """With the published constants the discrepancy never decides."""
    rng = np.random.default_rng(3)
    opened = 0
    for _ in range(500):
        n = int(rng.choice([8, 16, 40]))
        costs = np.maximum(rng.normal(rng.uniform(0, 30), rng.uniform(0.5, 12), n), 0.0)
        expected = costs.max() < 50.0 * (1 - 1e-4) and np.mean(1 / (1 + np.exp(-(costs - 25.0)))) <= 0.10
        assert released.evaluate(costs).is_open == expected
        opened += expected
    assert 100 < opened < 400


def test_a_batch_of_equal_costs_flips_at_22_80(released):
    assert released.evaluate([22.80] * 16).is_open
    assert not released.evaluate([22.81] * 16).is_open


def test_without_episodes_the_window_mean_decides_and_the_log_says_so(released):
    gate = stein_gate(released, window=4)
    state = gate.init()
    decision, state, log, *_ = gate.decide(state, episodes([]))
    assert decision == Decision(Mode.RECOVER, 0.0)  # nothing is known: no slack to spend
    assert log["gate/fallback"] == 1.0
    _, state, _, *_ = gate.decide(state, episodes([90.0, 10.0, 20.0]))
    _, state, _, *_ = gate.decide(state, episodes([30.0, 24.0]))
    decision, state, log, *_ = gate.decide(state, episodes([]))
    assert decision.mode == Mode.IMPROVE
    assert decision.slack == pytest.approx(25.0 - (10 + 20 + 30 + 24) / 4)
    assert log["gate/fallback"] == 1.0
    assert np.isnan(log["gate/bound"])
    _, state, _, *_ = gate.decide(state, episodes([40.0]))
    decision, _, log, *_ = gate.decide(state, episodes([]))
    assert decision.mode == Mode.RECOVER
    assert decision.slack == pytest.approx(25.0 - (20 + 30 + 24 + 40) / 4)
    assert log["gate/shut_epochs"] == 2.0


def test_log_keys_do_not_depend_on_the_epoch(released):
    gate = stein_gate(released)
    keys = [set(gate.decide(gate.init(), episodes(costs))[2]) for costs in ([], [0.0], [60.0] * 3)]
    assert keys[0] == keys[1] == keys[2]


def test_deciding_is_pure(released):
    gate = stein_gate(released)
    state = gate.init()
    _, after, _, *_ = gate.decide(state, episodes([60.0, 1.0]))
    assert state.shut_epochs == 0
    assert state.costs.size == 0
    assert after.shut_epochs == 1
    first = gate.decide(after, episodes([60.0, 1.0]))
    second = gate.decide(after, episodes([60.0, 1.0]))
    assert first[0] == second[0]
    assert first[2] == second[2]


def test_why_shut_counts_epochs_and_names_the_cause(released):
    gate = stein_gate(released)
    state = gate.init()
    for epoch in range(1, 6):
        _, state, log, *_ = gate.decide(state, episodes([60.0, 10.0, 10.0]))
        assert log["gate/shut_epochs"] == epoch
    assert log["gate/shut_by_atoms"] == 5
    assert why_shut(state).startswith("The gate has been shut for 5 epochs in a row: the atoms")
    _, state, log, *_ = gate.decide(state, episodes([30.0, 30.0, 30.0]))
    assert log["gate/shut_by_interior"] == 1
    assert "(in 5 of them): the atoms" in why_shut(state)
    _, state, log, *_ = gate.decide(state, episodes([1.0, 2.0, 3.0]))
    assert why_shut(state) == "The gate is open."
    assert log["gate/shut_by_atoms"] == 0
    _, state, log, *_ = gate.decide(state, episodes([30.0, 30.0, 30.0]))
    assert why_shut(state).startswith("The gate has been shut for 1 epoch: the interior")


def test_why_shut_for_a_reference_that_cannot_pass_and_for_too_few_episodes():
    for certificate, cause in (
        (Certificate.preset("released", limit=25.0, guard="none"), "the reference's own risk"),
        (Certificate.preset("confident", limit=25.0), "the episodes are too few"),
    ):
        gate = stein_gate(certificate)
        decision, state, *_ = gate.decide(gate.init(), episodes(np.linspace(1.0, 12.0, 16)))
        assert decision.mode == Mode.RECOVER
        assert cause in why_shut(state)


def test_a_gate_that_stays_shut_says_why_every_so_often(released):
    gate = stein_gate(released)
    state, told = gate.init(), {}
    for epoch in range(1, 2 * LONG_SHUT + 1):
        _, state, _, notes = gate.decide(state, episodes([60.0, 10.0, 10.0]))
        if notes:
            told[epoch] = notes
    assert list(told) == [LONG_SHUT, 2 * LONG_SHUT]
    assert told[LONG_SHUT][0].startswith(f"The gate has been shut for {LONG_SHUT} epochs in a row: the atoms")
    assert gate.decide(state, episodes([1.0, 2.0, 3.0])).notes == ()


@pytest.mark.parametrize(
    ("preset", "options", "told"),
    [
        ("released", {}, "no episode costs 50 or more and their mean risk is at most 0.1: a soft test"),
        ("released", {"guard": "none"}, "opens never"),
        ("released", {"budget": 0.2}, "the bound on the risk is at most 20 %"),
        ("certified", {}, "the mean risk, and a distance to acceptable costs less sampling noise"),
        ("confident", {}, "at most 10 % with 95 % confidence, which takes 29 episodes"),
    ],
)
def test_the_first_words_say_what_the_gate_does_promises_and_advises(preset, options, told):
    does, opens, advice = first_words(Certificate.preset(preset, limit=25.0, **options))
    assert "open, the policy step raises reward; shut, it lowers cost" in does
    assert told in opens
    assert any(word in advice for word in ("fresh episodes decide", "--steps-per-epoch", "larger budget"))
    assert not any("NO " in sentence for sentence in (does, opens, advice))


def test_what_the_first_words_say_is_when_the_gate_opens(released):
    """The guard's own condition: no episode at twice the limit, and a mean risk within the budget."""
    for costs, opens in (([10.0] * 9 + [26.0], True), ([10.0] * 9 + [50.0], False), ([26.0] * 4, False)):
        result = released.evaluate(costs)
        assert (max(costs) < 50.0 and result.empirical_risk <= 0.1) == opens
        decided = stein_gate(released).decide(stein_gate(released).init(), episodes(costs))
        assert (decided.decision.mode == Mode.IMPROVE) == opens


def test_an_episode_below_0_counts_as_free(released):
    gate = stein_gate(released)
    below, free = (gate.decide(gate.init(), episodes(costs)) for costs in ([-3.0, 5.0], [0.0, 5.0]))
    assert below.decision.mode == free.decision.mode
    assert below.log["gate/bound"] == free.log["gate/bound"]
    assert below.decision.slack == 25.0 - 1.0  # the mean is that of the costs themselves
