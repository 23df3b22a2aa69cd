import numpy as np
from steingate.report.loading import load_runs
from tests.report.made_up import write_run

from steingate.report.groups import group_colors, group_runs, mean_and_spread


def grouped(*roots):
    return group_runs(load_runs(roots)[0])


def test_groups_differ_in_more_than_their_seed(tmp_path):
    write_run(tmp_path / "a", seed=1)
    write_run(tmp_path / "a", seed=0)
    write_run(tmp_path / "b", seed=0, preset="certified", certificate={"budget": 0.2})
    write_run(tmp_path / "a", algo="cpo")
    write_run(tmp_path / "a", algo="home-made", env="Other-v3")
    assert [(group.env, group.label, group.seeds) for group in grouped(tmp_path)] == [
        ("Other-v3", "home-made", [0]),
        ("SafetyPointGoal1-v0", "cpo", [0]),
        ("SafetyPointGoal1-v0", "steingate (preset certified, budget 0.2)", [0]),
        ("SafetyPointGoal1-v0", "steingate (preset released, budget default)", [0, 1]),
    ]


def test_settings_of_recipes_are_named_by_their_last_part_unless_two_share_it(tmp_path):
    parts = ({"clipped": {"max_kl": 0.1}, "max_kl": 1}, {"clipped": {"max_kl": 0.2}, "max_kl": 2})
    for index, recipe in enumerate(parts):
        write_run(tmp_path / f"two-{index}", algo="cpo", recipe=recipe)
        write_run(tmp_path / f"one-{index}", algo="cup", recipe={"clipped": recipe["clipped"]})
    labels = [group.label for group in grouped(tmp_path)]
    assert labels == [
        "cpo (clipped.max_kl 0.1, max_kl 1)",
        "cpo (clipped.max_kl 0.2, max_kl 2)",
        "cup (max_kl 0.1)",
        "cup (max_kl 0.2)",
    ]


def test_equal_settings_are_one_group_however_they_are_written(tmp_path):
    write_run(tmp_path / "a", algo="cpo", seed=0, cost_limit=25)
    write_run(tmp_path / "b", algo="cpo", seed=1, cost_limit=25.0)
    write_run(tmp_path / "c", algo="cpo", seed=2, env="steingate/SafetyPointGoal1-v0")
    (group,) = grouped(tmp_path)
    assert (group.label, group.seeds) == ("cpo", [0, 1, 2])


def test_labels_that_short_numbers_leave_alike_get_all_digits(tmp_path):
    for name, size in (("a", 0.0123456), ("b", 0.01234561), ("c", 0.5)):
        write_run(tmp_path / name, algo="cpo", max_kl=size)
    assert [group.label for group in grouped(tmp_path)] == [
        "cpo (max_kl 0.0123456)",
        "cpo (max_kl 0.01234561)",
        "cpo (max_kl 0.5)",
    ]


def test_a_method_has_one_name_on_all_tasks(tmp_path):
    for size in (0.1, 0.2):
        write_run(tmp_path / f"{size}", algo="cpo", env="A", max_kl=size)
    write_run(tmp_path / "other", algo="cpo", env="B", max_kl=0.1)
    first, _, other = grouped(tmp_path)
    assert (first.env, other.env) == ("A", "B")
    assert (first.method, first.label) == (other.method, other.label) == (first.method, "cpo (max_kl 0.1)")
    # What tasks settle for a method by themselves does not part it.
    write_run(tmp_path / "saute", algo="saute", env="A", length=500)
    write_run(tmp_path / "saute", algo="saute", env="B", length=1000)
    assert [group.label for group in grouped(tmp_path / "saute")] == ["saute", "saute"]


def test_older_and_todays_folders_stand_side_by_side(tmp_path):
    write_run(tmp_path / "older", algo="cpo", max_kl=0.1)
    write_run(
        tmp_path / "new", algo="cpo", recipe={"variant": "published", "max_kl": 0.1, "hidden": [64, 64]}
    )
    assert [group.label for group in grouped(tmp_path)] == ["cpo (folder older)", "cpo (folder today's)"]


def test_order_and_color_come_from_the_folders(tmp_path):
    write_run(tmp_path, algo="zebra", look={"order": 10, "color": "#111111"})
    write_run(tmp_path, algo="ape", look={"order": 20.5, "color": "#222222"})
    write_run(tmp_path, algo="cow")
    write_run(tmp_path, algo="bee", look={"order": None, "color": "no"})
    groups = grouped(tmp_path)
    assert [group.algo for group in groups] == ["zebra", "ape", "bee", "cow"]
    colors = group_colors(groups)
    assert [colors[group.method] for group in groups[:2]] == ["#111111", "#222222"]
    assert len(set(colors.values())) == 4


def test_no_two_methods_share_a_color(tmp_path):
    look = {"order": 1, "color": "#1f8a7d"}  # also the first of the free ones
    for index in range(30):
        write_run(tmp_path / f"{index}", algo="cpo", max_kl=0.1 * (index + 1), look=look, epochs=1)
    write_run(tmp_path / "late", algo="evo", look={"order": 2, "color": "#2f6f9f"}, epochs=1)
    groups = grouped(tmp_path)
    colors = group_colors(groups)
    assert len(set(colors.values())) == len(groups) == 31
    assert colors[groups[0].method] == "#1f8a7d"
    # The second group of cpo does not take what evo asks for.
    assert colors[groups[-1].method] == "#2f6f9f"
    # One method has one color on all tasks.
    write_run(tmp_path / "late", algo="evo", env="Other", look={"order": 2, "color": "#2f6f9f"}, epochs=1)
    assert len(group_colors(grouped(tmp_path))) == 31


def test_means_over_seeds_of_different_length(tmp_path):
    for seed, epochs in ((0, 6), (1, 4), (2, 6)):
        write_run(tmp_path, seed=seed, epochs=epochs, planned=6)
    (group,) = grouped(tmp_path)
    steps, mean, spread = mean_and_spread(group, "return")
    columns = [run.progress["Metrics/EpRet"] for run in group.runs]
    assert steps.tolist() == [1000.0 * k for k in range(1, 7)]
    np.testing.assert_allclose(mean[:4], np.mean([c[:4] for c in columns], axis=0))
    np.testing.assert_allclose(mean[4:], np.mean([columns[0][4:], columns[2][4:]], axis=0))
    np.testing.assert_allclose(spread[:4], np.std([c[:4] for c in columns], axis=0, ddof=1))
    (one,) = grouped(group.runs[0].path)
    assert np.isnan(mean_and_spread(one, "return")[2]).all()
