"""Playing test episodes of a bundle again, from its policy and configuration alone."""

from pathlib import Path
from typing import Any

import numpy as np

from steingate.algorithms.base import EnvParams
from steingate.errors import InputError, needs
from steingate.evidence.verify import Bundle


def replay_episodes(
    folder: Path, bundle: Bundle, first: int, count: int, env: Any = None, trust_code: bool = False
) -> tuple[list[str], int]:
    """Return a sentence for each of ``count`` episodes from number ``first`` that differs, and how many were played."""
    table, total = bundle.table, len(bundle.table.seed)
    if not 1 <= first <= total or count < 1:
        raise InputError(f"There is no episode {first} to replay: the test has 1 to {total}.")
    with needs("Playing episodes again", "train"):
        from steingate.training.config_file import load_run_config
        from steingate.training.environment import make_envs
        from steingate.training.play import bundled_player, play
    cfg = load_run_config(folder, env, trust_code)
    player = bundled_player(cfg, bundle.policy, bundle.evidence)
    envs = make_envs(cfg, params=EnvParams(player.cost_budget_fraction))
    chosen = slice(first - 1, first - 1 + count)
    try:
        played = play(envs, player, table.seed[chosen].tolist(), False)
    finally:
        envs.close()
    own = zip(
        *(column[chosen].tolist() for column in (table.cost, table.ret, table.length, table.truncated)), strict=True
    )
    again = zip(np.maximum(played.cost, 0.0), played.ret, played.length, played.truncated, strict=True)  # type: ignore
    problems = [
        f"Episode {number} differs when it is played again: its cost is {new[0]!r} and its return {new[1]!r}."
        for number, (old, new) in enumerate(
            zip(own, (tuple(a.item() for a in row) for row in again), strict=True), first
        )
        if old != new
    ]
    return problems, len(played.cost)
