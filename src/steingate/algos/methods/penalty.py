"""P3O: PPO with an exact penalty on the predicted violation."""

from dataclasses import dataclass

from steingate.algos.base import Algorithm
from steingate.algos.recipe import About, Constrained, FirstOrder, Setup
from steingate.algos.sizes import Clipped, Passes
from steingate.errors import require_positive
from steingate.settings import part, setting


@dataclass(frozen=True)
class P3O(FirstOrder, Constrained):
    """Penalised PPO: an exact penalty on the predicted violation of the mean cost."""

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
        colour="#5fae5f",
    )
    clipped: Passes = part(lambda: Clipped(passes=10))
    penalty: float = setting(20.0, "weight of the predicted violation")

    def __post_init__(self) -> None:
        super().__post_init__()
        require_positive(self, "penalty")

    def build(self, setup: Setup) -> Algorithm:
        """Return the mean-cost gate in front of PPO's step with the penalty."""
        from steingate.algos.first_order import penalised_step

        assert isinstance(self.clipped, Clipped)
        clips_cost = not self.is_published
        step = penalised_step(self.clipped, self.penalty, clips_cost, setup.seed, setup.epochs)
        return Algorithm(self.mean_cost_gate(setup), step)
