from dataclasses import replace

import pytest

from steingate.errors import InputError
from steingate.experiments.grid import BUILT_IN, Grid, Sizes, load_grid, plan, resize
from steingate.training.config import RunConfig


def write(tmp_path, text):
    path = tmp_path / "mine.py"
    path.write_text(text)
    return path


def test_a_file_is_a_grid(tmp_path):
    path = write(
        tmp_path,
        '"""My comparison.\n\nMore."""\n'
        "from steingate.experiments.grid import Sizes\n"
        "SIZES = Sizes(total_steps=40_000, seeds=(3, 1))\n"
        "def grid(sizes):\n"
        "    return sizes.runs(['SafetyPointGoal1-v0'], ['cpo', 'trpo'], folder='a', cost_limit=5.0)\n",
    )
    grid = load_grid(str(path))
    assert (grid.name, grid.summary) == ("mine", "My comparison.")
    runs = plan(grid, resize(grid, {"num_envs": 4}))
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
        ("x = 1\n", "no function grid"),
        ("def grid(sizes):\n    return []\n", "has no runs"),
        ("def grid(sizes):\n    return sizes\n", "does not return a list of RunConfig"),
        ("def grid(sizes):\n    return sizes.runs(3, 4)\n", "TypeError"),
        ("SIZES = 3\ndef grid(sizes):\n    return []\n", "SIZES in "),
        ("def grid(sizes):\n    return sizes.runs(['A'], ['cpo'], cost_limit=-1.0)\n", "cost_limit is -1.0"),
        ("def grid(sizes):\n    return sizes.runs(['A'], ['cpo'], cost_limt=1.0)\n", "cost_limt"),
        (
            "from steingate.training.config import RunConfig\ndef grid(sizes):\n    return [RunConfig()]\n",
            "outside of runs/mine",
        ),
        (
            "def grid(sizes):\n    return sizes.runs('A', 'steingate', certificate={'reference': sizes})\n",
            "reference",
        ),
    ],
)
def test_a_bad_file_is_told_in_one_sentence(tmp_path, text, message):
    def planned(path):
        grid = load_grid(str(path))
        return plan(grid, resize(grid, {}))

    path = write(tmp_path, text)
    with pytest.raises(InputError, match=message) as caught:
        planned(path)
    assert "\n" not in str(caught.value)


def test_a_single_name_needs_no_list():
    (run,) = Sizes(seeds=(0,)).runs("SafetyPointGoal1-v0", "cpo")
    assert (run.env, run.algo.name) == ("SafetyPointGoal1-v0", "cpo")


def test_runs_that_share_a_folder_are_refused_unless_they_are_the_same():
    def twice(sizes):
        one = sizes.runs(["A"], ["cpo"])
        return one + one

    def other(sizes):
        return sizes.runs(["A"], ["cpo"]) + sizes.runs(["A"], ["cpo"], cost_limit=3.0)

    sizes = Sizes(seeds=(0, 1))
    assert len(plan(Grid("twice", "", twice), sizes)) == 2
    with pytest.raises(InputError, match="share the folder"):
        plan(Grid("other", "", other), sizes)


@pytest.mark.parametrize(
    ("name", "message"),
    [("tabel1", "did you mean table1"), ("nowhere.py", "no file nowhere.py"), ("", "There is no grid")],
)
def test_unknown_grids_are_named(name, message):
    with pytest.raises(InputError, match=message):
        load_grid(name)


@pytest.mark.parametrize("name", BUILT_IN)
def test_sizes_reach_every_run(name):
    grid = load_grid(name)
    sizes = Sizes(320_000, 16_000, 4, (7,), "corrected", 3, "elsewhere")
    runs = plan(grid, sizes)
    whole = plan(grid, replace(sizes, seeds=(7, 8, 9)))
    assert len(whole) == 3 * len(runs)
    assert all(run.seed == 7 and run.out.startswith("elsewhere") for run in runs)
    assert {(run.total_steps, run.num_envs, run.algo.variant, run.checkpoint_every) for run in runs} == {
        (320_000, 4, "corrected", 3)
    }
    fractions = {0.4, 1.0, 1.6} if name == "samples" else {1.0}
    assert {run.steps_per_epoch / 16_000 for run in runs} == fractions
    assert all(isinstance(run, RunConfig) for run in runs)
