"""Two policies with the same mean cost and different tails: what each certificate says about their episodes.

Run with ``python examples/certify_costs.py``; NumPy and SciPy are all it needs.
"""

import numpy as np

from steingate import Certificate

LIMIT = 25.0
EPISODES = 200


def steady_costs(rng: np.random.Generator) -> np.ndarray:
    """Return episode costs spread like the reference: many low ones, few near the limit."""
    return 50.0 * rng.beta(2.0, 7.0, EPISODES)


def gambling_costs(rng: np.random.Generator) -> np.ndarray:
    """Return episode costs that are mostly tiny, with a violation far beyond the limit every so often."""
    costs = 50.0 * rng.beta(2.0, 24.0, EPISODES)
    violations = rng.choice(EPISODES, EPISODES // 7, replace=False)
    costs[violations] = rng.uniform(45.0, 60.0, violations.size)
    return costs


def main() -> None:
    """Print mean cost, bound and verdict of both policies under every preset."""
    rng = np.random.default_rng(7)
    policies = {"steady": steady_costs(rng), "gambling": gambling_costs(rng)}
    for policy, costs in policies.items():
        over = np.mean(costs > LIMIT)
        print(
            f"\n{policy}: mean cost {costs.mean():.1f}, {over:.1%} of the episodes over the limit {LIMIT:g}"
        )
        for preset in ("paper", "released", "certified", "confident"):
            certificate = Certificate.preset(preset, limit=LIMIT)
            result = certificate.evaluate(costs)
            verdict = "open" if result.safe else "shut"
            print(f"  {preset:<10} {verdict}  bound {result.bound:.3f}  {result.diagnosis}")
    print("\nWhat the published constants can promise:")
    print(Certificate.preset("released", limit=LIMIT).explain())


if __name__ == "__main__":
    main()
