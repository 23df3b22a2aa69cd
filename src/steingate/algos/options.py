"""Options of a recipe by name: ``"window"``, or ``"clipped.passes"`` for a field of one of its parts."""

from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from difflib import get_close_matches
from typing import Any

from steingate.errors import InputError


def with_options(recipe: Any, options: Mapping[str, Any], name: str) -> Any:
    """Return the recipe with the options set; an unknown one is refused with the nearest name.

    Parameters
    ----------
    recipe
        A frozen dataclass.
    options
        Values by field, with dots between a part and its field, or a mapping for a part.
    name
        How messages call the recipe.
    """
    for key, value in options.items():
        recipe = _with_option(recipe, key, key, value, name)
    return recipe


def _with_option(part: Any, key: str, path: str, value: Any, name: str) -> Any:
    """Return ``part`` with the field ``path`` changed; ``key`` is what the user wrote."""
    first, _, rest = path.partition(".")
    known = [item.name for item in fields(part)]
    if first not in known:
        close = get_close_matches(first, known, n=1)
        hint = f"did you mean {close[0]}?" if close else f"choose one of {', '.join(known)}."
        raise InputError(f"{name} has no option {key!r}: {hint}")
    inner = getattr(part, first)
    if rest:
        if not is_dataclass(inner):
            raise InputError(f"{name} has no option {key!r}: {first} has no parts.")
        value = _with_option(inner, key, rest, value, name)
    elif is_dataclass(inner) and isinstance(value, Mapping):
        value = with_options(inner, value, name)
    elif is_dataclass(inner) or (inner is not None and not isinstance(value, _kinds(inner))):
        raise InputError(f"{name} cannot take {value!r} as {key}: its default is {inner!r}.")
    return replace(part, **{first: value})


def _kinds(default: Any) -> tuple[type, ...]:
    """Return the types that may stand where ``default`` does."""
    if isinstance(default, bool):
        return (bool,)
    if isinstance(default, float):
        return (float, int)
    return (Mapping,) if isinstance(default, Mapping) else (type(default),)
