import csv
import io
from itertools import pairwise

import numpy as np
import pytest
from tests.report.made_up import write_run

from steingate.errors import InputError
from steingate.report.files import write_tables
from steingate.report.groups import group_runs
from steingate.report.loading import load_runs
from steingate.report.published import published
from steingate.report.seeds import Estimate
from steingate.report.summary import compare, summarise
from steingate.report.summary_table import estimate, feasibility_table, number, report_tables, steps, task
from steingate.report.tables import Table, to_csv, to_html, to_latex, to_markdown, to_rich


@pytest.fixture
def groups(tmp_path):
    for seed in range(3):
        write_run(tmp_path, seed=seed, epochs=20)
        write_run(tmp_path, algo="cpo", seed=seed, epochs=20)
    write_run(tmp_path, algo="cpo", env="Home-made", seed=0, planned=40)
    return group_runs(load_runs([tmp_path])[0])


def test_the_summary_against_loops_over_its_files(groups):
    group = next(group for group in groups if group.algo == "steingate")
    found = summarise(group)
    epochs, episodes, everything, switched = [], [], [], []
    for run in group.runs:
        with open(run.path / "progress.csv") as file:
            rows = list(csv.DictReader(file))
        epochs += [(float(row["Metrics/EpRet"]), float(row["Metrics/EpCost"])) for row in rows[16:]]
        modes = [row["Gate/Mode"] for row in rows]
        switched.append(sum(a != b for a, b in pairwise(modes)))
        with open(run.path / "episodes.csv") as file:
            mine = list(csv.DictReader(file))
        everything += [float(row["cost"]) for row in mine]
        episodes += [(float(row["return"]), float(row["cost"])) for row in mine if int(row["epoch"]) >= 16]
    assert len(epochs) == 12
    assert found.epoch_feasibility == sum(cost <= 25 for _, cost in epochs) / 12
    if any(cost <= 25 for _, cost in epochs):
        assert found.epoch_return == pytest.approx(np.mean([ret for ret, cost in epochs if cost <= 25]))
    safe = [ret for ret, cost in episodes if cost <= 25]
    assert found.episode_feasibility == pytest.approx(len(safe) / len(episodes))
    assert found.exceedance == pytest.approx(1 - len(safe) / len(episodes))
    assert found.episode_return == pytest.approx(np.mean(safe))
    assert found.worst == max(cost for _, cost in episodes)
    assert found.worst_ever == max(everything)
    over = [cost - 25 for cost in everything if cost > 25]
    assert found.violations == pytest.approx(len(over) / 3)
    assert found.mean_excess == pytest.approx(np.mean(over))
    assert found.total_excess == pytest.approx(sum(over) / 3)
    assert found.switches == pytest.approx(np.mean(switched))
    assert (found.seeds, found.complete, found.steps) == (3, 3, 20_000)
    # The gate recovers whenever an epoch's mean cost is above the limit; each seed starts and may end so.
    recovering = np.concatenate([run.modes == 2 for run in group.runs])
    starts = sum(int(np.sum(np.diff(np.r_[0, run.modes == 2]) == 1)) for run in group.runs)
    assert found.recover_share == pytest.approx(recovering.mean())
    assert found.recover_dwell == pytest.approx(recovering.sum() / starts)


def test_unfinished_runs_are_marked(groups):
    other = summarise(groups[0])
    assert (other.env, other.seeds, other.complete) == ("Home-made", 1, 0)
    assert feasibility_table([other]).rows[0][2] == "1 (1 unfinished)"


def test_comparisons_use_shared_tasks_only(groups):
    (found,) = compare(groups)
    assert (found.better, found.than, found.tasks) == ("steingate", "cpo", 1)
    assert 0.0 <= found.ret.low <= found.ret.value <= found.ret.high <= 1.0
    assert compare(groups[:1]) == []


def test_the_papers_numbers_stand_where_they_belong(groups):
    assert published("SafetyCarGoal1-v0", "evo", 25.0) == (0.997, 3.23)
    assert published("steingate/SafetyPointCircle1-v0", "trpo-simmer", 25.0) == (0.915, 40.80)
    assert published("SafetyCarGoal1-v0", "evo", 10.0) is None
    assert published("SafetyCarGoal1-v0", "ppo", 25.0) is None
    assert published("SafetyAntVelocity-v1", "cpo", 25.0) is None
    table = feasibility_table([summarise(group) for group in groups])
    assert [(row[0], row[1], row[5], row[7]) for row in table.rows] == [
        ("Home-made", "cpo", "–", "–"),
        ("PointGoal1", "cpo", "0.258", "19.21"),
        ("PointGoal1", "steingate", "0.987", "9.77"),
    ]
    assert any("not yet comparable" in note for note in table.notes)


def test_all_feasibilities_of_the_paper_are_counts_of_600_epochs():
    for env in ("PointGoal1", "PointCircle1", "CarGoal1", "CarCircle1"):
        for algo in ("cpo", "evo", "trpo-saute", "trpo-simmer", "steingate"):
            value = published(f"Safety{env}-v0", algo, 25.0).feasibility
            assert any(round(k / 600, 3) == value for k in range(601))


def test_formats_hold_the_same_cells(groups, tmp_path):
    summaries = [summarise(group) for group in groups]
    table = report_tables(summaries, compare(groups))[1]
    markdown = [
        [cell.strip() for cell in line.strip("| ").split(" | ")] for line in to_markdown(table).splitlines()
    ]
    cells = [list(row) for row in table.rows]
    assert markdown[4 : 4 + len(cells)] == cells
    assert list(csv.reader(io.StringIO(to_csv(table)))) == [list(table.headings), *cells]
    latex = [line for line in to_latex(table).splitlines() if line.endswith("\\\\")]
    assert len(latex) == 1 + len(cells)
    assert all(line.count(" & ") == len(table.headings) - 1 for line in latex)
    assert to_rich(table).row_count == len(cells)
    assert to_html(table).count("<tr") == 1 + len(cells)


def test_signs_of_the_formats_are_escaped():
    table = Table(["a|b", "c_d & e"], [["<b>x</b>", "50 % ± 1"]], 1, "<i>", ["50 % & more"])
    assert "a\\|b" in to_markdown(table)
    assert "c\\_d \\& e" in to_latex(table)
    assert "50 \\% $\\pm$ 1" in to_latex(table)
    assert "<b>" not in to_html(table)
    assert "&lt;i&gt;" in to_html(table)


def test_numbers_in_words():
    assert task("SafetyPointGoal1-v0") == "PointGoal1"
    assert task("module:Class") == "module:Class"
    assert [steps(n) for n in (200_000, 10_000_000, 1_500_000)] == ["200k", "10M", "1.5M"]
    assert number(-1.234) == "−1.23"
    assert number(np.nan) == "–"
    assert estimate(Estimate(1.0, 0.5, 2.0)) == "1.00 [0.50, 2.00]"
    assert estimate(Estimate(1.0, np.nan, np.nan)) == "1.00"


def test_files_of_tables(groups, tmp_path):
    summaries, comparisons = [summarise(group) for group in groups], compare(groups)
    for suffix in ("md", "csv", "tex"):
        write_tables(summaries, comparisons, tmp_path / f"t.{suffix}")
    assert (tmp_path / "t.tex").read_text().count("\\begin{tabular}") == 4
    assert "Probability of improvement" in (tmp_path / "t.md").read_text()
    rows = list(csv.DictReader(io.StringIO((tmp_path / "t.csv").read_text())))
    assert float(rows[2]["epoch_feasibility"]) == summaries[2].epoch_feasibility
    assert rows[0]["paper_return"] == ""
    assert rows[2]["paper_return"] == "9.77"
    with pytest.raises(InputError, match=r"end the name with \.md"):
        write_tables(summaries, comparisons, tmp_path / "t.doc")
    with pytest.raises(InputError, match="no folder"):
        write_tables(summaries, comparisons, tmp_path / "no" / "t.md")
