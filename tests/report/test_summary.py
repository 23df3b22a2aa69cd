"""Summaries recounted from the files, tables in all formats, and the paper's numbers."""

import csv
import io

import numpy as np
import pytest
from scipy.stats import trim_mean
from tests.report.made_up import write_run

from steingate.certificates.betting import RHO, WEIGHTS, e_bh
from steingate.errors import InputError
from steingate.monitoring.episodes import update_until_decided
from steingate.monitoring.monitor import Monitor
from steingate.report.page import make_data, notices, verdicts
from steingate.report.summary import certificate_e_value, load_report, select_certified
from steingate.report.tables import (
    ONE_SEED,
    feasibility_table,
    report_tables,
    to_csv,
    to_html,
    to_latex,
    to_markdown,
    to_text,
    write_tables,
)
from steingate.runs import RunFolder, write_certification

TASKS = ("SafetyPointGoal1-v0", "SafetyPointCircle1-v0")


@pytest.fixture
def report(tmp_path):
    for seed in range(3):
        write_run(tmp_path, seed=seed, epochs=20, steps=20_000)
        write_run(tmp_path, algo="cpo", seed=seed, epochs=20, steps=20_000)
    write_run(tmp_path, algo="cpo", env="Home-made", seed=0, planned=40)
    return load_report([tmp_path])


def test_summary_is_recounted_from_the_files(report):
    found = report.by_task()["SafetyPointGoal1-v0"][1]
    group = found.group
    assert group.algo == "steingate"
    epochs, episodes, everything = [], [], []
    for run in group.runs:
        with open(run.path / "progress.csv") as file:
            rows = list(csv.DictReader(file))
        epochs += [(float(row["Metrics/EpRet"]), float(row["Metrics/EpCost"])) for row in rows[16:]]
        with open(run.path / "episodes.csv") as file:
            mine = list(csv.DictReader(file))
        everything += [float(row["cost"]) for row in mine]
        episodes += [(float(row["return"]), float(row["cost"])) for row in mine if int(row["epoch"]) >= 16]
    assert len(epochs) == 12
    assert found.epoch_feasibility == sum(cost <= 25 for _, cost in epochs) / 12
    feasible = [ret for ret, cost in epochs if cost <= 25]
    assert found.epoch_return == pytest.approx(np.mean(feasible) if feasible else np.nan, nan_ok=True)
    safe = [ret for ret, cost in episodes if cost <= 25]
    assert found.episode_feasibility == pytest.approx(len(safe) / len(episodes))
    assert found.violation_rate == pytest.approx(1 - len(safe) / len(episodes))
    assert found.episode_return == pytest.approx(np.mean(safe))
    assert found.max_cost == max(cost for _, cost in episodes)
    assert found.training_max_cost == max(everything)
    over = [cost - 25 for cost in everything if cost > 25]
    assert found.training_violations == pytest.approx(len(over) / 3)
    assert found.training_violation_rate == pytest.approx(len(over) / len(everything))
    assert found.mean_excess == pytest.approx(np.mean(over))
    assert (found.seeds, found.complete, found.steps) == (3, 3, 400_000)
    # Each seed has as many episodes in the tail.
    by_seed = np.array(episodes).reshape(3, -1, 2)
    rates = (by_seed[:, :, 1] > 25).mean(axis=1)
    assert found.seed_return.value == pytest.approx(np.sort(by_seed[:, :, 0].mean(axis=1))[1])
    assert found.seed_violation_rate.value == pytest.approx(np.sort(rates)[1])
    assert min(rates) <= found.seed_violation_rate.low <= found.seed_violation_rate.high <= max(rates)


def test_scores_over_all_tasks_are_relative_to_the_best_method(tmp_path):
    for algo in ("steingate", "cpo"):
        for seed in (0, 1):
            for env in TASKS:
                write_run(tmp_path, algo, env, seed=seed)
    write_run(tmp_path, "evo", TASKS[0])
    report = load_report([tmp_path])
    found = report.overall
    assert [item.label for item in found.methods] == ["cpo", "steingate"]
    assert (found.missing, found.unscaled) == (["evo"], [])
    returns, safe = {}, {}
    for run in report.runs:
        late = run.episodes["epoch"] >= 16
        returns.setdefault((run.env, run.algo), []).append(run.episodes["return"][late].mean())
        safe.setdefault(run.algo, []).append((run.episodes["cost"][late] <= 25.0).mean())
    for env, scale in found.scales.items():
        assert scale == pytest.approx(max(np.mean(m) for (name, _), m in returns.items() if name == env))
    for item in found.methods:
        scores = [np.array(returns[env, item.label]) / scale for env, scale in found.scales.items()]
        assert item.ret.iqm.value == pytest.approx(trim_mean(np.concatenate(scores), 0.25))
        assert item.safety.gap.value == pytest.approx(1.0 - np.mean(safe[item.label]))


def test_runs_can_be_judged_at_another_limit(tmp_path):
    for limit in (5.0, 25.0):
        write_run(tmp_path / f"{limit:g}", "cpo", cost_limit=limit)
    plain, judged = load_report([tmp_path]), load_report([tmp_path], limit=25.0)
    assert [item.group.label for item in plain.summaries] == ["cpo (cost_limit 25)", "cpo (cost_limit 5)"]
    names = ["cpo (cost_limit 25)", "cpo (judged at 25, trained for 5)"]
    assert [item.group.label for item in judged.summaries] == names
    first, second = judged.summaries  # the same episodes at the same limit
    cost = second.group.runs[0].episodes["cost"]
    assert first.training_violation_rate == second.training_violation_rate == np.mean(cost > 25)
    assert plain.summaries[1].training_violation_rate == np.mean(cost > 5)
    rates = [item.group.runs[0].recent["violation_rate"] for item in (first, second)]
    np.testing.assert_array_equal(*rates)


def test_certifications_are_quoted_or_counted(tmp_path):
    results = ({"certified": True}, {"certified": True}, {"certified": False}, None)
    for seed, result in enumerate(results):
        folder = write_run(tmp_path, algo="cpo", seed=seed, epochs=1)
        if result:
            write_certification(RunFolder(folder), {"sentence": "It is so."} | result)
    report = load_report([tmp_path])
    table = feasibility_table(report.summaries)
    assert table.rows[0][table.headings.index("certified")] == "2 of 3"
    assert not any("It is so." in sentence for sentence in notices(report))
    (folder / "certification.json").write_text("[")
    assert "certified" not in feasibility_table(load_report([folder]).summaries).headings
    one = load_report([folder.with_name("seed-0")])
    assert notices(one)[0] == verdicts(one)[0] == "PointGoal1, cpo: It is so."


def certification(k, delta, over, n, fresh_over, fresh=100):
    """Test k of a run has certified its policy."""
    test = {"delta": delta * 0.5 * 6 / (np.pi * k) ** 2, "violations": over, "episodes": n}
    return {"certified": True, "sentence": "", "budget": 0.1, "delta": delta, "policy": test,
            "fresh_episodes": {"violations": fresh_over, "episodes": fresh}}  # fmt: skip


def test_the_e_value_of_a_certificate():
    """The wealth after all episodes, bet by bet, times the part of delta."""
    found = certificate_e_value(certification(2, 0.05, 1, 90, 3))
    wealth = sum(
        weight * np.prod([1 + (1 - rho) * (0.1 - x) / 0.9 for x in [1.0] * 4 + [0.0] * 186])
        for weight, rho in zip(WEIGHTS, RHO, strict=True)
    )
    assert found == pytest.approx(3 / (2 * np.pi) ** 2 * wealth)
    assert certificate_e_value({"certified": True, "budget": 0.1, "delta": 0.05, "policy": {"delta": None}}) == 20.0
    for damaged in ({}, {"certified": False}, {"certified": True, "budget": "x", "delta": 0.05, "policy": {}},
                    certification(1, 0.05, 3, 2, 0), certification(1, 2.0, 0, 50, 0)):  # fmt: skip
        assert certificate_e_value(damaged) == 0.0


def test_the_report_of_a_grid_selects_certified_policies(tmp_path):
    for seed in range(6):
        folder = write_run(tmp_path, algo="cpo", seed=seed, epochs=1)
        content = certification(1, 0.05, 0, 50, 30 if seed == 4 else 2)
        content["certified"] = seed < 5
        write_certification(RunFolder(folder), content)
    report = load_report([tmp_path])
    found = select_certified(report.runs)
    assert (found.tested, found.certified, found.expected_wrong) == (6, 5, pytest.approx(0.3))
    assert [run.seed for run in found.selected] == [0, 1, 2, 3]
    note = feasibility_table(report.summaries).notes[-1]
    assert note == (
        "Certified: 5 of 6 tested runs. Each run has its own error probability, so up to 0.3 wrong certificates are to "
        "be expected. e-BH at 5.0 % over all tested runs selects all but PointGoal1 cpo seed 4: at most this fraction "
        "of the selected policies is expected to be wrongly certified."
    )


@pytest.mark.slow
def test_few_of_the_selected_policies_of_a_grid_are_wrongly_certified():
    """Grids of 20 runs with three candidates each, most of them at the accepted risk; exact e-values average to 1."""
    rng, delta, fractions, values = np.random.default_rng(0), 0.3, [], []
    for _ in range(40):
        wrong, e_values = [], []
        for _ in range(20):
            chances, found, wrong_here = rng.permutation([0.1, 0.1, 0.02 if rng.random() < 0.3 else 0.1]), {}, False
            for k, chance in enumerate(chances, start=1):
                monitor = Monitor(1.0, 0.1, delta * 0.5 * 6 / (np.pi * k) ** 2)
                update_until_decided(monitor, (2.0 * (rng.random() < chance) for _ in range(300)), 300)
                if monitor.certified:  # the last one that passes is delivered
                    fresh = int(rng.binomial(100, chance))
                    found = certification(k, delta, monitor.violations, monitor.episodes, fresh)
                    wrong_here = bool(chance == 0.1)
            wrong.append(wrong_here)
            e_values.append(certificate_e_value(found))
        selected = e_bh(e_values, 0.05)
        fractions.append(np.sum(selected & np.array(wrong)) / max(selected.sum(), 1))
        values.append(np.mean(np.array(e_values) * wrong))
    assert np.mean(fractions) <= 0.05
    assert np.mean(values) <= 1.0 + 3.0 * np.std(values) / 40**0.5


def test_one_seed_has_no_intervals_and_says_so(tmp_path):
    for algo in ("cpo", "steingate"):
        write_run(tmp_path, algo)
    one = load_report([tmp_path])
    text = " ".join(str(table) for table in report_tables(one))
    assert "95 %" not in text
    assert "interval" not in text.replace(ONE_SEED, "")
    assert "Probability of improvement" not in text
    assert notices(one)[-1] == ONE_SEED
    assert make_data(one)["profiles"] is None
    write_run(tmp_path, "cpo", seed=1)
    two = load_report([tmp_path])
    text = " ".join(str(table) for table in report_tables(two))
    assert text.count("95 %") > 2
    assert "Probability of improvement" in text
    assert ONE_SEED not in [text, *notices(two)]
    assert make_data(two)["profiles"] is not None


# Tables


def test_formats_have_the_same_cells(report):
    table = report_tables(report)[1]
    lines = to_markdown(table).splitlines()
    cells = [list(row) for row in table.rows]
    markdown = [[cell.strip() for cell in line.strip("| ").split(" | ")] for line in lines]
    assert markdown[4 : 4 + len(cells)] == cells
    assert list(csv.reader(io.StringIO(to_csv(table)))) == [list(table.headings), *cells]
    latex = [line for line in to_latex(table).splitlines() if line.endswith("\\\\")]
    assert len(latex) == 1 + len(cells)
    assert all(line.count(" & ") == len(table.headings) - 1 for line in latex)
    assert len(to_text(table).splitlines()) == 1 + len(cells)
    assert to_html(table).count("<tr") == 1 + len(cells)


def test_table_files(report, tmp_path):
    for suffix in ("md", "csv", "tex"):
        write_tables(report, tmp_path / f"t.{suffix}")
    assert (tmp_path / "t.tex").read_text().count("\\begin{tabular}") == 4
    assert "Probability of improvement" in (tmp_path / "t.md").read_text()
    rows = list(csv.DictReader(io.StringIO((tmp_path / "t.csv").read_text())))
    assert float(rows[2]["epoch_feasibility"]) == report.summaries[2].epoch_feasibility
    assert float(rows[2]["seed_return_low"]) == report.summaries[2].seed_return.low
    with pytest.raises(InputError, match=r"end the name with \.md"):
        write_tables(report, tmp_path / "t.doc")
    with pytest.raises(InputError, match="no folder"):
        write_tables(report, tmp_path / "no" / "t.md")
