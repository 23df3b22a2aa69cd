"""Checks of what the methods of an algorithm return: one sentence that names the class and what is expected."""

from typing import Any

import numpy as np

from steingate.algorithms.base import Algorithm, GateOutput, Metrics, Objective, Params, State
from steingate.errors import InputError, is_real


def check_state(algorithm: Algorithm, method: str, state: State) -> State:
    """Return a state that checkpoints can store."""
    for value in _leaves(state):
        if not (value is None or isinstance(value, bool | int | float | str) or _is_numeric(value)):
            expected = "NamedTuples, dicts, lists and tuples of numbers, texts and NumPy arrays can be stored"
            raise _error(algorithm, method, f"a state with a {type(value).__name__}", expected)
    return state


def check_decision(algorithm: Algorithm, result: Any) -> tuple[State, GateOutput]:
    """Return the result of ``decide``."""
    match result:
        case (state, GateOutput(objective=Objective(), metrics=dict(), messages=tuple() | list()) as output):
            _check_metrics(algorithm, "decide", output.metrics)
            return check_state(algorithm, "decide", state), output
    expected = "the next state and a GateOutput with an Objective, metrics (a dict) and messages (a tuple) are expected"
    raise _error(algorithm, "decide", _describe(result), expected)


def check_update(algorithm: Algorithm, policy: Params, result: Any) -> tuple[State, Params, Metrics]:
    """Return the result of ``update``, whose policy has the shapes of ``policy``."""
    match result:
        case (state, dict() as updated, dict() as metrics):
            if _shapes(updated) != _shapes(policy):
                expected = f"the arrays {_shapes(policy)} are expected"
                raise _error(algorithm, "update", f"a policy with the arrays {_shapes(updated)}", expected)
            _check_metrics(algorithm, "update", metrics)
            return check_state(algorithm, "update", state), updated, metrics
    expected = "the next state, the updated policy (a dict) and metrics (a dict) are expected"
    raise _error(algorithm, "update", _describe(result), expected)


def _check_metrics(algorithm: Algorithm, method: str, metrics: Metrics) -> None:
    for name, value in metrics.items():
        if not (is_real(value) or isinstance(value, bool) or (_is_numeric(value) and np.ndim(value) == 0)):
            expected = "metrics are numbers (a GateOutput has messages for texts)"
            raise _error(algorithm, method, f"the metric {name!r} = {value!r}", expected)


def _is_numeric(value: Any) -> bool:
    return hasattr(value, "dtype") and np.dtype(value.dtype).kind in "biuf"


def _leaves(tree: Any) -> list[Any]:
    if isinstance(tree, dict):
        return [*(key for key in tree if not isinstance(key, str)), *_leaves(list(tree.values()))]
    return [leaf for part in tree for leaf in _leaves(part)] if isinstance(tree, tuple | list) else [tree]


def _shapes(policy: Params) -> dict[str, Any]:
    return {
        name: [np.shape(part) for part in value] if isinstance(value, tuple | list) else np.shape(value)
        for name, value in policy.items()
    }


def _describe(result: Any) -> str:
    if isinstance(result, tuple) and not hasattr(result, "_fields"):
        return f"({', '.join(type(part).__name__ for part in result)})"
    return f"a {type(result).__name__}" if result is not None else "nothing"


def _error(algorithm: Algorithm, method: str, returned: str, expected: str) -> InputError:
    return InputError(f"{type(algorithm).__name__}.{method} returned {returned}: {expected}.")
