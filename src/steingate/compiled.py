"""``@compiled``: numba functions with a persistent cache and results that do not depend on the cache.

Plain ``numba.njit(cache=True)`` has two problems for the simulation kernels, measured with numba 0.68:

* Numba compiles a function again when its own file changes, but not when a function or constant that it uses
  from another file changes. Here the cache folder is named after one hash of all kernel sources.
* The process that compiles and the processes that load the cache compute different bits: the observations of
  SafetyCarGoal1 differ after 2,000 steps from one seed. Compiled functions contain their own optimized copies of the
  functions they call; numba exports the copies as shared symbols, and the linker takes the first one in the process.
  Copies may be rounded differently, because the Car's kernels allow fused multiply-adds (``fastmath={"contract"}``).
  Here the copies are private symbols. (Forced inlining would agree too, but changes the results and compiles 1.5 times
  as long.)
"""

from __future__ import annotations

import functools
import hashlib
import os
import shutil
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numba
from llvmlite import binding
from numba.core import codegen, compiler

MAX_VERSIONS = 3  # cache folders that are kept, most recently used first
COMPILE_MESSAGE = "compiling the simulation (once, about 30 s)"

_PACKAGE = Path(__file__).parent
_SOURCES = ("compiled.py", "tasks/*.py", "training/*_kernels.py", "policies/normalizer.py")
_CONFIG: Any = numba.config


def compiled(function: Callable[..., Any] | None = None, /, **options: Any) -> Any:
    """Return a function that numba compiles on its first call, without the GIL and with a cache on disk.

    Usage: ``@compiled`` or ``@compiled(error_model="numpy")`` with options of ``numba.njit``.
    """
    if function is None:
        return functools.partial(compiled, **options)
    options = {"nogil": True, "pipeline_class": _Compiler, **options}
    folder, previous = cache_folder(), _CONFIG.CACHE_DIR
    if folder is None:
        return numba.njit(**options)(function)
    try:
        _CONFIG.CACHE_DIR = str(folder)  # numba reads it while it decorates
        return numba.njit(cache=True, **options)(function)
    finally:
        _CONFIG.CACHE_DIR = previous


@functools.cache
def cache_folder() -> Path | None:
    """Return the folder of the compiled kernels of the current sources; None if no folder is writable.

    It is in the first writable of ``NUMBA_CACHE_DIR`` (if set), the package's ``__pycache__`` and the user's cache
    folder. Folders of older sources are deleted.
    """
    digest = hashlib.sha256()
    for file in sorted(file for pattern in _SOURCES for file in _PACKAGE.glob(pattern)):
        digest.update(f"{file.name}\0".encode() + file.read_bytes())
    user = Path(os.environ.get("XDG_CACHE_HOME") or Path("~/.cache").expanduser())
    chosen = [Path(_CONFIG.CACHE_DIR)] if _CONFIG.CACHE_DIR else []
    for parent in (*chosen, _PACKAGE / "__pycache__", user):
        folder = parent / "steingate-numba" / digest.hexdigest()[:24]
        try:
            folder.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryFile(dir=folder):
                os.utime(folder)
            versions = sorted(folder.parent.iterdir(), key=lambda f: f.stat().st_mtime, reverse=True)
        except OSError:
            continue
        for old in versions[MAX_VERSIONS:]:
            shutil.rmtree(old, ignore_errors=True)
        return folder
    return None


class _PrivateCopies(codegen.JITCodeLibrary):  # type: ignore[misc]
    """Machine code of one function, with private copies of the functions it calls."""

    def _finalize_final_module(self) -> None:
        """Generate machine code with internal linkage; restore the linkage for later callers."""
        shared = binding.Linkage.linkonce_odr
        copies = [f for f in self._final_module.functions if not f.is_declaration and f.linkage == shared]
        for function in copies:
            function.linkage = binding.Linkage.internal
        super()._finalize_final_module()
        for function in copies:
            function.linkage = shared


class _Compiler(compiler.Compiler):  # type: ignore[misc]
    """Numba's compiler with ``_PrivateCopies``; prints ``COMPILE_MESSAGE`` once if stderr is a terminal."""

    message_printed = False

    def compile_extra(self, func: Callable[..., Any]) -> Any:
        """Compile a function."""
        if not _Compiler.message_printed and sys.stderr.isatty():
            _Compiler.message_printed = True
            print(COMPILE_MESSAGE, file=sys.stderr, flush=True)
        self.state.library = _PrivateCopies(self.state.targetctx.codegen(), func.__qualname__)
        self.state.library.enable_object_caching()
        return super().compile_extra(func)
