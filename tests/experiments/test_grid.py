from dataclasses import replace

import pytest

from steingate.errors import InputError
from steingate.experiments.grid import Grid, Sizes, load_grid, plan_runs
from steingate.experiments.grids import GRIDS


def planned(tmp_path, text, **sizes):
    path = tmp_path / "mine.py"
    path.write_text(text)
    grid = load_grid(str(path))
    return grid, plan_runs(grid, replace(grid.sizes, **sizes))


def test_a_file_is_a_grid(tmp_path):
    grid, runs = planned(
        tmp_path,
        '"""My comparison.\n\nMore."""\n'
        "from steingate.experiments.grid import Sizes\n"
        "SIZES = Sizes(total_steps=40_000, seeds=(3, 1))\n"
        "def grid(sizes):\n"
        "    return sizes.runs('SafetyPointGoal1-v0', ['cpo', 'trpo'], folder='a', cost_limit=5.0)\n",
        num_envs=4,
    )
    assert (grid.name, grid.summary) == ("mine", "My comparison.")
    assert [(run.algo.name, run.seed) for run in runs] == [("cpo", 1), ("trpo", 1), ("cpo", 3), ("trpo", 3)]
    assert {(run.total_steps, run.num_envs, run.cost_limit, run.algo.variant) for run in runs} == {
        (40_000, 4, 5.0, "published")
    }
    assert str(runs[0].path) == "runs/mine/a/cpo/SafetyPointGoal1-v0/seed-1"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("def grid(sizes:\n", "line 1 is not Python"),
        ("import nowhere_to_be_found\n", "line 1 ended with ModuleNotFoundError"),
        ("def grid(sizes):\n    return []\n", "list of RunConfig that is not empty"),
        ("def grid(sizes):\n    return sizes\n", "must return a list of RunConfig"),
        ("def grid(sizes):\n    return sizes.runs(['A'], ['cpo'], cost_limit=-1.0)\n", "cost_limit is -1.0"),
        (
            "from steingate.training.config import RunConfig\ndef grid(sizes):\n    return [RunConfig()]\n",
            "outside of runs/mine",
        ),
    ],
)
def test_a_bad_file_is_described_in_one_sentence(tmp_path, text, message):
    with pytest.raises(InputError, match=message) as caught:
        planned(tmp_path, text)
    assert "\n" not in str(caught.value)


def test_runs_with_the_same_folder_are_refused_unless_they_are_equal():
    def twice(sizes):
        return 2 * sizes.runs("A", "cpo")

    def other(sizes):
        return sizes.runs("A", "cpo") + sizes.runs("A", "cpo", cost_limit=3.0)

    sizes = Sizes(seeds=(0, 1))
    assert len(plan_runs(Grid("twice", "", twice), sizes)) == 2
    with pytest.raises(InputError, match="have the folder"):
        plan_runs(Grid("other", "", other), sizes)


@pytest.mark.parametrize(
    ("name", "message"),
    [("tabel1", "did you mean table1"), ("nowhere.py", "no file nowhere.py"), ("", "There is no grid")],
)
def test_unknown_grids_are_named(name, message):
    with pytest.raises(InputError, match=message):
        load_grid(name)


@pytest.mark.parametrize("name", GRIDS)
def test_sizes_apply_to_every_run(name):
    sizes = Sizes(320_000, 16_000, 4, (7,), "corrected", 3, "elsewhere")
    runs = plan_runs(GRIDS[name], sizes)
    assert len(plan_runs(GRIDS[name], replace(sizes, seeds=(7, 8, 9)))) == 3 * len(runs)
    assert all(run.seed == 7 and run.out.startswith("elsewhere") for run in runs)
    assert {(run.total_steps, run.num_envs, run.algo.variant, run.checkpoint_every) for run in runs} == {
        (320_000, 4, "corrected", 3)
    }
    fractions = {0.4, 1.0, 1.6} if name == "samples" else {1.0}
    assert {run.steps_per_epoch / 16_000 for run in runs} == fractions
