"""Watch a policy while its episodes come in: certify it, calibrate, and notice when the world changes.

Run it with ``python examples/watch_costs.py``; it needs NumPy and SciPy alone.
"""

import numpy as np

from steingate import Monitor

rng = np.random.default_rng(0)


def episode(risk: float) -> float:
    """Return the cost of one made-up episode that goes over the limit of 25 with this chance."""
    return 25.0 + rng.exponential(20.0) if rng.random() < risk else float(rng.uniform(0.0, 20.0))


def main() -> None:
    """Tell the story of a policy: in the lab, out in the field, and after something broke."""
    lab = Monitor(limit=25, budget=0.1, delta=0.05)
    while not (lab.certified or lab.unsafe):  # looking after every episode is free
        lab.update(episode(risk=0.02))
    print(f"lab:   {lab.sentence}")

    for _ in range(300):  # a tighter baseline makes a quicker alarm
        lab.update(episode(risk=0.02))
    field = Monitor.watch(lab)
    print(f"field: watching for a rise above {field.baseline:.1%}")

    while not field.drift:
        broken = field.episodes >= 500
        field.update(episode(risk=0.25 if broken else 0.02))
    print(f"field: {field.sentence}")


if __name__ == "__main__":
    main()
