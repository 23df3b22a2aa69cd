"""The one door to environments: native tasks, Gymnasium ids, ``module:Class``, callables."""

import difflib
import importlib
import inspect
import os
import sys
from collections.abc import Callable
from functools import partial
from typing import Any

import gymnasium
from gymnasium.vector import VectorEnv

from steingate.envs.adapters import Cost, ForeignVectorEnv
from steingate.envs.catalog import TASKS
from steingate.envs.inputs import checked_options
from steingate.errors import InputError, MissingExtraError, SteingateError

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
        Gymnasium, ``"module:id"`` to import the module that registers it; ``"module:Class"``; or a callable
        that makes one environment.
    num_envs : int
        Number of environments.
    **options
        Native tasks: those of :class:`~steingate.envs.vector.SafetyVectorEnv`. Others: ``cost`` (a function
        of (obs, action, next_obs, info), or ``"module:function"``), ``max_episode_steps`` and ``copy``;
        ``threads`` is accepted and unused, because they are stepped one by one; the rest goes to the
        environment.

    Raises
    ------
    InputError
        If there is no such environment, or it cannot be used.
    """
    if not isinstance(num_envs, int) or num_envs < 1:
        raise InputError(f"The number of environments is {num_envs!r}: a positive integer is expected.")
    if not isinstance(spec, str):
        name = getattr(spec, "__qualname__", repr(spec))
        return _foreign(lambda **rest: _called(spec, name, rest), name, num_envs, options)
    native = spec.removeprefix(_PREFIX)
    if native in TASKS:
        return native_vec(native, num_envs, **options)
    if ":" in spec:
        return _from_module(spec, num_envs, options)
    if spec in gymnasium.registry:
        return _registered(spec, num_envs, options)
    raise InputError(f"There is no environment {spec!r}{_nearest(spec)}")


def native_vec(env_id: str, num_envs: int = 1, **options: Any) -> VectorEnv[Any, Any, Any]:
    """Return a native batch after checking the names of its options; what ``gymnasium.make_vec`` calls.

    Parameters
    ----------
    env_id : str
        A native id without ``steingate/``.
    num_envs : int
        Number of environments.
    **options
        Those of :class:`~steingate.envs.vector.SafetyVectorEnv`.
    """
    # Brings MuJoCo and numba, which other environments do not need.
    from steingate.envs.vector import SafetyVectorEnv

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


def _from_module(spec: str, num_envs: int, options: dict[str, Any]) -> ForeignVectorEnv:
    """Return environments of ``module:name``: a callable there, or an id it registers or can make."""
    module_name, _, attribute = spec.partition(":")
    module = _imported(module_name, spec)
    maker = getattr(module, attribute, None)
    if callable(maker):
        return _foreign(lambda **rest: _called(maker, spec, rest), spec, num_envs, options)
    if attribute in gymnasium.registry:
        return _registered(attribute, num_envs, options)
    make = getattr(module, "make", None)
    if callable(make) and attribute and not attribute.isidentifier():
        return _foreign(lambda **rest: _called(partial(make, attribute), spec, rest), spec, num_envs, options)
    if hasattr(module, attribute):
        raise InputError(
            f"{spec!r} is of type {type(maker).__name__} and makes no environment: name a class or function."
        )
    names = [name for name, value in vars(module).items() if callable(value) and not name.startswith("_")]
    close = difflib.get_close_matches(attribute, names, n=1)
    hint = f"; did you mean {module_name + ':' + close[0]!r}?" if close else ""
    raise InputError(f"Module {module_name!r} has no {attribute!r} to make an environment of{hint or '.'}")


def _registered(env_id: str, num_envs: int, options: dict[str, Any]) -> ForeignVectorEnv:
    """Return environments of a registered id.

    Gymnasium's checker and time limit take five values from ``step`` only, so both stay out and the limit is
    counted here.
    """
    limit = gymnasium.spec(env_id).max_episode_steps

    def make(**rest: Any) -> Any:
        try:
            return gymnasium.make(env_id, max_episode_steps=-1, disable_env_checker=True, **rest)
        except (gymnasium.error.Error, ImportError, TypeError) as error:
            raise InputError(f"Environment {env_id!r} cannot be made: {_one_line(error)}") from error

    return _foreign(make, env_id, num_envs, {"max_episode_steps": limit, **options})


def _foreign(make: Callable[..., Any], name: str, num_envs: int, options: dict[str, Any]) -> ForeignVectorEnv:
    """Return environments from a maker, with the adapter's options taken out of the rest."""
    rest = dict(options)
    rest.pop("threads", None)
    own = {key: rest.pop(key) for key in ("max_episode_steps", "copy") if key in rest}
    cost = _cost_function(rest.pop("cost", None))
    return ForeignVectorEnv(lambda: make(**rest), num_envs, name=name, cost=cost, **own)


def _cost_function(cost: str | Cost | None) -> Cost | None:
    """Return a cost function given as itself or as ``module:function``."""
    if not isinstance(cost, str):
        return cost
    module_name, _, attribute = cost.partition(":")
    found: Cost | None = getattr(_imported(module_name, cost), attribute, None) if attribute else None
    if not callable(found):
        raise InputError(f"The cost {cost!r} is no function: 'module:function' is expected.")
    return found


def _called(maker: Callable[..., Any], name: str, options: dict[str, Any]) -> Any:
    """Return what a maker makes, or one sentence if it refuses its name or options."""
    try:
        return maker(**options)
    except SteingateError:
        raise
    except (TypeError, ValueError, LookupError, AssertionError, ImportError, gymnasium.error.Error) as error:
        raise InputError(f"Environment {name!r} cannot be made with {options}: {_one_line(error)}") from error


def _imported(module_name: str, spec: str) -> Any:
    """Return an imported module; importing is all that is ever done with a name."""
    try:
        return importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name is None or not (module_name + ".").startswith(error.name + "."):
            raise InputError(f"Module {module_name!r} cannot be imported: {_one_line(error)}") from error
        raise InputError(
            f"There is no module {error.name!r} for {spec!r}: install it, or put its folder on PYTHONPATH."
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
