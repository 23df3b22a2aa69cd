"""Run folders made up for tests of reports: quick to write, with numbers that are known."""

import json

import numpy as np

from steingate.runs import digest
from steingate.storage.tables import EPISODE_COLUMNS


def write_run(
    root, algo="steingate", env="SafetyPointGoal1-v0", seed=0, epochs=20, planned=None, per_epoch=4,
    steps=1000, plot_style=None, algorithm=None, **config,
):  # fmt: skip
    """Write a run whose cost falls and whose return rises; return its folder.

    ``algorithm`` holds settings of the algorithm and ``config`` those of the run. The gate of algorithms
    other than steingate has no bound.
    """
    if algorithm is None:
        gate = {"preset": "released", "certificate": {}} if algo == "steingate" else {}
        algorithm = {"variant": "published", **gate, "hidden": [64, 64]}
    rng = np.random.default_rng([seed, len(algo)])
    folder = root / algo / env / f"seed-{seed}"
    folder.mkdir(parents=True)
    config = {
        "env": env, "algo": algo, "total_steps": steps * (planned or epochs), "steps_per_epoch": steps,
        "seed": seed, "cost_limit": 25.0, "window": 100, "threads": None, "out": str(root),
    } | config | {"algorithm": algorithm}  # fmt: skip
    record = {"config": config, "versions": {"steingate": "0.1.0"}, "started": "2026-01-01T00:00:00+00:00"}
    record["identity"] = digest(config, steps=False)
    (folder / "config.json").write_text(json.dumps(record | {"plot_style": plot_style}))
    mean = np.linspace(60.0, 12.0, epochs)
    cost = np.round(rng.gamma(2.0, mean[:, None] / 2.0, (epochs, per_epoch)))
    ret = np.linspace(0.0, 10.0, epochs)[:, None] + rng.normal(size=(epochs, per_epoch)) + seed
    rows = [",".join(EPISODE_COLUMNS)]
    for epoch in range(epochs):
        for slot in range(per_epoch):
            step = steps * epoch + (slot + 1) * steps // per_epoch
            rows.append(f"{epoch},{step},{float(ret[epoch, slot])!r},{float(cost[epoch, slot])!r},250")
    (folder / "episodes.csv").write_text("\n".join(rows) + "\n")
    names = [
        "TotalEnvSteps", "Train/Epoch", "Metrics/EpRet", "Metrics/EpCost", "Train/EpRet", "Train/EpCost",
        "Gate/Mode", "Gate/Bound", "Gate/Budget", "Gate/ReferenceRisk", "Gate/DiscreteTerm",
        "Gate/InteriorTerm", "Gate/DecisionValue",
    ]  # fmt: skip
    table = [",".join(names)]
    for epoch in range(epochs):
        seen = slice(max((epoch + 1) * per_epoch - config["window"], 0), (epoch + 1) * per_epoch)
        here = cost[epoch].mean()
        risk = float(np.mean(cost[epoch] > 25.0))
        gate = [0.1 + risk, 0.1, 0.1, 0.6 * risk, 0.4 * risk, 0.1 + risk] if algo == "steingate" else [""] * 6
        row = [
            steps * (epoch + 1), epoch, ret.ravel()[seen].mean(), cost.ravel()[seen].mean(),
            ret[epoch].mean(), here, 2 if here > 25.0 else 0, *gate,
        ]  # fmt: skip
        table.append(",".join(map(str, row)))
    (folder / "progress.csv").write_text("\n".join(table) + "\n")
    return folder


def set_columns(folder, **columns):
    """Add columns to ``progress.csv`` or replace them; an underscore in a name stands for a slash."""
    file = folder / "progress.csv"
    header, *rows = (line.split(",") for line in file.read_text().splitlines())
    for name, cells in columns.items():
        name = name.replace("_", "/")
        if name not in header:
            header.append(name)
            rows = [[*row, ""] for row in rows]
        for row, cell in zip(rows, cells, strict=True):
            row[header.index(name)] = str(cell)
    file.write_text("".join(",".join(row) + "\n" for row in [header, *rows]))
