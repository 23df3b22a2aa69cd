"""The violation probability from clusters of dependent episodes: days, storms, robots, training seeds.

Episodes of one cluster may depend on each other in any way; the clusters are independent. With the fraction y_j of
violations in cluster j, the bound is that of betting against E[y] >= m (``betting``). It bounds the expected
fraction of violations in a new cluster: each cluster has the same weight, whatever its size. That is the violation
probability of an episode if the sizes are equal, or do not depend on the risk of the cluster.
"""

from dataclasses import asdict, dataclass

import numpy as np
import numpy.typing as npt

from steingate.certificates.betting import mean_upper
from steingate.certificates.formatting import number, percent, rate, upper
from steingate.certificates.violation import ViolationResult, certify, error_probability
from steingate.errors import InputError

CLUSTERS_INDEPENDENT = "The clusters are independent, and from the environment that the policy will meet."


@dataclass(frozen=True)
class ClusterResult(ViolationResult):
    """Result of :func:`certify_clusters`; as :class:`ViolationResult`, with the number of clusters.

    ``violation_rate`` and ``bound`` are those of a cluster: the mean of the fractions y_j, and its upper bound.
    """

    clusters: int
    mean_fraction: float
    cluster_bound: float

    @property
    def violation_rate(self) -> float:
        """Mean over the clusters of their fraction of violations."""
        return self.mean_fraction

    @property
    def bound(self) -> float:  # type: ignore[override]
        """Upper bound on the expected fraction of violations in a cluster, with probability ``confidence``."""
        return self.cluster_bound

    @property
    def more_episodes(self) -> int | None:  # type: ignore[override]
        """0 if the risk is certified, else ``None``: how many clusters are enough depends on their dependence."""
        return 0 if self.certified else None

    @property
    def known(self) -> str:
        """Violations and bound in words."""
        return (
            f"{self.violations:,} of {self.episodes:,} episodes in {self.clusters:,} clusters cost more than "
            f"{number(self.limit)} ({rate(self.violation_rate)} of a cluster on average); with "
            f"{percent(self.confidence)} confidence at most {upper(self.bound)} of a cluster are expected to"
        )

    @property
    def outcome(self) -> bool | None:
        """True if the risk is certified, else None: no lower bound is computed for clusters."""
        return self.certified or None

    @property
    def advice(self) -> str:
        """What to do next, in one sentence."""
        if self.certified:
            return "This holds for independent clusters of episodes of one policy whose number was fixed in advance."
        if self.violation_rate > self.risk:
            return f"The violation rate is above {percent(self.risk)}: lower the cost of the policy."
        return "Too few clusters: run new episodes in more of them; more episodes per cluster help less."


def certify_clusters(
    costs: npt.ArrayLike, clusters: npt.ArrayLike, limit: float, risk: float = 0.1, confidence: float = 0.95
) -> ClusterResult:
    """Bound the expected fraction of episodes with cost > limit in a cluster.

    Parameters
    ----------
    costs
        One cost per episode, shape (n,).
    clusters
        Label of the cluster of each episode, shape (n,): texts or integers. Clusters may differ in
        size.
    limit, risk, confidence
        As for :func:`steingate.certify`.

    Examples
    --------
    >>> result = certify_clusters([3.0] * 400, [day for day in range(40) for _ in range(10)], limit=25.0)
    >>> result.clusters, round(result.bound, 3)
    (40, 0.089)
    """
    independent = certify(costs, limit, risk, confidence)
    labels = np.asarray(clusters)
    if labels.shape != (independent.episodes,):
        raise InputError(f"The clusters have shape {labels.shape}; give one label per cost, {independent.episodes}.")
    _, index = np.unique(labels, return_inverse=True)
    over = np.asarray(costs, dtype=np.float64) > limit
    fractions = np.bincount(index, weights=over) / np.bincount(index)
    bound = mean_upper(fractions, error_probability(confidence))
    return ClusterResult(
        **asdict(independent), clusters=fractions.size, mean_fraction=float(fractions.mean()), cluster_bound=bound
    )
