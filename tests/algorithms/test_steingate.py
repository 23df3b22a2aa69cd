"""The gate: recorded decisions of the original code, epochs without episodes, messages, recovery of the tail."""

import jax
import numpy as np
import pytest
from tests.algorithms.problems import episodes, problem, run_gate, update

from steingate.algorithms import make_algorithm
from steingate.algorithms.base import EnvParams, Mode, Objective, RunContext
from steingate.algorithms.steingate import MESSAGE_EPOCHS, SteinGateState
from steingate.certificates.stein import SteinCertificate
from steingate.certificates.violation import certify
from steingate.errors import InputError

BOTH = ["steingate", "steingate-ppo"]


def first(costs, name="steingate", options=None, **context):
    """Return the output of the gate for one epoch."""
    return run_gate(name, [episodes(costs)], options, **context)[1][0]


# Decisions of the original code for limit 25: costs, mean risk, mass at the top, value compared with the budget, and
# whether it maximized reward; tests/certificates has the other terms.
RECORDED = [
    ([0] * 16, 0.0, 0, 0.0, True),
    ([5] * 16, 0.0, 0, 0.0, True),
    ([10] * 15 + [30], 0.06208, 0, 0.06208, True),
    ([10] * 14 + [30, 30], 0.12416, 0, 1.88388, False),
    ([10] * 15 + [60], 0.06250, 0.0625, 2.05055, False),
    ([22] * 16, 0.04743, 0, 0.04743, True),
    ([23] * 16, 0.11920, 0, 2.18039, False),
    (range(0, 16, 2), 0.0, 0, 0.0, True),
]


@pytest.mark.parametrize("name", BOTH)
@pytest.mark.parametrize(("costs", "risk", "top", "value", "improves"), RECORDED)
def test_recorded_decisions(name, costs, risk, top, value, improves):
    output = first(costs, name, {"variant": "published"})
    assert output.objective.mode == output.metrics["Gate/Mode"] == (Mode.IMPROVE if improves else Mode.RECOVER)
    assert output.objective.cost_slack == pytest.approx(25.0 - np.mean(costs))
    assert output.metrics["Gate/DecisionValue"] == pytest.approx(value, abs=2e-5)
    assert output.metrics["Gate/EmpiricalRisk"] == pytest.approx(risk, abs=2e-5)
    assert (output.metrics["Gate/OneMass"], output.metrics["Gate/Fallback"]) == (top, 0.0)


def test_the_released_gate_is_a_threshold_on_soft_exceedances():
    """With the published constants the discrepancy never decides."""
    rng = np.random.default_rng(3)
    opened = 0
    for _ in range(200):
        n = int(rng.choice([8, 16, 40]))
        costs = np.maximum(rng.normal(rng.uniform(0, 30), rng.uniform(0.5, 12), n), 0.0)
        expected = costs.max() < 50.0 * (1 - 1e-4) and np.mean(1 / (1 + np.exp(-(costs - 25.0)))) <= 0.10
        assert (first(costs).objective.mode == Mode.IMPROVE) == expected
        opened += expected
    assert 40 < opened < 160


@pytest.mark.parametrize("preset", ["paper", "released", "corrected"])
def test_the_certificate_is_the_preset_with_the_limit_of_the_run(preset):
    costs = np.array([1.0, 9.0, 2.0, 4.0, 3.0, 5.0])
    for factor in (0.1, 1.0, 10.0):
        output = first(factor * costs, options={"preset": preset}, cost_limit=6.0)
        result = SteinCertificate.from_name(preset, 6.0).evaluate(factor * costs)
        assert output.metrics["Gate/Bound"] == result.bound
        assert output.metrics["Gate/Budget"] == result.budget
        assert (output.objective.mode == Mode.IMPROVE) == result.is_open


@pytest.mark.parametrize(("violations", "opens"), [(0, True), (1, True), (4, True), (5, False), (6, False)])
def test_the_preset_violation_is_the_exact_binomial_bound(violations, opens):
    costs = [10.0] * (100 - violations) + [26.0] * violations
    output = first(costs, options={"preset": "violation"})
    assert output.metrics["Gate/Bound"] == certify(costs, 25.0).bound
    assert (output.metrics["Gate/Bound"] <= 0.1) == opens
    assert (output.objective.mode == Mode.IMPROVE) == opens
    looser = first(costs, options={"preset": "violation", "certificate": {"risk": 0.2, "confidence": 0.9}})
    assert looser.metrics["Gate/Budget"] == 0.2
    assert looser.metrics["Gate/Bound"] < output.metrics["Gate/Bound"]
    assert looser.objective.mode == Mode.IMPROVE


@pytest.mark.parametrize("name", BOTH)
@pytest.mark.parametrize("window", [100, 2])
def test_the_slack_is_of_this_epochs_episodes_and_per_step_unless_published(name, window):
    epochs = [episodes([1.0, 9.0, 4.0], 30), episodes([7.0, 3.0], 10)]
    _, outputs = run_gate(name, epochs, {"variant": "published"}, window=window)
    assert outputs[1].objective.cost_slack == pytest.approx(20.0)
    _, outputs = run_gate(name, epochs, window=window)
    assert outputs[1].objective.cost_slack == pytest.approx(20.0 / np.mean([30, 30, 30, 10, 10][-window:]))


def test_an_epoch_without_episodes_is_decided_by_the_mean_of_the_window():
    costs = [[], [90.0, 10.0, 20.0], [30.0, 24.0], [], [40.0], []]
    state, outputs = run_gate("steingate", [episodes(one) for one in costs], {"variant": "published"}, window=4)
    assert outputs[0].objective == Objective(Mode.RECOVER, 0.0)  # nothing is known: no slack
    assert outputs[3].objective == Objective(Mode.IMPROVE, pytest.approx(25.0 - (10 + 20 + 30 + 24) / 4))
    assert outputs[5].objective == Objective(Mode.RECOVER, pytest.approx(25.0 - (20 + 30 + 24 + 40) / 4))
    assert [output.metrics["Gate/Fallback"] for output in outputs] == [1.0, 0.0, 0.0, 1.0, 0.0, 1.0]
    assert np.isnan(outputs[3].metrics["Gate/Bound"])
    assert state.epochs_closed == outputs[5].metrics["Gate/EpochsClosed"] == 2


def test_negative_costs_count_as_zero_in_the_certificate():
    below, zero = first([-3.0, 5.0]), first([0.0, 5.0])
    assert below.objective.mode == zero.objective.mode
    assert below.metrics["Gate/Bound"] == zero.metrics["Gate/Bound"]
    assert below.objective.cost_slack == pytest.approx(24.0 / 1000)  # the mean is that of the costs themselves


@pytest.mark.parametrize("name", BOTH)
def test_a_gate_that_remains_closed_explains_itself_every_25_epochs(name):
    closed = [episodes([60.0, 10.0, 10.0])] * (2 * MESSAGE_EPOCHS)
    state, outputs = run_gate(name, [*closed, episodes([1.0, 2.0, 3.0])])
    shown = {epoch: output.messages for epoch, output in enumerate(outputs, 1) if output.messages}
    assert list(shown) == [MESSAGE_EPOCHS, 2 * MESSAGE_EPOCHS]
    start = f"The gate has been closed for {MESSAGE_EPOCHS} epochs in a row: 33.3 % of the episodes cost 50 or more"
    assert shown[MESSAGE_EPOCHS][0].startswith(start)
    assert state.epochs_closed == 0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, ""),
        ({"certificate": {"guard": False}}, "never opens, because the reference's risk exceeds the budget"),
        ({"preset": "corrected"}, ""),
        ({"preset": "violation"}, "fewer than 29 episodes per epoch it stays closed"),
    ],
)
def test_the_first_messages_are_true(options, message):
    rule, *promise = make_algorithm("steingate", options=options).initial_messages(RunContext())
    assert "open, the policy update maximizes reward; closed, it minimizes cost" in rule
    assert (message in promise[0]) if message else not promise
    opens = {n: first([0.0] * n, options=options).objective.mode == Mode.IMPROVE for n in (28, 29)}
    expected = {"violation": (False, True)}.get(options.get("preset"), ("never" not in message,) * 2)
    assert (opens[28], opens[29]) == expected


def test_options_of_the_certificate():
    costs = [10.0] * 14 + [30.0, 30.0]
    wide = {"certificate": {"budget": 0.2, "guard": False, "stein_factor": 0.0}}
    assert first(costs).objective.mode == Mode.RECOVER
    assert first(costs, options=wide).objective.mode == Mode.IMPROVE
    one, two = (make_algorithm("steingate", options={"certificate": {"discrete_weight": w}}) for w in (2, 2.0))
    assert one == two
    for options, message in (
        ({"certificate": {"budgte": 1}}, "budgte"),
        ({"preset": "mine"}, "preset"),
        ({"recovery": "some"}, "recovery must be one of mean, tail"),
        ({"preset": "violation", "certificate": {"risk": 2.0}}, "risk"),
    ):
        with pytest.raises(InputError, match=message):
            make_algorithm("steingate", options=options)


@pytest.mark.parametrize("name", BOTH)
class TestTailRecovery:
    OPTIONS = {"recovery": "tail", "certificate": {"budget": 0.2}}  # noqa: RUF012

    @pytest.mark.parametrize("preset", ["released", "corrected"])
    def test_the_slack_is_what_the_mean_risk_leaves_of_the_budget(self, name, preset):
        costs = np.array([7.0, 3.0])
        certificate = SteinCertificate.from_name(preset, 6.0, budget=0.2)
        risk = certificate.risk_function(np.clip(costs / certificate.scale, 0.0, 1.0)).mean()
        for variant, unit in (("published", 1.0), ("corrected", 1 / 1000)):
            options = {**self.OPTIONS, "preset": preset, "variant": variant}
            assert first(costs, name, options, cost_limit=6.0).objective.cost_slack == pytest.approx(
                (0.2 - risk) * unit
            )
        assert first([], name, self.OPTIONS).objective.cost_slack == 0.0

    def test_the_policy_learns_from_the_risk_of_its_accumulated_cost_and_observes_it(self, name):
        context = RunContext(cost_limit=6.0)
        tail, mean = (make_algorithm(name, options={"recovery": kind}) for kind in ("tail", "mean"))
        certificate = SteinCertificate.from_name("released", 6.0)
        running = np.array([[0.0, 3.0], [6.0, 100.0]])
        expected = certificate.risk_function(np.clip(running / certificate.scale, 0.0, 1.0))
        np.testing.assert_array_equal(tail.cost_transform(context, SteinGateState())(running), expected)
        assert tail.safety_state(context, EnvParams()).next(0.5, 3.0) == pytest.approx(1.0)
        assert mean.cost_transform(context, SteinGateState()) is None
        assert mean.safety_state(context, EnvParams()) is None
        count = make_algorithm(name, options={"recovery": "tail", "preset": "violation"})
        found = count.cost_transform(context, SteinGateState())(np.array([5.9, 6.0, 6.1]))
        np.testing.assert_array_equal(found, [0.0, 0.0, 1.0])


@pytest.mark.parametrize("variant", ["corrected", "published"])
def test_steingate_and_cpo_have_the_same_update(variant):
    policy, batch = problem()
    for mode in Mode:
        ours, theirs = (
            update(name, Objective(mode, 0.001), policy, batch, {"variant": variant}) for name in ("steingate", "cpo")
        )
        jax.tree.map(np.testing.assert_array_equal, ours[0], theirs[0])
        assert ours[1] == theirs[1]
