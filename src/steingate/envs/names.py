"""How environments are named: texts that another process finds again, and what Python gives instead of one.

>>> env_name("CartPole-v1")
'CartPole-v1'
>>> env_name(lambda: None)
'python:lambda'
"""

import hashlib
import importlib
import importlib.util
import os
import re
import sys
from pathlib import Path
from typing import Any

from steingate.errors import InputError

GIVEN = "python:"  # the name of what was given from Python begins with it, if nothing else finds it
_FILE = re.compile(r"^(?P<file>.*\.py):(?P<name>[^:\\/]+)$")
_LOADED = "_steingate_file_"  # modules made of files that are not on the import path


class EnvName(str):
    """The name of an environment in a run's record, together with where to get the environment from.

    ``source`` is a callable that makes one, or another text. As text it is like any other.
    """

    source: Any

    def __new__(cls, text: str, source: Any) -> "EnvName":
        """Return the name ``text`` for ``source``."""
        made = super().__new__(cls, text)
        made.source = source
        return made

    def __getnewargs__(self) -> tuple[str, Any]:  # type: ignore[override]
        return str(self), self.source


def env_name(value: Any) -> str:
    """Return the text by which a run records its environment.

    Parameters
    ----------
    value
        A text, in which the path of a file is made absolute; or a class, a function, or anything callable
        that makes an environment. One that can be imported becomes ``module:Name``; another becomes an
        :class:`EnvName`, which keeps it.
    """
    if isinstance(value, EnvName):
        return value
    if isinstance(value, str):
        found = _FILE.match(value)
        return f"{Path(found['file']).expanduser().absolute()}:{found['name']}" if found else value
    if not callable(value):
        raise InputError(f"env is {value!r}: give a name, or a class or function that makes an environment.")
    return _import_name(value) or EnvName(f"{GIVEN}{_plain_name(value)}", value)


def short_name(text: str) -> str:
    """Return an environment's name without the folders of its file, for folders and pictures.

    >>> short_name("/home/me/my_env.py:MyEnv")
    'my_env:MyEnv'
    """
    found = _FILE.match(text)
    return f"{Path(found['file']).stem}:{found['name']}" if found else text.removeprefix(GIVEN)


def again(recorded: str, given: Any) -> str:
    """Return the recorded name of an environment that is given again, or another place to find it at."""
    return EnvName(recorded, given if callable(given) else env_name(given))


def split_name(spec: str) -> tuple[str, str]:
    """Return the module, or file, and the name within it."""
    found = _FILE.match(spec)
    if found:
        return found["file"], found["name"]
    module, _, name = spec.partition(":")
    return module, name


def find_module(module: str) -> Any:
    """Return the module of that name, also from the present folder, or made of the file of that path."""
    if not module.endswith(".py"):
        on_path(os.getcwd())
        return importlib.import_module(module)
    file = Path(module).expanduser().absolute()
    name = _LOADED + file.stem + "_" + hashlib.sha256(str(file).encode()).hexdigest()[:8]
    if name in sys.modules:
        return sys.modules[name]
    if not file.is_file():
        raise InputError(f"There is no file {file}: give the path of the environment's file.")
    on_path(str(file.parent))  # what it imports may be beside it
    spec = importlib.util.spec_from_file_location(name, file)
    assert spec is not None
    assert spec.loader is not None
    made = importlib.util.module_from_spec(spec)
    sys.modules[name] = made
    try:
        spec.loader.exec_module(made)
    except BaseException:
        del sys.modules[name]
        raise
    return made


def on_path(folder: str | None) -> None:
    """Let modules of a folder be found, as ``python -m`` does for the present one."""
    if folder and folder not in sys.path and not ("" in sys.path and folder == os.getcwd()):
        sys.path.insert(0, folder)


def folder_of(spec: str) -> str | None:
    """Return the folder that must be on the path to import ``module:Name``, if it is the present one."""
    module, name = split_name(str(spec))
    if not name or module.endswith(".py"):
        return None
    found = sys.modules.get(module.split(".")[0])
    file = getattr(found, "__file__", None)
    if file is None:
        return None
    place = Path(file).absolute().parent
    home = place.parent if Path(file).stem == "__init__" else place
    return str(home) if home == Path.cwd() else None


def _import_name(value: Any) -> str | None:
    """Return ``module:Name`` if importing that gives the same object in another process too."""
    module, name = getattr(value, "__module__", None), getattr(value, "__qualname__", None)
    if not module or not name or module == "__main__" or not name.isidentifier():
        return None
    home = sys.modules.get(module)
    if getattr(home, name, None) is not value:
        return None
    if module.startswith(_LOADED):
        return f"{home.__file__}:{name}" if home is not None and home.__file__ else None
    try:
        known = importlib.util.find_spec(module)
    except (ImportError, ValueError):
        return None
    origin = getattr(known, "origin", None)
    return f"{module}:{name}" if origin and Path(origin).is_file() else None


def _plain_name(value: Any) -> str:
    """Return what something callable is called: a class or function by its name, another by its class's."""
    inner = getattr(value, "func", value)  # functools.partial
    name = getattr(inner, "__qualname__", None) or type(inner).__qualname__
    return str(name).rpartition(".")[2].strip("<>")
