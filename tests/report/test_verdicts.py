import json
from types import SimpleNamespace

from steingate.report.verdicts import verdict_sentences


def run(folder, **verdict):
    folder.mkdir()
    if verdict:
        (folder / "certification.json").write_text(json.dumps({"sentence": "It is so.", **verdict}))
    return SimpleNamespace(path=folder)


def group(*runs):
    return SimpleNamespace(env="SafetyPointGoal1-v0", label="cpo", runs=runs)


def test_one_run_speaks_for_itself_and_several_are_counted(tmp_path):
    good = run(tmp_path / "a", certified=True, which="last")
    other = run(tmp_path / "b", certified=True, which="earlier")
    bad, silent = run(tmp_path / "c", certified=False), run(tmp_path / "d")
    assert verdict_sentences([group(good), group(silent)]) == ["PointGoal1, cpo: It is so."]
    assert verdict_sentences([group(good, other, bad, silent)]) == [
        "PointGoal1, cpo: 2 of 4 seeds deliver a certified policy, 1 of them the last one; 1 have no verdict."
    ]
    assert verdict_sentences([group(bad, bad)]) == [
        "PointGoal1, cpo: 0 of 2 seeds deliver a certified policy."
    ]


def test_what_is_damaged_or_elsewhere_says_nothing(tmp_path):
    damaged = run(tmp_path / "a")
    (damaged.path / "certification.json").write_text("[")
    away = run(tmp_path / "b")
    (tmp_path / "certification.json").write_text(json.dumps({"sentence": "Away.", "certified": True}))
    (away.path / "certification.json").symlink_to(tmp_path / "certification.json")
    assert verdict_sentences([group(damaged), group(away)]) == []
