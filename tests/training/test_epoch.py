"""One epoch: what each part is given, told by parts that write it down."""

import itertools

import jax
import numpy as np
import pytest
from tests.training.fakes import SECOND_ORDER, Budgeted, Choosing, Told, epochs, small, spying, watched

from steingate.algorithms.common.base import Memory, Step
from steingate.envs.safety_state import Augmented
from steingate.errors import RunError
from steingate.gates.base import Decision, Mode
from steingate.training import epoch as epoch_module
from steingate.training import fitting
from steingate.training.assemble import build_algorithm
from steingate.training.batch import to_batch, values
from steingate.training.epoch import run_epoch
from steingate.training.background import InlineExecutor
from steingate.training.env_errors import RolloutStoppedError
from steingate.training.seeding import Purpose, action_noise, epoch_seeds, stream
from steingate.training.state import first_state

RAW = {"normalize_obs": False}
CARRIED = {"carry_episodes": True, **RAW}


@pytest.fixture
def fits(monkeypatch):
    """What each call of the critics' fit is given, without fitting anything."""
    calls = []

    def fit_critic(params, adam, obs, target, order, cfg, weight):
        calls.append(
            {"obs": obs, "target": target, "order": order, "cfg": cfg, "weight": weight, "of": params}
        )
        return params, adam, {}

    monkeypatch.setattr(fitting, "fit_critic", fit_critic)
    return calls


class TestNoiseAndOutliers:
    def test_the_next_policy_explores_no_more_than_the_gate_allows(self, fits):
        decisions = [Decision(Mode.IMPROVE), Decision(Mode.IMPROVE, noise=0.25)]
        loud, _ = epochs(small(), spying(decisions)[0], Told(), 1)
        assert np.exp(loud.policy["log_std"]).tolist() == [1.0, 1.0]
        calm, _ = epochs(small(), spying(decisions)[0], Told(), 2)
        np.testing.assert_allclose(np.exp(calm.policy["log_std"]), [0.25, 0.25], rtol=1e-6)

    def test_the_policy_moves_as_far_as_the_gate_allows(self, fits):
        def nudged(state, params, batch, decision):
            del batch, decision
            return {**params, "b": tuple(b + np.float32(1.0) for b in params["b"])}, state, {}

        algo, _ = spying([Decision(Mode.IMPROVE, part=0.25)])
        algo = algo._replace(step=Step(lambda params: 0, nudged))
        before, after = (epochs(small(), algo, Told(), count)[0].policy["b"] for count in (1, 3))
        for old, new in zip(before, after, strict=True):
            np.testing.assert_allclose(new - old, 0.5, rtol=1e-5)

    def test_outliers_of_the_reward_advantages_are_cut_as_the_recipe_says(self, fits):
        cut, whole = (watched(small("trpo", trim=trim, **RAW)) for trim in (0.5, None))
        for (algo, _), trim in ((cut, 0.5), (whole, None)):
            epochs(small("trpo", trim=trim, **RAW), algo, Told(), 1)
        assert len(np.unique(cut[1].batches[0].adv)) < len(np.unique(whole[1].batches[0].adv))

    def test_means_out_of_reach_are_drawn_back_as_strongly_as_the_recipe_says(self, fits, monkeypatch):
        given = []

        def away(act, noise, log_std):
            given.append((act, noise, log_std))
            return noise[..., 0].astype(np.float64)

        monkeypatch.setattr(epoch_module, "out_of_reach", away)
        found = []
        for pull in (0.0, 0.3):
            cfg = small("trpo", inward=pull, **RAW)
            algo, seen = watched(cfg)
            epochs(cfg, algo, Told(), 1)
            found.append(seen.batches[0].adv)
        ((act, noise, log_std),) = given  # without a pull nobody asks
        np.testing.assert_array_equal(noise, action_noise(cfg.seed, 0, act.shape, False))
        np.testing.assert_allclose(found[0] - found[1], 0.3 * noise[..., 0].ravel(), atol=1e-6)
        assert np.exp(log_std).tolist() == [1.0, 1.0]

    def test_choices_too_certain_are_drawn_back_as_strongly_as_the_recipe_says(self, fits, monkeypatch):
        given = []

        def away(act, logits):
            given.append((act, logits))
            return act[:, 0].astype(np.float64)

        monkeypatch.setattr(epoch_module, "too_certain", away)
        found = []
        for pull in (0.0, 0.3):
            cfg = small("trpo", inward=pull, **RAW)
            algo, seen = watched(cfg)
            epochs(cfg, algo, Choosing(), 1)
            found.append(seen.batches[0])
        ((act, logits),) = given
        np.testing.assert_allclose(found[0].adv - found[1].adv, 0.3 * act[:, 0], atol=1e-6)
        np.testing.assert_allclose(
            np.take_along_axis(np.asarray(jax.nn.log_softmax(logits)), act.astype(int), 1)[:, 0],
            found[0].logp,
            atol=1e-5,
        )


class TestBudget:
    def test_environments_start_with_the_share_of_the_last_decision(self, fits):
        envs = Budgeted()
        decisions = [Decision(Mode.IMPROVE, budget=share, worth=40.0 * share) for share in (0.5, 0.25, 0.75)]
        state, _ = epochs(small(), spying(decisions)[0], envs, 3)
        told = [(name, what) for name, what in envs.told if name != "step"]
        assert [name for name, _ in told] == ["budget", "reset"] * 3
        assert [what for name, what in told if name == "budget"] == [(1.0, 0.0), (0.5, 20.0), (0.25, 10.0)]
        assert (state.budget, state.worth) == (0.75, 30.0)

    def test_simmers_policy_sees_the_share_that_its_gate_decided(self, fits):
        strong = {"controller.proportional": 1.0, "controller.smoothing": 0.0, "cost_limit": 2.0}
        cfg = small("trpo-simmer", **strong, **SECOND_ORDER, **RAW)
        algo, seen = watched(cfg)
        state, _ = epochs(cfg, algo, Augmented(Told(cost=1.0), algo.account), 3)
        shown = [batch.obs[0, -1] for batch in seen.batches]
        decided = [decision.budget for decision in seen.decisions]
        assert shown[0] == 1.0
        assert 0.0 < decided[1] < decided[0] < 1.0
        np.testing.assert_allclose(shown[1:], decided[:2], rtol=1e-6)
        assert state.budget == decided[2]


class TestStreams:
    def test_noise_of_actions_is_new_in_each_epoch_and_for_each_seed(self, fits):
        drawn = []
        for seed in (0, 0, 1):
            algo, seen = spying()
            epochs(small(seed=seed, **RAW), algo, Told(), 2)
            # All epochs see the same observations and take the same policy, so only the noise differs.
            np.testing.assert_array_equal(seen.batches[0].obs, seen.batches[1].obs)
            # The density of an action under its own policy depends on the noise alone.
            drawn.append([batch.logp for batch in seen.batches])
        np.testing.assert_array_equal(drawn[0], drawn[1])
        assert not any(np.any(first == second) for first, second in (drawn[0], drawn[2]))
        assert not np.any(drawn[0][0] == drawn[2][0])

    def test_environments_get_new_seeds_in_each_epoch_and_for_each_run(self, fits):
        told = []
        for seed in (0, 0, 1):
            envs = Told()
            epochs(small(seed=seed), spying()[0], envs, 3)
            told.append(envs.of("reset"))
        assert told[0] == told[1]
        every = [number for run in (told[0], told[2]) for seeds in run for number in seeds]
        assert len(every) == len(set(every)) == 12

    def test_critics_see_the_samples_in_a_new_order_in_each_epoch_and_for_each_seed(self, fits):
        orders = {}
        for run, seed in enumerate((0, 0, 1)):
            fits.clear()
            epochs(small(seed=seed, critic_passes=2), spying()[0], Told(), 2)
            reward, cost = fits[0::2], fits[1::2]
            assert all(np.array_equal(a["order"], b["order"]) for a, b in zip(reward, cost, strict=True))
            orders[run] = [call["order"] for call in reward]
        np.testing.assert_array_equal(orders[0], orders[1])
        rows = [tuple(row) for run in (0, 2) for order in orders[run] for row in order]
        assert len(rows) == len(set(rows)) == 8
        assert all(sorted(row) == list(range(20)) for row in rows)

    def test_no_two_purposes_epochs_or_seeds_share_a_stream(self):
        keys = itertools.product((0, 1), (0, 1, 2), Purpose)
        assert len({stream(*key).random() for key in keys}) == 2 * 3 * len(Purpose)
        assert len({tuple(epoch_seeds(seed, epoch, 3)) for seed in (0, 1) for epoch in (0, 1)}) == 4
        assert len(set(epoch_seeds(0, 0, 50))) == 50
        # What a seed means is part of what a run is: these numbers never change.
        assert [purpose.value for purpose in Purpose] == list(range(8))
        np.testing.assert_array_equal(
            action_noise(3, 4, (2, 2, 1)).ravel(),
            stream(3, 4, Purpose.ACTIONS).standard_normal(4, dtype=np.float32),
        )

    def test_policy_and_critics_begin_differently_and_by_the_seed(self):
        begun = {}
        for seed in (0, 1):
            cfg = small(seed=seed)
            state = first_state(cfg, build_algorithm(cfg), 3, 2)
            critics = state.critics.result()
            begun[seed] = (state.policy["w"][0], critics.reward["w"][0], critics.cost["w"][0])
        every = [weights for run in begun.values() for weights in run]
        assert all(not np.any(a == b) for a, b in itertools.combinations(every, 2))


class TestCarriedEpisodes:
    """Ten steps an epoch, episodes of eight: six steps are left when the second epoch ends."""

    def test_totals_of_running_episodes_go_on(self, fits):
        algo, seen = spying()
        state, reports = epochs(small(**CARRIED), algo, Told(length=8, reward=3.0), 2)
        second = seen.episodes[1]
        np.testing.assert_allclose(second.ret, [24.0, 48.0])
        np.testing.assert_allclose(second.cost, [2.0, 4.0])
        np.testing.assert_array_equal(second.length, [8, 8])
        np.testing.assert_allclose(state.carry.totals, [[12.0, 1.0, 4.0], [24.0, 2.0, 4.0]])
        np.testing.assert_array_equal(state.world["t"], 4)
        assert [row["step"] for row in reports[1].episodes] == [20 + 6 * 2] * 2
        assert [row["cost"] for row in reports[1].episodes] == [2.0, 4.0]
        assert [row["return"] for row in reports[1].episodes] == [24.0, 48.0]

    def test_the_tail_begins_at_the_cost_that_was_carried(self, fits):
        calls = []

        def tail(running, decision):
            calls.append((running.copy(), decision))
            return running

        decisions = [Decision(Mode.BALANCE, level=level) for level in (1.0, 2.0)]
        epochs(small(**CARRIED), spying(decisions, tail=tail)[0], Told(length=8, reward=3.0), 2)
        (after, decided), (before, _) = calls[2:]
        np.testing.assert_allclose(before[0], [2 * 0.25, 2 * 0.5])  # the ninth and the tenth step
        np.testing.assert_allclose(after[0], [3 * 0.25, 3 * 0.5])
        np.testing.assert_allclose(before[6], [0.0, 0.0])
        assert decided.level == 2.0

    def test_they_are_not_reset_and_see_the_observation_that_was_current(self, fits):
        algo, seen = spying()
        envs = Told(length=8)
        epochs(small(**CARRIED), algo, envs, 2)
        assert len(envs.of("reset")) == 1
        np.testing.assert_array_equal(seen.batches[1].obs[0], [2.0, 0.0, 7.0])

    def test_without_carrying_each_epoch_begins_anew(self, fits):
        algo, seen = spying()
        envs = Told(length=8)
        state, _ = epochs(small(**RAW), algo, envs, 2)
        assert len(envs.of("reset")) == 2
        assert state.carry is None
        assert state.world is None
        np.testing.assert_array_equal(seen.batches[1].obs[0], [0.0, 0.0, 7.0])

    @pytest.mark.parametrize("carries", [False, True])
    def test_the_memory_is_told(self, fits, carries):
        calls = []

        def recall(*given):
            calls.append(given)
            return np.array([0.5, -0.5]), given[0] + 1

        memory = Memory(lambda num_envs, obs_dim, act_dim: 100 * num_envs + 10 * obs_dim + act_dim, recall)
        algo, seen = spying(memory=memory)
        state, _ = epochs(small(carry_episodes=carries, **RAW), algo, Told(length=8), 2)
        assert [call[0] for call in calls] == [232, 233]
        assert state.memory == 234
        for _, params, (obs, act, logp), _, told in calls:
            assert params is state.policy
            assert (obs.shape, act.shape, logp.shape) == ((10, 2, 3), (10, 2, 2), (10, 2))
            assert told is carries
        np.testing.assert_array_equal(calls[1][3], [[5 if carries else 7, 0], [5 if carries else 7, 1]])
        np.testing.assert_array_equal(seen.episodes[1].log_ratio, [0.5, -0.5])


class TestObservations:
    @pytest.mark.parametrize("normalize", [False, True])
    def test_they_are_normalized_only_if_asked(self, fits, normalize):
        algo, seen = spying()
        state, _ = epochs(small(normalize_obs=normalize), algo, Told(), 2)
        assert (state.stats.count > 0) is normalize
        as_given = np.tile([[t, i, 7.0] for t in range(5) for i in range(2)], (2, 1))
        assert np.array_equal(seen.batches[1].obs, as_given) is not normalize

    def test_statistics_go_on_from_epoch_to_epoch(self, fits):
        counts = [epochs(small(), spying()[0], Told(), n)[0].stats.count for n in (1, 2, 3)]
        assert counts[0] > 0
        assert counts[2] - counts[1] == counts[1] - counts[0] == counts[0]


class TestCritics:
    def test_they_get_the_weights_of_replayed_transitions(self, fits):
        weight = np.linspace(1.0, 5.0, 20).astype(np.float32)
        asked = []

        def replay(adv):
            asked.append(adv)
            return 2.0 * adv.ravel(), weight, {"replay/share": 0.3}

        algo, seen = spying(replay=replay)
        _, reports = epochs(small(), algo, Told())
        assert asked[0].shape == (10, 2)
        np.testing.assert_allclose(seen.batches[0].adv, 2.0 * asked[0].ravel(), rtol=1e-6)
        assert all(call["weight"] is weight for call in fits)
        assert seen.batches[0].weight is weight
        assert len(fits) == 2
        assert reports[0].row["Replay/Share"] == 0.3

    @pytest.mark.parametrize(
        ("variant", "everywhere", "counts"),
        [("corrected", None, False), ("published", None, True), ("corrected", True, True)],
    )
    def test_evos_copies_enter_them_where_they_count_everywhere(self, fits, variant, everywhere, counts):
        given = {} if everywhere is None else {"replay.everywhere": everywhere}
        cfg = small("evo", variant=variant, **given, **SECOND_ORDER)
        epochs(cfg, watched(cfg)[0], Told())
        weights = [call["weight"] for call in fits]
        if counts:
            assert all(set(np.unique(weight)) == {1.0, 5.0} for weight in weights)
        else:
            assert weights == [None, None]

    def test_they_repeat_the_passes_of_the_step_unless_told_how_many(self, fits):
        algo, _ = spying(passes=lambda state: 2 + state)
        epochs(small("ppo", critic_passes=None), algo, Told())
        assert [call["order"].shape for call in fits] == [(1, 20)] * 2 * 3  # the state after one move is 1
        fits.clear()
        epochs(small("ppo", critic_passes=4), algo, Told())
        assert [call["order"].shape for call in fits] == [(4, 20)] * 2

    @pytest.mark.parametrize("uses_cost", [False, True])
    def test_the_cost_critic_is_fitted_only_where_it_is_used(self, fits, uses_cost):
        state, _ = epochs(small(), spying(uses_cost=uses_cost)[0], Told())
        critics = state.critics.result()
        assert [call["of"] is critics.reward for call in fits] == ([True, False] if uses_cost else [True])

    def test_they_are_fitted_to_the_targets_of_their_own_kind_with_their_own_settings(self, fits):
        given = {"critic_lr": 0.5, "critic_batch": 7, "critic_decay": 0.25, "critic_grad_norm": 3.0}
        algo, seen = spying()
        epochs(small(discount=0.0, cost_discount=0.0, lam=0.0, cost_lam=0.0, **given), algo, Told(reward=3.0))
        reward, cost = fits
        np.testing.assert_allclose(reward["target"], np.tile([3.0, 6.0], 10), rtol=1e-5)
        np.testing.assert_allclose(cost["target"], np.tile([0.25, 0.5], 10), rtol=1e-5)
        assert reward["obs"] is seen.batches[0].obs
        fit = reward["cfg"]
        assert (fit.batch_size, fit.learning_rate, fit.penalty, fit.max_grad_norm) == (7, 0.5, 0.25, 3.0)
        assert cost["cfg"] == fit

    def test_advantages_come_from_the_critics_before_the_fit(self, monkeypatch):
        given = []
        monkeypatch.setattr(
            epoch_module,
            "to_batch",
            lambda rollout, critics, *rest: given.append(critics) or to_batch(rollout, critics, *rest),
        )
        cfg = small(critic_lr=0.1)
        algo, _ = spying()
        state = first_state(cfg, algo, 3, 2)
        for _ in range(2):
            before = state.critics.result()
            state, _ = run_epoch(algo, cfg, state, Told(), InlineExecutor())
            assert given[-1] == before.params
            assert not np.array_equal(state.critics.result().reward["b"][0], before.reward["b"][0])
            assert not np.array_equal(state.critics.result().cost["b"][0], before.cost["b"][0])


class TestAdvantages:
    def both(self, fits, **settings):
        fits.clear()
        algo, seen = spying()
        epochs(small(**settings, **RAW), algo, Told())
        return seen.batches[0], [call["target"] for call in fits]

    def test_a_lambda_of_their_own_leaves_the_critics_targets_alone(self, fits):
        plain, targets = self.both(fits, cost_lam=0.95)
        own, own_targets = self.both(fits, cost_lam=0.95, cost_adv_lam=0.2)
        only, only_targets = self.both(fits, cost_lam=0.2)
        np.testing.assert_array_equal(targets, own_targets)
        np.testing.assert_array_equal(own.cost_adv, only.cost_adv)
        assert not np.allclose(own.cost_adv, plain.cost_adv)
        assert not np.allclose(targets[1], only_targets[1])
        np.testing.assert_array_equal(plain.adv, own.adv)
        np.testing.assert_array_equal(targets[0], only_targets[0])

    @pytest.mark.parametrize(
        ("name", "changes_reward"),
        [("discount", True), ("lam", True), ("cost_discount", False), ("cost_lam", False)],
    )
    def test_each_setting_reaches_its_own_advantage_alone(self, fits, name, changes_reward):
        plain, targets = self.both(fits)
        changed, changed_targets = self.both(fits, **{name: 0.3})
        assert np.array_equal(plain.adv, changed.adv) is not changes_reward
        assert np.array_equal(plain.cost_adv, changed.cost_adv) is changes_reward
        assert np.array_equal(targets[0], changed_targets[0]) is not changes_reward
        assert np.array_equal(targets[1], changed_targets[1]) is changes_reward

    def test_they_are_those_of_the_formula(self, fits):
        """delta_t = r_t + g V_{t+1} - V_t; A_t = delta_t + g lam A_{t+1}: summed here without recursion."""
        settings = {"discount": 0.9, "lam": 0.6, "cost_discount": 0.8, "cost_lam": 0.7, "cost_adv_lam": 0.3}
        cfg = small(**settings, **RAW)
        algo, seen = spying()
        critics = first_state(cfg, algo, 3, 2).critics.result().params
        epochs(cfg, algo, Told(length=50, reward=3.0))
        obs = np.array([[t, i, 7.0] for t in range(11) for i in range(2)], np.float32)
        reward_value, cost_value = values(critics, obs).reshape(2, 11, 2)

        def summed(paid, value, discount, lam):
            delta = paid + discount * value[1:] - value[:-1]
            weight = np.array(
                [[(discount * lam) ** (s - t) if s >= t else 0.0 for s in range(10)] for t in range(10)]
            )
            return weight @ delta

        reward = summed([3.0, 6.0], reward_value, 0.9, 0.6).ravel()
        cost = summed([0.25, 0.5], cost_value, 0.8, 0.3).ravel()
        target = summed([0.25, 0.5], cost_value, 0.8, 0.7) + cost_value[:-1]
        batch = seen.batches[0]
        np.testing.assert_allclose(batch.adv, (reward - reward.mean()) / reward.std(), atol=1e-4)
        np.testing.assert_allclose(batch.cost_adv, cost - cost.mean(), atol=1e-5)
        np.testing.assert_allclose(fits[1]["target"], target.ravel(), atol=1e-5)
        np.testing.assert_allclose(fits[0]["target"], reward + reward_value[:-1].ravel(), atol=1e-4)
        assert batch.scale == pytest.approx(reward.std(), rel=1e-5)

    def test_a_time_limit_goes_on_with_the_value_of_the_last_observation(self, fits):
        cfg = small(discount=0.9, lam=0.0, cost_discount=0.8, cost_lam=0.0, **RAW)
        algo, _ = spying()
        critics = first_state(cfg, algo, 3, 2).critics.result().params
        epochs(cfg, algo, Told(length=5))
        after = np.array([[t + 1, i, 7.0] for _ in range(2) for t in range(5) for i in range(2)], np.float32)
        reward, cost = values(critics, after)
        np.testing.assert_allclose(fits[0]["target"], np.tile([1.0, 2.0], 10) + 0.9 * reward, atol=1e-5)
        np.testing.assert_allclose(fits[1]["target"], np.tile([0.25, 0.5], 10) + 0.8 * cost, atol=1e-5)

    def test_samples_are_in_the_order_of_the_rollout(self, fits):
        algo, seen = spying()
        envs = Told()
        epochs(small(**RAW), algo, envs)
        batch = seen.batches[0]
        np.testing.assert_allclose(batch.act.reshape(10, 2, 2), envs.of("step"), rtol=1e-6)
        noise = action_noise(0, 0, (10, 2, 2)).reshape(20, 2)
        std = np.exp(seen.params[0]["log_std"])
        expected = -0.5 * (noise**2).sum(axis=1) - np.log(std).sum() - np.log(2 * np.pi)
        np.testing.assert_allclose(batch.logp, expected, rtol=1e-5)


class TestOutcome:
    def test_the_gate_is_given_the_episodes_of_this_epoch(self, fits):
        algo, seen = spying()
        epochs(small(), algo, Told(reward=3.0), 2)
        for episodes in seen.episodes:
            np.testing.assert_allclose(episodes.ret, [15.0, 30.0] * 2)
            np.testing.assert_allclose(episodes.cost, [1.25, 2.5] * 2)
            np.testing.assert_array_equal(episodes.length, [5] * 4)
            assert episodes.log_ratio is None

    def test_the_step_is_given_the_decision_and_the_policy_that_acted(self, fits):
        decisions = [Decision(Mode.RECOVER, 0.5, 2.0, 0.9, 3.0), Decision(Mode.BALANCE, -1.0)]
        algo, seen = spying(decisions)
        state, _ = epochs(small(), algo, Told(), 2)
        assert seen.decisions == decisions
        assert seen.states == [0, 1]
        assert (state.step, state.gate, state.epoch, state.finished) == (2, 2, 2, 8)

    def test_notes_of_the_gate_are_told_with_the_epoch(self, fits):
        algo, _ = spying(notes=((), ("It has been shut for long.", "Look at it.")))
        _, reports = epochs(small(), algo, Told(), 2)
        assert reports[0].notes == ()
        assert reports[1].notes == ("Epoch 2: It has been shut for long.", "Epoch 2: Look at it.")

    def test_numbers_of_all_parts_are_in_the_row(self, fits):
        algo, _ = spying([Decision(Mode.BALANCE, 0.5)])
        _, reports = epochs(small(), algo, Told(), 2)
        row = reports[1].row
        assert (row["Gate/Asked"], row["Step/Moved"]) == (1.0, 1.0)
        assert (row["Train/Epoch"], row["TotalEnvSteps"]) == (1, 40)
        assert (row["Gate/Mode"], row["Gate/Slack"]) == (1, 0.5)
        assert {"Critic/RewardValue", "Critic/CostValue", "Critic/CostExplained"} <= set(row)
        assert [(line["epoch"], line["step"]) for line in reports[1].episodes] == [
            (1, 30), (1, 30), (1, 40), (1, 40)
        ]  # fmt: skip

    @pytest.mark.parametrize(("window", "mean"), [(100, 1.875), (3, (2.5 + 1.25 + 2.5) / 3), (1, 2.5)])
    def test_the_means_of_the_log_are_over_the_window(self, fits, window, mean):
        state, reports = epochs(small(window=window), spying()[0], Told(), 2)
        assert reports[1].row["Metrics/EpCost"] == pytest.approx(mean)
        assert len(state.window) == min(window, 8)

    def test_over_the_limit_is_the_share_above_the_limit_of_the_run(self, fits):
        for limit, share in ((1.0, 1.0), (2.0, 0.5), (2.5, 0.0)):
            _, reports = epochs(small(cost_limit=limit), spying()[0], Told())
            assert reports[0].row["Train/ViolationRate"] == share

    def test_a_request_to_stop_reaches_the_rollout(self, fits):
        cfg, envs = small(), Told()
        algo, seen = spying()
        asked = iter([False, False, True])
        with pytest.raises(RolloutStoppedError):
            run_epoch(algo, cfg, first_state(cfg, algo, 3, 2), envs, InlineExecutor(), lambda: next(asked))
        assert len(envs.of("step")) == 2
        assert seen.episodes == []

    def test_a_failing_environment_is_named_with_the_step_of_the_run(self, fits):
        class Failing(Told):
            def step(self, actions):
                if len(self.of("reset")) == 2 and len(self.of("step")) == 12:
                    raise ZeroDivisionError("lost")
                return super().step(actions)

        with pytest.raises(RunError, match=r"told failed at step 26 with ZeroDivisionError.*is kept"):
            epochs(small(), spying()[0], Failing(), 2)

    def test_what_is_not_finite_is_named_with_the_epoch(self, fits):
        algo, _ = spying()

        def move(state, params, batch, decision):
            return {**params, "log_std": params["log_std"] * np.nan}, state, {}

        with pytest.raises(RunError, match=r"epoch 0 \(step 20\): the policy/log_std is not finite"):
            epochs(small(), algo._replace(step=algo.step._replace(move=move)), Told())


class TestWhichEpisodesCount:
    """Ten steps per environment and episodes of five: the second of each began too late to count for sure."""

    @pytest.mark.parametrize(
        ("given", "starts", "unbiased"),
        [
            ({"env_options": {"max_episode_steps": 8}}, [0, 0], 1.0),
            ({"env_options": {"max_episode_steps": 8}, "variant": "published"}, [0, 0, 5, 5], None),
            ({"env_options": {"max_episode_steps": 8}, "count": "finished"}, [0, 0, 5, 5], None),
            (
                {"env_options": {"max_episode_steps": 8}, "variant": "published", "count": "started"},
                [0, 0],
                1.0,
            ),
            ({"env_options": {"max_episode_steps": 5}}, [0, 0, 5, 5], 1.0),
            ({}, [0, 0, 5, 5], 0.0),
        ],
    )
    def test_the_gate_sees_those_that_began_early_enough(self, fits, given, starts, unbiased):
        algo, seen = spying()
        _, (report,) = epochs(small(**given), algo, Told(length=5))
        assert seen.episodes[0].start.tolist() == starts
        assert len(seen.episodes[0].cost) == len(starts)
        assert report.row.get("Gate/Unbiased") == unbiased
        assert report.row["Train/Episodes"] == len(report.episodes) == 4
