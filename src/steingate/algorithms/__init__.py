"""The built-in methods: every recipe in the modules beside this one, in the order of reports."""

from importlib import import_module
from pkgutil import iter_modules

from steingate.algorithms.common.recipe import Recipe


def _found() -> dict[str, type[Recipe]]:
    modules = [import_module(f"{__name__}.{item.name}") for item in iter_modules(__path__) if not item.ispkg]
    recipes = [
        value
        for module in modules
        for value in vars(module).values()
        if isinstance(value, type) and issubclass(value, Recipe) and value.__module__ == module.__name__
    ]
    named = sorted((kind for kind in recipes if "about" in vars(kind)), key=lambda kind: kind.about.order)
    return {kind.about.name: kind for kind in named}


METHODS: dict[str, type[Recipe]] = _found()
"""Recipes by name."""
