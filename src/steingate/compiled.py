"""Compiled functions, and an honest place for what the compiler made of them.

Numba keeps machine code on disk and compiles again when the file of a function has changed, but it does not
look at what that function calls or reads in *other* files. Here every module with compiled functions has a
cache folder whose name is a digest of its own source and of all the package's modules it imports, directly or
not. So a change anywhere below is a new folder, and old ones are cleared away.

Machine code also holds a copy of every function it calls, each optimized anew, and numba lets such a call go
to whichever copy the process has seen first. Two copies may round differently where products and sums are
fused, so results would depend on what was compiled or loaded before. Here every call stays within its own
piece of machine code: the bits are the same in the process that compiles, in those that load what it kept,
and without any cache.

>>> from steingate.compiled import compiled
>>> @compiled
... def twice(x):
...     return 2 * x
"""

from __future__ import annotations

import ast
import functools
import hashlib
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numba
from llvmlite import binding
from numba.core import codegen, compiler, event

KEPT = 3  # versions of a module whose machine code is kept
NOTICE = "compiling the simulation (once, about 30 s)"
_FOLDER = "steingate-numba"
_CONFIG: Any = numba.config


def compiled(function: Callable[..., Any] | None = None, /, **options: Any) -> Any:
    """Return a function compiled by numba, cached by the source it depends on.

    Parameters
    ----------
    function : callable or None
        The function; None when options are given, as in ``@compiled(error_model="numpy")``.
    **options
        Options of ``numba.njit`` besides ``nogil``, which is always on, and ``cache``.
    """
    if function is None:
        return functools.partial(compiled, **options)
    _listen()
    options = {"nogil": True, "pipeline_class": _Compiler, **options}
    folder = _cache_folder(function.__code__.co_filename)
    if folder is None:
        return numba.njit(**options)(function)
    before = _CONFIG.CACHE_DIR
    _CONFIG.CACHE_DIR = str(folder)  # read once, while the function is decorated
    try:
        return numba.njit(cache=True, **options)(function)
    finally:
        _CONFIG.CACHE_DIR = before


@functools.cache
def _cache_folder(file: str) -> Path | None:
    """Return the existing folder for the machine code of a module, or None if none can be written."""
    path = Path(file)
    if not path.is_file():
        return None  # typed in, or inside an archive
    root = _package_root(path)
    name = ".".join(path.relative_to(root.parent).with_suffix("").parts)
    version = source_digest(path)
    for base in _bases(root):
        module = base / name
        folder = module / version
        try:
            folder.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryFile(dir=folder):
                pass
            os.utime(folder)
        except OSError:
            continue
        _clear(module)
        return folder
    return None


def cache_base() -> Path | None:
    """Return the folder in which machine code of this package is kept, or None if none can be written."""
    for base in _bases(Path(__file__).parent):
        try:
            base.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryFile(dir=base):
                return base
        except OSError:
            continue
    return None


def _bases(root: Path) -> Iterator[Path]:
    """Yield places for caches, best first; those outside the package are told apart by where it lies."""
    own = f"{_FOLDER}-{hashlib.sha256(str(root).encode()).hexdigest()[:12]}"
    if _CONFIG.CACHE_DIR:
        yield Path(_CONFIG.CACHE_DIR) / own
    yield root / "__pycache__" / _FOLDER
    yield Path(os.environ.get("XDG_CACHE_HOME") or Path("~/.cache").expanduser()) / own


def _clear(module: Path) -> None:
    """Remove all but the versions of a module used last."""
    try:
        versions = sorted(module.iterdir(), key=lambda folder: folder.stat().st_mtime, reverse=True)
    except OSError:  # another process is clearing
        return
    for folder in versions[KEPT:]:
        shutil.rmtree(folder, ignore_errors=True)


def source_digest(path: Path) -> str:
    """Return a digest of a module's source and of every module of its package that it imports in the end.

    Parameters
    ----------
    path : Path
        File of the module.
    """
    root = _package_root(path)
    todo, seen = [path], {path}
    while todo:
        for other in _imports(todo.pop(), root):
            if other not in seen:
                seen.add(other)
                todo.append(other)
    digest = hashlib.sha256()
    for file in sorted(seen):
        digest.update(f"{file.relative_to(root)}\0".encode())
        digest.update(file.read_bytes())
    return digest.hexdigest()[:24]


def _package_root(path: Path) -> Path:
    """Return the folder of the outermost package a file belongs to, or its own folder."""
    root = path.parent
    while (root.parent / "__init__.py").is_file():
        root = root.parent
    return root


@functools.cache
def _imports(path: Path, root: Path) -> tuple[Path, ...]:
    """Return the files inside a package that one of its files imports."""
    here = path.relative_to(root.parent).parts[:-1]
    found: list[Path | None] = []
    for node in ast.walk(ast.parse(path.read_bytes())):
        if isinstance(node, ast.Import):
            found += [_module_file(tuple(alias.name.split(".")), root) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            start = here[: len(here) - node.level + 1] if node.level else ()
            start += tuple(node.module.split(".")) if node.module else ()
            for alias in node.names:  # a module, or something in one
                found.append(_module_file((*start, alias.name), root) or _module_file(start, root))
    return tuple(file for file in found if file)


def _module_file(name: tuple[str, ...], root: Path) -> Path | None:
    """Return the file of a module, if it belongs to the package."""
    if name[0] == root.name:
        base = root.parent.joinpath(*name)
        for file in (base.with_suffix(".py"), base / "__init__.py"):
            if file.is_file():
                return file
    return None


class _Library(codegen.JITCodeLibrary):  # type: ignore[misc]
    """Machine code whose calls go to its own copies of other functions, never to those of other libraries."""

    def _finalize_final_module(self) -> None:
        """Make the machine code, in which the copies are nobody else's; callers may still link them in."""
        shared = binding.Linkage.linkonce_odr
        copies = [f for f in self._final_module.functions if not f.is_declaration and f.linkage == shared]
        for function in copies:
            function.linkage = binding.Linkage.internal
        super()._finalize_final_module()
        for function in copies:
            function.linkage = shared


class _Compiler(compiler.Compiler):  # type: ignore[misc]
    """Numba's compiler, which puts what it makes into a ``_Library``."""

    def compile_extra(self, func: Callable[..., Any]) -> Any:
        """Compile a function.

        Parameters
        ----------
        func : callable
            The function.
        """
        self.state.library = _Library(self.state.targetctx.codegen(), func.__qualname__)
        self.state.library.enable_object_caching()
        return super().compile_extra(func)


class _Notice(event.Listener):  # type: ignore[misc]
    """Says once, on a terminal, why nothing seems to happen."""

    shown = False

    def on_start(self, event: Any) -> None:
        """Print the notice if a function of this package is being compiled.

        Parameters
        ----------
        event : numba.core.event.Event
            What is being compiled.
        """
        if self.shown or not sys.stderr.isatty():
            return
        if event.data["dispatcher"].py_func.__module__.partition(".")[0] == __name__.partition(".")[0]:
            self.shown = True
            print(NOTICE, file=sys.stderr, flush=True)

    def on_end(self, event: Any) -> None:
        """Do nothing.

        Parameters
        ----------
        event : numba.core.event.Event
            What has been compiled.
        """


@functools.cache
def _listen() -> None:
    """Listen to the compiler, from the first compiled function on."""
    event.register("numba:compile", _Notice())
