import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from steingate.report.evidence import gather, weigh
from steingate.report.frontier import frontier_figure, save_frontier_figure, seed_points, unbeaten
from tests.report.made_up import write_run

from steingate.errors import InputError

GRID = st.lists(st.tuples(st.integers(0, 4).map(float), st.integers(0, 4).map(float)), max_size=8)


@given(GRID)
def test_unbeaten_points_are_those_that_no_other_beats(points):
    def beats(a, b):
        return a[0] >= b[0] and a[1] <= b[1] and a != b

    expected = {i for i, point in enumerate(points) if not any(beats(other, point) for other in points)}
    chosen = unbeaten(points)
    assert set(chosen) == expected
    assert len(chosen) == len(expected)
    assert [points[i][1] for i in chosen] == sorted(points[i][1] for i in chosen)


def test_points_that_are_unknown_are_not_joined():
    assert unbeaten([(np.nan, 0.0), (1.0, np.nan), (2.0, 0.5)]) == [2]


@pytest.fixture
def evidence(tmp_path):
    for seed in range(3):
        write_run(tmp_path, seed=seed, look={"order": 2, "color": "#1f8a7d"})
        write_run(tmp_path, algo="cpo", seed=seed, look={"order": 1, "color": "#2f6f9f"})
    write_run(tmp_path, algo="cpo", env="SafetyCarGoal1-v0", cost_limit=10.0)
    return gather([tmp_path])


def test_the_figure_shows_seeds_medians_and_intervals(evidence):
    figure = frontier_figure(evidence)
    car, point = figure.axes
    assert [panel.get_title() for panel in figure.axes] == ["CarGoal1", "PointGoal1"]
    assert "limit of 10" in car.get_xlabel()
    assert "limit of 25" in point.get_xlabel()
    members = evidence.by_task()["SafetyPointGoal1-v0"]
    dots = [drawn for drawn in point.collections if drawn.get_offsets().shape == (3, 2)]
    assert len(dots) == len(point.containers) == 2
    for (group, summary), drawn, bars in zip(members, dots, point.containers, strict=True):
        points = [point for _, point in seed_points(group)]
        np.testing.assert_allclose(drawn.get_offsets(), [(100 * p.exceedance, p.ret) for p in points])
        middle, _, arms = bars.lines
        assert middle.get_xydata()[0] == pytest.approx(np.median(np.asarray(drawn.get_offsets()), axis=0))
        across, along = (arm.get_segments()[0] for arm in arms)
        x, y = summary.seed_exceedance, summary.seed_return
        np.testing.assert_allclose(across[:, 0], [100 * x.low, 100 * x.high])
        np.testing.assert_allclose(along[:, 1], [y.low, y.high])
    texts = [text.get_text() for text in figure.legends[0].get_texts()]
    assert texts == ["cpo", "steingate", "not beaten in both"]


def test_runs_without_episodes_have_no_point(tmp_path):
    (write_run(tmp_path) / "episodes.csv").unlink()
    evidence = gather([tmp_path])
    assert seed_points(evidence.groups[0]) == []
    assert frontier_figure(evidence).axes[0].containers == []


def test_figures_are_written_and_repeat(evidence, tmp_path):
    files = [tmp_path / f"{name}.png" for name in "ab"]
    for file in files:
        save_frontier_figure(evidence, file)
    assert files[0].stat().st_size > 5000
    assert files[0].read_bytes() == files[1].read_bytes()
    with pytest.raises(InputError, match="no run to draw"):
        frontier_figure(weigh([]))
