"""Figures show the numbers of the runs, and equal input gives equal files."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.text import Text
from tests.report.made_up import set_columns, write_run

from steingate.errors import InputError, RunError
from steingate.report.figures import curves_figure, frontier_figure, not_dominated, run_figure
from steingate.report.plot_style import save_figure
from steingate.report.summary import load_report, make_report, seed_scores

GRID = st.lists(st.tuples(st.integers(0, 4).map(float), st.integers(0, 4).map(float)), max_size=8)


@pytest.fixture
def report(tmp_path):
    for seed in range(3):
        write_run(tmp_path, seed=seed, plot_style={"order": 2, "color": "#1f8a7d"})
        write_run(tmp_path, algo="cpo", seed=seed, plot_style={"order": 1, "color": "#2f6f9f"})
    write_run(tmp_path, algo="cpo", env="SafetyCarGoal1-v0", cost_limit=10.0)
    return load_report([tmp_path])


def legend(figure):
    return [text.get_text() for text in figure.legends[0].get_texts()]


def test_curves_have_a_row_per_task(report):
    figure = curves_figure(report)
    _, car_cost, point_return, point_cost = figure.axes
    titles = ["CarGoal1: return", "CarGoal1: cost", "PointGoal1: return", "PointGoal1: cost"]
    assert [panel.get_title("left") for panel in figure.axes] == titles
    assert [len(panel.lines) for panel in figure.axes] == [1, 2, 2, 3]
    assert [len(panel.collections) for panel in figure.axes] == [0, 0, 2, 2]
    assert set(car_cost.lines[-1].get_ydata()) == {10.0}
    assert set(point_cost.lines[-1].get_ydata()) == {25.0}
    group = report.summaries[2].group
    assert group.label == "steingate"
    mean = np.mean([run.recent["cost"] for run in group.runs], axis=0)
    np.testing.assert_allclose(point_cost.lines[1].get_ydata(), mean)
    assert [line.get_color() for line in point_return.lines] == ["#2f6f9f", "#1f8a7d"]
    assert legend(figure) == ["cpo", "steingate", "limit"]


def test_long_labels_fit_under_the_panels(tmp_path):
    for size in (0.1, 0.2):
        options = {"max_kl": size, "damping": size, "backtrack_coef": size}
        write_run(tmp_path / f"{size}", algo="a-method-with-a-long-name", algorithm=options)
    figure = curves_figure(load_report([tmp_path]))
    figure.draw_without_rendering()
    box = figure.legends[0].get_window_extent()
    assert 0.0 <= box.x0 < box.x1 <= figure.bbox.width
    assert box.y1 < figure.axes[1].get_tightbbox().y0


@given(GRID)
def test_front_is_the_points_that_no_other_dominates(points):
    def dominates(a, b):
        return a[0] >= b[0] and a[1] <= b[1] and a != b

    expected = {i for i, point in enumerate(points) if not any(dominates(other, point) for other in points)}
    chosen = not_dominated(points)
    assert set(chosen) == expected
    assert len(chosen) == len(expected)
    assert [points[i][1] for i in chosen] == sorted(points[i][1] for i in chosen)


def test_frontier_shows_seeds_medians_and_intervals(report):
    assert not_dominated([(np.nan, 0.0), (1.0, np.nan), (2.0, 0.5)]) == [2]
    figure = frontier_figure(report)
    car, point = figure.axes
    assert [panel.get_title("left") for panel in figure.axes] == ["CarGoal1", "PointGoal1"]
    assert ["cost > 10" in car.get_xlabel(), "cost > 25" in point.get_xlabel()] == [True, True]
    members = report.by_task()["SafetyPointGoal1-v0"]
    dots = [drawn for drawn in point.collections if drawn.get_offsets().shape == (3, 2)]
    assert len(dots) == len(point.containers) == 2
    for summary, drawn, bars in zip(members, dots, point.containers, strict=True):
        scores = seed_scores(summary.group).values()
        np.testing.assert_allclose(drawn.get_offsets(), [(100 * s.violation_rate, s.ret) for s in scores])
        middle, _, arms = bars.lines
        assert middle.get_xydata()[0] == pytest.approx(np.median(np.asarray(drawn.get_offsets()), axis=0))
        across, along = (arm.get_segments()[0] for arm in arms)
        x, y = summary.seed_violation_rate, summary.seed_return
        np.testing.assert_allclose(across[:, 0], [100 * x.low, 100 * x.high])
        np.testing.assert_allclose(along[:, 1], [y.low, y.high])
    assert legend(figure) == ["cpo", "steingate", "not dominated"]


def test_panels_of_a_run_show_its_numbers(tmp_path):
    folder = write_run(tmp_path, epochs=12)
    set_columns(folder, Gate_Mode=[0, 2] * 6)
    figure = run_figure(folder)
    ret, cost, _ = figure.axes
    assert [panel.get_ylabel() for panel in figure.axes] == ["return", "cost", "value used\nby the gate"]
    report = load_report([folder])
    np.testing.assert_allclose(ret.lines[0].get_ydata(), report.runs[0].progress["Train/EpRet"])
    np.testing.assert_allclose(ret.lines[0].get_xdata(), np.arange(0.001, 0.0125, 0.001))
    assert ret.collections[0].get_offsets()[:, 0].max() == pytest.approx(0.012)
    assert ret.get_xlim() == (0.0, 0.012)
    assert 25.0 in cost.lines[2].get_ydata()
    assert [patch.get_x() for patch in cost.patches] == pytest.approx(
        [0.001 * k for k in range(1, 12, 2)]
    )  # epochs that lower the cost
    costs = report.runs[0].episodes["cost"][-8:]
    assert f"{(costs > 25).sum()} of 8 episodes over the limit" in ret.get_title("left")


def test_texts_of_the_figure_of_a_run_hide_nothing(tmp_path):
    """A gate that evaluates its bound in some epochs only, has no terms, and sets a budget instead of a mode."""
    folder = write_run(tmp_path, "allowance", epochs=12)
    bound = ["", 0.3, "", 0.1] * 3
    set_columns(folder, Gate_Mode=[0] * 12, Gate_Bound=bound, Gate_BudgetFraction=[0.5] * 12, Gate_Budget=[0.1] * 12)
    figure = run_figure(folder)
    assert [panel.get_ylabel() for panel in figure.axes][2:] == ["bound", "budget,\nfraction of limit"]
    np.testing.assert_allclose(figure.axes[2].lines[0].get_ydata(), [0.3, 0.1] * 3)
    figure.draw_without_rendering()
    legend = figure.axes[0].get_legend().get_window_extent()
    assert legend.y0 >= figure.axes[0].bbox.y1  # above the panel
    for panel in figure.axes[:3]:
        assert all(text.get_window_extent().x0 > panel.bbox.x1 for text in panel.texts)  # beside it
    summary = next(text for text in figure.findobj(Text) if text.get_text().startswith("last fifth"))
    assert summary.get_window_extent().y0 > legend.y1


@pytest.mark.parametrize("suffix", ["png", "svg", "pdf"])
def test_files_repeat(report, tmp_path, suffix):
    for draw, source in ((frontier_figure, report), (run_figure, report.runs[0].path)):
        files = [tmp_path / f"{name}.{suffix}" for name in "ab"]
        for file in files:
            save_figure(draw(source), file)
        assert files[0].stat().st_size > 5000
        assert files[0].read_bytes() == files[1].read_bytes()


def test_bad_targets_are_named(report, tmp_path):
    with pytest.raises(InputError, match="end the name with"):
        save_figure(curves_figure(report), tmp_path / "x.jpg")
    with pytest.raises(InputError, match="cannot be written"):
        save_figure(curves_figure(report), tmp_path / "no" / "x.png")
    with pytest.raises(InputError, match="no run to draw"):
        curves_figure(make_report([]))
    with pytest.raises(RunError, match="not a run folder"):
        run_figure(tmp_path / "no")
