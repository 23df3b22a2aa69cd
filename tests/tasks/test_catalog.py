import pytest

from steingate.errors import InputError
from steingate.tasks.catalog import TASKS, find_task

SIZES = {  # observation entries of Point and Car
    "Goal0": (28, 40),
    "Goal1": (60, 72),
    "Goal2": (60, 72),
    "Circle0": (28, 40),
    "Circle1": (28, 40),
    "Circle2": (28, 40),
}


def test_twelve_navigation_and_six_velocity_tasks():
    families = [task.family for task in TASKS.values()]
    assert (families.count("goal"), families.count("circle"), families.count("velocity")) == (6, 6, 6)
    assert all(env_id == task.env_id for env_id, task in TASKS.items())


@pytest.mark.parametrize("name", SIZES)
@pytest.mark.parametrize("agent", ["Point", "Car"])
def test_navigation_sizes(name, agent):
    task = find_task(f"Safety{agent}{name}-v0")
    assert task.observation_size == SIZES[name][agent == "Car"]
    assert task.sensors + 16 * len(task.lidar) == task.observation_size
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


def test_prefix_is_optional_and_unknown_tasks_are_refused():
    assert find_task("steingate/SafetyPointGoal1-v0") is find_task("SafetyPointGoal1-v0")
    with pytest.raises(InputError, match="SafetyPointPush1-v0"):
        find_task("SafetyPointPush1-v0")
