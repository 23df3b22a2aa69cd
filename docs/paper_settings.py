"""The paper's two tables of settings, beside what the published variants use here."""

from typing import NamedTuple

from steingate.algorithms import METHODS
from steingate.certificates.reference import Beta
from steingate.certificates.risk import Sigmoid


class Setting(NamedTuple):
    """A setting of the paper and its counterpart here."""

    method: str
    paper: str  # its name in the paper
    theirs: float
    name: str
    ours: float


def settings() -> list[Setting]:
    """Return every number of both tables."""
    gate = METHODS["steingate"](variant="published").certificate_for(25.0)
    assert isinstance(gate.reference, Beta)
    assert isinstance(gate.risk, Sigmoid)
    assert gate.stein_factor is not None
    evo = METHODS["evo"](variant="published").resolved(1000)
    return [
        Setting("steingate", "alpha", 2.0, "reference, first shape", gate.reference.a),
        Setting("steingate", "beta", 5.0, "reference, second shape", gate.reference.b),
        Setting("steingate", "u_norm", 0.5, "risk_threshold", gate.risk.threshold),
        Setting("steingate", "eta", 0.02, "risk_width", gate.risk.width),
        Setting("steingate", "eps_target", 0.1, "budget", gate.budget),
        Setting("steingate", "discrete_weight", 1.0, "discrete_weight", gate.discrete_weight),
        Setting("steingate", "stein_factor", 0.1, "stein_factor", gate.stein_factor),
        Setting("steingate", "min_bandwidth", 0.05, "min_bandwidth", gate.min_bandwidth),
        Setting("steingate", "interior_clip", 1e-5, "interior_clip", gate.interior_clip),
        Setting("evo", "use_cost_buffer", True, "extreme.capacity > 0", evo.extreme.capacity > 0),
        Setting("evo", "use_reward_buffer", True, "not replay.whole_epoch", not evo.replay.whole_epoch),
        Setting("evo", "cost_buffer_size", 50, "extreme.capacity", evo.extreme.capacity),
        Setting("evo", "cost_buffer_percentile", 95, "extreme.percentile", evo.extreme.percentile),
        Setting("evo", "initial_distribution_percentile", 0.5, "extreme.quantile", evo.extreme.quantile),
        Setting("evo", "reward_buffer_size", 100, "replay.buffer", evo.replay.buffer),
        Setting("evo", "reward_buffer_percentile", 90, "replay.percentile", evo.replay.percentile),
        Setting("evo", "initial_distribution_reward_percentile", 0.5, "replay.quantile", evo.replay.quantile),
        Setting("evo", "oversample_factor", 4, "replay.copies", evo.replay.copies),
    ]
