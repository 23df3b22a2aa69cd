import numpy as np
import pytest
from tests.algorithms.problems import episodes

from steingate.algorithms import make_algorithm
from steingate.algorithms.base import Mode, RunContext, Trajectories
from steingate.algorithms.common.networks import init_policy, log_prob
from steingate.algorithms.evo import ExtremeValueConfig, extreme_value, pareto_quantile

ONE_TO_FIFTY = np.arange(1.0, 51.0)


class TestExtremeValue:
    @pytest.mark.parametrize(("published", "value"), [(True, 97.077), (False, 49.077)])
    def test_the_extreme_value_of_one_to_fifty(self, published, value):
        found, fitted = extreme_value(ONE_TO_FIFTY, np.zeros(50), ExtremeValueConfig(), published)
        assert found == pytest.approx(value, abs=0.5)
        assert fitted

    @pytest.mark.parametrize("free_location", [True, False])
    def test_quantiles_of_a_known_distribution(self, free_location):
        sample = np.random.default_rng(0).exponential(10.0, 20_000)
        value, fitted = pareto_quantile(sample, 95.0, 0.5, free_location)
        assert fitted
        assert value == pytest.approx(10.0 * np.log(1 / 0.025), rel=0.03)  # the 97.5 % quantile

    @pytest.mark.parametrize(("sample", "value"), [([1.0] * 90 + [7.0] * 3, 7.0), ([0.0] * 99 + [5.0], 5.0)])
    def test_without_a_fit_the_quantile_of_the_excesses_is_used(self, sample, value):
        assert pareto_quantile(np.array(sample), 95.0, 0.5, False) == (pytest.approx(value), False)

    @pytest.mark.parametrize("published", [True, False])
    def test_likelier_episodes_count_as_more_copies(self, published):
        """Weights are clamped ratios, or as published clamped logarithms."""
        config, found = ExtremeValueConfig(percentile=80.0), {}
        for sign in (1.0, -1.0):
            ratio = np.where(ONE_TO_FIFTY > 40, 1.1**sign, np.where(ONE_TO_FIFTY > 20, 5.0**-sign, 1.0))
            clamped = {5.0: 1.2, 0.2: 0.8}
            weight = np.array([clamped.get(one, one) for one in ratio])
            if published:
                weight = np.exp(np.where(ratio > 2.0, 1.2, 0.8))
            sample = np.repeat(ONE_TO_FIFTY, (1e4 * weight / weight.sum()).astype(int))
            found[sign], fitted = extreme_value(ONE_TO_FIFTY, np.log(ratio), config, published)
            expected = pareto_quantile(sample, 80.0, 0.5, published)[0] + published * np.percentile(sample, 80.0)
            assert fitted
            assert found[sign] == pytest.approx(expected)
        assert found[1.0] > found[-1.0]


POLICY = init_policy(np.random.default_rng(0), 2, 1, (4,))


def rollout(ends, seed=0):
    """Random steps; ``ends`` is (T, E) of flags."""
    ends = np.asarray(ends, bool)
    rng = np.random.default_rng(seed)
    obs = rng.normal(size=(*ends.shape, 2)).astype(np.float32)
    act = rng.normal(size=(*ends.shape, 1)).astype(np.float32)
    logp = rng.normal(size=ends.shape).astype(np.float32)
    return Trajectories(obs, act, logp, np.argwhere(ends))


def record(rollouts, envs, capacity=4, carry=False):
    """Return EVO's state after rollouts of ``POLICY``."""
    evo = make_algorithm("evo", options={"extreme.capacity": capacity})
    context = RunContext(num_envs=envs, carry_episodes=carry)
    state = evo.init(context, POLICY)
    for one in rollouts:
        state = evo.record_rollout(context, state, POLICY, one)
    return state


def ratio_of(*parts):
    """Log likelihood ratio of an episode given as (rollout, steps, environment)."""
    change = [log_prob(POLICY, r.obs[steps, env], r.act[steps, env]) - r.logp[steps, env] for r, steps, env in parts]
    return float(np.sum(np.concatenate(change), dtype=np.float64))


class TestMemory:
    def test_episodes_of_several_environments_in_order_of_completion(self):
        ends = np.zeros((9, 3), bool)
        ends[[2, 8], 0] = ends[5, 1] = True  # lengths 3 and 6 in environment 0, 6 in environment 1, none in 2
        first = rollout(ends)
        state = record([first], 3)
        np.testing.assert_array_equal(state.log_ratio, np.zeros(3))
        np.testing.assert_array_equal(state.lengths, [3, 6, 6])
        state = record([first, rollout(np.eye(2, 3, dtype=bool), seed=1)], 3)
        # The oldest of the five is dropped; the two new ones are last and have ratio 0.
        np.testing.assert_array_equal(state.lengths, [6, 6, 1, 2])
        expected = [ratio_of((first, slice(6), 1)), ratio_of((first, slice(3, 9), 0)), 0.0, 0.0]
        np.testing.assert_allclose(state.log_ratio, expected, rtol=1e-5)

    @pytest.mark.parametrize(("carry", "length"), [(True, 6), (False, 2)])
    def test_an_episode_that_continues_in_the_next_epoch_is_whole(self, carry, length):
        ends = np.zeros((4, 2), bool)
        ends[1, 1] = True
        first, second = rollout(np.zeros((4, 2), bool)), rollout(ends, seed=1)
        assert len(record([first], 2, carry=carry).lengths) == 0
        state = record([first, second], 2, carry=carry)
        np.testing.assert_array_equal(state.lengths, [length])
        path = [(second, slice(2), 1)]
        # An episode that began under an earlier policy has its ratio at once, one of this rollout has ratio 0.
        assert state.log_ratio[0] == pytest.approx(ratio_of((first, slice(4), 1), *path) if carry else 0.0, rel=1e-5)
        state = record([first, second, rollout(np.zeros((1, 2), bool), seed=2)], 2, carry=carry)
        whole = [(first, slice(4), 1), *path] if carry else path
        assert state.log_ratio[0] == pytest.approx(ratio_of(*whole), rel=1e-5)


def decide(epochs, options=None, variant="corrected"):
    """Return the outputs of EVO's gate for episodes of single steps."""
    evo = make_algorithm("evo", options={"variant": variant, **(options or {})})
    context = RunContext(cost_limit=25.0)
    state, outputs = evo.init(context, POLICY), []
    for seed, costs in enumerate(epochs):
        finished = episodes(costs)
        one = rollout(np.ones((len(costs), 1), bool), seed)
        one = one._replace(logp=np.asarray(log_prob(POLICY, one.obs[:, 0], one.act[:, 0]))[:, None])
        state = evo.record_rollout(context, state, POLICY, one)
        state, output = evo.decide(context, state, finished)
        outputs.append(output)
    return state, outputs


class TestGate:
    def test_the_slack_is_the_limit_minus_the_extreme_value_of_fifty_episodes(self):
        state, outputs = decide([np.full(30, 99.0), ONE_TO_FIFTY / 5])
        assert outputs[0].objective.cost_slack == pytest.approx((25.0 - 99.0) / 1000)
        assert len(state.costs) == len(state.log_ratio) == 50
        metrics = outputs[1].metrics
        assert outputs[1].objective.mode == Mode.BALANCE
        assert metrics["Gate/ExtremeCost"] == pytest.approx(49.077 / 5, abs=0.5)
        assert outputs[1].objective.cost_slack == pytest.approx((25.0 - metrics["Gate/ExtremeCost"]) / 1000)
        assert metrics["Gate/FitFailed"] == 0.0

    @pytest.mark.parametrize(("variant", "value"), [("published", 0.0), ("corrected", 9.0)])
    def test_an_epoch_without_cost_is_safe_as_published_only(self, variant, value):
        for quiet in ([], [0.0]):
            _, outputs = decide([[9.0] * 20, quiet], variant=variant)
            assert outputs[1].metrics["Gate/ExtremeCost"] == pytest.approx(value)

    def test_published_slacks_are_per_episode_and_count_the_percentile_twice(self):
        corrected, published = (decide([[10.0] * 40], variant=v)[1][0].objective for v in ("corrected", "published"))
        assert corrected.cost_slack == pytest.approx(15.0 / 1000)
        assert published.cost_slack == pytest.approx(5.0)


PUBLISHED = make_algorithm("evo", options={"variant": "published"})


class TestReplay:
    def test_transitions_above_the_extreme_advantage_count_five_times(self):
        adv = np.random.default_rng(0).normal(size=(500, 8))
        same, weight, metrics = PUBLISHED.shape_advantages(adv)
        np.testing.assert_array_equal(same, adv.ravel())
        threshold = metrics["Loss/ReplayThreshold"]
        np.testing.assert_array_equal(weight, np.where(adv.ravel() >= threshold, 5.0, 1.0))
        assert metrics["Loss/ReplayFraction"] == pytest.approx((adv >= threshold).mean())

    def test_copies_count_in_the_reward_surrogate_only(self):
        adv = np.random.default_rng(0).normal(size=(500, 8))
        evo = make_algorithm("evo")
        shaped, weight, metrics = evo.shape_advantages(adv)
        assert weight is None
        threshold, _ = pareto_quantile(adv.ravel(), 90.0, 0.5, False)
        assert metrics["Loss/ReplayThreshold"] == pytest.approx(threshold, rel=1e-3)
        assert metrics["Loss/ReplayFraction"] == pytest.approx(0.05, abs=0.01)  # the upper half of the upper tenth
        copies = np.concatenate([adv.ravel(), np.repeat(adv[adv >= metrics["Loss/ReplayThreshold"]], 4)])
        assert shaped.mean() == pytest.approx(copies.mean())
        assert (np.sign(shaped) == np.sign(adv.ravel())).all()

    def test_the_published_code_fits_the_last_hundred_transitions_of_the_last_environment(self):
        rng = np.random.default_rng(1)
        adv = rng.normal(size=(400, 3))
        adv[-100:, 2] *= 10.0
        short = rng.normal(size=(30, 4))  # the last hundred transitions then reach into the other environments
        last = np.concatenate([short[-10:, 0], short[:, 1], short[:, 2], short[:, 3]])
        for advantages, sample in ((adv, adv[-100:, 2]), (short, last)):
            expected, _ = pareto_quantile(sample, 90.0, 0.5, True)
            assert PUBLISHED.shape_advantages(advantages)[2]["Loss/ReplayThreshold"] == pytest.approx(expected)
