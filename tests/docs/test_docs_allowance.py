"""The page on the allowance shows what the kept files say."""

import json
import re
from pathlib import Path

import numpy as np
import pytest
from tests.docs.scripts import docs_script

from steingate.report.published import published_numbers

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs" / "allowance.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def maker():
    return docs_script("make_allowance_page")


@pytest.fixture(scope="module")
def medians(maker):
    tasks = {env: maker.rows(grid="allowance", env=env) for env in maker.TASKS}
    return {env: maker.median([run | maker.end_of(run) for run in runs]) for env, runs in tasks.items()}


def test_the_table_is_that_of_the_kept_runs(maker):
    assert maker.page(TEXT) == TEXT, "run python docs/make_allowance_page.py"


def test_medians_are_over_three_seeds_of_one_set_of_settings(maker, medians):
    recipes = set()
    for env in maker.TASKS:
        runs = maker.rows(grid="allowance", env=env)
        assert [run["seed"] for run in runs] == ["0", "1", "2"]
        assert float(medians[env]["return"]) == np.median([float(run["return"]) for run in runs])
        for seed in range(3):
            path = (
                ROOT / "results" / "kept" / "allowance" / "allowance" / env / f"seed-{seed}" / "config.json"
            )
            recipes.add(json.dumps(json.loads(path.read_text())["config"]["recipe"], sort_keys=True))
    assert len(recipes) == 1


def test_what_the_text_says_of_the_four_tasks(medians):
    for env, row in medians.items():
        over = 1.0 - float(row["feasible_by_episode"])
        assert over <= (0.02 if "Circle" in env else 0.05)
        assert float(row["feasible_by_epoch"]) >= 0.99
        assert float(row["return"]) > published_numbers(env, "steingate").ret


def test_links_exist():
    for target in re.findall(r"\]\(([^)#:]+)", TEXT):
        assert (ROOT / "docs" / target).exists(), target
