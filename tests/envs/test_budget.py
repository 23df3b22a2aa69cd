import gymnasium
import numpy as np
import pytest
from gymnasium.spaces import Box
from steingate.gates.account import Account, Remaining, Running, Spent, priced_beyond, unsafe_reward
from steingate.gates.schedule import discounted_share

from steingate.envs.safety_state import Augmented
from steingate.envs.vector_env import AdapterVectorEnv
from steingate.errors import InputError


class Script(gymnasium.Env):
    """Reward 2 and the costs of ``costs``, again and again; cut after ``length`` steps, or really over."""

    def __init__(self, costs=(1.0, 0.0, 3.0), length=4, over=False):
        self.observation_space, self.action_space = Box(-9.0, 9.0, (2,)), Box(-1.0, 1.0, (1,))
        self.costs, self.length, self.over, self.t = costs, length, over, 0

    def reset(self, *, seed=None, options=None):
        self.t = 0
        return np.array([0.0, 7.0]), {}

    def step(self, action):
        cost = self.costs[self.t % len(self.costs)]
        self.t += 1
        end = self.t >= self.length
        return np.array([self.t, 7.0]), 2.0, end and self.over, end and not self.over, {"cost": cost}

    def snapshot(self):
        return {"t": np.array(self.t)}

    def restore(self, parts):
        self.t = int(parts["t"])


def wrapped(seen, rule=None, num_envs=2, **options):
    envs = AdapterVectorEnv(lambda: Script(**options), num_envs, name="script", copy=False)
    return Augmented(envs, Account(seen, rule))


def play(envs, steps):
    first, _ = envs.reset(seed=0)
    numbers, rewards, finals = [first[:, -1].copy()], [], []
    for _ in range(steps):
        obs, reward, terminated, truncated, info = envs.step(np.zeros((envs.num_envs, 1)))
        numbers.append(obs[:, -1].copy())
        rewards.append(reward.copy())
        if (terminated | truncated).any():
            finals.append(info["final_obs"].copy())
        np.testing.assert_array_equal(info["original_reward"], 2.0)
    return np.array(numbers), np.array(rewards), finals


def test_the_remaining_budget_follows_the_recursion():
    budget = 3.0
    numbers, rewards, finals = play(wrapped(Remaining(budget, discount=0.9), unsafe_reward(-0.5)), 6)
    z = [1.0]
    for cost in (1.0, 0.0, 3.0, 1.0):
        z.append((z[-1] - cost / budget) / 0.9)
    np.testing.assert_allclose(numbers[:4, 0], z[:4])
    assert numbers[4, 0] == 1.0  # a new episode
    np.testing.assert_allclose(finals[0][:, -1], z[4])
    np.testing.assert_array_equal(finals[0][:, :-1], [[4.0, 7.0]] * 2)
    np.testing.assert_allclose(rewards[:, 0], np.where(np.array([*z[1:], *z[1:3]]) > 0, 2.0, -0.5))
    assert rewards[2, 0] == -0.5
    np.testing.assert_allclose(numbers[5, 0], z[1])


def test_an_even_cost_at_the_limit_spends_the_budget_exactly():
    """The discounted budget is what a cost spread evenly over the episode uses up on its last step."""
    length, discount, limit = 50, 0.97, 5.0
    account = Remaining(limit * discounted_share(discount, length), discount)
    envs = wrapped(account, unsafe_reward(-1.0), costs=(limit / length,), length=length)
    numbers, rewards, finals = play(envs, length)
    assert finals[0][0, -1] == pytest.approx(0.0, abs=1e-9)
    assert (rewards[:-1] == 2.0).all()
    assert (np.diff(numbers[:-1, 0]) < 0).all()


def test_published_final_observations_show_the_next_budget():
    account = Remaining(3.0, true_at_end=False)
    _, _, finals = play(wrapped(account), 4)
    np.testing.assert_array_equal(finals[0][:, -1], 1.0)


def test_a_controlled_share_starts_each_episode_and_leaves_the_scale():
    envs = wrapped(Remaining(4.0, discount=1.0))
    envs.set_budget(0.5)
    numbers, _, _ = play(envs, 5)
    np.testing.assert_allclose(numbers[:, 0], [0.5, 0.25, 0.25, -0.5, 0.5, 0.25])


def test_the_published_share_divides_the_scale_and_starts_the_first_episode_only():
    envs = wrapped(Remaining(4.0, discount=1.0, scale_by_share=True, restart_full=True))
    envs.set_budget(0.5)
    numbers, _, _ = play(envs, 5)
    np.testing.assert_allclose(numbers[:, 0], [0.5, 0.0, 0.0, -1.5, 1.0, 0.5])


@pytest.mark.parametrize("share", [0.0, 1.1, -1.0, np.nan])
def test_impossible_shares_are_refused(share):
    with pytest.raises(InputError, match="share"):
        wrapped(Remaining(4.0)).set_budget(share)


@pytest.mark.parametrize("over", [True, False])
def test_the_running_cost_is_shown_and_leaves_the_reward(over):
    numbers, rewards, finals = play(wrapped(Running(10.0), over=over), 6)
    np.testing.assert_allclose(numbers[:, 0], [0.0, 0.1, 0.1, 0.4, 0.0, 0.1, 0.1])
    np.testing.assert_allclose(finals[0][:, -1], 0.5)
    assert (rewards == 2.0).all()


def test_an_allowance_ends_the_reward_and_prices_what_exceeds_it():
    envs = wrapped(Spent(10.0), priced_beyond(0.1, least=0.1))
    envs.set_budget(0.35, 3.0)
    numbers, rewards, finals = play(envs, 5)
    np.testing.assert_allclose(numbers[:, 0], [0.0, -0.1, -0.1, -0.4, 0.0, -0.1], atol=1e-12)
    np.testing.assert_allclose(finals[0][:, -1], -0.5)
    dear = -0.3 / 0.35**2
    np.testing.assert_allclose(rewards[:, 0], [2.0, 2.0, 3.0 * dear, dear, 2.0])


@pytest.mark.parametrize(
    "account",
    [
        Remaining(3.0, 0.9),
        Remaining(3.0, 0.9, scale_by_share=True),
        Running(10.0),
        Spent(10.0),
        Spent(10.0, lowest=-0.2),
    ],
)
def test_the_plain_numbers_repeat_the_wrapper(account):
    envs = wrapped(account)
    envs.set_budget(0.3)
    numbers, _, _ = play(envs, 3)
    extra = envs.extra()
    number = extra.start
    for cost, shown in zip((1.0, 0.0, 3.0), numbers[1:, 0], strict=True):
        number = extra.following(number, cost)
        assert number == pytest.approx(shown)


def test_snapshots_bring_the_number_back():
    envs = wrapped(Remaining(3.0, 0.9))
    envs.set_budget(0.7)
    play(envs, 2)
    saved = envs.snapshot()
    after = [envs.step(np.zeros((2, 1)))[0].copy() for _ in range(3)]
    other = wrapped(Remaining(3.0, 0.9))
    other.reset(seed=1)
    assert other.restore(saved).shape == (2, 3)
    for expected in after:
        np.testing.assert_array_equal(other.step(np.zeros((2, 1)))[0], expected)


def test_spaces_and_the_rest_are_those_of_the_environment_inside():
    envs = wrapped(Running(10.0))
    assert envs.single_observation_space.shape == (3,)
    assert envs.observation_space.shape == (2, 3)
    assert envs.single_action_space.shape == (1,)
    assert envs.name == "script"
    with pytest.raises(AttributeError):
        _ = envs.nothing_of_the_kind
    envs.close()
