import numpy as np
import pytest
from steingate.report.evidence import gather, weigh
from tests.report.made_up import write_run

from steingate.errors import InputError
from steingate.report.curves_figure import curves_figure, save_curves_figure


@pytest.fixture
def evidence(tmp_path):
    for seed in range(2):
        write_run(tmp_path, seed=seed)
        write_run(tmp_path, algo="cpo", seed=seed)
    write_run(tmp_path, algo="cpo", env="SafetyCarGoal1-v0", cost_limit=10.0)
    return gather([tmp_path])


def test_the_figure_has_the_papers_layout(evidence):
    figure = curves_figure(evidence)
    car_return, point_return, car_cost, point_cost = figure.axes
    assert [panel.get_title() for panel in (car_return, point_return)] == ["CarGoal1", "PointGoal1"]
    assert (car_return.get_ylabel(), car_cost.get_ylabel()) == ("return", "cost")
    assert [len(panel.lines) for panel in figure.axes] == [1, 2, 2, 3]
    assert [len(panel.collections) for panel in figure.axes] == [0, 2, 0, 2]
    assert set(car_cost.lines[-1].get_ydata()) == {10.0}
    assert set(point_cost.lines[-1].get_ydata()) == {25.0}
    group = next(group for group in evidence.groups if group.label == "steingate")
    mean = np.mean([run.progress["Metrics/EpCost"] for run in group.runs], axis=0)
    np.testing.assert_allclose(point_cost.lines[1].get_ydata(), mean)
    texts = [text.get_text() for text in figure.legends[0].get_texts()]
    assert texts == ["cpo", "steingate", "limit"]


def test_one_task_alone_has_return_and_cost_side_by_side(tmp_path):
    write_run(tmp_path)
    left, right = curves_figure(gather([tmp_path])).axes
    assert left.get_position().y0 == right.get_position().y0
    assert left.get_position().x1 < right.get_position().x0
    assert (left.get_ylabel(), right.get_ylabel()) == ("return", "cost")
    assert left.get_xlabel() == right.get_xlabel() != ""


@pytest.mark.parametrize("suffix", ["png", "svg", "pdf"])
def test_figures_are_written_and_repeat(evidence, tmp_path, suffix):
    files = [tmp_path / f"{name}.{suffix}" for name in "ab"]
    for file in files:
        save_curves_figure(evidence, file)
    assert files[0].stat().st_size > 5000
    assert files[0].read_bytes() == files[1].read_bytes()


def test_bad_targets_are_named(evidence, tmp_path):
    with pytest.raises(InputError, match="end the name with"):
        save_curves_figure(evidence, tmp_path / "x.jpg")
    with pytest.raises(InputError, match="cannot be written"):
        save_curves_figure(evidence, tmp_path / "no" / "x.png")
    with pytest.raises(InputError, match="no run to draw"):
        curves_figure(weigh([]))


def test_two_groups_of_one_method_have_their_own_curves_and_colors(tmp_path):
    for size in (0.1, 0.2):
        write_run(tmp_path / f"{size}", algo="cpo", max_kl=size, look={"order": 1, "color": "#2f6f9f"})
    figure = curves_figure(gather([tmp_path]))
    colors = [line.get_color() for line in figure.axes[0].lines]
    assert len(set(colors)) == len(colors) == 2
    assert colors[0] == "#2f6f9f"
    keys = figure.legends[0].legend_handles[:2]
    assert [key.get_color() for key in keys] == colors


def test_curves_show_a_hundred_episodes_whatever_the_log_averages(tmp_path):
    write_run(tmp_path, epochs=60, window=3)
    evidence = gather([tmp_path])
    cost = evidence.runs[0].episodes["cost"]
    drawn = curves_figure(evidence).axes[1].lines[0].get_ydata()
    np.testing.assert_allclose(drawn[-1], cost[-100:].mean())


def test_long_labels_fit_under_the_panels(tmp_path):
    for size in (0.1, 0.2):
        write_run(
            tmp_path / f"{size}", algo="a-method-with-a-long-name", max_kl=size, damping=size, shrink=size
        )
    figure = curves_figure(gather([tmp_path]))
    figure.draw_without_rendering()
    box = figure.legends[0].get_window_extent()
    assert 0.0 <= box.x0 < box.x1 <= figure.bbox.width
    assert box.y1 < figure.axes[1].get_tightbbox().y0
