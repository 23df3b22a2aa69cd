"""EVO: CPO under a limit on a fitted extreme of the cost, with transitions that count more often."""

from dataclasses import dataclass, replace
from typing import Self

from steingate.algorithms.common.base import Algorithm
from steingate.algorithms.common.recipe import About, LearnsCost, SecondOrder, Setup
from steingate.algorithms.common.sizes import Replay
from steingate.errors import InputError
from steingate.gates.tail import ExtremeValue, extreme_value_gate
from steingate.settings import part


@dataclass(frozen=True)
class EVO(SecondOrder, LearnsCost):
    """Extreme-value policy optimization; its memory holds all episodes that finished."""

    about = About(
        "evo",
        "CPO under a limit on a fitted extreme of the cost; high-advantage transitions count five times",
        "Extreme Value Policy Optimization (ICML 2025)",
        "adds the 95th percentile twice, clamps log ratios as if they were ratios, calls an epoch without "
        "cost safe, fits rewards on the last 100 transitions of one environment, and lets the copies bias "
        "the cost gradient; on CPO's published step",
        "counts the percentile once, clamps ratios, fits excesses from 0 on all transitions, whose copies "
        "enter the reward gradient alone; on CPO's corrected step",
        gate="extreme value",
        step="trust region over replayed extremes",
        order=40,
        color="#e0a030",
    )
    extreme: ExtremeValue = part(ExtremeValue)
    replay: Replay = part(Replay)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.replay.resolved(self.is_published).whole_epoch and self.replay.buffer != Replay().buffer:
            raise InputError(
                "replay.buffer has no effect while all transitions count: set replay.whole_epoch=false."
            )

    def resolved(self, length: int) -> Self:
        """Return the recipe with the flags of its variant, where they are not given."""
        del length
        published = self.is_published
        return replace(self, extreme=self.extreme.resolved(published), replay=self.replay.resolved(published))

    def build(self, setup: Setup) -> Algorithm:
        """Return the extreme-value gate in front of the trust-region step, over replayed transitions."""
        from steingate.algorithms.common.replay import episode_memory, replay_extremes

        own = self.resolved(setup.length)
        return Algorithm(
            self.in_step_units(extreme_value_gate(setup.limit, own.extreme), setup),
            self.step(setup),
            replay=lambda adv: replay_extremes(adv, own.replay),
            memory=episode_memory(own.extreme.capacity),
        )
