"""Registers the native tasks with Gymnasium as soon as both packages are imported, in either order.

Gymnasium 1.x loads no entry points of other packages, so ``gymnasium.make("steingate/...")`` works only if the tasks
were registered in the process. ``import steingate`` takes 0.015 s; importing Gymnasium takes 0.07 s to 0.15 s more
(``python -X importtime``), and certificates and most commands do not need it. Therefore an import hook registers the
tasks after the import of Gymnasium, unless it is imported already.
"""

import sys
from importlib.abc import MetaPathFinder
from importlib.util import find_spec
from typing import Any


def register_tasks() -> None:
    """Register every native task as ``steingate/<id>``."""
    import gymnasium

    from steingate.tasks.catalog import TASKS

    for task in TASKS.values():
        gymnasium.register(
            id=f"steingate/{task.env_id}",
            entry_point="steingate.tasks.environments:SafetyEnv",
            vector_entry_point="steingate.envs.make:make_native_vec",
            max_episode_steps=task.max_episode_steps,
            kwargs={"env_id": task.env_id},
        )


def register_with_gymnasium() -> None:
    """Register the tasks now if Gymnasium is imported, else after its import."""
    if sys.modules.get("gymnasium"):
        register_tasks()
    else:
        sys.meta_path.insert(0, _GymnasiumHook())


class _GymnasiumHook(MetaPathFinder):
    """Import hook that calls ``register_tasks`` after the first import of Gymnasium, then removes itself."""

    def find_spec(self, fullname: str, path: Any, target: Any = None) -> Any:
        """Return Gymnasium's own spec with a loader that also registers the tasks; None for other modules."""
        if fullname != "gymnasium":
            return None
        sys.meta_path.remove(self)
        spec = find_spec(fullname)
        if spec is not None and spec.loader is not None:
            load = spec.loader.exec_module
            spec.loader.exec_module = lambda module: (load(module), register_tasks())  # type: ignore
        return spec
