"""Regenerate the figures and the numbers of docs/certificate.md: ``python docs/make_certificate_figures.py``.

With ``--check`` nothing is written; the exit status is 1 when the numbers on the page are out of date.
"""

import sys
from functools import cache
from math import inf
from pathlib import Path

import numpy as np
from blocks import fill
from matplotlib.figure import Figure
from scipy.special import expit
from scipy.stats import beta as beta_distribution
from scipy.stats import binom

from steingate import Beta, Certificate
from steingate.certificates.bounds import clopper_pearson_upper
from steingate.certificates.concentration import concentration_radii, discrepancy_lower_bound, step_condition
from steingate.certificates.factors import lemma_constants, rkhs_factor
from steingate.certificates.kernels import Kernel
from steingate.certificates.mean_bound import mean_upper
from steingate.certificates.plan import episodes_needed
from steingate.certificates.presets import half_budget_reference
from steingate.certificates.risk import Sigmoid
from steingate.certificates.stein import stein_kernel, stein_kernel_bound
from steingate.gates.base import Episodes
from steingate.gates.sampling import count_episodes
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


def soft_episodes(violations: int) -> int:
    """Return how many episodes the bound for soft risks needs, with so many violations of risk 1."""
    n = max(episodes_needed(0.1, 0.05, violations), 1)
    while mean_upper(np.r_[np.ones(violations), np.zeros(n - violations)], 0.05) > 0.1:
        n += 1
    return n


def soft_rows() -> list[tuple[str, ...]]:
    """Return what two samples look like to a soft and to a hard risk."""
    rows = []
    for label, costs in (
        (
            "17 % of 20,000 episodes cost 25.01, the rest nothing",
            np.r_[np.full(3400, 25.01), np.zeros(16600)],
        ),
        ("10,000 episodes cost 23 each", np.full(10_000, 23.0)),
    ):
        row = [label]
        for risk in ("sigmoid", "exceedance:0.5"):
            result = Certificate.preset("confident", limit=LIMIT, risk=risk).evaluate(costs)
            row.append(f"{result.bound:.4f}, {'open' if result.safe else 'shut'}")
        rows.append(tuple(row))
    return rows


def floor_shares(repeats: int = 500) -> tuple[float, float]:
    """Return how often `certified` opens at a true risk of 0.2, 16 episodes, and how often with no floor."""
    certificate, rng = preset("certified"), np.random.default_rng(0)
    law = half_budget_reference(0.4, Sigmoid(), 0.0, 0.0)
    costs = 2.0 * LIMIT * law.sample(rng, 16 * repeats).reshape(repeats, 16)
    opened = unfloored = 0
    for result in map(certificate.evaluate, costs):
        opened += result.safe
        value = result.reference_risk + result.discrete_term
        value += certificate.factor * result.interior_mass * result.excess_discrepancy
        unfloored += value <= result.budget
    return opened / repeats, unfloored / repeats


def early_errors(envs: int, steps: int, early: float, repeats: int = 1000) -> tuple[float, float]:
    """Return how often the bound is below a risk of 0.1: all finished episodes counted, and by start."""
    rng, longest = np.random.default_rng([envs, int(100 * early)]), 1000
    wrong = [0, 0]
    for _ in range(repeats):
        short = rng.random((envs, 2 + steps // 50)) < early
        length = np.where(short, rng.integers(50, 200, short.shape), longest)
        cost = 2.0 * LIMIT * (~short & (rng.random(short.shape) < 0.1 / (1.0 - early)))
        end = np.cumsum(length, axis=1)
        done = end <= steps
        seen = Episodes(cost[done], cost[done], length[done], start=(end - length)[done])
        for rule, counted in enumerate((seen, count_episodes(seen, steps, longest).episodes)):
            hits = int((counted.cost > LIMIT).sum())
            wrong[rule] += clopper_pearson_upper(hits, len(counted.cost), 0.05) < 0.1
    return wrong[0] / repeats, wrong[1] / repeats


def early_rows() -> list[tuple[str, ...]]:
    """Return the error of both rules for three shapes of an epoch."""
    rows = []
    for envs, steps in ((8, 2500), (16, 1250), (40, 1000)):
        found = [early_errors(envs, steps, early) for early in (0.7, 0.8)]
        rows.append(
            (f"{envs} × {steps}", *(" and ".join(f"{pair[i]:.3f}" for pair in found) for i in (0, 1)))
        )
    return rows


def peeking_text(looks: int = 10_000, repeats: int = 400) -> str:
    """Return how often the exact bound is below the truth at some look, with one look after every episode."""
    n, shares = np.arange(1, looks + 1), []
    for risk in (0.01, 0.1, 0.3):
        too_few = binom.ppf(0.05, n, risk) - 1  # the bound of so many violations, or fewer, is below the risk
        hits = np.cumsum(np.random.default_rng(1).random((repeats, looks)) < risk, axis=1)
        shares.append(f"{100.0 * np.mean((hits <= too_few).any(axis=1)):.0f} %")
    return (
        f"Looking after each of {looks} episodes, the exact bound at delta 0.05 is at some look below a true "
        f"risk of 0.01, 0.1 or 0.3 in {shares[0]}, {shares[1]} and {shares[2]} of cases."
    )


def theorem_text() -> str:
    """Return what the theorem asks for at the size of a usual task."""
    certificate = preset("certified")
    kernel_bound = stein_kernel_bound(certificate.interior, Kernel("matern52", 0.2), "weighted", 1e-5)
    radii = concentration_radii(100, 100, 0.05, kernel_bound)
    rng = np.random.default_rng(3)
    result = certificate.evaluate(2.0 * LIMIT * rng.beta(4.0, 4.0, 100))
    lower = discrepancy_lower_bound(0.0, result.interior_discrepancy, 1.0, radii)
    step = step_condition(
        lower,
        certificate.factor,
        advantage_bound=1.0,
        horizon=1000,
        mean_total_variation=0.01,
        budget=certificate.budget,
    )
    return (
        f"At H = 1000, a mean total variation of 0.01 and ε_h = 1 the penalty is {step.penalty:.0f}, against "
        f"a budget of {certificate.budget:g}. With `certified` and 100 episodes the radii take "
        f"{radii.interior + radii.mass:.2f} off a discrepancy; costs from 50 × Beta(4, 4), of mean risk "
        f"{result.empirical_risk:.2f}, have one of {result.interior_discrepancy:.2f}, so SD_tot⁺ is "
        f"{lower.value:g} and the required λ_k {'infinite' if step.required_factor == inf else 'finite'}."
    )


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
            "-" if result.stein_bound is None else f"{result.reference_risk:.4f}",
            "-" if result.stein_bound is None else f"{result.discrete_term:.4f}",
            "-" if result.interior_term is None else f"{result.interior_term:.4f}",
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
    opened, unfloored = floor_shares()
    counts = [(str(k), str(episodes_needed(0.1, 0.05, k)), str(soft_episodes(k))) for k in range(4)]
    return {
        "floor": (
            f"At a true risk of 0.2 and 16 episodes (costs 50 × Beta(2, b)), {100.0 * opened:.0f} % of "
            f"samples open the gate, against {100.0 * unfloored:.0f} % if the noise were taken off without "
            f"regard to the mean risk."
        ),
        "counts": table(("violations", "`confident`", "with a soft risk function"), counts),
        "soft": table(("sample", "sigmoid", "exceedance (default)"), soft_rows()),
        "early": table(
            ("environments × steps", "error when all finished count", "by start, as here"), early_rows()
        ),
        "theorem": theorem_text(),
        "peeking": peeking_text(),
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
    return fill(page, numbers())


def draw_limits(path: Path) -> None:
    """Draw sampling noise against the room a budget leaves, and interior terms against the truth."""
    ink, colors = "#22303c", {"released": "#d1495b", "certified": "#2a9d8f"}
    figure = Figure(figsize=(11.0, 4.3), layout="constrained")
    left, right = figure.subplots(1, 2)
    for name, color in colors.items():
        low, middle, high = np.array([noise(name, n) for n in SIZES]).T
        left.fill_between(SIZES, low, high, color=color, alpha=0.16, linewidth=0)
        left.plot(SIZES, middle, color=color, marker="o", markersize=4, label=f"interior term of {name}")
    room = preset("certified").budget - preset("certified").reference_risk
    left.axhline(room, color=ink, linewidth=1.4)
    left.text(SIZES[0], 0.9 * room, f"room for it in certified: {room:g}", fontsize=9, va="top")
    left.text(
        SIZES[0], 0.7 * room, "room for it in released: none", fontsize=9, va="top", color=colors["released"]
    )
    left.set(xscale="log", yscale="log", xlabel="episodes", ylabel="risk")
    left.set_xticks(SIZES, [str(n) for n in SIZES], minor=False)
    left.set_xticks([], minor=True)
    left.set_yticks([0.01, 0.05, 0.1, 0.5, 1.0], ["0.01", "0.05", "0.1", "0.5", "1"])
    left.set_yticks([], minor=True)
    left.set_title("Costs drawn from the reference itself", fontsize=11, loc="left")
    left.legend(frameon=False, fontsize=9)

    for (name, (excess, bound)), color in zip(pairs().items(), colors.values(), strict=True):
        right.scatter(excess, bound, s=10, color=color, alpha=0.6, linewidth=0, label=f"{name} factor")
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
