"""Two policies with equal mean cost and different tails, under every certificate.

Run with ``python examples/certify_costs.py``; it needs NumPy and SciPy only.
"""

import numpy as np

from steingate import SteinCertificate, certify

LIMIT = 25.0
EPISODES = 200


def steady_costs(rng: np.random.Generator) -> np.ndarray:
    """Return episode costs distributed like the reference: many low ones, few near the limit."""
    return 50.0 * rng.beta(2.0, 7.0, EPISODES)


def gambling_costs(rng: np.random.Generator) -> np.ndarray:
    """Return episode costs that are mostly small, with a large violation in every seventh episode."""
    costs = 50.0 * rng.beta(2.0, 24.0, EPISODES)
    violations = rng.choice(EPISODES, EPISODES // 7, replace=False)
    costs[violations] = rng.uniform(45.0, 60.0, violations.size)
    return costs


def main() -> None:
    """Print the decision of every certificate for both policies."""
    rng = np.random.default_rng(7)
    for name, costs in {"steady": steady_costs(rng), "gambling": gambling_costs(rng)}.items():
        print(f"\n{name}: mean cost {costs.mean():.1f}")
        print(f"  certify    {certify(costs, limit=LIMIT)}")
        for preset in ("paper", "released", "corrected"):
            result = getattr(SteinCertificate, preset)(limit=LIMIT).evaluate(costs)
            print(f"  {preset:<10} {'open' if result.is_open else 'closed'}, U = {result.bound:.3f}")


if __name__ == "__main__":
    main()
