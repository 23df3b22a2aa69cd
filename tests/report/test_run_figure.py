import json

import numpy as np
import pytest

from steingate.errors import InputError, RunError
from steingate.report.run_figure import run_figure, save_run_figure
from steingate.storage.tables import EPISODE_COLUMNS, Table


@pytest.fixture
def run(tmp_path):
    """A made-up run folder of twelve epochs; in one no episode finished."""
    rng = np.random.default_rng(0)
    config = {
        "algo": "steingate", "env": "Made-up", "seed": 1, "cost_limit": 25.0, "window": 100,
        "total_steps": 12_000, "steps_per_epoch": 1000,
    }  # fmt: skip
    (tmp_path / "config.json").write_text(json.dumps({"config": config}))
    progress = Table(tmp_path / "progress.csv")
    episodes = Table(tmp_path / "episodes.csv", EPISODE_COLUMNS)
    for epoch in range(12):
        cost = rng.gamma(2.0, 10.0, 0 if epoch == 5 else 6)
        episodes.append(
            {
                "epoch": epoch,
                "step": 1000 * epoch + 100 * i,
                "return": float(epoch),
                "cost": float(c),
                "length": 9,
            }
            for i, c in enumerate(cost)
        )
        mean = float(cost.mean()) if len(cost) else None
        progress.append([{
            "TotalEnvSteps": 1000 * (epoch + 1), "Train/EpRet": float(epoch), "Metrics/EpRet": epoch - 0.5,
            "Train/EpCost": mean, "Metrics/EpCost": 20.0, "Gate/Mode": 2 * (epoch % 2),
            "Gate/Bound": mean and mean / 99, "Gate/Budget": 0.1, "Gate/ReferenceRisk": 0.113,
            "Gate/DiscreteTerm": 0.05, "Gate/InteriorTerm": 0.02, "Gate/DecisionValue": mean and mean / 99,
        }])  # fmt: skip
    return tmp_path


@pytest.mark.parametrize("suffix", ["png", "svg", "pdf"])
def test_figures_are_written_and_repeat(run, tmp_path, suffix):
    files = [tmp_path / f"{name}.{suffix}" for name in "ab"]
    for file in files:
        save_run_figure(run, file)
    assert files[0].stat().st_size > 5000
    assert files[0].read_bytes() == files[1].read_bytes()


def test_the_panels_show_the_numbers(run):
    figure = run_figure(run)
    ret, cost, bound, mode = figure.axes
    assert [panel.get_ylabel() for panel in figure.axes] == ["return", "cost", "bound", "mode"]
    np.testing.assert_array_equal(ret.lines[0].get_ydata(), np.arange(12.0))
    np.testing.assert_allclose(ret.lines[0].get_xdata(), np.arange(1.0, 13.0))  # thousands
    assert 25.0 in cost.lines[2].get_ydata()
    assert len(bound.patches) >= 4
    assert len(mode.patches) == 12
    labels = [text.get_text() for text in mode.get_legend().get_texts()]
    assert labels == ["improve 50%", "recover 50%"]
    assert "4 of 12 episodes over the limit (33.3%)" in figure.texts[1].get_text()


def test_steps_are_in_a_unit_of_which_there_are_some(run):
    panel = run_figure(run).axes[-1]
    assert panel.get_xlabel() == "environment steps, thousands"
    assert panel.get_xlim() == (0.0, 12.0)
    dots = run_figure(run).axes[0].collections[0].get_offsets()
    assert dots[:, 0].max() == pytest.approx(11.5)


def test_a_gate_without_a_bound_gets_no_panel_for_it(run):
    text = (run / "progress.csv").read_text().splitlines()
    names = text[0].split(",")
    keep = [
        i for i, name in enumerate(names) if name not in ("Gate/Bound", "Gate/Budget", "Gate/DecisionValue")
    ]
    lines = [",".join(line.split(",")[i] for i in keep) for line in text]
    (run / "progress.csv").write_text("\n".join(lines) + "\n")
    assert [axes.get_ylabel() for axes in run_figure(run).axes] == ["return", "cost", "mode"]


def test_bad_targets_are_named(run, tmp_path):
    with pytest.raises(InputError, match=r"end the name with"):
        save_run_figure(run, tmp_path / "x.jpg")
    with pytest.raises(InputError, match="cannot be written"):
        save_run_figure(run, tmp_path / "no" / "x.png")
    with pytest.raises(RunError, match="not a run folder"):
        run_figure(tmp_path / "no")
