import pytest

from steingate.errors import InputError
from steingate.tasks.catalog import TASKS, find_task


@pytest.mark.parametrize("agent", ["Point", "Car"])
@pytest.mark.parametrize("name", ["Goal0", "Goal1", "Goal2", "Circle0", "Circle1", "Circle2"])
def test_navigation_tasks(name, agent):
    task = find_task(f"Safety{agent}{name}-v0")
    lidar = 48 if name in ("Goal1", "Goal2") else 16
    assert task.observation_size == task.sensors + lidar == (12 if agent == "Point" else 24) + lidar
    assert 16 * len(task.lidar) == lidar
    assert task.max_episode_steps == (1000 if "Goal" in name else 500)
    assert task.period == pytest.approx(0.02 if agent == "Point" else 0.04)
    assert (task.lidar_range, task.action_size) == ((3.0 if "Goal" in name else 6.0), 2)


def test_objects():
    goal1, goal2 = find_task("SafetyPointGoal1-v0"), find_task("SafetyCarGoal2-v0")
    objects = [(o.kind, o.count, o.keepout) for o in goal1.objects]
    assert objects == [("goal", 1, 0.305), ("hazards", 8, 0.18), ("vases", 1, 0.15)]
    assert (goal2.count("hazards"), goal2.count("vases"), goal2.extent) == (10, 10, 2.0)
    walls = find_task("SafetyCarCircle2-v0").objects[1]
    assert sorted(walls.fixed) == [(-1.125, 0.0), (0.0, -1.125), (0.0, 1.125), (1.125, 0.0)]
    assert find_task("SafetyPointCircle1-v0").count("sigwalls") == 2


@pytest.mark.parametrize(
    ("robot", "limit", "period", "obs", "act", "bound"),
    [
        ("HalfCheetah", 3.2096, 0.05, 17, 6, 1.0),
        ("Ant", 2.6222, 0.05, 27, 8, 1.0),
        ("Humanoid", 1.4149, 0.015, 376, 17, 0.4),
        ("Swimmer", 0.2282, 0.04, 8, 2, 1.0),
        ("Hopper", 0.7402, 0.008, 11, 3, 1.0),
        ("Walker2d", 2.3415, 0.008, 17, 6, 1.0),
    ],
)
def test_velocity_tasks(robot, limit, period, obs, act, bound):
    task = find_task(f"Safety{robot}Velocity-v1")
    sizes = (task.speed_limit, task.observation_size, task.action_size, task.action_bound)
    assert sizes == (limit, obs, act, bound)
    assert task.period == pytest.approx(period)
    assert task.lidar == ()


def test_ids():
    assert len(TASKS) == 18
    assert find_task("steingate/SafetyPointGoal1-v0") is find_task("SafetyPointGoal1-v0")
    with pytest.raises(InputError, match="SafetyPointPush1-v0"):
        find_task("SafetyPointPush1-v0")
