"""Makes the tasks known to Gymnasium without importing it: now if it is there, otherwise when it is imported.

Gymnasium has no plugins any more, and importing it here would slow down those who only want a certificate.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from types import ModuleType

_TASKS = "steingate.envs"  # importing it registers them


def register_with_gymnasium() -> None:
    """Register the tasks as soon as Gymnasium is imported, which may be already."""
    if sys.modules.get("gymnasium") is not None:  # None marks a module that must not be imported
        import_module(_TASKS)
    elif not any(isinstance(finder, _Watch) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Watch())


class _Watch(MetaPathFinder):
    """Notices the first import of Gymnasium, lets it pass, and registers the tasks after it."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return Gymnasium's own spec with the registration behind its execution, None for all else.

        Parameters
        ----------
        fullname : str
            The module asked for.
        path, target : object
            Unused.
        """
        if fullname != "gymnasium":
            return None
        sys.meta_path.remove(self)
        spec = find_spec(fullname)
        if spec is not None and spec.loader is not None:
            execute = spec.loader.exec_module

            def execute_and_register(module: ModuleType) -> None:
                execute(module)
                import_module(_TASKS)

            spec.loader.exec_module = execute_and_register  # type: ignore[method-assign]
        return spec
