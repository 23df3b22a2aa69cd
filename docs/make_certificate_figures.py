"""Regenerate the figures and the numbers of docs/certificate.md: ``python docs/make_certificate_figures.py``.

With ``--check`` nothing is written; the exit status is 1 when the numbers on the page are out of date.
"""

import re
import sys
from functools import cache
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from scipy.special import expit
from scipy.stats import beta as beta_distribution

from steingate import Beta, Certificate
from steingate.core.factors import lemma_constants, rkhs_factor
from steingate.core.kernels import Kernel
from steingate.core.plan import episodes_needed
from steingate.core.risk import Sigmoid
from steingate.core.stein import stein_kernel
from steingate.report.certificate_figure import save_certificate_figure

DOCS = Path(__file__).parent
PAGE = DOCS / "certificate.md"
LIMIT = 25.0
SIZES = (8, 16, 40, 100, 200, 1000)
PRESETS = ("paper", "released", "certified", "confident")


@cache
def preset(name: str) -> Certificate:
    """Return a preset at the page's limit."""
    return Certificate.preset(name, limit=LIMIT)


def example_costs() -> np.ndarray:
    """Return 200 episode costs: one in ten free, three far over the limit."""
    rng = np.random.default_rng(7)
    costs = 50.0 * rng.beta(2.0, 6.8, 200)
    costs[:20], costs[20:23] = 0.0, rng.uniform(52.0, 80.0, 3)
    return rng.permutation(costs)


@cache
def noise(name: str, n: int, repeats: int = 500) -> np.ndarray:
    """Return the 5, 50 and 95 % quantiles of the interior term when the costs follow the reference."""
    certificate = preset(name)
    rng = np.random.default_rng(n)
    scale = certificate.limit * certificate.scale_multiplier
    results = (certificate.evaluate(scale * certificate.interior.sample(rng, n)) for _ in range(repeats))
    return np.quantile([result.interior_term for result in results], [0.05, 0.5, 0.95])


@cache
def mixtures(count: int = 400) -> tuple[np.ndarray, np.ndarray]:
    """Return nodes on (0, 1) and random mixtures of three Beta densities at them, weights included."""
    t, weight = np.polynomial.legendre.leggauss(500)
    x = expit(17.0 * t)
    rng = np.random.default_rng(11)
    shapes = rng.uniform(1.2, 12.0, (2, 3, count))
    shares = rng.dirichlet(np.ones(3), count).T
    q = (shares * beta_distribution.pdf(x[:, None, None], *shapes)).sum(axis=1)
    q *= (17.0 * weight * x * (1.0 - x))[:, None]
    return x, q / q.sum(axis=0)


def excess_and_bound(certificate: Certificate, kernel: Kernel) -> tuple[np.ndarray, np.ndarray]:
    """Return how far the risk of each mixture is above the reference's, and what the interior term says."""
    x, q = mixtures()
    u = stein_kernel(x, x, certificate.interior, kernel, certificate.operator)
    discrepancy = np.sqrt(np.maximum((q * (u @ q)).sum(axis=0), 0.0))
    return certificate.risk(x) @ q - certificate.reference_risk, certificate.factor * discrepancy


def pairs() -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Return true excess risk and interior term of every mixture, for both factors."""
    return {
        "published": excess_and_bound(preset("released"), Kernel("rbf", 0.05)),
        "certified": excess_and_bound(preset("certified"), Kernel("matern52", 0.2)),
    }


def table(header: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    """Return a Markdown table."""
    lines = [header, tuple("---" for _ in header), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def numbers() -> dict[str, str]:
    """Return every block of numbers on the page, by name."""
    released, certified = preset("released"), preset("certified")
    costs = example_costs()
    results = {name: preset(name).evaluate(costs) for name in PRESETS}
    verdicts = [
        (
            f"`{name}`",
            f"{result.reference_risk:.4f}",
            f"{result.discrete_term:.4f}",
            f"{result.interior_term:.4f}",
            f"{result.bound:.4f}",
            f"{result.decision_value:.4f}",
            "open" if result.safe else "shut",
        )
        for name, result in results.items()
    ]
    constants = lemma_constants(Beta(2, 5))
    factors = []
    for length in (0.05, 0.1, 0.2):
        row = [
            rkhs_factor(Beta(2, 5), Sigmoid(), Kernel("matern52", length), op).value
            for op in ("langevin", "weighted")
        ]
        factors.append((f"{length:g}", *(f"{value:.3f}" for value in row)))
    found = {name: int((bound < excess - 1e-9).sum()) for name, (excess, bound) in pairs().items()}
    spans = [
        (
            str(n),
            *(" / ".join(f"{value:.3f}" for value in noise(name, n)) for name in ("released", "certified")),
        )
        for n in SIZES
    ]
    needed = [
        (f"{eps:g}", *(str(episodes_needed(eps, delta)) for delta in (0.1, 0.05, 0.01)))
        for eps in (0.1, 0.05, 0.01)
    ]
    return {
        "verdicts": table(
            ("preset", "reference", "+ atoms", "+ interior", "bound", "compared with 0.1", "gate"), verdicts
        ),
        "reference": (
            f"The risk of the reference Beta(2, 5) is {released.reference_risk:.6f}, "
            f"the budget {released.budget:g}."
        ),
        "factor": table(
            ("Matérn-5/2 length", "smallest valid factor, Langevin", "boundary-weighted"), factors
        ),
        "lemma": (
            f"For Beta(2, 5): K_p = {constants.K_p:.4f}, M_p = {constants.M_p:.4f}, "
            f"B_int = {constants.B_int:.4f} for risks in [0, 1]."
        ),
        "violations": (
            f"Of {mixtures()[1].shape[1]} random mixtures of three Beta densities, the interior term is "
            f"below the true difference in risk for {found['published']} with the published factor "
            f"{released.factor:g} (RBF kernel of length 0.05, the smallest that the released rule allows), "
            f"and for {found['certified']} with the valid factor {certified.factor:.3f} of `certified`."
        ),
        "noise": table(("episodes", "`released` (5 / 50 / 95 %)", "`certified` (5 / 50 / 95 %)"), spans),
        "episodes": table(("budget", "delta 0.1", "delta 0.05", "delta 0.01"), needed),
        "ours": (
            f"At a budget of 0.1 the reference is Beta(2, {certified.reference.b:.3f}), whose risk is "
            f"{certified.reference_risk:.3f}, and the factor is {certified.factor:.4f}."
        ),
    }


def with_numbers(page: str) -> str:
    """Return the page with every block between its markers replaced."""
    for name, text in numbers().items():
        pattern = re.compile(rf"<!-- {name} -->.*?<!-- end -->", re.DOTALL)
        page, count = pattern.subn(f"<!-- {name} -->\n{text}\n<!-- end -->", page)
        if count != 1:
            raise SystemExit(f"{PAGE.name} has {count} places for the block {name!r}; it should have one.")
    return page


def draw_limits(path: Path) -> None:
    """Draw sampling noise against the room a budget leaves, and interior terms against the truth."""
    ink, colours = "#22303c", {"released": "#d1495b", "certified": "#2a9d8f"}
    figure = Figure(figsize=(11.0, 4.3), layout="constrained")
    left, right = figure.subplots(1, 2)
    for name, colour in colours.items():
        low, middle, high = np.array([noise(name, n) for n in SIZES]).T
        left.fill_between(SIZES, low, high, color=colour, alpha=0.16, linewidth=0)
        left.plot(SIZES, middle, color=colour, marker="o", markersize=4, label=f"interior term of {name}")
    room = preset("certified").budget - preset("certified").reference_risk
    left.axhline(room, color=ink, linewidth=1.4)
    left.text(SIZES[0], 0.9 * room, f"room for it in certified: {room:g}", fontsize=9, va="top")
    left.text(
        SIZES[0], 0.7 * room, "room for it in released: none", fontsize=9, va="top", color=colours["released"]
    )
    left.set(xscale="log", yscale="log", xlabel="episodes", ylabel="risk")
    left.set_xticks(SIZES, [str(n) for n in SIZES], minor=False)
    left.set_xticks([], minor=True)
    left.set_yticks([0.01, 0.05, 0.1, 0.5, 1.0], ["0.01", "0.05", "0.1", "0.5", "1"])
    left.set_yticks([], minor=True)
    left.set_title("Costs drawn from the reference itself", fontsize=11, loc="left")
    left.legend(frameon=False, fontsize=9)

    for (name, (excess, bound)), colour in zip(pairs().items(), colours.values(), strict=True):
        right.scatter(excess, bound, s=10, color=colour, alpha=0.6, linewidth=0, label=f"{name} factor")
    reach = np.array([0.0, 1.0])
    right.fill_between(reach, reach, color=ink, alpha=0.08, linewidth=0)
    right.plot(reach, reach, color=ink, linewidth=1.4)
    right.text(0.97, 0.04, "here the bound is wrong", fontsize=9, ha="right")
    right.set(
        xlabel="true risk less the reference's", ylabel="interior term", xlim=(-0.12, 1.0), ylim=(0.0, 1.75)
    )
    right.set_title("400 random mixtures, exact integrals", fontsize=11, loc="left")
    right.legend(fontsize=9, loc="upper left", framealpha=1.0, edgecolor="white")
    for axes in (left, right):
        axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=150)


def main() -> int:
    """Write figures and numbers, or compare the numbers when asked to check."""
    page = PAGE.read_text()
    fresh = with_numbers(page)
    if "--check" in sys.argv[1:]:
        return int(fresh != page)
    PAGE.write_text(fresh)
    save_certificate_figure(
        preset("certified"), example_costs(), DOCS / "figures" / "certificate_anatomy.png"
    )
    draw_limits(DOCS / "figures" / "certificate_limits.png")
    return 0


if __name__ == "__main__":
    sys.exit(main())
