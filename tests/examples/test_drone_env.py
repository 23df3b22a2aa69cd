"""The drone in wind: scripted pilots show that the shortest way violates the limit and a detour need not."""

import sys
from pathlib import Path

import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

sys.path.append(str(Path(__file__).parents[2] / "examples"))
from drone_env import ZONE, Drone


def fly(pilot, episodes=20):
    """Return returns and costs of episodes."""
    played = np.zeros((episodes, 2))
    for seed in range(episodes):
        env, done = Drone(), False
        obs, _ = env.reset(seed=seed)
        while not done:
            obs, reward, _, done, info = env.step(pilot(obs))
            played[seed] += reward, info["cost"]
    return played.T


def straight(obs):
    velocity, goal, wind = obs[2:4], obs[4:6], obs[6:8]
    distance = np.linalg.norm(goal) + 1e-9
    wanted = goal / distance * min(np.sqrt(6.0 * distance), 6.0)
    return (3.0 * (wanted - velocity) + 0.5 * (velocity - wind)) / 4.0


def detour(obs):
    place, velocity, goal, wind = obs[:2], obs[2:4], obs[4:6], obs[6:8]
    along = np.clip(-place @ goal / (goal @ goal + 1e-9), 0.0, 1.0)
    wanted = goal
    if np.linalg.norm(place + along * goal) < ZONE + 1.0:  # the way crosses the zone: circle around it
        radius = np.linalg.norm(place)
        out = place / radius
        side = np.sign(place[0] * goal[1] - place[1] * goal[0]) or 1.0
        wanted = 2.0 * side * np.array([-out[1], out[0]]) + 1.5 * (ZONE + 1.2 - radius) * out
    length = np.linalg.norm(wanted)
    wanted = wanted / max(length, 1.0) * min(length, 3.0)
    return (2.0 * (wanted - velocity) - 0.5 * (wind - velocity)) / 4.0


@pytest.mark.filterwarnings("ignore")
def test_it_is_a_gymnasium_environment():
    check_env(Drone(), skip_render_check=True)


def test_the_shortest_way_and_the_wind_violate_the_limit_and_a_detour_does_not():
    returns, costs = fly(straight)
    assert np.mean(costs > 5.0) > 0.8
    safe_returns, safe_costs = fly(detour)
    assert safe_costs.max() == 0.0
    assert 30.0 < safe_returns.mean() < 0.8 * returns.mean()
    _, costs = fly(lambda obs: np.zeros(2))
    assert 0.2 < np.mean(costs > 5.0) < 0.8
