"""The page on the allowance shows what the kept files say."""

import json
import re
from pathlib import Path

import numpy as np
import pytest
from tests.docs.scripts import docs_script

from steingate.report.loading import load_runs
from steingate.report.published import published_numbers
from steingate.training.config import make_config

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs" / "allowance.md").read_text(encoding="utf-8")
KEPT = ROOT / "results" / "kept"


@pytest.fixture(scope="module")
def maker():
    return docs_script("make_allowance_page")


@pytest.fixture(scope="module")
def medians(maker):
    return maker.medians()


def test_the_tables_are_those_of_the_kept_runs(maker):
    assert maker.page(TEXT) == TEXT, "run python docs/make_allowance_page.py"


def test_runs_share_one_set_of_settings(maker, medians):
    recipes = set()
    for env in medians:
        runs = maker.rows(grid="allowance", env=env)
        assert float(medians[env]["return"]) == np.median([float(run["return"]) for run in runs])
        assert [run["seed"] for run in runs] == ["0", "1", "2"]
        for run in runs:
            path = KEPT / "allowance" / "allowance" / env / f"seed-{run['seed']}" / "config.json"
            recipes.add(json.dumps(json.loads(path.read_text())["config"]["recipe"], sort_keys=True))
    (recipe,) = recipes
    defaults = make_config({"algo": "allowance", "env": "SafetyPointGoal1-v0"}).to_dict()["recipe"]
    assert json.loads(recipe) == defaults


def test_what_the_text_says_of_the_four_tasks(medians):
    assert len(medians) == 4
    for env, row in medians.items():
        assert float(row["feasible_by_episode"]) >= (0.99 if "Circle" in env else 0.975)
        assert float(row["feasible_by_epoch"]) == 1.0
        bar = published_numbers(env, "steingate").ret
        times = {"SafetyPointGoal1-v0": 1.45, "SafetyCarGoal1-v0": 2.0}
        assert float(row["return"]) > times.get(env, 1.0) * bar


def test_what_the_text_says_of_single_runs(maker):
    runs = [run | maker.end_of(run) for run in maker.rows(grid="allowance")]
    assert len(runs) == 12
    assert all(float(run["highest_mean_cost"]) <= 19.0 for run in runs)
    assert all(float(run["end_at_most"]) <= 0.05 for run in runs)
    assert all(1.0 - float(run["feasible_by_episode"]) <= 0.028 for run in runs)
    low = [run for run in runs if float(run["return"]) < published_numbers(run["env"], "steingate").ret]
    assert [(run["env"], run["seed"]) for run in low] == [("SafetyPointCircle1-v0", "0")]
    returns = [float(run["return"]) for run in runs if run["env"] == "SafetyPointCircle1-v0"]
    assert (f"{min(returns):.1f}", f"{max(returns):.1f}") == ("44.8", "50.0")


def test_what_the_text_says_of_the_second_million_steps(medians):
    """On PointGoal1, before the gate has tightened."""
    runs, _ = load_runs([KEPT / "allowance" / "allowance" / "SafetyPointGoal1-v0"])
    assert len(runs) == 3
    returns, shares = [], []
    for run in runs:
        then = (run.episodes["step"] > 1e6) & (run.episodes["step"] <= 2e6)
        returns.append(run.episodes["return"][then].mean())
        shares.append((run.episodes["cost"][then] > run.limit).mean())
    assert min(returns) >= 19.0
    assert max(returns) <= 20.0
    assert np.mean(shares) == pytest.approx(1.0 / 7.0, abs=0.02)
    end = float(medians["SafetyPointGoal1-v0"]["return"])
    assert end == pytest.approx(0.75 * np.median(returns), rel=0.02)


def test_methods_have_the_colors_of_every_page(maker):
    colors = maker.colors_of(["cpo", "evo", "somebody:Else"])
    assert colors["cpo"] == "#2f6f9f"
    assert len(set(colors.values())) == 3


def test_the_interval_of_a_share_holds_it(maker):
    for over, count in ((0, 50), (3, 100), (1600, 1600)):
        low, high = maker.interval(over, count)
        assert 0.0 <= low <= over / count <= high <= 1.0


def test_phases_add_up_to_whole_episodes(maker):
    """The reward of all tenths is a return near that of the 300 other fresh episodes without noise."""
    for row in maker.rows("endpoints.csv", grid="allowance"):
        parts = maker.rows("phases.csv", env=row["env"], seed=row["seed"])
        assert [part["tenth"] for part in parts] == [str(number) for number in range(1, 11)]
        steps = 500 if "Circle" in row["env"] else 1000
        earned = steps * np.mean(maker.numbers(parts, "reward_per_step"))
        assert earned == pytest.approx(float(row["return"]), rel=0.1)


def test_links_exist():
    for target in re.findall(r"\]\(([^)#:]+)", TEXT):
        assert (ROOT / "docs" / target).exists(), target
