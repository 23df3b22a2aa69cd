"""The one door to environments: native tasks, Gymnasium ids, ``module:Class``, files, callables."""

import difflib
import inspect
import os
import sys
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import gymnasium
from gymnasium.vector import VectorEnv

from steingate.envs.adapters import ForeignVectorEnv
from steingate.envs.foreign import Cost, OneEnv
from steingate.envs.names import GIVEN, EnvName, env_name, find_module, short_name, split_name
from steingate.envs.worker_pool import Here, Order
from steingate.errors import InputError, MissingExtraError, SteingateError
from steingate.tasks.catalog import TASKS
from steingate.tasks.inputs import checked_options

_PREFIX = "steingate/"
_BROKEN_MODULE = (
    ImportError,
    SyntaxError,
    AttributeError,
    NameError,
    TypeError,
    ValueError,
    RuntimeError,
    OSError,
)


def make_vec(spec: str | Callable[..., Any], num_envs: int, **options: Any) -> VectorEnv[Any, Any, Any]:
    """Return ``num_envs`` environments as one ``VectorEnv`` with same-step autoreset and ``info["cost"]``.

    Parameters
    ----------
    spec : str or callable
        A native id (``"SafetyPointGoal1-v0"``, with or without ``steingate/``); any id registered with
        Gymnasium, ``"module:id"`` to import the module that registers it; ``"module:Class"``;
        ``"./file.py:Class"``; or a callable that makes one environment.
    num_envs : int
        Number of environments.
    **options
        Native tasks: those of :class:`~steingate.tasks.vector.SafetyVectorEnv`. Others: ``cost`` (a function
        of (obs, action, next_obs, info), or ``"module:function"``), ``max_episode_steps``, ``copy``, and
        ``workers`` (processes that step them: 1, this one, by default; None measures what is faster);
        at most ``threads`` processes are then used; the rest goes to the environment.

    Raises
    ------
    InputError
        If there is no such environment, or it cannot be used.
    """
    if not isinstance(num_envs, int) or num_envs < 1:
        raise InputError(f"The number of environments is {num_envs!r}: a positive integer is expected.")
    told = spec.source if isinstance(spec, EnvName) else spec
    native = told.removeprefix(_PREFIX) if isinstance(told, str) else ""
    if native in TASKS:
        options.pop("workers", None)  # the engine has threads
        return native_vec(native, num_envs, **options)
    return _foreign(spec, num_envs, options)


def native_vec(env_id: str, num_envs: int = 1, **options: Any) -> VectorEnv[Any, Any, Any]:
    """Return a native batch after checking the names of its options; what ``gymnasium.make_vec`` calls.

    Parameters
    ----------
    env_id : str
        A native id without ``steingate/``.
    num_envs : int
        Number of environments.
    **options
        Those of :class:`~steingate.tasks.vector.SafetyVectorEnv`.
    """
    # Brings MuJoCo and numba, which other environments do not need.
    from steingate.tasks.vector import SafetyVectorEnv

    known = [p for p in inspect.signature(SafetyVectorEnv).parameters if p not in ("env_id", "num_envs")]
    checked_options(env_id, options, known)
    try:
        return SafetyVectorEnv(env_id, num_envs, **options)
    except ModuleNotFoundError as error:
        if error.name not in ("mujoco", "numba"):
            raise
        raise MissingExtraError(f"The native task {env_id}", "envs") from error
    except (AttributeError, RuntimeError) as error:
        if "mujoco" in sys.modules:
            raise
        # MuJoCo's own import trips over a graphics library that is not there.
        raise InputError(f"MUJOCO_GL={os.environ.get('MUJOCO_GL')} does not work here: unset it.") from error


class Maker(NamedTuple):
    """How one foreign environment is made."""

    make: Callable[..., Any]
    name: str  # for messages
    limit: int | None = None  # steps of an episode, where the registry says


def find_maker(spec: str | Callable[..., Any]) -> Maker:
    """Return how environments of ``spec`` are made: a callable, a registered id, or ``module:name``."""
    if isinstance(spec, EnvName):
        found = find_maker(spec.source)
        return found._replace(name=short_name(spec))
    if not isinstance(spec, str):
        name = getattr(spec, "__qualname__", repr(spec))
        return Maker(lambda **rest: _called(spec, name, rest), name)
    if spec.startswith(GIVEN):
        raise InputError(
            f"The environment {short_name(spec)!r} was given from Python, and no name finds it again: "
            "give it once more as env=..., or --env module:Name."
        )
    if ":" in spec:
        return _from_module(spec)
    if spec in gymnasium.registry:
        return _registered(spec)
    raise InputError(f"There is no environment {spec!r}{_nearest(spec)}")


def _from_module(spec: str) -> Maker:
    """Return what ``module:name`` means: a callable there, or an id it registers or can make."""
    module_name, attribute = split_name(spec)
    module = _imported(module_name, spec)
    maker = getattr(module, attribute, None)
    if callable(maker):
        return Maker(lambda **rest: _called(maker, spec, rest), spec)
    if attribute in gymnasium.registry:
        return _registered(attribute)
    make = getattr(module, "make", None)
    if callable(make) and attribute and not attribute.isidentifier():
        return Maker(lambda **rest: _called(partial(make, attribute), spec, rest), spec)
    if hasattr(module, attribute):
        raise InputError(
            f"{spec!r} is of type {type(maker).__name__} and makes no environment: name a class or function."
        )
    names = [name for name, value in vars(module).items() if callable(value) and not name.startswith("_")]
    close = difflib.get_close_matches(attribute, names, n=1)
    hint = f"; did you mean {module_name + ':' + close[0]!r}?" if close else ""
    raise InputError(f"Module {module_name!r} has no {attribute!r} to make an environment of{hint or '.'}")


def _registered(env_id: str) -> Maker:
    """Return how environments of a registered id are made.

    Gymnasium's checker and time limit take five values from ``step`` only, so both stay out and the limit is
    counted here.
    """

    def make(**rest: Any) -> Any:
        try:
            return gymnasium.make(env_id, max_episode_steps=-1, disable_env_checker=True, **rest)
        except (gymnasium.error.Error, ImportError, TypeError) as error:
            raise InputError(f"Environment {env_id!r} cannot be made: {_one_line(error)}") from error

    return Maker(make, env_id, gymnasium.spec(env_id).max_episode_steps)


def _foreign(spec: str | Callable[..., Any], num_envs: int, options: dict[str, Any]) -> ForeignVectorEnv:
    """Return environments of a spec, with the adapter's options taken out of the rest."""
    factory, own = _prepared(spec, options)
    vector = {key: options[key] for key in ("copy", "workers") if key in options}
    order, cores = _order(spec, options), options.get("threads")
    return ForeignVectorEnv(factory, num_envs, **own, **vector, order=order, cores=cores)


def _prepared(
    spec: str | Callable[..., Any], options: dict[str, Any]
) -> tuple[Callable[[], Any], dict[str, Any]]:
    """Return what makes one environment, and what the adapter takes besides."""
    maker = find_maker(spec)
    rest = {key: value for key, value in options.items() if key not in ("threads", "copy", "workers")}
    limit = rest.pop("max_episode_steps", maker.limit)
    cost = _cost_function(rest.pop("cost", None))
    own = {"name": maker.name, "cost": cost, "max_episode_steps": limit}
    return lambda: maker.make(**rest), own


def _order(spec: str | Callable[..., Any], options: dict[str, Any]) -> Order | None:
    """Return how another process is told what to make; None for what only this one knows."""
    while isinstance(spec, EnvName):
        spec = spec.source
    if not isinstance(spec, str):
        spec = env_name(spec)
    if isinstance(spec, EnvName) or spec.startswith("__main__:") or callable(options.get("cost")):
        return None
    return Order(spec, {key: value for key, value in options.items() if key not in ("copy", "workers")})


def crew_here(order: Order, count: int) -> Here:
    """Return environments for a worker process to step, made as it is told."""
    factory, own = _prepared(order.spec, order.options)
    return Here(lambda: OneEnv(factory(), own["name"], own["cost"], own["max_episode_steps"]), count)


def _cost_function(cost: str | Cost | None) -> Cost | None:
    """Return a cost function given as itself or as ``module:function``."""
    if not isinstance(cost, str):
        return cost
    module_name, attribute = split_name(cost)
    found: Cost | None = getattr(_imported(module_name, cost), attribute, None) if attribute else None
    if not callable(found):
        raise InputError(f"The cost {cost!r} is no function: 'module:function' is expected.")
    return found


def _called(maker: Callable[..., Any], name: str, options: dict[str, Any]) -> Any:
    """Return what a maker makes, or one sentence if it refuses its name or options.

    A class of one's own may draw without being asked for it by ``render_mode``, so that is left out where
    the maker does not know it.
    """
    if "render_mode" in options and not _takes(maker, "render_mode"):
        options = {key: value for key, value in options.items() if key != "render_mode"}
    try:
        return maker(**options)
    except SteingateError:
        raise
    except (TypeError, ValueError, LookupError, AssertionError, ImportError, gymnasium.error.Error) as error:
        raise InputError(f"Environment {name!r} cannot be made with {options}: {_one_line(error)}") from error


def _takes(maker: Callable[..., Any], name: str) -> bool:
    """Return whether a callable can be given an argument of this name; of some nobody knows."""
    try:
        known = inspect.signature(maker).parameters
    except (TypeError, ValueError):
        return True
    return name in known or any(one.kind is one.VAR_KEYWORD for one in known.values())


def _imported(module_name: str, spec: str) -> Any:
    """Return an imported module; importing is all that is ever done with a name."""
    try:
        return find_module(module_name)
    except SteingateError:
        raise
    except ModuleNotFoundError as error:
        if error.name is None or not (module_name + ".").startswith(error.name + "."):
            raise InputError(f"Module {module_name!r} cannot be imported: {_one_line(error)}") from error
        raise InputError(
            f"There is no module {error.name!r} for {spec!r}: install it, run in its folder, or "
            "give its file, ./FILE.py:NAME."
        ) from error
    except _BROKEN_MODULE as error:
        raise InputError(f"Module {module_name!r} cannot be imported: {_one_line(error)}") from error


def _nearest(spec: str) -> str:
    """Return the rest of a sentence that proposes the id most like ``spec``."""
    others = [name for name in gymnasium.registry if not name.startswith(_PREFIX)]
    names = {name.casefold(): name for name in (*others, *TASKS)}
    close = difflib.get_close_matches(spec.removeprefix(_PREFIX).casefold(), names, n=1, cutoff=0.5)
    return (
        f"; did you mean {names[close[0]]!r}?" if close else ": run `steingate envs` to see the native ones."
    )


def _one_line(error: BaseException) -> str:
    """Return an error's text on one line, ending like a sentence."""
    text = " ".join(str(error).split()) or type(error).__name__
    return text if text.endswith(".") else text + "."
