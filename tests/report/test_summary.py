import csv
import io
from itertools import pairwise

import numpy as np
import pytest
from steingate.report.evidence import gather
from steingate.report.formats import Table, to_csv, to_html, to_latex, to_markdown, to_rich
from steingate.report.report_tables import (
    estimate,
    feasibility_table,
    number,
    report_tables,
    steps,
    task,
    write_tables,
)
from steingate.report.seeds import Estimate
from tests.report.made_up import write_run

from steingate.errors import InputError


@pytest.fixture
def evidence(tmp_path):
    for seed in range(3):
        write_run(tmp_path, seed=seed, epochs=20, steps=20_000)
        write_run(tmp_path, algo="cpo", seed=seed, epochs=20, steps=20_000)
    write_run(tmp_path, algo="cpo", env="Home-made", seed=0, planned=40)
    return gather([tmp_path])


def test_the_summary_against_loops_over_its_files(evidence):
    group, found = next(
        pair for pair in evidence.by_task()["SafetyPointGoal1-v0"] if pair[0].algo == "steingate"
    )
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
    assert (found.seeds, found.complete, found.steps) == (3, 3, 400_000)
    # The gate recovers whenever an epoch's mean cost is above the limit; each seed starts and may end so.
    recovering = np.concatenate([run.modes == 2 for run in group.runs])
    starts = sum(int(np.sum(np.diff(np.r_[0, run.modes == 2]) == 1)) for run in group.runs)
    assert found.recover_share == pytest.approx(recovering.mean())
    assert found.recover_dwell == pytest.approx(recovering.sum() / starts)
    # One point per seed, from its own episodes; each seed has as many of them.
    by_seed = np.array(episodes).reshape(3, -1, 2)
    over = (by_seed[:, :, 1] > 25).mean(axis=1)
    assert found.seed_return.value == pytest.approx(np.sort(by_seed[:, :, 0].mean(axis=1))[1])
    assert found.seed_exceedance.value == pytest.approx(np.sort(over)[1])
    assert min(over) <= found.seed_exceedance.low <= found.seed_exceedance.high <= max(over)


def test_unfinished_runs_are_marked(evidence):
    other = evidence.summaries[0]
    assert (other.env, other.seeds, other.complete) == ("Home-made", 1, 0)
    assert feasibility_table([other]).rows[0][2] == "1 (1 unfinished)"


def test_the_papers_numbers_stand_where_they_belong(evidence, tmp_path):
    table = feasibility_table(evidence.summaries)
    assert len(set(table.headings)) == len(table.headings)
    epochs, ret = (table.headings.index(name) for name in ("paper's epochs", "paper's return"))
    assert [(row[0], row[1], row[epochs], row[ret]) for row in table.rows] == [
        ("Home-made", "cpo", "–", "–"),
        ("PointGoal1", "cpo", "0.258", "19.21"),
        ("PointGoal1", "steingate", "0.987", "9.77"),
    ]
    assert any("not yet comparable" in note for note in table.notes)
    assert not any("left out beside runs" in note for note in table.notes)
    write_run(tmp_path / "other", variant="corrected", steps=20_000)
    table = feasibility_table(gather([tmp_path / "other"]).summaries)
    assert not any("paper" in heading for heading in table.headings)
    assert any("left out beside runs" in note for note in table.notes)


@pytest.mark.parametrize("window", [1, 5, 1000])
def test_the_window_of_the_log_does_not_change_the_tables(tmp_path, window):
    write_run(tmp_path / "usual", epochs=60)
    write_run(tmp_path / "other", epochs=60, window=window)
    usual, other = (gather([tmp_path / name]) for name in ("usual", "other"))
    assert not np.array_equal(*(found.runs[0].progress["Metrics/EpCost"] for found in (usual, other)))
    for first, second in zip(report_tables(usual)[:3], report_tables(other)[:3], strict=True):
        assert first.rows == second.rows


def test_formats_hold_the_same_cells(evidence, tmp_path):
    table = report_tables(evidence)[1]
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


def test_files_of_tables(evidence, tmp_path):
    for suffix in ("md", "csv", "tex"):
        write_tables(evidence, tmp_path / f"t.{suffix}")
    assert (tmp_path / "t.tex").read_text().count("\\begin{tabular}") == 5
    assert "Probability of improvement" in (tmp_path / "t.md").read_text()
    rows = list(csv.DictReader(io.StringIO((tmp_path / "t.csv").read_text())))
    assert float(rows[2]["epoch_feasibility"]) == evidence.summaries[2].epoch_feasibility
    assert float(rows[2]["seed_return_low"]) == evidence.summaries[2].seed_return.low
    assert rows[0]["paper_return"] == ""
    assert rows[2]["paper_return"] == "9.77"
    with pytest.raises(InputError, match=r"end the name with \.md"):
        write_tables(evidence, tmp_path / "t.doc")
    with pytest.raises(InputError, match="no folder"):
        write_tables(evidence, tmp_path / "no" / "t.md")
