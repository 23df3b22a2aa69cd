"""Draw every figure of the documentation: ``python docs/build_figures.py [NAME...]``.

Also writes examples/costs.csv, the episode costs of the second policy in the first figure of the README.
"""

import argparse
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path

import numpy as np
import numpy.typing as npt
from build_tables import (
    LIMIT,
    example_costs,
    interior_noise,
    mixture_bounds,
    preset,
)
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.transforms import Bbox
from PIL import Image, ImageDraw, ImageFont
from summary import MILLION, TASKS, archive, first_steps, grid_runs, rows

from steingate import certify
from steingate.report.certificate_figure import stein_figure
from steingate.report.figures import curves_figure, frontier_figure
from steingate.report.load import load_runs
from steingate.report.plot_style import FAINT, STYLE, save_figure
from steingate.report.plot_style import LIMIT as LIMIT_COLOR
from steingate.report.summary import make_report
from steingate.report.tables import task
from steingate.tasks.catalog import TASKS as NATIVE_TASKS
from steingate.tasks.catalog import TaskSpec
from steingate.tasks.environments import SafetyVectorEnv
from steingate.tasks.render import Renderer

ROOT = Path(__file__).parents[1]
FIGURES = ROOT / "docs" / "figures"
INK, GOOD, BAD = "#22303c", "#2a9d8f", "#d1495b"
sys.path.insert(0, str(ROOT / "examples"))

from certify_costs import gambling_costs, steady_costs  # noqa: E402

# Two policies with the same mean cost


def example_policies() -> dict[str, npt.NDArray[np.float64]]:
    """Return the episode costs of two policies with equal means."""
    rng = np.random.default_rng(7)
    return {"steady policy": steady_costs(rng), "gambling policy": gambling_costs(rng)}


def costs_file() -> str:
    """Return the second policy's costs as a CSV file."""
    return "\n".join(["cost", *(f"{cost:.2f}" for cost in example_policies()["gambling policy"])]) + "\n"


def same_mean(path: Path) -> None:
    """Draw two policies with the same mean cost and the bound on the violation probability of each."""
    figure = Figure(figsize=(10.0, 3.1), layout="constrained")
    panels = figure.subplots(1, 2, sharex=True, sharey=True)
    for axes, (name, costs) in zip(panels, example_policies().items(), strict=True):
        result = certify(costs, LIMIT)
        text, color = ("certified", GOOD) if result.certified else ("not certified", BAD)
        bins = np.arange(0.0, 62.0, 2.0)
        heights, _ = np.histogram(costs, bins)
        tints = np.where(bins[:-1] < LIMIT, "#9db2c7", BAD)
        axes.bar(bins[:-1], 100.0 * heights / costs.size, width=2.0, align="edge", color=tints)
        axes.axvline(LIMIT, color=INK, linestyle=":", linewidth=1.2)
        axes.axvline(costs.mean(), color=INK, linewidth=1.6)
        axes.text(costs.mean() + 0.7, 33.0, f"mean {costs.mean():.1f}", fontsize=9, color=INK)
        axes.text(LIMIT + 0.7, 33.0, f"limit {LIMIT:g}", fontsize=9, color="#7a8894")
        axes.text(
            0.985, 0.62, f"{text} for 10 %\nbound {100 * result.bound:.0f} %", transform=axes.transAxes,
            ha="right", va="center", fontsize=10, color="white",
            bbox={"boxstyle": "round,pad=0.5", "facecolor": color, "edgecolor": "none"},
        )  # fmt: skip
        axes.set_title(f"{name}: {np.mean(costs > LIMIT):.0%} of episodes over the limit", fontsize=11, loc="left")
        axes.set_xlabel("episode cost")
        axes.spines[["top", "right"]].set_visible(False)
    panels[0].set_ylabel("episodes (%)")
    panels[0].set_ylim(0.0, 36.0)
    figure.savefig(path, dpi=150)


# The certificate


def certificate_anatomy(path: Path) -> None:
    """Draw 200 costs, the reference, the risk function and the terms of the bound."""
    costs = example_costs()
    save_figure(stein_figure(preset("corrected").evaluate(costs), costs), path)


def certificate_limits(path: Path) -> None:
    """Draw the noise of the interior term, and the interior term against the true difference in risk."""
    figure = Figure(figsize=(11.0, 4.3), layout="constrained")
    left, right = figure.subplots(1, 2)
    sizes = (8, 16, 40, 100, 200, 1000)
    for name, color in (("released", BAD), ("corrected", GOOD)):
        low, middle, high = np.array([interior_noise(name, n) for n in sizes]).T
        left.fill_between(sizes, low, high, color=color, alpha=0.16, linewidth=0)
        left.plot(sizes, middle, color=color, marker="o", markersize=4, label=name)
        right.scatter(*mixture_bounds(name), s=10, color=color, alpha=0.6, linewidth=0, label=f"{name} factor")
    room = preset("corrected").budget - preset("corrected").reference_risk
    left.axhline(room, color=INK, linewidth=1.4)
    left.text(sizes[0], 0.9 * room, f"budget less reference risk (corrected): {room:g}", fontsize=9, va="top")
    left.set(xscale="log", yscale="log", xlabel="episodes", ylabel="interior term")
    left.set_xticks(sizes, [str(n) for n in sizes], minor=False)
    left.set_xticks([], minor=True)
    left.set_yticks([0.01, 0.05, 0.1, 0.5, 1.0], ["0.01", "0.05", "0.1", "0.5", "1"])
    left.set_yticks([], minor=True)
    left.set_title("Costs drawn from the reference", fontsize=11, loc="left")
    reach = np.array([0.0, 1.0])
    right.fill_between(reach, reach, color=INK, alpha=0.08, linewidth=0)
    right.plot(reach, reach, color=INK, linewidth=1.4)
    right.text(0.97, 0.04, "the bound fails", fontsize=9, ha="right")
    right.set(xlabel="true risk less reference risk", ylabel="interior term", xlim=(-0.12, 1.0), ylim=(0.0, 1.75))
    right.set_title("400 random mixtures, exact integrals", fontsize=11, loc="left")
    for axes in (left, right):
        axes.legend(fontsize=9, loc="upper left" if axes is right else "best", frameon=False)
        axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=150)


# The monitor


def monitor_peeking(path: Path) -> None:
    """Draw the error of repeated looks, and how many episodes certification takes."""
    colors = {"0.02": "#9db4c8", "0.1": "#2f6f9f", "0.3": INK}
    with rc_context(STYLE):
        figure = Figure(figsize=(11.0, 4.3), layout="constrained")
        left, right = figure.subplots(1, 2, width_ratios=(1.5, 1.0))
        for rate, style in (("0.02", ":"), ("0.1", "-"), ("0.3", "--")):
            own = rows("monitor_peeking.csv", risk=rate)
            episodes = [float(row["episodes"]) for row in own]
            fixed, monitor = ([float(row[name]) for row in own] for name in ("fixed_n", "monitor"))
            left.plot(episodes, fixed, color=colors[rate], lw=2.0, label=f"fixed-sample bound, rate {rate}")
            left.plot(episodes, monitor, color=GOOD, lw=1.6, ls=style, label=f"Monitor, rate {rate}")
        left.axhline(0.05, color=LIMIT_COLOR, linewidth=1.2)
        left.text(1.1, 0.058, "delta 0.05", fontsize=9, color=LIMIT_COLOR)
        left.set(xscale="log", xlabel="episodes, with a bound after each", xlim=(1, 10_000), ylim=(0, None))
        left.set_xticks([1, 10, 100, 1000, 10_000], ["1", "10", "100", "1,000", "10,000"])
        left.set_ylabel("probability of an error so far")
        left.legend(fontsize=9, loc="upper left", framealpha=1.0, edgecolor="white")
        left.set_title("Checking after every episode", loc="left", fontsize=11)
        left.grid(color=FAINT, linewidth=0.6)
        own = rows("monitor_price.csv", budget="0.1")
        place = np.arange(len(own))
        for shift, rule, color in ((-0.2, "fixed", "#9db4c8"), (0.2, "monitor", GOOD)):
            heights = [float(row[f"{rule}_median"]) for row in own]
            title = {"fixed": "fixed sample", "monitor": "Monitor"}[rule]
            right.bar(place + shift, heights, 0.38, color=color, label=title)
            for x, height in zip(place, heights, strict=True):
                right.text(x + shift, height + 2, f"{height:.0f}", ha="center", fontsize=9)
        right.set_xticks(place, [f"{float(row['risk']):g}" for row in own])
        right.set(xlabel="true violation rate", ylabel="episodes, median")
        right.legend(frameon=False, fontsize=9, loc="upper left")
        right.set_title("Episodes to certify 10 %", loc="left", fontsize=11)
        figure.savefig(path, dpi=150)


# Training results


def frontier(path: Path) -> None:
    """Draw return against violation rate of the runs of ten million steps, judged at a limit of 25."""
    archives = [archive(grid) for grid in ("table1", "allowance", "equal") if archive(grid).exists()]
    runs, _ = load_runs(archives, LIMIT)
    save_figure(frontier_figure(make_report(runs)), path)


def learning(path: Path) -> None:
    """Draw return against violation rate of every method after a million steps."""
    with rc_context(STYLE):
        figure = Figure(figsize=(11.0, 5.6), dpi=120)
        figure.subplots_adjust(left=0.05, right=0.98, top=0.94, bottom=0.1, wspace=0.14)
        for panel, env in zip(figure.subplots(1, 2), (TASKS[1], TASKS[0]), strict=True):
            own = rows("learning.csv", env=env, variant="corrected")[::-1]  # ours are last
            points = [(100.0 * float(row["over_limit"]), float(row["return"])) for row in own]
            names = [row["algo"] for row in own]
            colors = [GOOD if name.startswith(("steingate", "allowance")) else INK for name in names]
            panel.scatter(*np.transpose(points), c=["#7d93a8" if color == INK else color for color in colors])
            panel.set_title(task(env), loc="left", fontweight="bold", fontsize=11)
            panel.set(xlabel="episodes over the limit, %", ylabel="return", xlim=(-4, 115))
            panel.margins(y=0.1)
            panel.grid(color=FAINT, linewidth=0.6)
            panel.set_axisbelow(True)
            label_points(panel, points, names, colors)
        figure.savefig(path)


def label_points(panel: Axes, points: list[tuple[float, float]], names: list[str], colors: list[str]) -> None:
    """Write a name beside each point, in the first of some places where it hides nothing."""
    places = [(x, y, side) for y in (3, -10, 12, -19, 21, -28) for x, side in ((4, "left"), (-4, "right"))]
    taken = [Bbox.from_extents(x - 3, y - 3, x + 3, y + 3) for x, y in panel.transData.transform(points)]
    for point, name, color in zip(points, names, colors, strict=True):
        for x, y, side in places:
            text = panel.annotate(
                name, point, xytext=(x, y), textcoords="offset points", ha=side, fontsize=8, color=color
            )
            box = text.get_window_extent()
            free = not any(box.overlaps(other) for other in taken)
            if free and panel.bbox.x0 <= box.x0 and panel.bbox.y0 <= box.y0:
                break
            text.remove()
        else:
            raise ValueError(f"There is no room for the label of {name}.")
        taken.append(box)


def curves(*grids: str, beside: tuple[str, ...] = (), steps: int | None = None) -> Callable[[Path], None]:
    """Return a function that draws return and cost over training of some grids.

    ``beside`` adds SteinGate's runs of Table 1 with seed 0 on these tasks, ``steps`` shortens these runs.
    """

    def draw(path: Path) -> None:
        runs = [run for grid in grids for run in grid_runs(grid)]
        for run in grid_runs("table1") if beside else []:
            if (run.algo, run.seed) == ("steingate", 0) and run.env in beside:
                runs.append(run if steps is None else first_steps(run, steps))
        save_figure(curves_figure(make_report(runs)), path)

    return draw


# One picture of every task

BATCH, SEED = 48, 20007
TILE, SHARPER, CAPTION, GAP, COLUMNS = 300, 2, 76, 10, 6
WAIT = {"goal": 60, "circle": 45, "velocity": 18}  # earliest step that is shown
COSTLY = ("Car", "Ant", "Swimmer", "Hopper")  # tasks shown at a step that costs


def contact_sheet(path: Path) -> None:
    """Draw every native task once."""
    specs = sorted(NATIVE_TASKS.values(), key=lambda spec: (spec.family == "velocity", spec.family != "goal"))
    width, height = TILE + GAP, TILE + CAPTION + GAP
    page = Image.new("RGB", (COLUMNS * width + GAP, -(-len(specs) // COLUMNS) * height + GAP), "white")
    pen = ImageDraw.Draw(page)
    bold, small = ImageFont.load_default(15), ImageFont.load_default(12)
    for number, spec in enumerate(specs):
        x, y = GAP + number % COLUMNS * width, GAP + number // COLUMNS * height
        frame, costs = task_picture(spec)
        page.paste(Image.fromarray(frame).resize((TILE, TILE), Image.Resampling.LANCZOS), (x, y))
        pen.text((x, y + TILE + 5), spec.env_id, (32, 38, 48), bold)
        lines = textwrap.wrap(f"cost: {spec.cost_text}", 46)
        pen.multiline_text((x, y + TILE + 25), "\n".join(lines), (110, 118, 130), small, spacing=3)
        if costs:
            pen.text((x, y + TILE + 25 + 16 * len(lines)), "this step has cost 1", (215, 45, 35), small)
    page.save(path, optimize=True)


def task_picture(spec: TaskSpec) -> tuple[npt.NDArray[np.uint8], bool]:
    """Return a frame of a task, and whether the step shown has cost 1."""
    env = SafetyVectorEnv(spec.env_id, BATCH)
    env.reset(seed=list(range(SEED, SEED + BATCH)))
    rng = np.random.default_rng(SEED)
    speed, phase = rng.uniform(0.05, 0.5, (BATCH, 1)), rng.uniform(0, 2 * np.pi, (BATCH, spec.action_size))
    costly = bool(spec.cost_parts) and any(name in spec.env_id for name in COSTLY)
    first_episode = np.ones(BATCH, dtype=bool)
    for step in range(spec.max_episode_steps):
        _, _, terminated, truncated, info = env.step(spec.action_bound * np.sin(speed * step + phase))
        first_episode &= ~(terminated | truncated)
        fitting = first_episode & ((info["cost"] > 0) == costly)
        if step >= WAIT[spec.family] and fitting.any():
            break
    index, size = int(np.argmax(fitting)), TILE * SHARPER
    renderer = Renderer(spec, size, size, "track" if spec.family == "velocity" else "fixed")
    frame = renderer.frame(env.scene(index))
    env.close()
    return frame, bool(info["cost"][index] > 0)


DRAWINGS: dict[str, Callable[[Path], None]] = {
    "same_mean": same_mean,
    "certificate_anatomy": certificate_anatomy,
    "certificate_limits": certificate_limits,
    "monitor_peeking": monitor_peeking,
    "frontier": frontier,
    "learning": learning,
    "main_results": curves("table1", "allowance"),
    "allowance": curves("allowance"),
    "limits": curves("limits", beside=TASKS[0:1]),
    "references": curves("references", beside=TASKS[0:1]),
    "samples": curves("samples", beside=TASKS[2:3]),
    "circle2": curves("circle2"),
    "velocity": curves("velocity"),
    "gates": curves("gates"),
    "baselines": curves("baselines", beside=TASKS, steps=MILLION),
    "cpo-variants": curves("cpo-variants", beside=TASKS, steps=MILLION),
    "contact_sheet": contact_sheet,
}


def main() -> None:
    """Draw the named figures, or all."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("names", nargs="*", metavar="NAME", help=f"one of {', '.join(DRAWINGS)}")
    for name in options.parse_args().names or DRAWINGS:
        DRAWINGS[name](FIGURES / f"{name}.png")
        print(name)
    (ROOT / "examples" / "costs.csv").write_text(costs_file(), encoding="utf-8")


if __name__ == "__main__":
    main()
