import csv
import re
from pathlib import Path

from tests.docs.scripts import docs_script

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs" / "learning.md").read_text(encoding="utf-8")


def rows(name):
    with open(ROOT / "results" / name, newline="") as file:
        return list(csv.DictReader(file))


def kept(algo, env, variant):
    found = [row for row in rows("learning/summary.csv") if row["algo"] == algo and env in row["env"]]
    return next(row for row in found if row["variant"] == variant)


def test_the_tables_are_those_of_the_kept_runs():
    assert docs_script("make_learning_page").page(TEXT) == TEXT, "run python docs/make_learning_page.py"
    for row in rows("learning/summary.csv"):
        assert f"| `{row['algo']}` |" in TEXT


def test_every_method_ran_a_million_steps_on_both_tasks():
    steps = {}
    for row in rows("learning/epochs.csv"):
        if row["variant"] == "corrected":
            steps[row["env"], row["algo"]] = int(row["steps"])
    assert set(steps.values()) == {1_000_000}
    methods = {algo for _, algo in steps}
    assert len(steps) == 2 * len(methods)
    assert len(methods) >= 19


def test_what_the_text_says_of_the_numbers():
    """What one expects: who is under the limit of 25 and who is not."""
    for env in ("Circle", "Goal"):
        for algo in ("trpo", "ppo"):
            assert float(kept(algo, env, "corrected")["cost"]) > 50
        for algo in ("trpo-saute", "ppo-saute", "trpo-simmer", "ppo-simmer", "evo", "p3o", "steingate"):
            assert float(kept(algo, env, "corrected")["cost"]) <= 25
            best = min(float(kept(name, env, "corrected")["return"]) for name in ("trpo", "ppo"))
            assert float(kept(algo, env, "corrected")["return"]) < best
    assert float(kept("cpo", "Goal", "corrected")["cost"]) > 50
    same = [{**kept("steingate", "Goal", variant), "variant": ""} for variant in ("corrected", "published")]
    assert same[0] == same[1]
    same = [kept("rcpo", "Goal", "published"), kept("trpo-lag", "Goal", "corrected")]
    assert {**same[0], "algo": "", "variant": ""} == {**same[1], "algo": "", "variant": ""}


def test_what_the_text_says_of_steps_and_prices():
    cases = {
        row["Step/Case"]
        for row in rows("learning/epochs.csv")
        if (row["algo"], row["variant"]) == ("cpo", "corrected") and "Goal" in row["env"]
    }
    assert cases == {"1"}  # "reachable" in all epochs
    lag = rows("paper_runs/trpo-lag_SafetyPointGoal1-v0_seed-0.csv")
    met = next(row for row in lag if float(row["Metrics/EpCost"]) <= 25.0)
    assert f"after {float(met['TotalEnvSteps']) / 1e6:.1f} million" in TEXT
    assert 4.5 < float(met["Gate/Price"]) < 5.5
    returns = [float(row["Metrics/EpRet"]) for row in lag]
    assert round(min(returns[250:])) == 6


def test_forty_passes():
    (cost, few), (ret, more) = (
        re.search(
            r"last fifth was (\d+) instead of (\d+), on PointCircle1 the return (\d+) instead of (\d+)", TEXT
        ).group(1, 2),
        re.search(r"the return (\d+) instead of (\d+)", TEXT).groups(),
    )
    assert round(float(kept("steingate-ppo", "Goal", "clipped.passes=40")["cost"])) == int(cost)
    assert round(float(kept("steingate-ppo", "Goal", "corrected")["cost"])) == int(few)
    assert round(float(kept("steingate-ppo", "Circle", "clipped.passes=40")["return"])) == int(ret)
    assert round(float(kept("steingate-ppo", "Circle", "corrected")["return"])) == int(more)


def test_cpo_after_ten_million_steps():
    found = re.search(
        r"has return\n([\d.]+) at cost ([\d.]+),.*the published one has ([\d.]+) at ([\d.]+)\.", TEXT
    )
    corrected = rows("corrected_runs/summary.csv")[0]
    (published,) = [
        row for row in rows("paper_runs/summary.csv") if row["algo"] == "cpo" and "PointGoal1" in row["env"]
    ]
    numbers = [float(row[name]) for row in (corrected, published) for name in ("return", "cost")]
    assert [f"{number:.1f}" for number in numbers] == list(found.groups())


def test_links_exist():
    for target in re.findall(r"\]\(([^)#:]+)", TEXT):
        assert (ROOT / "docs" / target).exists(), target
