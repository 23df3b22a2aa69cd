import pytest

from steingate.errors import InputError
from steingate.tasks.catalog import TASKS, find_task


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
