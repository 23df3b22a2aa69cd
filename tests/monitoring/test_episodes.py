"""From steps to episodes, and running a policy until it is certified."""

import numpy as np
import pytest

from steingate import InputError, Monitor, Monitors, RunError, StepWatcher, certify_policy
from steingate.monitoring.episodes import EpisodeCosts, run_episodes


class Walk:
    """Ten steps; costs the action at each; a gust adds 100 at the end with some chance."""

    def __init__(self, gusts=0.0, six=False, length=10):
        self.gusts, self.six, self.length, self.resets = gusts, six, length, []

    def reset(self, seed=None):
        self.rng, self.left = np.random.default_rng(seed), self.length
        self.resets.append(seed)
        return 0.0, {}

    def step(self, action):
        self.left -= 1
        cost = action + (100.0 if self.left == 0 and self.rng.random() < self.gusts else 0.0)
        ends = (self.left == 0, False)
        return (0.0, 1.0, cost, *ends, {}) if self.six else (0.0, 1.0, *ends, {"cost": cost})


def test_order_is_that_of_starts_whatever_finishes_first():
    """Against a plain record of (start, cost) of every episode, sorted by start."""
    rng = np.random.default_rng(0)
    n, episodes, began, sums, record, out = 5, EpisodeCosts(5), list(range(5)), [0.0] * 5, [], []
    count = n
    for _ in range(400):
        costs, ended = rng.integers(0, 5, n).astype(float), rng.random(n) < 0.15
        out += episodes.add(costs, ended)
        for i in range(n):
            sums[i] += costs[i]
            if ended[i]:
                record.append((began[i], sums[i]))
                began[i], sums[i] = count, 0.0
                count += 1
    expected = [cost for _, cost in sorted(record)]
    assert len(out) > 200
    assert out == expected[: len(out)]
    assert len(expected) - len(out) < 60


def test_discarded_episodes_hold_nothing_back():
    episodes = EpisodeCosts(2)
    assert episodes.add([1, 2], [False, True]) == []
    assert episodes.discard(0) == [2.0]
    with pytest.raises(InputError, match="3 costs"):
        episodes.add([1, 2, 3], [False, True, True])


def test_counting_by_start_removes_the_bias_towards_short_episodes():
    """Short episodes are safe and long ones are violations; the order of finishing favors short ones."""
    rng = np.random.default_rng(1)
    by_start, by_end = [], []
    for _ in range(200):
        episodes, long = EpisodeCosts(8), rng.random(8) < 0.5
        left = np.where(long, 40, 4)
        for _ in range(60):
            left -= 1
            ended = left == 0
            costs = np.where(ended & long, 50.0, 0.0)
            by_end += costs[ended].tolist()
            by_start += episodes.add(costs, ended)
            long = np.where(ended, rng.random(8) < 0.5, long)
            left = np.where(ended, np.where(long, 40, 4), left)
    assert abs(np.mean(np.array(by_start) > 0) - 0.5) < 0.08
    assert np.mean(np.array(by_end) > 0) < 0.4


def test_step_watcher_updates_the_monitor_at_the_end_of_episodes():
    monitor = Monitor(limit=25)
    watch = StepWatcher(monitor, num_envs=2)
    assert watch([1.0, 2.0], [False, False]) is None
    assert watch([1.0, 30.0], [True, True]) == {**monitor.metrics(), "held_back": 0, "overdue": 0}
    assert (monitor.episodes, monitor.violations) == (2, 1)
    named = StepWatcher(Monitors({"a": 1, "b": 2}))
    assert named({"a": 0.5, "b": 5.0}, True)["bound/b"] == 1.0


def test_a_hung_environment_does_not_blind_the_monitor():
    monitor = Monitor(25)
    watch = StepWatcher(monitor, num_envs=2, max_steps=1_000)
    for step in range(1, 3_001):
        numbers = watch([0.0, 30.0], [False, True])  # environment 0 never ends, environment 1 violates
        assert numbers["held_back"] == (step if step < 1_000 else 0)
    assert (monitor.episodes, monitor.violations, numbers["overdue"]) == (3_001, 3_001, 1)
    assert monitor.unsafe
    assert monitor.max_cost == monitor.cap
    watch([99.0, 1.0], [True, True])  # the rest of the overdue episode is not counted again
    watch([2.0, 1.0], [True, True])
    assert (monitor.episodes, monitor.violations) == (3_004, 3_001)
    with pytest.raises(InputError, match="max_steps"):
        StepWatcher(monitor, max_steps=0)


def test_an_episode_may_take_max_steps_and_a_reset_ends_an_overdue_one():
    episodes = EpisodeCosts(1, max_steps=3)
    assert [episodes.add(1.0, step == 3) for step in (1, 2, 3)] == [[], [], [3.0]]
    assert [episodes.add(1.0, False) for _ in range(5)] == [[], [], [float("inf")], [], []]
    assert episodes.discard(0) == []
    assert [episodes.add(1.0, step == 2) for step in (1, 2)] == [[], [2.0]]
    named = StepWatcher(Monitors({"a": 1, "b": 0}), max_steps=2)
    named({"a": 0.0, "b": 0.0}, False)
    assert named({"a": 0.0, "b": 0.0}, False)["overdue"] == 1
    assert [each.violations for each in named.monitor.values()] == [1, 1]


@pytest.mark.parametrize("six", [False, True])
def test_certify_policy(six):
    env = Walk(six=six)
    result = certify_policy(lambda obs: 1.0, env, 25)
    assert result.certified
    assert (result.episodes, result.max_cost) == (36, 10.0)
    assert len(set(env.resets)) == 36
    assert certify_policy(lambda obs: 1.0, Walk(gusts=0.5), 25).unsafe
    again = [certify_policy(lambda obs: 1.0, Walk(gusts=0.05), 25, seed=4) for _ in range(2)]
    assert again[0].state_dict() == again[1].state_dict()


def test_a_stateful_policy_is_reset_and_observes_every_cost():
    class Careful:
        def __init__(self):
            self.calls = []

        def reset(self):
            self.calls.append("reset")

        def observe(self, cost):
            self.calls.append(cost)

        def __call__(self, obs):
            return 2.0

    policy = Careful()
    certify_policy(policy, Walk(length=3), 25, max_episodes=2)
    assert policy.calls == ["reset", 2.0, 2.0, 2.0] * 2


def test_wrong_policies_and_environments_are_named():
    with pytest.raises(InputError, match="function from an observation"):
        certify_policy(3, Walk(), 25)
    with pytest.raises(InputError, match="not an environment"):
        certify_policy(lambda obs: 0, Walk, 25)
    with pytest.raises(RunError, match="has not ended"):
        next(run_episodes(lambda obs: 0, Walk(length=50), max_steps=10))
    with pytest.raises(InputError, match="info"):
        certify_policy(lambda obs: np.zeros(2), Walk(), 25)
    env = Walk()
    env.step = lambda action: (1, 2)
    with pytest.raises(InputError, match="five values"):
        certify_policy(lambda obs: 0, env, 25)
