"""Monitor a policy while its episodes arrive: certify it, calibrate, and detect a change.

Run with ``python examples/watch_costs.py``; it needs NumPy and SciPy only.
"""

import numpy as np

from steingate import Monitor

rng = np.random.default_rng(0)


def episode(rate: float) -> float:
    """Return the cost of a simulated episode that violates the limit of 25 with probability ``rate``."""
    return 25.0 + rng.exponential(20.0) if rng.random() < rate else float(rng.uniform(0.0, 20.0))


def main() -> None:
    """Certify in the laboratory, calibrate, deploy, and detect a rise of the violation rate."""
    laboratory = Monitor(limit=25, budget=0.1, delta=0.05)
    while not (laboratory.certified or laboratory.unsafe):  # stopping at any time is valid
        laboratory.update(episode(rate=0.02))
    print(f"laboratory: {laboratory.summary}")

    for _ in range(300):  # a tighter baseline gives an earlier alarm
        laboratory.update(episode(rate=0.02))
    field = Monitor.watch(laboratory)
    print(f"field: baseline {field.baseline:.1%}")

    while not field.drift:
        broken = field.episodes >= 500
        field.update(episode(rate=0.25 if broken else 0.02))
    print(f"field: {field.summary}")


if __name__ == "__main__":
    main()
