"""Write docs/algorithms.md from the recipes: python docs/make_algorithms_page.py."""

from dataclasses import fields
from pathlib import Path

from steingate.algorithms import METHODS
from steingate.algorithms.common.recipe import Constrained, FirstOrder, NaturalGradient, Recipe, SecondOrder
from steingate.settings import setting_names

PAGE = Path(__file__).with_name("algorithms.md")
TASKS = ("SafetyPointGoal1-v0", "SafetyPointCircle1-v0", "SafetyCarGoal1-v0", "SafetyCarCircle1-v0")
SHARED = (FirstOrder, SecondOrder, NaturalGradient, Constrained, Recipe)

INTRO = """# Algorithms

Written by `python docs/make_algorithms_page.py` from the recipes in `steingate.algorithms`; do not edit by
hand.

A **gate** reads the episode costs of an epoch and decides what the next policy step is for; a **step**
moves the policy once; some methods also let the policy **see** what the episode has spent. Every algorithm is
one recipe, a frozen dataclass of its settings, and all share the same trainer, checkpoints, evaluation and
command line:

```
steingate train --algo trpo-lag --env SafetyPointGoal1-v0 --multiplier pid
```

`--variant corrected` (the default) does what is right where published code is known to be wrong;
`--variant published` repeats the behavior behind published numbers. Settings of an algorithm are options
like those of the run (`--multiplier pid`, `--clipped.passes 80`), names in a TOML file, and keywords in
Python; one that the algorithm does not have is refused. `steingate algos NAME` lists them all. Settings
published for single tasks are filled in unless given, and everything is written to the run's `config.json`.

A method of your own is such a class in a module of yours: `--algo mymodule:MyRecipe`, or `algo=MyRecipe(...)`
from Python. [An example](../examples/own_gate.py) adds a gate, which is a pair of functions.
"""


def page() -> str:
    """Return the page as text."""
    parts = [
        INTRO,
        "## The table\n",
        "| algorithm | gate | step | the policy also sees |",
        "|---|---|---|---|",
    ]
    parts += [
        f"| `{name}` | {kind.about.gate} | {kind.about.step} | {kind.about.sees} |"
        for name, kind in METHODS.items()
    ]
    parts += [section(name) for name in METHODS]
    parts += ["\n## What all have\n", *_shared()]
    parts += ["\n## Settings of single methods and tasks\n", *_tuned()]
    return "\n".join(parts) + "\n"


def section(name: str) -> str:
    """Return what the page says about one method."""
    kind = METHODS[name]
    about = kind.about
    return "\n".join(
        [
            f"\n## {name}\n",
            f"{about.summary[0].upper()}{about.summary[1:]}.\n",
            f"- Paper: {about.paper}.",
            f"- Published code: {about.published}.",
            f"- `corrected`: {about.corrected}.",
            f"- Settings of its own: {_settings(kind)}.",
        ]
    )


def _settings(kind: type[Recipe]) -> str:
    """Return the settings beyond the shared ones, and those whose default is its own."""
    recipe = kind()
    shown = []
    for name in setting_names(recipe):
        value = _value(recipe, name)
        base = next((base for base in SHARED if issubclass(kind, base) and _has(base, name)), None)
        if base is None or _value(base(), name) != value:
            shown.append(f"`{name}={'none' if value in (None, {}) else value}`")
    return ", ".join(shown) or "none"


def _has(base: type[Recipe], name: str) -> bool:
    return name in setting_names(base()) and name.partition(".")[0] in {item.name for item in fields(base)}


def _value(recipe: Recipe, name: str) -> object:
    value: object = recipe
    for part in name.split("."):
        value = getattr(value, part)
    return value


def _shared() -> list[str]:
    lines = ["| who | settings |", "|---|---|"]
    titles = {
        Recipe: "every method",
        Constrained: "those that learn from costs, also",
        SecondOrder: "those with a trust region, also",
        FirstOrder: "those with minibatch passes, also",
    }
    known: set[str] = set()
    for base, title in titles.items():
        names = [name for name in setting_names(base()) if name not in known]
        known |= set(names) if base is Recipe else set()
        shown = ", ".join(f"`{name}={_value(base(), name)}`".replace("=None", "=none") for name in names)
        lines.append(f"| {title} | {shown} |")
    lines.append(
        "\nMethods with minibatch passes fit their critics with `critic_lr=0.0003`, `critic_batch=64` and as "
        "many passes as the policy made (`critic_passes=none`)."
    )
    return lines


def _tuned() -> list[str]:
    lines = ["| algorithm | task | settings |", "|---|---|---|"]
    for name, kind in METHODS.items():
        for task in TASKS:
            for variant in ("corrected", "published"):
                found = kind.tuned(task, variant)
                if variant == "published" and found == kind.tuned(task, "corrected"):
                    continue
                if found or variant == "published":
                    told = ", ".join(f"`{key}={value}`" for key, value in found.items()) or "none"
                    lines.append(
                        f"| `{name}`{'' if variant == 'corrected' else ' as published'} | {task} | {told} |"
                    )
    lines.append("\nThose of the other sizes of these tasks (`...2-v0`) are the same.")
    return lines


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
