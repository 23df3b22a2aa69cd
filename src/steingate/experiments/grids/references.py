"""SteinGate with the references Beta(2, 5), Beta(1, 10) and a logit-normal on PointGoal1."""

from steingate.experiments.grid import Sizes
from steingate.training.config import RunConfig

# The paper does not print the parameters of its logit-normal. This one has the mean and the standard
# deviation that the log-odds of Beta(2, 5) have, which makes it the logit-normal nearest to it.
REFERENCES = {
    "beta-2-5": "Beta(2, 5)",
    "beta-1-10": "Beta(1, 10)",
    "logit-normal": "LogitNormal(-1.0833, 0.9307)",
}


def grid(sizes: Sizes) -> list[RunConfig]:
    """Return the runs of the paper's figure on references."""
    return [
        run
        for folder, reference in REFERENCES.items()
        for run in sizes.runs(
            "SafetyPointGoal1-v0", "steingate", folder=folder, certificate={"reference": reference}
        )
    ]
