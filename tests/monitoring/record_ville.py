"""A second opinion on the monitor, from ``ville`` 0.1.0: writes tests/data/monitor_ville.json.

Run it with a Python that has ``ville`` (pip install ville). The wealth of one bet that the mean is below m,
with kept share rho, is the likelihood ratio of rho m against m. ``ville`` has Bayes factors of Beta priors; a
prior concentrated at rho m gives nearly the same number. Its own upper confidence sequences stand beside it.
"""

import json
from pathlib import Path

import numpy as np
import ville

CONCENTRATION = 1e8
LOOKS = [1, 2, 5, 10, 36, 100, 300, 1000]
SHARES = (0.05, 0.3, 0.7, 0.95, 0.994)
OUT = Path(__file__).parents[1] / "data" / "monitor_ville.json"


def at_looks(values):
    return [float(values[look - 1]) for look in LOOKS]


def main():
    cases = []
    for seed, p in enumerate((0.0, 0.02, 0.05, 0.1, 0.3)):
        x = (np.random.default_rng(seed).random(max(LOOKS)) < p).astype(float)
        bets = []
        for m in (0.05, 0.1, 0.3):
            for share in SHARES:
                prior = (CONCENTRATION * share * m, CONCENTRATION * (1 - share * m))
                bets.append([m, share, at_looks(ville.BernoulliTest(m, prior=prior).fit(x).log_e_values_)])
        # Theirs are two-sided, so that half of alpha is the error of the upper side.
        beta = ville.BernoulliCS(alpha=0.1, prior=(0.5, 0.5), intersect=False).fit(x)
        betting = ville.BettingCS(alpha=0.1, grid=2001, intersect=False).fit(x)
        uppers = {"beta_binomial": at_looks(beta.upper_), "betting": at_looks(betting.upper_)}
        cases.append({"p": p, "over": np.flatnonzero(x).tolist(), "bets": bets, "uppers": uppers})
    about = {"ville": ville.__version__, "concentration": CONCENTRATION, "looks": LOOKS}
    OUT.write_text(json.dumps({**about, "cases": cases}) + "\n")


if __name__ == "__main__":
    main()
