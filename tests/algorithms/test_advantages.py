import numpy as np
import pytest
from steingate.algorithms.common.advantages import center, close_paths, gae, standardize

from steingate.errors import InputError


def by_definition(rewards, values, terminated, truncated, final_values, next_values, discount, lam):
    """Advantages of each path from the double sum, path by path."""
    steps, envs = rewards.shape
    advantage = np.zeros((steps, envs))
    for env in range(envs):
        start = 0
        for t in range(steps):
            last = t == steps - 1
            if not (terminated[t, env] or truncated[t, env] or last):
                continue
            if terminated[t, env]:
                after = 0.0
            elif truncated[t, env]:
                after = final_values[t, env]
            else:
                after = next_values[env]
            v = [*values[start : t + 1, env], after]
            r = rewards[start : t + 1, env]
            delta = [r[k] + discount * v[k + 1] - v[k] for k in range(len(r))]
            for k in range(len(r)):
                advantage[start + k, env] = sum((discount * lam) ** (j - k) * delta[j] for j in range(k, len(r)))
            start = t + 1
    return advantage


def test_recorded_vector():
    column = np.array([[1.0], [0.0], [2.0]])
    values = np.array([[0.5], [0.4], [0.3]])
    none = np.zeros((3, 1), bool)
    ends, bootstrap = close_paths(none, none, np.zeros((3, 1)), np.array([0.2]))
    advantage, target = gae(column, values, ends, bootstrap)
    np.testing.assert_allclose(advantage[:, 0], [2.477986, 1.682069, 1.898], atol=1e-6)
    np.testing.assert_allclose(target[:, 0], [2.977986, 2.082069, 2.198], atol=1e-6)
    np.testing.assert_allclose(standardize(advantage)[:, 0], [1.364694, -1.003605, -0.361089], atol=1e-6)


@pytest.mark.parametrize("seed", range(12))
def test_random_paths_against_the_double_sum(seed):
    rng = np.random.default_rng(seed)
    steps, envs = int(rng.integers(1, 40)), int(rng.integers(1, 5))
    shape = (steps, envs)
    rewards, values, final = rng.normal(size=(3, *shape))
    rate = rng.choice([0.0, 0.1, 0.5])
    terminated, truncated = rng.random((2, *shape)) < rate
    following = rng.normal(size=envs)
    final = np.where(truncated, final, np.nan)  # must not be looked at elsewhere
    discount, lam = rng.uniform(0.5, 1.0, 2)
    ends, bootstrap = close_paths(terminated, truncated, final, following)
    advantage, target = gae(rewards, values, ends, bootstrap, discount, lam)
    expected = by_definition(rewards, values, terminated, truncated, final, following, discount, lam)
    np.testing.assert_allclose(advantage, expected, atol=1e-12)
    np.testing.assert_allclose(target, expected + values, atol=1e-12)


def test_what_follows_the_last_step_of_the_epoch():
    terminated = np.array([[False, True, False, True]])
    truncated = np.array([[False, False, True, True]])
    ends, bootstrap = close_paths(terminated, truncated, np.full((1, 4), 7.0), np.full(4, 3.0))
    assert ends.all()
    np.testing.assert_array_equal(bootstrap, [[3.0, 0.0, 7.0, 0.0]])


def test_flags_given_to_close_paths_are_left_alone():
    flags = np.zeros((3, 2), bool)
    close_paths(flags, flags, np.zeros((3, 2)), np.zeros(2))
    assert not flags.any()


def test_reward_and_cost_share_one_call():
    rng = np.random.default_rng(5)
    rewards, values = rng.normal(size=(2, 20, 2, 3))
    ends = np.zeros((20, 2, 3), bool)
    ends[-1] = ends[7, :, 1] = True
    bootstrap = rng.normal(size=(20, 2, 3))
    lam = np.array([[0.95], [0.5]])
    both, _ = gae(rewards, values, ends, bootstrap, 0.9, lam)
    for stream in range(2):
        alone, _ = gae(
            rewards[:, stream], values[:, stream], ends[:, stream], bootstrap[:, stream], 0.9, lam[stream, 0]
        )
        np.testing.assert_array_equal(both[:, stream], alone)


def test_a_path_without_an_end_is_refused():
    with pytest.raises(InputError, match="last row"):
        gae(np.zeros((2, 1)), np.zeros((2, 1)), np.zeros((2, 1), bool), np.zeros((2, 1)))


def test_cost_advantages_keep_their_scale():
    a = np.array([1.0, 2.0, 6.0])
    np.testing.assert_array_equal(center(a), [-2.0, -1.0, 3.0])
    assert standardize(a).std() == pytest.approx(1.0, abs=1e-7)
    np.testing.assert_array_equal(standardize(np.full(4, 3.0)), np.zeros(4))


def test_trimmed_advantages_are_cut_where_one_in_ten_begins_and_standardized_again():
    a = np.concatenate([np.linspace(-1.0, 1.0, 99), [-500.0]])
    centered = a - a.mean()
    low, high = np.sort(np.abs(centered))[89:91]
    end = 3.0 * (0.9 * low + 0.1 * high)  # nine in ten are smaller
    trimmed = standardize(a, 3.0)
    cut = np.clip(centered, -end, end)
    np.testing.assert_allclose(trimmed, (cut - cut.mean()) / cut.std(), rtol=1e-6)
    assert trimmed.std() == pytest.approx(1.0, abs=1e-7)
    assert trimmed[:-1].std() > 5 * standardize(a)[:-1].std()  # one outlier no longer sets the scale
    np.testing.assert_allclose(standardize(a, 1e9), standardize(a), rtol=1e-9)
