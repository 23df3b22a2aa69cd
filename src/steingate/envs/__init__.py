"""Environments: importing this package registers the native tasks with Gymnasium as ``steingate/<id>``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import gymnasium

from steingate.tasks.catalog import TASKS, TaskSpec, find_task

if TYPE_CHECKING:
    from steingate.tasks.environments import SafetyEnv, SafetyVectorEnv

__all__ = ["TASKS", "SafetyEnv", "SafetyVectorEnv", "TaskSpec", "find_task", "register_tasks"]


def register_tasks() -> None:
    """Register every task with Gymnasium, once; ``steingate.registration`` imports this module."""
    for task in TASKS.values():
        name = f"steingate/{task.env_id}"
        if name not in gymnasium.registry:
            gymnasium.register(
                id=name,
                entry_point="steingate.tasks.environments:SafetyEnv",
                vector_entry_point="steingate.envs.make:make_native_vec",
                max_episode_steps=task.max_episode_steps,
                kwargs={"env_id": task.env_id},
            )


def __getattr__(name: str) -> Any:
    """Import the environment classes, and with them numba and MuJoCo, on first use."""
    if name == "SafetyEnv":
        from steingate.tasks.environments import SafetyEnv

        return SafetyEnv
    if name == "SafetyVectorEnv":
        from steingate.tasks.environments import SafetyVectorEnv

        return SafetyVectorEnv
    raise AttributeError(f"module 'steingate.envs' has no attribute {name!r}")


register_tasks()
