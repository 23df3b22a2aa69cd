"""Checks of what the methods of an algorithm return: one sentence that names the class and what is expected."""

from typing import Any

import numpy as np

from steingate.algorithms.base import Algorithm, GateOutput, Metrics, Objective, Params, State
from steingate.errors import InputError, is_real


def check_state(algorithm: Algorithm, method: str, state: State) -> State:
    """Return a state that checkpoints can store."""
    bad = _not_storable(state)
    if bad is not None:
        expected = "NamedTuples, dicts, lists and tuples of numbers, texts and NumPy arrays can be stored"
        raise _error(algorithm, method, f"a state with a {type(bad).__name__}", expected)
    return state


def check_decision(algorithm: Algorithm, result: Any) -> tuple[State, GateOutput]:
    """Return the result of ``decide``."""
    match result:
        case (state, GateOutput(objective=Objective()) as output):
            pass
        case _:
            expected = "the next state and a GateOutput with an Objective are expected"
            raise _error(algorithm, "decide", _describe(result), expected)
    if isinstance(output.messages, str) or not all(isinstance(text, str) for text in output.messages):
        raise _error(algorithm, "decide", f"the messages {output.messages!r}", "a tuple of sentences is expected")
    _check_metrics(algorithm, "decide", output.metrics)
    return check_state(algorithm, "decide", state), output


def check_update(algorithm: Algorithm, policy: Params, result: Any) -> tuple[State, Params, Metrics]:
    """Return the result of ``update``, whose policy has the shapes of ``policy``."""
    match result:
        case (state, dict() as updated, dict() as metrics):
            pass
        case _:
            expected = "the next state, the updated policy (a dict) and metrics (a dict) are expected"
            raise _error(algorithm, "update", _describe(result), expected)
    if _shapes(updated) != _shapes(policy):
        expected = f"the arrays {_shapes(policy)} are expected"
        raise _error(algorithm, "update", f"a policy with the arrays {_shapes(updated)}", expected)
    _check_metrics(algorithm, "update", metrics)
    return check_state(algorithm, "update", state), updated, metrics


def _check_metrics(algorithm: Algorithm, method: str, metrics: Any) -> None:
    if not isinstance(metrics, dict):
        raise _error(algorithm, method, f"metrics of type {type(metrics).__name__}", "a dict is expected")
    for name, value in metrics.items():
        if not (is_real(value) or isinstance(value, bool) or (np.ndim(value) == 0 and hasattr(value, "dtype"))):
            expected = "metrics are numbers (a GateOutput has messages for texts)"
            raise _error(algorithm, method, f"the metric {name!r} = {value!r}", expected)


def _not_storable(value: Any) -> Any:
    """Return a part of a tree that checkpoints cannot store; None if there is none."""
    if value is None or isinstance(value, bool | int | float | str):
        return None
    if isinstance(value, dict):
        parts = [*(key for key in value if not isinstance(key, str)), *value.values()]
    elif isinstance(value, tuple | list):
        parts = list(value)
    else:
        return None if hasattr(value, "dtype") and np.dtype(value.dtype).kind in "biuf" else value
    return next((bad for part in parts if (bad := _not_storable(part)) is not None), None)


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
