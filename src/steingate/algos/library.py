"""The library: every algorithm by name, as a recipe and the settings that make it this algorithm."""

from collections.abc import Mapping
from dataclasses import fields
from difflib import get_close_matches
from typing import Any, NamedTuple

from steingate.algos.catalog import FACTS, Facts
from steingate.algos.options import with_options
from steingate.algos.recipes import (
    CPO,
    CRPO,
    CUP,
    EVO,
    FOCOPS,
    P3O,
    PCPO,
    RCPO,
    CVaRCPO,
    Lagrangian,
    Saute,
    SteinGate,
    Unconstrained,
)
from steingate.errors import InputError


class Entry(NamedTuple):
    """A recipe, the settings that make it this algorithm, and what a user should know about it."""

    recipe: type[Any]
    settings: Mapping[str, Any]
    facts: Facts


_RECIPES: dict[str, tuple[type[Any], dict[str, Any]]] = {
    "steingate": (SteinGate, {}),
    "steingate-ppo": (SteinGate, {"backbone": "ppo"}),
    "cpo": (CPO, {}),
    "pcpo": (PCPO, {}),
    "crpo": (CRPO, {}),
    "cvar-cpo": (CVaRCPO, {}),
    "evo": (EVO, {}),
    "trpo": (Unconstrained, {}),
    "ppo": (Unconstrained, {"backbone": "ppo"}),
    "trpo-lag": (Lagrangian, {}),
    "ppo-lag": (Lagrangian, {"backbone": "ppo"}),
    "rcpo": (RCPO, {}),
    "focops": (FOCOPS, {}),
    "cup": (CUP, {}),
    "p3o": (P3O, {}),
    "trpo-saute": (Saute, {}),
    "ppo-saute": (Saute, {"backbone": "ppo"}),
    "trpo-simmer": (Saute, {"controlled": True}),
    "ppo-simmer": (Saute, {"controlled": True, "backbone": "ppo"}),
}

ALGOS: dict[str, Entry] = {name: Entry(*row, FACTS[name]) for name, row in _RECIPES.items()}


def make_recipe(name: str, options: Mapping[str, Any] | None = None, **settings: Any) -> Any:
    """Return the recipe called ``name``.

    Parameters
    ----------
    name
        A key of ``ALGOS``.
    options
        Fields of the recipe; ``"part.field"`` reaches into a part, such as ``"clipped.passes"``.
    **settings
        Fields too, but those that the recipe does not have are left out.

    Raises
    ------
    InputError
        If there is no such recipe or option; the message names the nearest.
    """
    if name not in ALGOS:
        close = get_close_matches(name, ALGOS, n=1)
        hint = f"did you mean {close[0]}?" if close else f"choose one of {', '.join(sorted(ALGOS))}."
        raise InputError(f"algorithm {name!r} is not known: {hint}")
    entry = ALGOS[name]
    known = {part.name for part in fields(entry.recipe)}
    given = {key: setting for key, setting in settings.items() if key in known}
    recipe = entry.recipe(**{**given, **entry.settings}).with_variant()
    return with_options(recipe, options or {}, name)
