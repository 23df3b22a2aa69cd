"""Environments by name: native tasks, Gymnasium ids, ``module:Class``, ``./file.py:Class`` and callables.

A run records its environment as text (:func:`env_name`). A Python object that cannot be imported is recorded as
``python:NAME``, and has to be passed again when the run is resumed.

>>> env_name("CartPole-v1")
'CartPole-v1'
>>> env_name(lambda: None)
'python:lambda'
"""

import hashlib
import importlib
import importlib.util
import inspect
import os
import re
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import gymnasium
from gymnasium.vector import VectorEnv

from steingate.envs.adapters import CostFunction
from steingate.envs.vector_env import AdapterVectorEnv
from steingate.envs.worker_pool import describe_error
from steingate.errors import InputError, SteingateError, nearest, needs
from steingate.tasks.catalog import TASKS

_NATIVE_PREFIX = "steingate/"
_PYTHON_PREFIX = "python:"
_FILE = re.compile(r"^(?P<file>.*\.py):(?P<name>[^:\\/]+)$")
_FILE_MODULE = "_steingate_file_"  # prefix of the names of modules loaded from files


def make_vec(env: str | Callable[..., Any], num_envs: int = 1, **options: Any) -> VectorEnv[Any, Any, Any]:
    """Return ``num_envs`` environments as one ``VectorEnv`` with same-step autoreset and ``info["cost"]``.

    Parameters
    ----------
    env : str or callable
        A native id (``"SafetyPointGoal1-v0"``, with or without ``steingate/``); an id registered with Gymnasium,
        ``"module:id"`` to import the module that registers it; ``"module:Class"``; ``"./file.py:Class"``; or a
        callable that makes one environment.
    num_envs : int
        Number of environments.
    **options
        Native tasks: those of :class:`~steingate.tasks.environments.SafetyVectorEnv`. Others: ``cost`` (a function of
        (obs, action, next_obs, info), or ``"module:function"``), ``max_episode_steps``, ``workers`` (number of worker
        processes: 1 by default, which means this process; None measures what is faster, with at most ``threads``
        processes); others are passed to the environment.
    """
    if not isinstance(num_envs, int) or num_envs < 1:
        raise InputError(f"The number of environments is {num_envs!r}: a positive integer is expected.")
    source: Any = env
    while isinstance(source, EnvName):
        source = source.source
    native = source.removeprefix(_NATIVE_PREFIX) if isinstance(source, str) else ""
    if native in TASKS:
        options.pop("workers", None)  # native tasks are stepped by threads
        return make_native_vec(native, num_envs, **options)
    name = short_name(env) if isinstance(env, EnvName) else getattr(env, "__qualname__", str(env))
    options.pop("copy", None)  # observations are always copies
    workers, threads = options.pop("workers", 1), options.pop("threads", None)
    by_name = env_name(source)  # which worker processes can import
    own = isinstance(by_name, EnvName) or by_name.startswith("__main__:") or callable(options.get("cost"))
    remote = None if own else (by_name, dict(options))
    make, limit = _find_factory(source)
    cost, limit = _cost_function(options.pop("cost", None)), options.pop("max_episode_steps", limit)
    return AdapterVectorEnv(
        lambda: _call(make, name, options), num_envs, name=name, cost=cost, max_episode_steps=limit,
        workers=workers, max_processes=threads, remote=remote,
    )  # fmt: skip


def make_native_vec(env_id: str, num_envs: int = 1, **options: Any) -> VectorEnv[Any, Any, Any]:
    """Return a native vector environment; the entry point of ``gymnasium.make_vec``."""
    with needs(f"The native task {env_id}", "envs"):
        try:
            from steingate.tasks.environments import SafetyVectorEnv  # imports MuJoCo and numba
        except (AttributeError, RuntimeError) as error:
            if "mujoco" in sys.modules:
                raise
            # The import of MuJoCo fails if MUJOCO_GL names a graphics library that is not installed.
            chosen = os.environ.get("MUJOCO_GL")
            raise InputError(f"MUJOCO_GL={chosen} does not work here: unset it.") from error
    return SafetyVectorEnv(env_id, num_envs, **options)


def _find_factory(env: str | Callable[..., Any]) -> tuple[Callable[..., Any], int | None]:
    """Return what makes an environment, and its time limit in the Gymnasium registry.

    Gymnasium's checker and time limit accept only five values from ``step``, so both are disabled and the adapter
    applies the time limit.
    """
    if not isinstance(env, str):
        return env, None
    if env.startswith(_PYTHON_PREFIX):
        raise InputError(
            f"The environment {short_name(env)!r} was a Python object that cannot be imported by name: "
            "pass it again as env=..., or use --env module:Name."
        )
    env_id, module = env, None
    if ":" in env:
        module_name, env_id = split_name(env)
        module = _import_or_explain(module_name, env)
        if callable(getattr(module, env_id, None)):
            return getattr(module, env_id), None
    if env_id in gymnasium.registry:
        make = partial(gymnasium.make, env_id, max_episode_steps=-1, disable_env_checker=True)
        return make, gymnasium.spec(env_id).max_episode_steps
    if module is None:
        known = [name for name in (*gymnasium.registry, *TASKS) if _NATIVE_PREFIX not in name]
        raise InputError(f"There is no environment {env!r}{nearest(env, known)}; `steingate envs` lists native ones.")
    known = [name for name, value in vars(module).items() if callable(value) and not name.startswith("_")]
    hint = nearest(env_id, known)
    raise InputError(f"Module {module_name!r} has no class or function {env_id!r} that makes an environment{hint}.")


def _cost_function(cost: str | CostFunction | None) -> CostFunction | None:
    """Return a cost function given as a callable or as ``module:function``."""
    if not isinstance(cost, str):
        return cost
    module_name, attribute = split_name(cost)
    found: CostFunction | None = getattr(_import_or_explain(module_name, cost), attribute, None)
    if not callable(found):
        raise InputError(f"The cost {cost!r} is not a function: 'module:function' is expected.")
    return found


def _call(make: Callable[..., Any], name: str, options: dict[str, Any]) -> Any:
    """Call a factory, without ``render_mode`` if it does not accept it; convert its errors to InputError."""
    if "render_mode" in options:
        with suppress(TypeError, ValueError):  # it has no signature
            parameters = inspect.signature(make).parameters.values()
            if not any(one.name == "render_mode" or one.kind is one.VAR_KEYWORD for one in parameters):
                options = {key: value for key, value in options.items() if key != "render_mode"}
    try:
        return make(**options)
    except SteingateError:
        raise
    except Exception as error:
        raise InputError(f"Environment {name!r} cannot be made with {options}: {describe_error(error)}.") from error


def _import_or_explain(module_name: str, env: str) -> Any:
    """Import a module; convert its errors to InputError."""
    try:
        return find_module(module_name)
    except SteingateError:
        raise
    except Exception as error:
        missing = (getattr(error, "name", None) if isinstance(error, ModuleNotFoundError) else None) or "/"
        if (module_name + ".").startswith(missing + "."):
            advice = "install it, run in its folder, or give its file, ./FILE.py:NAME"
            raise InputError(f"There is no module {missing!r} for {env!r}: {advice}.") from error
        raise InputError(f"Module {module_name!r} cannot be imported: {describe_error(error)}.") from error


class EnvName(str):
    """Name of an environment in ``config.json``; ``source`` is the callable or other name that makes it."""

    source: Any

    def __new__(cls, text: str, source: Any) -> "EnvName":
        """Return the name ``text`` for ``source``."""
        name = super().__new__(cls, text)
        name.source = source
        return name

    def __getnewargs__(self) -> tuple[str, Any]:  # type: ignore[override]
        return str(self), self.source


def env_name(env: Any) -> str:
    """Return the name by which a run records its environment, given as a name or a callable.

    Paths of files become absolute. A class or function that can be imported becomes ``module:Name``, any other
    callable an :class:`EnvName`.
    """
    if isinstance(env, EnvName):
        return env
    if isinstance(env, str):
        found = _FILE.match(env)
        return f"{Path(found['file']).expanduser().absolute()}:{found['name']}" if found else env
    if not callable(env):
        raise InputError(f"env is {env!r}: give a name, or a class or function that makes an environment.")
    wrapped = getattr(env, "func", env)  # functools.partial
    name = str(getattr(wrapped, "__qualname__", None) or type(wrapped).__qualname__)
    return _import_name(env) or EnvName(_PYTHON_PREFIX + name.rpartition(".")[2].strip("<>"), env)


def short_name(name: str) -> str:
    """Return the name of an environment without the folders of its file.

    >>> short_name("/home/me/my_env.py:MyEnv")
    'my_env:MyEnv'
    """
    found = _FILE.match(name)
    return f"{Path(found['file']).stem}:{found['name']}" if found else name.removeprefix(_PYTHON_PREFIX)


def split_name(name: str) -> tuple[str, str]:
    """Split ``module:attribute`` or ``file.py:attribute``."""
    found = _FILE.match(name)
    if found:
        return found["file"], found["name"]
    module, _, attribute = name.partition(":")
    return module, attribute


def find_module(module: str) -> Any:
    """Import a module by name, also from the current folder, or from the path of a file."""
    if not module.endswith(".py"):
        add_to_path(os.getcwd())
        return importlib.import_module(module)
    file = Path(module).expanduser().absolute()
    name = _FILE_MODULE + file.stem + "_" + hashlib.sha256(str(file).encode()).hexdigest()[:8]
    if name in sys.modules:
        return sys.modules[name]
    if not file.is_file():
        raise InputError(f"There is no file {file}: give the path of the environment's file.")
    add_to_path(str(file.parent))  # for imports of neighboring files
    spec = importlib.util.spec_from_file_location(name, file)
    assert spec is not None
    assert spec.loader is not None
    loaded = importlib.util.module_from_spec(spec)
    sys.modules[name] = loaded
    try:
        spec.loader.exec_module(loaded)
    except BaseException:
        del sys.modules[name]
        raise
    return loaded


def add_to_path(folder: str | None) -> None:
    """Put a folder at the end of the import path, unless it is already on it.

    At the end, so that no file in it takes the place of an installed module.
    """
    if folder and folder not in sys.path and not ("" in sys.path and folder == os.getcwd()):
        sys.path.append(folder)


def import_folder(env: str) -> str | None:
    """Return the current folder if importing ``module:Name`` needs it on the path, else None."""
    module, name = split_name(env)
    file = getattr(sys.modules.get(module.partition(".")[0]), "__file__", None)
    if file is None or not name:
        return None
    path = Path(file).absolute()
    folder = path.parents[1] if path.stem == "__init__" else path.parent
    return str(folder) if folder == Path.cwd() else None


def _import_name(env: Any) -> str | None:
    """Return ``module:Name`` if another process that imports it gets the same object, else None."""
    module, name = getattr(env, "__module__", None) or "", getattr(env, "__qualname__", "")
    loaded = sys.modules.get(module)
    if module == "__main__" or not name or getattr(loaded, name, None) is not env:
        return None
    file = getattr(loaded, "__file__", None)
    if file is None or not Path(file).is_file():
        return None
    return f"{file if module.startswith(_FILE_MODULE) else module}:{name}"
