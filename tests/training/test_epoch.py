"""One epoch: what it passes to the algorithm, the environments and the critics, and what it logs."""

import itertools
from types import SimpleNamespace

import numpy as np
import pytest
from tests.training.fakes import TRUST_REGION, RestorableEnv, record, recording, run_epochs, small

from steingate.algorithms.base import EnvParams, Mode, Objective
from steingate.algorithms.common.networks import forward
from steingate.envs.wrappers import SafetyStateWrapper
from steingate.training import epoch as epoch_module
from steingate.training import targets
from steingate.training.seeding import Purpose, action_noise, epoch_seeds, stream

RAW = {"normalize_obs": False}
CARRIED = {"carry_episodes": True, **RAW}


@pytest.fixture
def fits(monkeypatch):
    """Record the calls of the critic fit instead of fitting."""
    calls = []

    def fit_critics(critics, obs, targets, config, rng, **options):
        calls.append(SimpleNamespace(critics=critics, obs=obs, targets=targets, rng=rng, **options))
        return critics

    monkeypatch.setattr(epoch_module, "fit_critics", fit_critics)
    return calls


class TestEnvironments:
    def test_params_of_the_state_are_set_before_each_reset(self, fits):
        envs = RestorableEnv()
        record(small(), envs, 3, env_params=lambda self, context, state: EnvParams(1 / (1 + state)))
        calls = [(name, given) for name, given in envs.calls if name != "step"]
        assert [name for name, _ in calls] == ["params", "reset"] * 3
        assert envs.of("params") == [EnvParams(1.0), EnvParams(1 / 3), EnvParams(1 / 5)]

    def test_policy_observes_the_budget_that_simmer_decided_after_the_last_epoch(self, fits):
        strong = {"controller.kp": 1.0, "controller.smoothing": 0.0, "cost_limit": 2.0}
        cfg = small("trpo-simmer", **strong, **TRUST_REGION, **RAW)
        algorithm, seen = recording(cfg)
        state, _ = run_epochs(cfg, algorithm, SafetyStateWrapper(RestorableEnv(cost=1.0), algorithm, cfg.context), 3)
        observed = [batch.obs[0, -1] for batch in seen.batches]
        decided = [algorithm.env_params(cfg.context, state).cost_budget_fraction for state in seen.states]
        assert observed[0] == 1.0
        assert 0.0 < decided[1] < decided[0] < 1.0
        np.testing.assert_allclose(observed[1:], decided[:2], rtol=1e-6)
        assert algorithm.env_params(cfg.context, state.algorithm).cost_budget_fraction == decided[2]


class TestRandomNumbers:
    def test_action_noise_is_new_in_each_epoch_and_for_each_seed(self, fits):
        runs = [record(small(seed=seed, **RAW), count=2).batches for seed in (0, 0, 1)]
        # Observations and policy are the same in both epochs, and the density depends on the noise alone.
        np.testing.assert_array_equal(runs[0][0].obs, runs[0][1].obs)
        drawn = [[batch.logp for batch in batches] for batches in runs]
        np.testing.assert_array_equal(drawn[0], drawn[1])
        assert not any(np.any(first == second) for first, second in (drawn[0], drawn[2]))
        assert not np.any(drawn[0][0] == drawn[2][0])

    def test_reset_seeds_are_new_in_each_epoch_and_for_each_seed(self, fits):
        runs = []
        for seed in (0, 0, 1):
            envs = RestorableEnv()
            record(small(seed=seed), envs, 3)
            runs.append(envs.of("reset"))
        assert runs[0] == runs[1]
        numbers = [number for run in (runs[0], runs[2]) for seeds in run for number in seeds]
        assert len(numbers) == len(set(numbers)) == 12

    def test_critics_are_fitted_with_a_new_stream_in_each_epoch_and_for_each_seed(self, fits):
        for seed in (0, 0, 1):
            record(small(seed=seed), count=2)
        drawn = [call.rng.random() for call in fits]
        assert drawn[:2] == drawn[2:4]
        assert len(set(drawn)) == 4

    def test_streams_of_purposes_epochs_and_seeds_differ(self):
        keys = itertools.product((0, 1), (0, 1, 2), Purpose)
        assert len({stream(*key).random() for key in keys}) == 2 * 3 * len(Purpose)
        assert len({tuple(epoch_seeds(seed, epoch, 3)) for seed in (0, 1) for epoch in (0, 1)}) == 4
        assert len(set(epoch_seeds(0, 0, 50))) == 50
        # The numbers define what a seed means, so they must not change.
        assert [purpose.value for purpose in Purpose] == list(range(9))
        np.testing.assert_array_equal(
            action_noise(3, 4, (2, 2, 1)).ravel(), stream(3, 4, Purpose.ACTIONS).standard_normal(4, dtype=np.float32)
        )


class TestCarriedEpisodes:
    """An epoch has ten steps, an episode eight: the second epoch begins with the third step of an episode."""

    def test_totals_of_running_episodes_continue(self, fits):
        envs = RestorableEnv(length=8, reward=3.0)
        seen = record(small(**CARRIED), envs, 2)
        second = seen.episodes[1]
        np.testing.assert_allclose(second.ret, [24.0, 48.0])
        np.testing.assert_allclose(second.cost, [2.0, 4.0])
        np.testing.assert_array_equal(second.length, [8, 8])
        np.testing.assert_allclose(seen.state.carry.totals, [[12.0, 1.0, 4.0], [24.0, 2.0, 4.0]])
        np.testing.assert_array_equal(seen.state.env_state["t"], 4)
        assert [(row["step"], row["cost"]) for row in seen.reports[1].episodes] == [(32, 2.0), (32, 4.0)]
        assert len(envs.of("reset")) == 1
        np.testing.assert_array_equal(seen.batches[1].obs[0], [2.0, 0.0, 7.0])

    def test_without_them_each_epoch_begins_with_a_reset(self, fits):
        envs = RestorableEnv(length=8)
        seen = record(small(**RAW), envs, 2)
        assert len(envs.of("reset")) == 2
        assert seen.state.carry is seen.state.env_state is None
        np.testing.assert_array_equal(seen.batches[1].obs[0], [0.0, 0.0, 7.0])

    def test_transformed_costs_continue_from_the_cost_so_far(self, fits):
        cfg = small(cost_gamma=0.0, cost_gae_lambda=0.0, **CARRIED)
        record(cfg, RestorableEnv(length=8), 2, cost_transform=lambda self, context, state: np.square)
        steps = np.array([2, 3, 4, 5, 6, 7, 0, 1, 2, 3])
        increments = ((steps + 1) ** 2 - steps**2) * 0.25**2  # of the squared cost of one environment's episode
        np.testing.assert_allclose(fits[1].targets[1][::2], increments, rtol=1e-5)

    def test_the_algorithm_records_the_rollout_before_it_decides(self, fits):
        recorded = []

        def record_rollout(self, context, state, policy, rollout):
            recorded.append((state, policy, rollout))
            return state + 100

        seen = record(small(**CARRIED), RestorableEnv(length=8), 2, record_rollout=record_rollout)
        assert [state for state, *_ in recorded] == [0, 102]
        assert seen.states == [101, 203]
        for policy, (_, acting, rollout) in zip(seen.policies, recorded, strict=True):
            assert acting is policy
            assert (rollout.obs.shape, rollout.act.shape, rollout.logp.shape) == ((10, 2, 3), (10, 2, 2), (10, 2))
        np.testing.assert_array_equal(recorded[1][2].finished_at, [[5, 0], [5, 1]])


@pytest.mark.parametrize("normalize", [False, True])
def test_observations_are_normalized_on_request(fits, normalize):
    one, two = (record(small(normalize_obs=normalize), count=epochs) for epochs in (1, 2))
    assert two.state.stats.count == 2 * one.state.stats.count
    assert (one.state.stats.count > 0) is normalize
    raw = np.tile([[t, i, 7.0] for t in range(5) for i in range(2)], (2, 1))
    assert np.array_equal(one.batches[0].obs, raw) is not normalize


class TestCritics:
    def test_weights_of_samples_reach_policy_and_critics(self, fits):
        weight, shapes = np.linspace(1.0, 5.0, 20).astype(np.float32), []

        def shape_advantages(self, advantage):
            shapes.append(advantage.shape)
            return np.arange(20.0).reshape(10, 2), weight, {"Loss/ReplayFraction": 0.3}

        seen = record(small(), shape_advantages=shape_advantages)
        assert shapes == [(10, 2)]
        np.testing.assert_array_equal(seen.batches[0].adv, np.arange(20.0))
        assert seen.batches[0].weight is fits[0].weight is weight
        assert seen.reports[0].row["Loss/ReplayFraction"] == 0.3

    @pytest.mark.parametrize(("vf_epochs", "passed"), [(None, 7), (4, 4)])
    def test_they_make_as_many_passes_as_the_policy_unless_the_number_is_given(self, fits, vf_epochs, passed):
        record(small("ppo", vf_epochs=vf_epochs), update_epochs=lambda self, state: 5 + state)
        assert fits[0].epochs == passed

    @pytest.mark.parametrize(("algo", "fitted"), [("cpo", True), ("trpo", False)])
    def test_the_cost_critic_is_fitted_only_if_the_algorithm_uses_it(self, fits, algo, fitted):
        record(small(algo))
        assert fits[0].fit_cost is fitted


class TestAdvantages:
    def batch(self, fits, **options):
        fits.clear()
        return record(small(**options, **RAW)).batches[0], fits[0].targets

    def test_samples_are_in_the_order_of_the_rollout(self, fits):
        envs = RestorableEnv()
        seen = record(small(**RAW), envs)
        batch = seen.batches[0]
        np.testing.assert_allclose(batch.act.reshape(10, 2, 2), envs.of("step"), rtol=1e-6)
        noise = action_noise(0, 0, (10, 2, 2)).reshape(20, 2)
        expected = -0.5 * (noise**2).sum(axis=1) - seen.policies[0]["log_std"].sum() - np.log(2 * np.pi)
        np.testing.assert_allclose(batch.logp, expected, rtol=1e-5)
        assert fits[0].obs is batch.obs

    def test_clipping_limits_the_outliers(self, fits):
        clipped, whole = (self.batch(fits, advantage_clip=clip)[0].adv for clip in (0.5, None))
        assert len(np.unique(clipped)) < len(np.unique(whole))

    def test_saturated_means_are_penalized(self, fits, monkeypatch):
        given = []

        def penalty(act, noise, log_std):
            given.append((act, noise, log_std))
            return noise[..., 0].astype(np.float64)

        monkeypatch.setattr(targets, "saturation_penalty", penalty)
        plain, penalized = (self.batch(fits, saturation_coef=coef)[0] for coef in (0.0, 0.3))
        ((act, noise, log_std),) = given  # without a coefficient it is not computed
        np.testing.assert_array_equal(act, plain.act)
        np.testing.assert_array_equal(noise, action_noise(0, 0, (10, 2, 2)).reshape(20, 2))
        np.testing.assert_allclose(plain.adv - penalized.adv, 0.3 * noise[..., 0], atol=1e-6)
        assert np.exp(log_std).tolist() == [1.0, 1.0]

    def test_overconfident_choices_are_penalized(self, fits, monkeypatch):
        given = []

        def penalty(act, logits):
            given.append((act, logits))
            return act[:, 0].astype(np.float64)

        monkeypatch.setattr(targets, "overconfidence_penalty", penalty)
        plain, penalized = (
            record(small("trpo", saturation_coef=coef, **RAW), RestorableEnv(actions=2)) for coef in (0.0, 0.3)
        )
        ((act, logits),) = given
        batch = plain.batches[0]
        np.testing.assert_allclose(batch.adv - penalized.batches[0].adv, 0.3 * act[:, 0], atol=1e-6)
        np.testing.assert_allclose(logits, forward(plain.policies[0], batch.obs), rtol=1e-6)


class TestOutcome:
    def test_decide_gets_the_episodes_of_the_epoch(self, fits):
        for episodes in record(small(), RestorableEnv(reward=3.0), 2).episodes:
            np.testing.assert_allclose(episodes.ret, [15.0, 30.0] * 2)
            np.testing.assert_allclose(episodes.cost, [1.25, 2.5] * 2)
            np.testing.assert_array_equal(episodes.length, [5] * 4)

    def test_update_gets_the_objective_and_the_state_after_decide(self, fits):
        objectives = [Objective(Mode.RECOVER, 0.5, 2.0), Objective(Mode.BALANCE, -1.0)]
        seen = record(small(), count=2, objectives=objectives)
        assert seen.objectives == objectives
        assert seen.states == [1, 3]
        assert (seen.state.algorithm, seen.state.epoch, seen.state.finished) == (4, 2, 8)

    def test_row_messages_and_episodes(self, fits):
        messages = ((), ("The gate has been closed.", "See the bound."))
        first, second = record(small(), None, 2, [Objective(Mode.BALANCE, 0.5)], messages).reports
        assert first.messages == ()
        assert second.messages == ("Epoch 2: The gate has been closed.", "Epoch 2: See the bound.")
        row = second.row
        assert (row["Gate/Epoch"], row["Loss/Recorded"]) == (1.0, 2.0)
        assert (row["Train/Epoch"], row["TotalEnvSteps"]) == (1, 40)
        assert (row["Gate/Mode"], row["Gate/Slack"]) == (1, 0.5)
        assert {"Value/Reward", "Value/Cost", "Value/CostExplained"} <= set(row)
        assert [(line["epoch"], line["step"]) for line in second.episodes] == [(1, 30), (1, 30), (1, 40), (1, 40)]

    @pytest.mark.parametrize(("window", "mean"), [(100, 1.875), (3, (2.5 + 1.25 + 2.5) / 3), (1, 2.5)])
    def test_logged_means_are_over_the_window(self, fits, window, mean):
        seen = record(small(window=window), count=2)
        assert seen.reports[1].row["Metrics/EpCost"] == pytest.approx(mean)
        assert len(seen.state.window) == min(window, 8)

    @pytest.mark.parametrize(("limit", "rate"), [(1.0, 1.0), (2.0, 0.5), (2.5, 0.0)])
    def test_violation_rate_is_the_fraction_above_the_limit(self, fits, limit, rate):
        assert record(small(cost_limit=limit)).reports[0].row["Train/ViolationRate"] == rate


@pytest.mark.parametrize(
    ("options", "limit", "starts", "unbiased"),
    [
        ({}, 8, [0, 0], 1.0),
        ({"variant": "published"}, 8, [0, 0, 5, 5], None),
        ({"episode_filter": "all"}, 8, [0, 0, 5, 5], None),
        ({"variant": "published", "episode_filter": "complete"}, 8, [0, 0], 1.0),
        ({}, 5, [0, 0, 5, 5], 1.0),
        ({}, None, [0, 0, 5, 5], 0.0),
    ],
)
def test_decide_gets_episodes_that_began_early_enough(fits, options, limit, starts, unbiased):
    """An epoch has ten steps per environment and an episode five; its time limit is ``limit``."""
    cfg = small(**options, env_options={"max_episode_steps": limit} if limit else {})
    seen = record(cfg)
    (report,) = seen.reports
    assert seen.episodes[0].start.tolist() == starts
    assert len(seen.episodes[0].cost) == len(starts)
    assert report.row.get("Gate/Unbiased") == unbiased
    assert report.row["Train/Episodes"] == len(report.episodes) == 4
