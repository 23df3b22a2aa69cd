"""Keep small files of long runs: ``python results/keep_runs.py NAME RUNS...``.

Writes ``results/NAME/``: one CSV per run (a row per epoch) and one figure per run, ``summary.csv``,
``endpoints.csv`` (the trained policies, evaluated) and ``curves.png`` over all of them, and ``README.md``
with the commands that made the runs.
"""

import csv
import sys
from pathlib import Path

import numpy as np
from PIL import Image

from steingate.report.curves_figure import save_curves_figure
from steingate.report.evidence import gather
from steingate.report.loading import Run, setting
from steingate.report.published import published
from steingate.report.record import canonical, settings
from steingate.report.run_figure import save_run_figure
from steingate.report.stats import cvar, exceedance, feasible_return, tail_feasibility
from steingate.report.summary import tail_episodes, tail_epochs
from steingate.training.config import make_config, read_stored
from steingate.training.evaluate import evaluate

EPISODES = 300
ENDPOINTS = Path(__file__).with_name("omnisafe_endpoints.csv")  # 5 seeds, 10^7 steps, limit 25, deterministic

COLUMNS = (
    "TotalEnvSteps",
    "Metrics/EpRet",
    "Metrics/EpCost",
    "Epoch/EpRet",
    "Epoch/EpCost",
    "Epoch/OverLimit",
    "Epoch/WorstCost",
    "Gate/Mode",
    "Gate/Bound",
    "Gate/Price",
    "Gate/Share",
    "Gate/Noise",
    "Gate/Worth",
    "Time/Total",
)

ABOUT = """# Runs of ten million steps: {name}

Made by `python results/keep_runs.py {name} RUNS...`. Each run repeats bit for bit:

```
{commands}
```

`summary.csv` covers the last fifth of each run. *By epoch* judges each epoch by the mean of its last hundred
episodes, as the paper's table does; *by episode* counts episodes, as its text does. `minutes` is wall-clock
time on two cores that other work shared. `endpoints.csv` has the last policies, {episodes} fresh
episodes each without exploration noise, with an upper bound on the share over the limit (95 % confidence),
beside the means and deviations that OmniSafe publishes for five seeds.
"""


def command(run: Run) -> str:
    """Return the command that repeats a run bit for bit."""
    variant = str(setting(run, "variant"))
    found = settings(read_stored(run.config, str(run.path)).to_dict())
    usual = settings(make_config({"env": run.env, "algo": run.algo, "variant": variant}).to_dict())
    shown = {"env": run.env, "algo": run.algo, "variant": variant, "total_steps": found["total_steps"]}
    words = [f"--{name.replace('_', '-')} {value}" for name, value in (shown | {"seed": run.seed}).items()]
    for name, value in found.items():
        if name in shown or value is None or canonical(value) == canonical(usual.get(name)):
            continue
        text = ",".join(map(str, value)) if isinstance(value, list) else str(value)
        table, _, key = name.partition(".")
        if table in ("certificate", "env_options"):
            words.append(f"--{table.replace('_', '-')} {key}={text}")
        elif isinstance(value, bool):
            words.append(f"--{'' if value else 'no-'}{name.replace('_', '-')}")
        else:
            words.append(f"--{name.replace('_', '-')} {text}")
    return "steingate train " + " ".join(words)


def summary_row(run: Run) -> dict[str, str]:
    """Return the numbers of one run over the last fifth of its epochs, beside the paper's."""
    epoch_return, epoch_cost = tail_epochs(run)
    episode_return, episode_cost = tail_episodes(run)
    paper = published(run.config)
    numbers = {
        "return": np.mean(epoch_return),
        "cost": np.mean(epoch_cost),
        "feasible_by_epoch": tail_feasibility(epoch_cost, run.limit),
        "return_if_feasible_by_epoch": feasible_return(epoch_return, epoch_cost, run.limit),
        "feasible_by_episode": tail_feasibility(episode_cost, run.limit),
        "return_if_feasible_by_episode": feasible_return(episode_return, episode_cost, run.limit),
        "over_limit": exceedance(episode_cost, run.limit),
        "cvar90": cvar(episode_cost, 0.9),
        "minutes": run.progress["Time/Total"][-1] / 60.0,
        "paper_feasible": np.nan if paper is None else paper.feasibility,
        "paper_return_if_feasible": np.nan if paper is None else paper.ret,
    }
    names = {
        "env": run.env,
        "algo": run.algo,
        "variant": str(setting(run, "variant")),
        "seed": str(run.seed),
        "steps": str(run.steps),
    }
    return names | {name: "" if np.isnan(value) else f"{value:.3f}" for name, value in numbers.items()}


def endpoint_row(run: Run) -> dict[str, str]:
    """Return what the trained policy does without noise, beside the end points that OmniSafe publishes."""
    with open(ENDPOINTS, newline="") as file:
        known = {(row["env"], row["algo"]): row for row in csv.DictReader(file)}
    theirs = known.get((run.env, run.algo), {})
    outcome = evaluate(run.path, EPISODES, policy="last")
    found = outcome.episodes
    return {
        "env": run.env,
        "algo": run.algo,
        "seed": str(run.seed),
        "return": f"{found.ret.mean():.2f}",
        "cost": f"{found.cost.mean():.2f}",
        "over_limit": f"{exceedance(found.cost, run.limit):.3f}",
        "over_bound": f"{outcome.bound:.3f}",
        "cvar90": f"{cvar(found.cost, 0.9):.1f}",
        **{f"omnisafe_{name}": theirs.get(name, "") for name in ("return", "return_sd", "cost", "cost_sd")},
    }


def write_rows(path: Path, rows: list[dict[str, str]]) -> None:
    """Write a CSV file."""
    with open(path, "w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)


def shrink(path: Path) -> None:
    """Save a picture again with a small palette: a quarter of the size, no visible difference."""
    Image.open(path).convert("RGB").quantize(96).save(path, optimize=True)


def keep(name: str, roots: list[str]) -> None:
    """Write the folder."""
    folder = Path(__file__).parent / name
    folder.mkdir(exist_ok=True)
    evidence = gather(roots)
    runs = evidence.runs
    for item in evidence.skipped:
        print(f"skipped {item}", file=sys.stderr)
    for run in runs:
        stem = f"{run.algo}_{run.env}_seed-{run.seed}"
        columns = {column: run.progress[column] for column in COLUMNS if column in run.progress}
        with open(folder / f"{stem}.csv", "w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(columns)
            for row in zip(*columns.values(), strict=True):
                writer.writerow("" if np.isnan(value) else f"{value:.5g}" for value in row)
        save_run_figure(run.path, folder / f"{stem}.png")
        shrink(folder / f"{stem}.png")
    write_rows(folder / "summary.csv", [summary_row(run) for run in runs])
    write_rows(folder / "endpoints.csv", [endpoint_row(run) for run in runs])
    save_curves_figure(evidence, folder / "curves.png")
    commands = "\n".join(command(run) for run in runs)
    (folder / "README.md").write_text(
        ABOUT.format(name=name, commands=commands, episodes=EPISODES), encoding="utf-8"
    )


if __name__ == "__main__":
    if len(sys.argv) < 3:
        raise SystemExit(__doc__)
    keep(sys.argv[1], sys.argv[2:])
