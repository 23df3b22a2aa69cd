# %% [markdown]
# # Add a gate of your own
#
# A gate reads the costs of an epoch's episodes and decides what the next policy step is for. It is a pair
# of pure functions: the first state, and `decide(state, episodes)`. This one holds a *quantile*: reward
# counts while at most one episode in ten costs more than the limit, over the last few epochs; otherwise
# cost is lowered.

# %%
from typing import NamedTuple

import numpy as np

from steingate.gates.base import Decision, Episodes, Gate, Mode, Ruling


class Recently(NamedTuple):
    """State of the gate: the costs it remembers. Numbers and arrays, so that a checkpoint can hold it."""

    costs: np.ndarray = np.zeros(0)


def quantile_gate(limit: float, share: float, memory: int) -> Gate[Recently]:
    """Improve while the quantile of the last episode costs is within the limit, recover while it is not."""

    def decide(state: Recently, episodes: Episodes) -> Ruling[Recently]:
        costs = np.concatenate([state.costs, episodes.cost])[-memory:]
        worst = float(np.quantile(costs, 1 - share)) if len(costs) else np.inf
        mode = Mode.IMPROVE if worst <= limit else Mode.RECOVER
        return Ruling(
            Decision(mode, slack=limit - worst), Recently(costs), {"gate/quantile": min(worst, 1e6)}
        )

    return Gate(Recently, decide)


# %% [markdown]
# A gate can be tried without any training:

# %%
gate = quantile_gate(limit=25, share=0.1, memory=50)
state = gate.init()
for costs in ([5.0] * 10, [5.0] * 6 + [90.0] * 4, [5.0] * 10, [5.0] * 10):
    ruling = gate.decide(state, Episodes(np.array(costs), np.zeros(10), np.full(10, 500)))
    state = ruling.state
    print(Mode(ruling.decision.mode).name.lower(), ruling.log)

# %% [markdown]
# To train with it, put it in front of a step. A *recipe* is a frozen dataclass; its fields become options,
# on the command line as well (`--algo mymodule:Quantile --share 0.05`).

# %%
from dataclasses import dataclass

import steingate
from steingate.algorithms.common.base import Algorithm
from steingate.algorithms.common.recipe import About, Constrained, SecondOrder, Setup
from steingate.settings import setting


@dataclass(frozen=True)
class Quantile(SecondOrder, Constrained):
    """Reward while the quantile of the cost is within the limit."""

    about = About("quantile", "raise reward while few episodes are over the limit, lower cost otherwise")
    share: float = setting(0.1, "share of episodes that may be over the limit")
    memory: int = setting(80, "episodes that the gate remembers")

    def build(self, setup: Setup) -> Algorithm:
        """Return the gate in front of the trust-region step."""
        return Algorithm(quantile_gate(setup.limit, self.share, self.memory), self.step(setup))


STEPS = 600_000  # short: 16_000
PER_EPOCH = 20_000  # short: 8_000
sizes = {"env": "SafetyPointCircle1-v0", "total_steps": STEPS, "steps_per_epoch": PER_EPOCH, "quiet": True}
runs = {
    "your gate": steingate.train(algo=Quantile(share=0.1), out="runs/mine", **sizes),
    "cpo as published": steingate.train(algo="cpo", variant="published", out="runs/cpo", **sizes),
}

# %% [markdown]
# Every episode of both runs, a dot each: red over the limit. A gate on the mean lets single episodes go far
# over it; a gate on the quantile goes after those, and pays for it with reward.

# %%
from matplotlib.figure import Figure

from steingate.report.loading import load_run

figure = Figure(figsize=(10, 4.8), layout="constrained")
panels = figure.subplots(2, 2, sharex=True, sharey="row", height_ratios=[2, 1])
for (dots, lines), (name, run) in zip(panels.T, runs.items(), strict=True):
    data = load_run(run.path)
    steps, cost = data.episodes["step"] / 1e6, data.episodes["cost"]
    dots.scatter(
        steps, np.maximum(cost, 0.5), s=4, c=np.where(cost > 25, "#d1495b", "#1f8a7d"), alpha=0.5, linewidth=0
    )
    dots.axhline(25, color="#22303c", linewidth=1, linestyle="--")
    late = cost[len(cost) // 2 :]
    dots.set_title(f"{name}: {np.mean(late > 25):.0%} over the limit, second half", fontsize=11)
    dots.set(yscale="log", ylabel="cost of an episode")
    lines.plot(
        data.progress["TotalEnvSteps"] / 1e6, data.progress["Metrics/EpRet"], color="#2f6f9f", linewidth=2
    )
    lines.set(xlabel="million steps", ylabel="return")
    for axes in (dots, lines):
        axes.spines[["top", "right"]].set_visible(False)
        axes.label_outer()
