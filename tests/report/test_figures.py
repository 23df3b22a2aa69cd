import numpy as np
import pytest
from tests.report.made_up import write_run

from steingate.errors import InputError
from steingate.report.figures import curves_figure, save_curves_figure
from steingate.report.groups import group_runs
from steingate.report.loading import load_runs
from steingate.report.look import label_colours


@pytest.fixture
def groups(tmp_path):
    for seed in range(2):
        write_run(tmp_path, seed=seed)
        write_run(tmp_path, algo="cpo", seed=seed)
    write_run(tmp_path, algo="cpo", env="SafetyCarGoal1-v0", cost_limit=10.0)
    return group_runs(load_runs([tmp_path])[0])


def test_the_figure_has_the_papers_layout(groups):
    figure = curves_figure(groups)
    car_return, point_return, car_cost, point_cost = figure.axes
    assert [panel.get_title() for panel in (car_return, point_return)] == ["CarGoal1", "PointGoal1"]
    assert (car_return.get_ylabel(), car_cost.get_ylabel()) == ("return", "cost")
    assert [len(panel.lines) for panel in figure.axes] == [1, 2, 2, 3]
    assert [len(panel.collections) for panel in figure.axes] == [0, 2, 0, 2]
    assert set(car_cost.lines[-1].get_ydata()) == {10.0}
    assert set(point_cost.lines[-1].get_ydata()) == {25.0}
    group = next(group for group in groups if group.label == "steingate")
    mean = np.mean([run.progress["Metrics/EpCost"] for run in group.runs], axis=0)
    np.testing.assert_allclose(point_cost.lines[1].get_ydata(), mean)
    texts = [text.get_text() for text in figure.legends[0].get_texts()]
    assert texts == ["cpo", "steingate", "limit"]


@pytest.mark.parametrize("suffix", ["png", "svg", "pdf"])
def test_figures_are_written_and_repeat(groups, tmp_path, suffix):
    files = [tmp_path / f"{name}.{suffix}" for name in "ab"]
    for file in files:
        save_curves_figure(groups, file)
    assert files[0].stat().st_size > 5000
    assert files[0].read_bytes() == files[1].read_bytes()


def test_bad_targets_are_named(groups, tmp_path):
    with pytest.raises(InputError, match="end the name with"):
        save_curves_figure(groups, tmp_path / "x.jpg")
    with pytest.raises(InputError, match="cannot be written"):
        save_curves_figure(groups, tmp_path / "no" / "x.png")
    with pytest.raises(InputError, match="no run to draw"):
        curves_figure([])


def test_labels_keep_their_colours():
    colours = label_colours(["cpo", "steingate", "a", "b"])
    assert len(set(colours.values())) == 4
    assert colours["cpo"] == label_colours(["cpo"])["cpo"]
    many = label_colours([f"x{k}" for k in range(40)])
    assert len(many) == 40
