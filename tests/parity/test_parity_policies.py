"""The recorded policies repeat the recorded actions."""

from pathlib import Path

import numpy as np
import pytest
from tests.parity.policies import POLICIES, noise_seed
from tests.parity.recordings import read_recording, step_index

from steingate.tasks.catalog import TASKS

DATA = Path(__file__).parents[2] / "data" / "envs"


@pytest.mark.parametrize("name", ["PointGoal1", "PointGoal2", "PointCircle2", "CarGoal1", "CarCircle1"])
def test_policies_repeat_recorded_actions(name):
    recording = read_recording(DATA / f"nav_Safety{name}-v0.npz")
    index = step_index(recording)
    compared = 0
    for episode, policy in enumerate(recording["policy"]):
        if policy not in POLICIES:
            continue
        act = POLICIES[policy](TASKS[recording.env_id], [int(recording["policy_seed"][episode])])
        own = np.flatnonzero(index.episode == episode)
        ours = [act(k, recording["row_obs"][index.before[[step]]])[0] for k, step in enumerate(own)]
        np.testing.assert_allclose(ours, recording["step_action"][own], rtol=0, atol=1e-14)
        compared += 1
    assert compared


def test_lost_agents_turn():
    spec = TASKS["SafetyPointGoal1-v0"]
    blind = np.zeros((1, spec.observation_size))
    noise = np.random.default_rng(5).standard_normal(2)
    act = POLICIES["scripted"](spec, [5])
    expected = [min(0.2 * 0.6 * np.cos(0.3), 0.05) + 0.015 * noise[0], 2 * 0.3 / np.pi + 0.3 * noise[1]]
    np.testing.assert_allclose(act(0, blind)[0], np.clip(expected, -1, 1), atol=1e-12)


def test_noise_seeds_follow_reset_seeds():
    assert noise_seed(20000) == 260000
    assert noise_seed(20007) == 260007
