"""Recipes: what a method hands to its parts, and what its settings change."""

from dataclasses import dataclass, fields, is_dataclass, replace

import numpy as np
import pytest
from steingate.algorithms.common.base import Algorithm, Batch, priced
from steingate.algorithms.common.clipped import followed
from steingate.algorithms.common.heads import log_prob
from steingate.algorithms.common.recipe import (
    About,
    Constrained,
    FirstOrder,
    LearnsCost,
    Recipe,
    Returns,
    SecondOrder,
    Setup,
    find_recipe,
    make_recipe,
)
from steingate.algorithms.common.replay import episode_memory
from steingate.algorithms.common.sizes import Clipped
from steingate.algorithms.common.subproblem import Case
from steingate.algorithms.penalty import P3O
from steingate.algorithms.unconstrained import PPO, TRPO
from steingate.certificates.certificate import Certificate
from steingate.gates.base import Decision, Episodes, Mode
from steingate.gates.schedule import discounted_share

from steingate.algorithms import METHODS
from steingate.algorithms.common import descent, first_order
from steingate.algorithms.common.networks import init_policy
from steingate.algorithms.common.trust_region import accepts, trust_region_step
from steingate.algorithms.cpo import CPO, CRPO, CVaRCPO
from steingate.algorithms.evo import EVO
from steingate.algorithms.lagrangian import CUP, FOCOPS, RCPO, PPOLag, TRPOLag
from steingate.algorithms.saute import PPOSimmer, TRPOSaute, TRPOSimmer
from steingate.algorithms.steingate import SteinGate, SteinGatePPO
from steingate.errors import InputError

FIRST_ORDER = [name for name, kind in METHODS.items() if issubclass(kind, FirstOrder)]
COSTS = [np.array([1.0, 9.0, 2.0, 30.0, 4.0]), np.array([7.0, 3.0])]
LENGTHS = [np.array([10, 20, 30, 40, 50]), np.array([5, 15])]


def history(epochs=2):
    """Two epochs of episodes, five and two."""
    return [
        Episodes(cost, np.zeros(len(cost)), length)
        for cost, length in zip(COSTS[:epochs], LENGTHS[:epochs], strict=True)
    ]


def rulings(algo, episodes=None):
    """What the gate of an algorithm says about each epoch."""
    state, found = algo.gate.init(), []
    for epoch in episodes or history():
        if algo.memory is not None:
            costs = min(50, sum(len(each.cost) for each in history()))
            epoch = epoch._replace(log_ratio=np.zeros(costs) if found else np.zeros(len(epoch.cost)))
        ruling = algo.gate.decide(state, epoch)
        state = ruling.state
        found.append(ruling)
    return found


def last_decision(recipe, **setup):
    return rulings(recipe.build(Setup(limit=6.0, **setup)))[-1].decision


def last(numbers, window):
    return np.concatenate(numbers)[-window:].mean()


class TestWindow:
    """The seven episodes of two epochs, of which the gate looks at the last so many."""

    @pytest.mark.parametrize("window", [100, 3, 1])
    def test_the_mean_and_the_length_are_over_the_window(self, window):
        slack = 6.0 - last(COSTS, window)
        published = last_decision(CPO(variant="published"), window=window)
        assert published.slack == pytest.approx(slack)
        per_step = slack / last(LENGTHS, window)
        for name in ("cpo", "pcpo", "p3o"):
            assert last_decision(METHODS[name](), window=window).slack == pytest.approx(per_step)

    @pytest.mark.parametrize("window", [100, 3, 2])
    def test_so_are_those_of_the_other_gates(self, window):
        mean = last(COSTS, window)
        for name in ("trpo-lag", "ppo-lag", "rcpo", "focops", "cup"):
            kind = METHODS[name]
            expected = kind().ascent.begin()
            for costs in (COSTS[:1], COSTS):
                expected = kind().ascent.move(expected, last(costs, window), 6.0)
            assert last_decision(kind(), window=window).price == pytest.approx(expected.price)
        switch = last_decision(CRPO(tolerance=0.5), window=window)
        assert switch.mode == (Mode.IMPROVE if mean <= 6.5 else Mode.RECOVER)
        recent = np.concatenate(COSTS)[-window:]
        worst = last_decision(CVaRCPO(variant="published", tail=0.5), window=window)
        assert worst.level == np.quantile(recent, 0.5, method="inverted_cdf")
        budgets = [r.log["gate/mean_cost"] for r in rulings(TRPOSimmer().build(Setup(window=window)))]
        assert budgets == pytest.approx([last(COSTS[:1], window), mean])

    def test_extreme_values_have_a_memory_of_their_own(self):
        found = [last_decision(EVO(), window=window).slack for window in (100, 2)]
        lengths = [last(LENGTHS, 100), last(LENGTHS, 2)]
        assert found[0] * lengths[0] == pytest.approx(found[1] * lengths[1])


class TestSteinGate:
    @pytest.mark.parametrize("window", [100, 2])
    def test_its_slack_is_of_this_epochs_episodes(self, window):
        slack = 6.0 - COSTS[1].mean()
        assert last_decision(SteinGate(variant="published"), window=window).slack == pytest.approx(slack)
        per_step = last_decision(SteinGate(), window=window).slack
        assert per_step == pytest.approx(slack / last(LENGTHS, window))
        assert last_decision(SteinGatePPO(), window=window).slack == pytest.approx(per_step)

    def test_an_epoch_without_episodes_falls_back_on_the_window(self):
        nothing = Episodes(np.zeros(0), np.zeros(0), np.zeros(0, np.int64))
        for window, mode in ((100, Mode.RECOVER), (2, Mode.IMPROVE)):
            algo = SteinGate(variant="published").build(Setup(limit=6.0, window=window))
            decision = rulings(algo, [*history(), nothing])[-1].decision
            assert decision.mode == mode
            assert decision.slack == pytest.approx(6.0 - last(COSTS, window))

    @pytest.mark.parametrize("preset", ["released", "certified"])
    def test_a_recovery_of_the_tail_spends_what_the_budget_leaves_per_step(self, preset):
        recipe = SteinGate(preset=preset, recovery="tail", certificate={"budget": 0.2})
        certificate = Certificate.preset(preset, limit=6.0, budget=0.2)
        assert certificate.budget == 0.2
        risk = certificate.risk(np.clip(COSTS[1] / certificate.scale, 0.0, 1.0)).mean()
        assert last_decision(recipe).slack == pytest.approx((0.2 - risk) / last(LENGTHS, 100))
        published = replace(recipe, variant="published")
        assert last_decision(published).slack == pytest.approx(0.2 - risk)

    def test_it_learns_from_the_risk_of_the_cost_so_far_and_sees_it(self):
        algo = SteinGate(recovery="tail").build(Setup(limit=6.0))
        certificate = Certificate.preset("released", limit=6.0)
        running = np.array([[0.0, 3.0], [6.0, 100.0]])
        expected = certificate.risk(np.clip(running / certificate.scale, 0.0, 1.0))
        np.testing.assert_array_equal(algo.tail(running, Decision(Mode.RECOVER)), expected)
        np.testing.assert_allclose(algo.account.seen.following(np.array([0.5]), np.array([3.0]), 1.0), 1.0)
        plain = SteinGate().build(Setup(limit=6.0))
        assert plain.tail is None
        assert plain.account is None

    def test_a_gate_that_stays_shut_says_why_and_the_unit_of_the_slack_does_not_hide_it(self):
        costly = Episodes(np.full(5, 50.0), np.zeros(5), np.full(5, 10))
        for variant in ("corrected", "published"):
            algo = SteinGate(variant=variant).build(Setup(limit=6.0))
            found = rulings(algo, [costly] * 50)
            told = [epoch for epoch, ruling in enumerate(found, 1) if ruling.notes]
            assert told == [25, 50]
            assert found[24].notes[0].startswith("The gate has been shut for 25 epochs in a row")
            assert found[-1].log["gate/shut_epochs"] == 50.0

    @pytest.mark.parametrize("preset", ["paper", "released", "certified", "confident"])
    def test_its_certificate_is_the_preset_with_the_limit_of_the_run(self, preset):
        decided = rulings(SteinGate(preset=preset).build(Setup(limit=6.0)))
        for ruling, costs in zip(decided, COSTS, strict=True):
            result = Certificate.preset(preset, limit=6.0).evaluate(costs)
            assert ruling.log["gate/bound"] == result.bound
            assert ruling.decision.mode == (Mode.IMPROVE if result.is_open else Mode.RECOVER)
        notes = SteinGate(preset=preset).build(Setup(limit=6.0)).notes
        assert notes[0].startswith("After every epoch the gate reads the costs")
        assert ("promises nothing" in notes[1]) == (preset != "confident")


class TestCVaR:
    def test_what_is_beyond_the_level_is_learnt_from(self):
        algo = CVaRCPO(tail=0.2).build(Setup(limit=6.0))
        decision = Decision(Mode.BALANCE, level=4.0)
        np.testing.assert_allclose(algo.tail(np.array([1.0, 4.0, 7.0]), decision), [0.0, 0.0, 15.0])
        assert algo.account.seen.limit == 6.0

    def test_slack_is_per_step_unless_published(self):
        episode = last_decision(CVaRCPO(tail=0.5, variant="published"))
        step = last_decision(CVaRCPO(tail=0.5))
        assert step.slack * last(LENGTHS, 100) == pytest.approx(episode.slack)


class TestSteps:
    def params(self):
        return init_policy(np.random.default_rng(0), 2, 1, (3,))

    def batch(self, samples=12):
        rng = np.random.default_rng(1)
        columns = [rng.normal(size=samples).astype(np.float32) for _ in range(3)]
        return Batch(
            rng.normal(size=(samples, 2)).astype(np.float32),
            rng.normal(size=(samples, 1)).astype(np.float32),
            *columns,
        )

    def orders(self, algo, monkeypatch, moves=2):
        """The orders in which a first-order step goes through its samples, in each of its moves."""
        seen, real = [], descent.minibatch_order

        def minibatch_order(*given):
            seen.append(real(*given))
            return seen[-1]

        def compiled(cfg, loss):
            return lambda params, first, second, *rest: (params, (first, second), 1, 0.0, 0.0)

        params = self.params()
        state = algo.step.init(params)
        with monkeypatch.context() as patch:
            patch.setattr(descent, "minibatch_order", minibatch_order)
            patch.setattr(descent, "_compiled", compiled)
            for _ in range(moves):
                params, state, _ = algo.step.move(state, params, self.batch(), Decision(Mode.IMPROVE, price=0.5))
        return seen

    @pytest.mark.parametrize("name", FIRST_ORDER)
    def test_orders_are_new_in_each_epoch_and_for_each_seed(self, monkeypatch, name):
        recipe = METHODS[name]()
        recipe = replace(recipe, clipped=replace(recipe.clipped, passes=2))
        found = [self.orders(recipe.build(Setup(seed=seed)), monkeypatch) for seed in (0, 0, 7)]
        np.testing.assert_array_equal(found[0], found[1])
        rows = [tuple(row) for run in (found[0], found[2]) for order in run for row in order]
        assert len(rows) == len(set(rows)) == 8 * (2 if name == "cup" else 1)
        assert all(sorted(row) == list(range(12)) for row in rows)

    @pytest.mark.parametrize("name", FIRST_ORDER)
    def test_the_learning_rate_falls_over_the_epochs_of_the_run(self, monkeypatch, name):
        recipe = METHODS[name]()
        monkeypatch.setattr(descent, "_compiled", lambda cfg, loss: lambda p, m, v, *rest: (p, (m, v), 1, 0.0, 0.0))
        for decay, epochs, expected in ((True, 4, 0.75), (True, 8, 0.875), (False, 4, 1.0)):
            kind = replace(recipe, clipped=replace(recipe.clipped, decay=decay))
            assert kind.needs_epochs is decay
            step = kind.build(Setup(epochs=epochs)).step
            params, state, _ = step.move(step.init(self.params()), self.params(), self.batch(), Decision(0, price=1.0))
            _, state, log = step.move(state, params, self.batch(), Decision(Mode.IMPROVE, price=1.0))
            assert log["step/learning_rate"] == pytest.approx(recipe.clipped.learning_rate * expected)
            assert step.passes(state) == 1

    @pytest.mark.parametrize(
        ("given", "lam", "discount"),
        [
            ({}, 0.95, 0.99),
            ({"cost_lam": 0.5}, 0.5, 0.99),
            ({"cost_adv_lam": 0.3}, 0.3, 0.99),
            ({"cost_discount": 0.9}, 0.95, 0.9),
        ],
    )
    def test_cups_weight_is_of_its_own_lambda_and_discount(self, monkeypatch, given, lam, discount):
        seen = []
        monkeypatch.setattr(first_order, "update_and_project_step", lambda *given: seen.append(given))
        cup = CUP(**given)
        cup.build(Setup(seed=5, epochs=3))
        clipped, weight, seed, epochs = seen[0]
        assert weight == pytest.approx((1.0 - discount * lam) / (1.0 - discount))
        assert (clipped, seed, epochs) == (cup.clipped, 5, 3)

    def test_settings_of_the_other_first_order_steps_reach_them(self, monkeypatch):
        seen = {}
        monkeypatch.setattr(first_order, "focops_step", lambda *given: seen.update(focops=given))
        monkeypatch.setattr(first_order, "penalized_step", lambda *given: seen.update(p3o=given))
        for published in (False, True):
            variant = "published" if published else "corrected"
            focops = FOCOPS(variant=variant, temperature=0.7, radius=0.3)
            focops.build(Setup(seed=5, epochs=3))
            assert seen["focops"] == (focops.clipped, 0.7, 0.3, not published, 5, 3)
            p3o = P3O(variant=variant, penalty=9.0)
            p3o.build(Setup(seed=5, epochs=3))
            assert seen["p3o"] == (p3o.clipped, 9.0, not published, 5, 3)

    def test_sizes_of_the_trust_region_are_the_recipes(self):
        sizes = {"max_kl": 0.5, "cg_iters": 3, "damping": 0.7, "search_steps": 9, "shrink": 0.4}
        region = CPO(variant="published", **sizes).region()
        assert {name: getattr(region, name) for name in sizes} == sizes
        assert region.variant == "published"
        assert region.checked

    @pytest.mark.parametrize(("published", "same_unit"), [(False, True), (True, False)])
    def test_rcpo_takes_full_steps_and_prices_in_its_variants_unit(self, monkeypatch, published, same_unit):
        from steingate.algorithms.common import trust_region

        seen = []
        monkeypatch.setattr(trust_region, "trust_region_step", lambda cfg: seen.append(cfg))
        RCPO(variant="published" if published else "corrected", max_kl=0.3).build(Setup())
        assert not seen[0].checked
        assert seen[0].same_unit is same_unit
        assert seen[0].max_kl == 0.3

    @pytest.mark.parametrize(
        ("case", "recovers", "rise", "slack", "taken"),
        [
            (Case.OUT_OF_REACH, True, 0.01, 0.5, False),
            (Case.OUT_OF_REACH, False, 0.01, 0.5, True),
            (Case.OUT_OF_REACH, False, 0.6, 0.5, False),
            (Case.OUT_OF_REACH, True, -0.01, 0.5, True),
            (Case.OUT_OF_REACH, True, -0.01, -0.5, True),
            (Case.FREE, False, 0.01, 0.5, True),
            (Case.FREE, False, 0.01, -0.5, False),
        ],
    )
    def test_a_recovery_may_not_raise_cost(self, case, recovers, rise, slack, taken):
        assert bool(accepts(case, 0.1, rise, 0.001, -slack, 0.01, recovers)) is taken

    @pytest.mark.parametrize(("variant", "moves"), [("corrected", False), ("published", True)])
    def test_only_the_published_recovery_spends_the_slack(self, monkeypatch, variant, moves):
        from steingate.algorithms.common import fisher, trust_region

        real = fisher.evaluate
        # Every trial raises the cost by a little, which the slack would allow.
        monkeypatch.setattr(fisher, "evaluate", lambda *given: (real(*given)[0], real(*given)[1] + 0.5, 0.0))
        trust_region._compiled.cache_clear()
        cfg = CPO(variant=variant, cg_iters=2, search_steps=2).region()
        params, batch = self.params(), self.batch()
        moved, _, log = trust_region_step(cfg).move((), params, batch, Decision(Mode.RECOVER, 1.0))
        trust_region._compiled.cache_clear()
        assert (log["step/fraction"] > 0.0) is moves
        assert np.array_equal(moved["w"][0], params["w"][0]) is not moves


class TestAims:
    """What first-order steps follow, by the decision."""

    def batch(self):
        adv, cost_adv = np.array([1.0, -2.0], np.float32), np.array([0.5, 0.25], np.float32)
        return Batch(np.zeros((2, 2)), np.zeros((2, 1)), np.zeros(2), adv, cost_adv, scale=3.0)

    @pytest.mark.parametrize(
        ("decision", "expected"),
        [
            (Decision(Mode.IMPROVE, price=1.0), [0.25, -1.125]),
            (Decision(Mode.IMPROVE), [1.0, -2.0]),
            (Decision(Mode.RECOVER, 5.0, price=1.0), [-0.5, -0.25]),
            (Decision(Mode.BALANCE, 0.1), [1.0, -2.0]),
            (Decision(Mode.BALANCE, -0.1), [-0.5, -0.25]),
        ],
    )
    def test_ppo_follows_reward_minus_priced_cost_or_minus_cost(self, decision, expected):
        np.testing.assert_allclose(followed(self.batch(), decision), expected)

    def test_a_price_may_be_in_the_units_of_the_task(self):
        np.testing.assert_allclose(priced(self.batch(), 1.0, same_unit=True), [1.25, -3.125])
        np.testing.assert_allclose(priced(self.batch(), 1.0), [0.25, -1.125])

    def phases(self, monkeypatch, make, *given):
        found = []
        monkeypatch.setattr(first_order, "descent_step", lambda cfg, phases, seed, epochs: found.extend(phases))
        make(Clipped(), *given)
        return found

    def test_p3os_penalty_is_on_the_violation(self, monkeypatch):
        (phase,) = self.phases(monkeypatch, first_order.penalized_step, 20.0, True)
        adv, numbers = phase.aim(self.batch(), Decision(Mode.BALANCE, -0.7))
        assert numbers == (0.7,)
        np.testing.assert_array_equal(adv, self.batch().adv)
        adv, numbers = phase.aim(self.batch(), Decision(Mode.RECOVER, -0.7))
        assert numbers[0] < -1e6
        np.testing.assert_array_equal(adv, -self.batch().cost_adv)

    def test_cups_projection_weighs_cost_by_weight_and_price(self, monkeypatch):
        first, second = self.phases(monkeypatch, first_order.update_and_project_step, 4.0)
        assert first.aim(self.batch(), Decision(Mode.IMPROVE, price=0.5))[1] == ()
        assert second.aim(self.batch(), Decision(Mode.IMPROVE, price=0.5))[1] == (2.0,)


class TestMemory:
    """Two rollouts of four steps in one environment; an episode of five steps begins in the first."""

    def recalled(self, carries):
        rng = np.random.default_rng(0)
        before, after = (init_policy(rng, 2, 1, (3,)) for _ in range(2))
        memory = episode_memory(5)
        obs = rng.normal(size=(8, 1, 2)).astype(np.float32)
        act = rng.normal(size=(8, 1, 1)).astype(np.float32)
        logp = np.concatenate([log_prob(before, obs[:4, 0], act[:4, 0]), log_prob(after, obs[4:, 0], act[4:, 0])])
        seen = (obs, act, np.asarray(logp, np.float32)[:, None])
        nowhere, at_once = np.zeros((0, 2), np.int64), np.array([[0, 0]])
        state = memory.init(1, 2, 1)
        none, state = memory.recall(state, before, tuple(part[:4] for part in seen), nowhere, carries)
        assert len(none) == 0
        ratio, state = memory.recall(state, after, tuple(part[4:] for part in seen), at_once, carries)
        change = log_prob(after, obs[:4, 0], act[:4, 0]) - np.asarray(logp[:4])
        return ratio, state, float(np.sum(change))

    def test_a_carried_episode_is_remembered_whole_and_only_in_part_the_current_policys(self):
        ratio, state, expected = self.recalled(True)
        np.testing.assert_array_equal(state.lengths, [5])
        np.testing.assert_allclose(ratio, [expected], rtol=1e-4)
        assert abs(expected) > 1e-3
        assert len(state.running[0].logp) == 3

    def test_without_carrying_an_episode_begins_with_its_rollout(self):
        ratio, state, _ = self.recalled(False)
        np.testing.assert_array_equal(state.lengths, [1])
        np.testing.assert_array_equal(ratio, [0.0])
        assert len(state.running[0].logp) == 0


class TestBudgets:
    @pytest.mark.parametrize("kind", [TRPOSaute, TRPOSimmer, PPOSimmer])
    def test_the_budget_is_the_limit_discounted_over_the_tasks_episodes(self, kind):
        recipe = kind(budget_discount=0.9, unsafe_reward=-3.0)
        account = recipe.build(Setup(limit=6.0, length=50)).account
        assert account.seen.budget == pytest.approx(6.0 * discounted_share(0.9, 50))
        assert account.seen.discount == 0.9
        paid = account.reward(np.array([0.5, -0.1]), np.array([2.0, 2.0]), np.zeros(2), 1.0, 0.0)
        np.testing.assert_array_equal(paid, [2.0, -3.0])
        assert account.seen.true_at_end
        published = replace(recipe, variant="published").build(Setup(limit=6.0, length=50)).account.seen
        assert published.budget == pytest.approx(6.0 * discounted_share(0.9, 1000))
        assert not published.true_at_end
        assert published.scale_by_share
        assert published.restart_full
        own = replace(recipe, length=20).build(Setup(limit=6.0, length=50)).account.seen
        assert own.budget == pytest.approx(6.0 * discounted_share(0.9, 20))

    def test_simmers_controller_is_the_recipes(self):
        gentle, strong = (
            last_decision(TRPOSimmer(controller=replace(TRPOSimmer().controller, **gains)))
            for gains in ({"proportional": 0.1, "smoothing": 0.0}, {"proportional": 0.5, "smoothing": 0.0})
        )
        assert strong.budget < gentle.budget < 1.0
        nothing = Episodes(np.zeros(0), np.zeros(0), np.zeros(0, np.int64))
        algo = TRPOSimmer(budget_discount=0.9).build(Setup(limit=6.0, length=50))
        assert rulings(algo, [nothing])[0].decision.budget == 1.0  # the share of a budget that rests
        assert last_decision(TRPOSaute()).budget == 1.0

    def test_published_settings_of_a_task_are_taken_unless_given(self):
        task = "steingate/SafetyPointGoal1-v0"
        tuned = make_recipe("ppo-saute", task)
        assert (tuned.clipped.passes, tuned.normalize_obs, tuned.unsafe_reward) == (80, False, -0.2)
        given = make_recipe("ppo-saute", task, {"clipped.passes": 3, "unsafe_reward": -1.0})
        assert (given.clipped.passes, given.normalize_obs, given.unsafe_reward) == (3, False, -1.0)
        assert make_recipe("ppo-saute", "other").clipped.passes == 40
        forgotten = make_recipe("ppo-simmer", "SafetyCarCircle1-v0", {"variant": "published"})
        assert forgotten.clipped.passes == 40
        assert make_recipe("ppo-simmer", "SafetyCarCircle1-v0").clipped.passes == 80


class TestCRPO:
    @pytest.mark.parametrize(
        ("cost", "mode", "slack"),
        [(6.0, Mode.IMPROVE, np.inf), (7.5, Mode.IMPROVE, np.inf), (8.5, Mode.RECOVER, 0.0)],
    )
    def test_it_switches_above_the_limit_by_the_tolerance(self, cost, mode, slack):
        algo = CRPO(tolerance=2.0).build(Setup(limit=6.0))
        decision = rulings(algo, [Episodes(np.full(3, cost), np.zeros(3), np.full(3, 10))])[0].decision
        assert (decision.mode, decision.slack) == (mode, slack)


class TestLagrangian:
    def test_the_law_is_the_one_that_is_chosen(self):
        adam, pid = TRPOLag(), TRPOLag(multiplier="pid")
        expected = pid.pid.begin()
        for costs in (COSTS[:1], COSTS):
            expected = pid.pid.move(expected, last(costs, 100), 6.0)
        assert last_decision(pid).price == pytest.approx(expected.price)
        assert last_decision(adam).price != last_decision(pid).price

    def test_settings_of_the_law_that_is_not_used_are_refused(self):
        with pytest.raises(InputError, match="pid has no effect with multiplier=adam: set multiplier=pid"):
            make_recipe("ppo-lag", settings={"pid.delay": 3})
        with pytest.raises(InputError, match="ascent has no effect with multiplier=pid: set multiplier=adam"):
            make_recipe("cup", settings={"multiplier": "pid", "ascent.rate": 0.3})
        assert make_recipe("ppo-lag", settings={"multiplier": "pid", "pid.delay": 3}).pid.delay == 3


class TestWhatIsUsed:
    @pytest.mark.parametrize("name", METHODS)
    def test_the_cost_critic_is_fitted_for_methods_that_learn_from_costs(self, name):
        algo = METHODS[name]().build(Setup())
        assert algo.uses_cost is issubclass(METHODS[name], LearnsCost)

    @pytest.mark.parametrize("name", METHODS)
    def test_the_decision_is_by_the_limit_of_the_run_for_all_but_the_open_gates(self, name):
        kind = METHODS[name]
        decided = [[ruling.decision for ruling in rulings(kind().build(Setup(limit=limit)))] for limit in (1.0, 40.0)]
        watches = isinstance(kind(), LearnsCost) or "simmer" in name
        assert (decided[0] != decided[1]) is watches

    def test_evos_parts_are_its_own(self):
        recipe = make_recipe("evo", settings={"extreme.capacity": 3, "replay.copies": 9})
        algo = recipe.build(Setup(limit=6.0))
        state = algo.gate.init()
        for epoch in history():
            state = algo.gate.decide(state, epoch._replace(log_ratio=np.zeros(3))).state
        assert len(state.gate.costs) == 3
        shape, places = (5, 1), np.array([[step, 0] for step in range(5)])
        seen = (
            np.zeros((*shape, 2), np.float32),
            np.zeros((*shape, 1), np.float32),
            np.zeros(shape, np.float32),
        )
        params = init_policy(np.random.default_rng(0), 2, 1, (3,))
        ratio, _ = algo.memory.recall(algo.memory.init(1, 2, 1), params, seen, places, False)
        assert len(ratio) == 3  # as many as the gate remembers
        adv = np.linspace(-1.0, 1.0, 40).reshape(20, 2)
        followed, weight, _ = algo.replay(adv)
        assert weight is None
        raised = followed / adv.ravel()
        assert raised.max() / raised.min() == pytest.approx(10.0)
        flags = EVO(variant="published").resolved(10)
        assert (flags.extreme.clamp, flags.replay.everywhere, flags.replay.whole_epoch) == (
            "log_ratio", True, False
        )  # fmt: skip


@dataclass(frozen=True)
class Mine(SecondOrder, Constrained):
    """A method that a user might write."""

    about = About("mine")

    def build(self, setup):
        return Algorithm(self.mean_cost_gate(setup), self.step(setup))


@dataclass(frozen=True)
class Nameless(FirstOrder):
    """One without a name of its own."""


class TestFinding:
    def test_built_in_methods_come_in_the_order_of_reports(self):
        assert list(METHODS) == sorted(METHODS, key=lambda name: METHODS[name].about.order)
        assert {"steingate", "cpo", "ppo", "evo", "cup", "focops", "p3o"} <= set(METHODS)
        assert all(kind().name == name and kind.about.summary for name, kind in METHODS.items())
        assert len({kind.about.color for kind in METHODS.values()}) == len(METHODS)

    def test_others_are_found_by_module_and_class(self):
        place = f"{__name__}:Mine"
        assert find_recipe(place).__qualname__ == "Mine"
        assert make_recipe(place, settings={"max_kl": "0.5"}).max_kl == 0.5
        assert Nameless().name == f"{__name__}:Nameless"

    def test_what_is_not_there_is_refused_with_the_nearest(self):
        with pytest.raises(InputError, match=r"algorithm 'cpoo' is not known \(did you mean cpo\?\)"):
            find_recipe("cpoo")
        with pytest.raises(InputError, match=r"algorithm 'xyzzy' is not known: choose one of cpo, .*module"):
            find_recipe("xyzzy")
        with pytest.raises(InputError, match=r"Mine' is not there|has no 'Mein' \(did you mean Mine\?\)"):
            find_recipe(f"{__name__}:Mein")
        with pytest.raises(InputError, match="is not a recipe: derive a class from"):
            find_recipe("math:pi")
        with pytest.raises(TypeError, match="does not say how it is built"):
            Nameless().build(Setup())

    @pytest.mark.parametrize(
        ("name", "settings", "complaint"),
        [
            ("ppo", {"max_kl": 0.5}, r"ppo has no option 'max_kl' \(did you mean clipped.max_kl\?\)"),
            ("cpo", {"max_lk": 0.5}, r"cpo has no option 'max_lk' \(did you mean max_kl\?\)"),
            ("trpo", {"cost_lam": 0.5}, r"trpo has no option 'cost_lam'"),
            ("cpo", {"critic_passes": None}, "critic_passes is none: the policy step makes no passes"),
            ("cpo", {"discount": 1.5}, "discount must be from 0 to 1, got 1.5"),
            ("cpo", {"cost_adv_lam": -0.5}, "cost_adv_lam must be from 0 to 1"),
            ("cpo", {"hidden": ()}, "hidden is .*: give the sizes"),
            ("cpo", {"shrink": 1.0}, "shrink must be below 1"),
            ("crpo", {"tolerance": -1.0}, "tolerance must be at least 0"),
            ("steingate", {"certificate": {"budgte": 1}}, "budgte"),
            ("steingate", {"recovery": "head"}, "recovery must be one of mean, tail, got .head."),
            ("cpo", {"critic_lr": 0.0}, "critic_lr must be positive"),
        ],
    )
    def test_settings_that_cannot_be_used_are_refused(self, name, settings, complaint):
        with pytest.raises(InputError, match=complaint):
            make_recipe(name, settings=settings)

    def test_cup_needs_a_discount_below_one(self):
        with pytest.raises(InputError, match="cup needs a cost_discount below 1"):
            CUP(cost_discount=1.0).build(Setup())

    @pytest.mark.parametrize("kind", [PPO, TRPO, PPOLag])
    def test_returns_are_the_recipes(self, kind):
        assert kind(discount=0.5, lam=0.25).returns[:3:2] == (0.5, 0.25)
        costs = [item.name for item in fields(kind) if item.name.startswith("cost_")]
        assert bool(costs) is issubclass(kind, Constrained)

    def test_cost_advantages_take_the_lambda_of_the_targets_unless_they_have_their_own(self):
        given = {"discount": 0.9, "lam": 0.8, "cost_discount": 0.7, "cost_lam": 0.6}
        assert CPO(**given).returns == Returns(0.9, 0.7, 0.8, 0.6, 0.6)
        assert CPO(**given, cost_adv_lam=0.5).returns == Returns(0.9, 0.7, 0.8, 0.6, 0.5)

    def test_parts_are_records_of_their_own(self):
        for kind in METHODS.values():
            for item in fields(kind):
                value = getattr(kind(), item.name)
                assert not is_dataclass(value) or value == getattr(kind(), item.name)
        assert PPO().clipped == Clipped()
        assert isinstance(PPO(), Recipe)
