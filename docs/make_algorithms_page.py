"""Write docs/algorithms.md from the table of algorithms: python docs/make_algorithms_page.py."""

from dataclasses import fields, is_dataclass
from pathlib import Path

from steingate.algos.catalog import FACTS, FIRST_ORDER, OVERRIDES, defaults
from steingate.algos.library import ALGOS
from steingate.algos.recipes import Shared

PAGE = Path(__file__).with_name("algorithms.md")

ROWS = {
    "steingate": ("certificate", "trust region", "(running cost with `recovery=tail`)"),
    "steingate-ppo": ("certificate", "clipped", "(running cost with `recovery=tail`)"),
    "cpo": ("mean cost", "trust region", ""),
    "pcpo": ("mean cost", "trust region, projected", ""),
    "crpo": ("mean cost, switch with tolerance", "trust region", ""),
    "cvar-cpo": ("CVaR", "trust region", "running cost"),
    "evo": ("extreme value", "trust region over replayed extremes", ""),
    "trpo": ("open", "trust region", ""),
    "ppo": ("open", "clipped", ""),
    "trpo-lag": ("multiplier", "trust region", ""),
    "ppo-lag": ("multiplier", "clipped", ""),
    "rcpo": ("multiplier", "trust region, no line search", ""),
    "focops": ("multiplier", "towards the best policy in a KL ball", ""),
    "cup": ("multiplier", "clipped, then projected", ""),
    "p3o": ("mean cost", "clipped, with a penalty", ""),
    "trpo-saute": ("open", "trust region", "remaining budget"),
    "ppo-saute": ("open", "clipped", "remaining budget"),
    "trpo-simmer": ("budget controller", "trust region", "remaining budget"),
    "ppo-simmer": ("budget controller", "clipped", "remaining budget"),
}

MOVING_AVERAGE = (
    "cpo", "pcpo", "crpo", "cvar-cpo", "p3o", "trpo-lag", "ppo-lag", "rcpo", "focops", "cup", "trpo-simmer",
    "ppo-simmer",
)  # fmt: skip
NOT_SHOWN = ("preset", "certificate", "controlled", "cost_discount", "cost_lam")

INTRO = """# Algorithms

Written by `python docs/make_algorithms_page.py` from the table in `steingate.algos`; do not edit by hand.

A **gate** reads the episode costs of an epoch and decides what the next policy step is for; a **step**
moves the policy once; some methods also let the policy **see** what the episode has spent. Every algorithm is
one row, and all share the same trainer, checkpoints, evaluation and command line:

```
steingate train --algo trpo-lag --env SafetyPointGoal1-v0 --algo-options multiplier=pid
```

`--variant corrected` (the default) does what is right where published code is known to be wrong;
`--variant published` repeats the behaviour behind published numbers. Options of an algorithm are given with
`--algo-options name=value`, and `part.name=value` reaches into its parts. What belongs to the algorithm
(critic settings, line-search trials, options published for single tasks) is filled in unless given, and
written to the run's `config.json`.
"""


def page() -> str:
    """Return the page as text."""
    parts = [
        INTRO,
        "## The table\n",
        "| algorithm | gate | step | the policy also sees |",
        "|---|---|---|---|",
    ]
    parts += [f"| `{name}` | {' | '.join(ROWS[name])} |" for name in ALGOS]
    for name, facts in FACTS.items():
        parts += [
            f"\n## {name}\n",
            f"{facts.summary[0].upper()}{facts.summary[1:]}.\n",
            f"- Paper: {facts.paper}.",
            f"- Published code: {facts.published}.",
            f"- `corrected`: {facts.corrected}.",
            f"- Options: {_options(name)}.",
        ]
    parts += ["\n## Settings of a run that belong to the algorithm\n", *_run_settings()]
    parts += ["\n## Settings of single methods and tasks\n", *_overrides()]
    return "\n".join(parts) + "\n"


def _options(name: str) -> str:
    """Return the options of a recipe beyond the shared ones, with their defaults."""
    shared = {part.name for part in fields(Shared)}
    recipe = ALGOS[name].recipe(**ALGOS[name].settings)
    shown = []
    for part in fields(recipe):
        value = getattr(recipe, part.name)
        if part.name in shared or part.name in NOT_SHOWN:
            continue
        if part.name == "controller" and not recipe.controlled:
            continue
        if part.name == "length":
            shown.append("`length`, the task's own episode length")
            continue
        if is_dataclass(value):
            shown += [f"`{part.name}.{item.name}={getattr(value, item.name)}`" for item in fields(value)]
        else:
            shown.append(f"`{part.name}={value}`")
    if name in FIRST_ORDER:
        hidden = ("epochs", "clip") if name == "focops" else ("epochs",)
        shown += [f"`clipped.{item.name}`" for item in fields(recipe.clipped) if item.name not in hidden]
    if name in MOVING_AVERAGE:
        shown.append("`window=100`, the episodes that the gate looks back on")
    return ", ".join(shown) or "none"


def _run_settings() -> list[str]:
    names = ("critic_lr", "critic_passes", "critic_batch", "search_steps")
    lines = [f"| algorithm | {' | '.join(names)} |", "|---|" + "---|" * len(names)]
    for name in ALGOS:
        run, _ = defaults(name, "", "corrected")
        cells = [str(run[key]) for key in names]
        if name in FIRST_ORDER:
            cells[1], cells[3] = "as many as the step", ""
        lines.append(f"| `{name}` | {' | '.join(cells)} |")
    return lines


def _overrides() -> list[str]:
    lines = ["| algorithms | tasks | settings |", "|---|---|---|"]
    for algos, tasks, run, recipe in OVERRIDES:
        named = ", ".join(f"`{name}`" for name in algos)
        settings = ", ".join(f"`{key}={value}`" for key, value in {**run, **recipe}.items())
        patterns = " and ".join(
            f"`{pattern}`" for pattern in tasks.replace("(Point|Car)", "(Point/Car)").split("|")
        )
        lines.append(f"| {named} | {'all' if tasks == '.*' else patterns} | {settings} |")
    lines.append(
        "\nAll are published ones but that of `steingate-ppo`, which has no published code: with 40 passes "
        "its recovery fits noise ([learning](learning.md)). The published code has no row for `ppo-simmer` "
        "on `SafetyCarCircle1-v0`; `--variant published` repeats that."
    )
    return lines


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
