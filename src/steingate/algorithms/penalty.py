"""P3O: PPO with an exact penalty on the predicted violation."""

from dataclasses import dataclass

from steingate.algorithms.common.base import Algorithm
from steingate.algorithms.common.recipe import About, Constrained, FirstOrder, Setup
from steingate.algorithms.common.sizes import Clipped, Passes
from steingate.errors import require_positive
from steingate.settings import part, setting


@dataclass(frozen=True)
class P3O(FirstOrder, Constrained):
    """Penalized PPO: an exact penalty on the predicted violation of the mean cost."""

    about = About(
        "p3o",
        "raise reward by PPO with a large penalty on the predicted violation of the mean cost",
        "Penalized Proximal Policy Optimization (Zhang et al., IJCAI 2022)",
        "takes the violation per episode and does not clip the surrogate of the cost, so the penalty is "
        "either off or all of twenty times the cost's gradient",
        "takes the violation per step (the paper multiplies it by 1 - discount) and clips both surrogates, "
        "as the paper does",
        gate="mean cost",
        step="clipped, with a penalty",
        order=170,
        color="#5fae5f",
    )
    clipped: Passes = part(lambda: Clipped(passes=10))
    penalty: float = setting(20.0, "weight of the predicted violation")

    def __post_init__(self) -> None:
        super().__post_init__()
        require_positive(self, "penalty")

    def build(self, setup: Setup) -> Algorithm:
        """Return the mean-cost gate in front of PPO's step with the penalty."""
        from steingate.algorithms.common.first_order import penalized_step

        assert isinstance(self.clipped, Clipped)
        clips_cost = not self.is_published
        step = penalized_step(self.clipped, self.penalty, clips_cost, setup.seed, setup.epochs)
        return Algorithm(self.mean_cost_gate(setup), step)
