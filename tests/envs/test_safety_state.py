from dataclasses import dataclass

import gymnasium
import numpy as np
import pytest
from gymnasium.spaces import Box

from steingate.algorithms import make_algorithm
from steingate.algorithms.allowance import Allowance
from steingate.algorithms.base import EnvParams, RunContext
from steingate.algorithms.ppo import PPO
from steingate.envs.vector_env import AdapterVectorEnv
from steingate.envs.wrappers import SafetyStateWrapper
from steingate.policies.safety_state import SafetyState


class Script(gymnasium.Env):
    """Reward 2 and the costs of ``costs`` in turn; truncated or terminated after ``length`` steps."""

    def __init__(self, costs=(1.0, 0.0, 3.0), length=4, terminates=False):
        self.observation_space, self.action_space = Box(-9.0, 9.0, (2,)), Box(-1.0, 1.0, (1,))
        self.costs, self.length, self.terminates, self.t = costs, length, terminates, 0

    def reset(self, *, seed=None, options=None):
        self.t = 0
        return np.array([0.0, 7.0]), {}

    def step(self, action):
        cost = self.costs[self.t % len(self.costs)]
        self.t += 1
        end = self.t >= self.length
        return np.array([self.t, 7.0]), 2.0, end and self.terminates, end and not self.terminates, {"cost": cost}

    def snapshot(self):
        return {"t": np.array(self.t)}

    def restore(self, parts):
        self.t = int(parts["t"])


@dataclass(frozen=True)
class Shows(PPO):
    """An algorithm with a given safety state and no other reward."""

    state: SafetyState | None = None

    def safety_state(self, context, params):
        return self.state


FULL = EnvParams()


def make(algorithm, params=FULL, limit=4.0, **options):
    """Return two wrapped environments with an algorithm, or with a safety state alone."""
    if isinstance(algorithm, SafetyState):
        algorithm = Shows(state=algorithm)
    envs = AdapterVectorEnv(lambda: Script(**options), 2, name="script")
    return SafetyStateWrapper(
        envs, algorithm, RunContext(cost_limit=limit, episode_length=options.get("length", 4)), params
    )


def saute(name="ppo-saute", **options):
    return make_algorithm(name, options={"budget_discount": 1.0, **options})


def play(envs, steps):
    """Return the safety states (steps + 1, E), the rewards and the final observations."""
    first, _ = envs.reset(seed=0)
    states, rewards, finals = [first[:, -1].copy()], [], []
    for _ in range(steps):
        obs, reward, terminated, truncated, info = envs.step(np.zeros((envs.num_envs, 1)))
        states.append(obs[:, -1].copy())
        rewards.append(reward.copy())
        if (terminated | truncated).any():
            finals.append(info["final_obs"].copy())
        np.testing.assert_array_equal(info["original_reward"], 2.0)
    return np.array(states), np.array(rewards), finals


def test_remaining_budget_follows_the_recursion():
    states, rewards, finals = play(make(saute(budget_discount=0.9, unsafe_reward=-0.5)), 6)
    budget = 4.0 * np.mean(0.9 ** np.arange(4))
    z = [1.0]
    for cost in (1.0, 0.0, 3.0, 1.0):
        z.append((z[-1] - cost / budget) / 0.9)
    np.testing.assert_allclose(states[:4, 0], z[:4])
    assert states[4, 0] == 1.0  # a new episode
    np.testing.assert_allclose(finals[0][:, -1], z[4])
    np.testing.assert_array_equal(finals[0][:, :-1], [[4.0, 7.0]] * 2)
    np.testing.assert_allclose(rewards[:, 0], np.where(np.array([*z[1:], *z[1:3]]) > 0, 2.0, -0.5))
    assert rewards[3, 0] == -0.5
    np.testing.assert_allclose(states[5, 0], z[1])


def test_a_constant_cost_at_the_limit_spends_the_budget_exactly():
    algorithm = saute(budget_discount=0.97)
    states, rewards, finals = play(make(algorithm, limit=5.0, costs=(0.1,), length=50), 50)
    assert finals[0][0, -1] == pytest.approx(0.0, abs=1e-9)
    assert (rewards[:-1] == 2.0).all()
    assert (np.diff(states[:-1, 0]) < 0).all()


@pytest.mark.parametrize(
    ("variant", "states", "final"),
    [
        # The controlled fraction starts every episode; costs are divided by the full budget.
        ("corrected", [0.5, 0.25, 0.25, -0.5, 0.5, 0.25], -0.75),
        # It starts the first episode only, and divides costs; the final observation shows the next start.
        ("published", [0.5, 0.0, 0.0, -1.5, 1.0, 0.5], 1.0),
    ],
)
def test_controlled_budget_of_simmer(variant, states, final):
    envs = make(saute("ppo-simmer", variant=variant), EnvParams(0.5))
    found, _, finals = play(envs, 5)
    np.testing.assert_allclose(found[:, 0], states)
    np.testing.assert_allclose(finals[0][:, -1], final)


@pytest.mark.parametrize("terminates", [True, False])
def test_accumulated_cost(terminates):
    states, rewards, finals = play(make(SafetyState(0.0, -10.0), terminates=terminates), 6)
    np.testing.assert_allclose(states[:, 0], [0.0, 0.1, 0.1, 0.4, 0.0, 0.1, 0.1])
    np.testing.assert_allclose(finals[0][:, -1], 0.5)
    assert (rewards == 2.0).all()


@pytest.mark.parametrize(
    "state", [SafetyState(0.3, 3.0, 0.9), SafetyState(0.0, -10.0), SafetyState(0.0, 10.0, 1.0, -0.2)]
)
def test_every_state_follows_its_recursion(state):
    states, _, _ = play(make(state), 3)
    z = state.start
    for cost, found in zip((1.0, 0.0, 3.0), states[1:, 0], strict=True):
        z = max((z - cost / state.scale) / state.discount, state.floor)
        assert found == pytest.approx(z)


def test_allowance_observes_the_cost_and_learns_from_the_penalized_reward():
    envs = make(Allowance(), EnvParams(0.35, 30.0), limit=10.0)
    states, rewards, finals = play(envs, 5)
    np.testing.assert_allclose(states[:, 0], [0.0, -0.1, -0.1, -0.4, 0.0, -0.1], atol=1e-12)
    np.testing.assert_allclose(finals[0][:, -1], -0.5)
    penalty = 30.0 * 0.05 / 10.0 / 0.35**2  # of a cost of 1: larger than the 0.1 of `penalty`
    expected = [2.0 - 0.25 * penalty, 2.0, 2.0 - 3.0 * penalty, 2.0 - penalty, 2.0 - 0.25 * penalty]
    np.testing.assert_allclose(rewards[:, 0], expected)


def test_snapshots_restore_state_and_params():
    envs = make(saute("ppo-simmer"), EnvParams(0.7))
    play(envs, 2)
    snapshot = envs.snapshot()
    expected = [envs.step(np.zeros((2, 1)))[0].copy() for _ in range(3)]
    other = make(saute("ppo-simmer"))
    other.reset(seed=1)
    assert other.restore(snapshot).shape == (2, 3)
    assert other.params == EnvParams(0.7)
    for obs in expected:
        np.testing.assert_array_equal(other.step(np.zeros((2, 1)))[0], obs)
