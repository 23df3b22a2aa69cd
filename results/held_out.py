"""How much of a predicted drop in cost is real: ``python results/held_out.py RUNS...``.

Takes the last policy of each run and makes one recovery step, chosen on an epoch of fresh samples. Writes
``results/learning/held_out.csv``: the change of the episode cost that the surrogate predicts on those
samples, what it predicts on another epoch that the step was not chosen on, and the change when the new policy
acts; means over 12 repetitions, and the standard error of the last. The cost is the one that the method
learns from: for ``cvar-cpo`` what exceeds the level of its tail, times ten. ``fraction`` is how much of the
step the line search took.
"""

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
from rows import write_rows

from steingate.algorithms.common.backend import configure
from steingate.algorithms.common.base import Algorithm, Batch, Params
from steingate.algorithms.common.heads import log_prob
from steingate.gates.base import Decision, Mode
from steingate.runs import latest_checkpoint
from steingate.training.assemble import build_algorithm, make_envs
from steingate.training.batch import tail_costs, to_batch
from steingate.training.loop import stored_config
from steingate.training.rollout import Rollout, collect
from steingate.training.rollout_kernels import OFF, RUNNING, UPDATE
from steingate.training.seeding import action_noise, epoch_seeds
from steingate.training.state import first_state, from_tree

REPETITIONS, SEED = 12, 1000


def episode_cost(rollout: Rollout, algo: Algorithm, decision: Decision) -> float:
    """Return the mean cost of an episode that the policy learns from, counting all steps of the epoch."""
    cost, tail = rollout.rewards[:, 1], algo.tail
    if tail is not None:
        cost = tail_costs(cost, rollout.ends != RUNNING, None, lambda running: tail(running, decision))
    return float(cost.mean() * rollout.episodes.length.mean())


def rise(policy: Params, batch: Batch) -> float:
    """Return the change of the mean cost per step that the surrogate predicts for a policy."""
    ratio = np.exp(np.asarray(log_prob(policy, batch.obs, batch.act)) - batch.logp)
    return float(np.mean((ratio - 1.0) * batch.cost_adv))


def held_out(path: Path) -> dict[str, str]:
    """Return the row of one run."""
    cfg = replace(stored_config(path), threads=1)
    algo = build_algorithm(cfg)
    envs = make_envs(cfg, algo)
    sizes = envs.single_observation_space.shape[0], envs.single_action_space.shape[0]
    checkpoint = latest_checkpoint(path / "checkpoints")
    if checkpoint is None:
        raise SystemExit(f"{path} has no checkpoint.")
    first = first_state(cfg, algo, *sizes)
    state = from_tree(checkpoint.tree, first, str(path))
    critics = state.critics.result().params

    mode = UPDATE if cfg.algo.normalize_obs else OFF

    def roll(policy: Params, epoch: int) -> Rollout:
        noise = action_noise(SEED, epoch, (cfg.horizon, cfg.num_envs, sizes[1]))
        seeds = epoch_seeds(SEED, epoch, cfg.num_envs)
        return collect(envs, policy, state.stats, noise, mode=mode, seeds=seeds, name=cfg.env)[0]

    found, fractions = [], []
    for repetition in range(REPETITIONS):
        chosen, other = (roll(state.policy, 3 * repetition + part) for part in (0, 1))
        decision, _, _, *_ = algo.gate.decide(state.gate, chosen.episodes)
        decision = decision._replace(mode=Mode.RECOVER, slack=-1.0)
        batches = [
            to_batch(rollout, critics, cfg.algo.returns, algo, decision)[0] for rollout in (chosen, other)
        ]
        moved, _, log = algo.step.move(state.step, state.policy, batches[0], decision)
        fractions.append(log["step/fraction"])
        costs = [
            episode_cost(item, algo, decision) for item in (chosen, other, roll(moved, 3 * repetition + 2))
        ]
        length = chosen.episodes.length.mean()
        predicted = [rise(moved, batch) * length for batch in batches]
        found.append((*predicted, costs[2] - (costs[0] + costs[1]) / 2.0))
    changes = np.array(found)
    on_chosen, elsewhere, realized = changes.mean(axis=0)
    error = changes[:, 2].std(ddof=1) / np.sqrt(REPETITIONS)
    numbers = {
        "fraction": np.mean(fractions),
        "predicted": on_chosen,
        "predicted_elsewhere": elsewhere,
        "realized": realized,
        "error": error,
    }
    return {"env": cfg.env, "algo": cfg.algo.name} | {name: f"{value:.1f}" for name, value in numbers.items()}


if __name__ == "__main__":
    if len(sys.argv) < 2:
        raise SystemExit(__doc__)
    configure()
    rows = [held_out(Path(path)) for path in sys.argv[1:]]
    write_rows(Path(__file__).parent / "learning" / "held_out.csv", rows)
