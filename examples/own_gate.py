"""A gate of your own, and a method that uses it: `steingate train --algo own_gate:Patient` in this folder."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from steingate.algorithms.common.base import Algorithm
from steingate.algorithms.common.recipe import About, Constrained, SecondOrder, Setup
from steingate.gates.base import Decision, Episodes, Gate, Mode, Ruling
from steingate.settings import setting


class Quiet(NamedTuple):
    """State of the gate."""

    epochs: int = 0  # in a row without an episode over the limit


def patient_gate(limit: float, patience: int) -> Gate[Quiet]:
    """Improve once ``patience`` epochs in a row had no episode over the limit, recover until then."""

    def decide(state: Quiet, episodes: Episodes) -> Ruling[Quiet]:
        over = len(episodes.cost) == 0 or bool(np.any(episodes.cost > limit))
        state = Quiet(0 if over else state.epochs + 1)
        mode = Mode.IMPROVE if state.epochs >= patience else Mode.RECOVER
        return Ruling(Decision(mode), state, {"gate/quiet_epochs": float(state.epochs)})

    return Gate(Quiet, decide)


@dataclass(frozen=True)
class Patient(SecondOrder, Constrained):
    """Reward after quiet epochs only."""

    about = About("patient", "raise reward after quiet epochs, lower cost until then")
    patience: int = setting(3, "quiet epochs before reward counts")

    def build(self, setup: Setup) -> Algorithm:
        """Return the gate in front of the trust-region step."""
        return Algorithm(patient_gate(setup.limit, self.patience), self.step(setup))
