from pathlib import Path

import numpy as np
import pytest

from steingate.tasks.catalog import find_task
from steingate.tasks.navigation import Navigation
from steingate.tasks.vector import SafetyVectorEnv

RECORDINGS = Path(__file__).parents[1] / "data" / "envs"
COUNT = 12


def steer(nav, rng):
    """Return actions that drive every agent at its nearest vase."""
    n = len(nav.q)
    away = nav.vase_q[:, :, :2] - nav.q[:, None, :2]
    nearest = away[np.arange(n), np.argmin((away**2).sum(2), axis=1)]
    if nav.spec.agent == "point":
        heading = nav.q[:, 2]
    else:  # the Car's front is -y
        heading = 2 * np.arctan2(nav.q[:, 6], nav.q[:, 3]) - np.pi / 2
    error = np.arctan2(nearest[:, 1], nearest[:, 0]) - heading
    error = (error + np.pi) % (2 * np.pi) - np.pi
    noise = rng.normal(size=(n, 2))
    if nav.spec.agent == "point":
        thrust = np.where(np.cos(error) > 0.5, 0.05, -0.01)
        return np.stack([thrust, error], axis=1) + noise * [0.02, 0.3]
    ahead, turn = 0.012 * np.cos(error), np.clip(0.012 * error, -0.015, 0.015)
    return np.stack([ahead + turn, ahead - turn], axis=1) + 0.006 * noise


@pytest.mark.parametrize("name", ["SafetyPointGoal1-v0", "SafetyPointGoal2-v0", "SafetyCarGoal2-v0"])
def test_hand_over_agrees_with_the_engine_everywhere(name):
    """Agents that ram vases: the planned step is the step of the full engine, vase by vase, cost by cost."""
    spec = find_task(name)
    auto, full = Navigation(spec, COUNT), Navigation(spec, COUNT, physics="mujoco")
    ids, rng = np.arange(COUNT, dtype=np.int32), np.random.default_rng(1)
    for nav in (auto, full):
        nav.reset(ids, list(range(COUNT)))
    agents, vases, used, pushed = [], [], [], 0
    for _ in range(140):
        actions = steer(full, rng)
        auto.step(actions)
        full.step(actions)
        agents.append(np.abs(auto.q - full.q).max(axis=1))
        vases.append(np.abs(auto.vase_q - full.vase_q)[..., :2].max(axis=(1, 2)))
        assert np.array_equal(auto.out.parts, full.out.parts)
        np.testing.assert_allclose(auto.out.reward, full.out.reward, atol=1e-6)
        used.append(auto._active.any(axis=1))
        pushed += int((np.linalg.norm(full.vase_v[..., :3], axis=2) > 0.01).sum())
        # the Point's servo multiplies rounding errors, so both go on from the same state
        for field in ("q", "v", "warm", "last", "xy", "streams"):
            getattr(auto, field)[...] = getattr(full, field)
        for field in ("vase_q", "vase_v", "vase_warm"):
            getattr(auto, field)[auto._active] = getattr(full, field)[auto._active]
    agents, vases = np.concatenate(agents), np.concatenate(vases)
    assert pushed > 100
    assert 0.02 < np.mean(used) < 0.95
    assert np.quantile(agents, 0.99) < 1e-12
    assert agents.max() < 1e-6
    assert np.quantile(vases, 0.99) < 1e-8
    assert vases.max() < 1e-5


def test_a_point_turning_into_a_vase_keeps_agreeing_for_many_steps():
    """At full turn the servo saturates, so that trajectories can be compared without meeting in between."""
    spec = find_task("SafetyPointGoal1-v0")
    runs = []
    for physics in ("auto", "mujoco"):
        nav = Navigation(spec, 1, physics=physics)
        nav.reset(np.zeros(1, np.int32), [0])
        nav.q[0] = 0.0, 0.0, 0.0
        nav.xy[0, 1] = 3.0
        nav.vase_q[0, 0, :2] = 0.12, 0.45
        path = []
        for _ in range(120):
            nav.step(np.array([[1.0, 1.0]]))
            path.append(np.concatenate([nav.q[0], nav.vase_q[0, 0, :2]]))
        runs.append(np.array(path))
    auto, full = runs
    assert np.linalg.norm(full[-1, 3:] - [0.12, 0.45]) > 0.05
    np.testing.assert_allclose(auto[:40], full[:40], atol=1e-7)
    np.testing.assert_allclose(auto, full, atol=1e-3)


@pytest.mark.parametrize("name", ["SafetyCarGoal1-v0", "SafetyCarCircle1-v0"])
def test_a_recorded_episode_of_the_car_repeats_itself(name):
    """Seed and actions in, the original's observations, rewards, costs and goals out, step after step."""
    with np.load(RECORDINGS / f"nav_{name}.npz") as file:
        length, seed = int(file["ep_len"][0]), int(file["seed"][0])
        obs, actions = file["row_obs"][: length + 1], file["step_action"][:length]
        reward, cost, met = (file[f"step_{key}"][:length] for key in ("reward", "cost", "goal_met"))
    env = SafetyVectorEnv(name, 1, layout_stream="reference")
    first, _ = env.reset(seed=seed)
    np.testing.assert_allclose(first[0], obs[0], atol=1e-9)
    for k in range(length):
        seen, gained, _, _, info = env.step(actions[k][None])
        np.testing.assert_allclose(seen[0], obs[k + 1], atol=1e-8)
        assert gained[0] == pytest.approx(reward[k], abs=1e-9)
        assert (info["cost"][0], info["goal_met"][0]) == (cost[k], met[k])
    assert cost.sum() > 0
    assert met.sum() > 0 or "Circle" in name


def test_a_goal_that_finds_no_place_terminates():
    nav = Navigation(find_task("SafetyPointGoal1-v0"), 1)
    nav.reset(np.zeros(1, np.int32), [0])
    nav.law.keepout[nav.law.rows("hazards")] = 9.0
    nav.xy[0, nav.law.goal] = nav.q[0, :2]
    nav.evaluate(np.zeros((1, 2)))
    assert nav.out.goal_met[0]
    assert nav.out.terminated[0]


def test_scene_shows_what_is_there():
    nav = Navigation(find_task("SafetyCarGoal2-v0"), 2)
    nav.reset(np.arange(2, dtype=np.int32), [0, 1])
    scene = nav.scene(1)
    assert {key: value.shape for key, value in scene.items()} == {
        "qpos": (13,),
        "goal": (1, 2),
        "hazards": (10, 2),
        "vases": (10, 7),
        "obs": (72,),
        "cost": (),
    }
    assert np.array_equal(scene["qpos"], nav.q[1])
    scene["qpos"][:] = 0.0
    assert nav.q[1].any()


def test_the_first_observation_of_a_point_at_rest():
    nav = Navigation(find_task("SafetyPointCircle1-v0"), 3)
    nav.reset(np.arange(3, dtype=np.int32), [0, 1, 2])
    yaw = nav.q[:, 2]
    expected = np.zeros((3, 12))
    expected[:, 2] = 9.81
    expected[:, 9], expected[:, 10] = -0.5 * np.sin(yaw), -0.5 * np.cos(yaw)
    np.testing.assert_allclose(nav.out.obs[:, :12], expected, atol=1e-12)
