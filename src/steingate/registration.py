"""Registers the tasks with Gymnasium as soon as both packages are imported, in either order.

Gymnasium (1.x) loads no entry-point plugins, so ``gymnasium.make("steingate/...")`` works only if something
registers the tasks. Importing Gymnasium takes 0.1 to 0.2 s, ``import steingate`` 0.02 s; users of the
certificates and of the command line need no Gymnasium. If it is not imported yet, an import hook
waits for it.
"""

import sys
from importlib import import_module
from importlib.abc import MetaPathFinder
from importlib.util import find_spec
from typing import Any


def register_with_gymnasium() -> None:
    """Register the tasks now if Gymnasium is imported, else when it is."""
    if sys.modules.get("gymnasium"):
        import_module("steingate.envs")
    else:
        sys.meta_path.insert(0, _GymnasiumHook())


class _GymnasiumHook(MetaPathFinder):
    """Import hook that registers the tasks after the first import of Gymnasium, then removes itself."""

    def find_spec(self, fullname: str, path: Any, target: Any = None) -> Any:
        """Return None for all modules but Gymnasium: its own spec, whose loader also registers the tasks."""
        if fullname != "gymnasium":
            return None
        sys.meta_path.remove(self)
        spec = find_spec(fullname)
        if spec is not None and spec.loader is not None:
            load = spec.loader.exec_module
            spec.loader.exec_module = lambda module: (load(module), import_module("steingate.envs"))  # type: ignore
        return spec
