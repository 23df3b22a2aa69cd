"""Where in an episode reward and cost arise: ``python results/episode_phases.py RUNS``.

Plays the last policy of every run below ``RUNS`` without exploration noise, 320 fresh episodes, and writes
``kept/phases.csv``: a row per run and tenth of an episode, with the mean reward of a step and the cost of all
episodes and of those over the limit.
"""

import sys
from pathlib import Path

import numpy as np
from rows import write_rows

from steingate.envs.make import make_vec
from steingate.policies.policy import Policy, load
from steingate.report.loading import Run, load_runs

TABLE = Path(__file__).parent / "kept" / "phases.csv"
TOGETHER, WAVES, PHASES, SEED = 64, 5, 10, 1_000_000


def wave(policy: Policy, env: str, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return reward and cost of every step of ``TOGETHER`` whole episodes, both (T, E)."""
    envs = make_vec(env, num_envs=TOGETHER)
    obs, _ = envs.reset(seed=seed)
    left = None if policy.extra is None else np.full(TOGETHER, policy.extra.start)
    rewards, costs, ended = [], [], np.zeros(TOGETHER, bool)
    while not ended.any():
        seen = obs if left is None else np.column_stack([obs, left])
        obs, reward, terminated, truncated, info = envs.step(policy(seen))
        if left is not None and policy.extra is not None:
            cost = info["cost"]
            left = np.array([policy.extra.following(z, c) for z, c in zip(left, cost, strict=True)])
        rewards.append(reward.copy())
        costs.append(info["cost"].copy())
        ended = terminated | truncated
    envs.close()
    assert ended.all(), "the navigation tasks end all episodes together"
    return np.array(rewards), np.array(costs)


def phases(run: Run) -> list[dict[str, str]]:
    """Return a row per tenth of an episode."""
    policy = load(run.path, policy="last").policy
    parts = [wave(policy, run.env, SEED + TOGETHER * number) for number in range(WAVES)]
    reward, cost = (np.concatenate(part, axis=1) for part in zip(*parts, strict=True))
    over = cost.sum(0) > run.limit
    place = {"env": run.env, "algo": run.algo, "seed": str(run.seed), "episodes": str(len(over))}
    found = []
    for number, rows in enumerate(np.array_split(np.arange(len(reward)), PHASES)):
        found.append(
            place
            | {"over": str(int(over.sum())), "tenth": str(number + 1)}
            | {"reward_per_step": f"{reward[rows].mean():.5f}"}
            | {"cost": f"{cost[rows].sum(0).mean():.4f}"}
            | {"cost_if_over": f"{cost[rows][:, over].sum(0).mean():.4f}" if over.any() else ""}
        )
    return found


if __name__ == "__main__":
    if len(sys.argv) != 2:
        raise SystemExit(__doc__)
    runs, _ = load_runs([sys.argv[1]])
    write_rows(TABLE, [row for run in runs if run.complete for row in phases(run)])
