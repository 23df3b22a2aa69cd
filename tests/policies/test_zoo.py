"""The model zoo: names lead to certified policies, and every entry is what its certificate says."""

import shutil

import pytest

import steingate
from steingate.cli import main
from steingate.errors import InputError, RunError
from steingate.evidence.verify import verify_bundle
from steingate.policies import zoo
from steingate.policies.load import load_policy
from steingate.tasks.catalog import TASKS

ENTRIES = zoo.zoo_entries()


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.name)
def test_entry(entry):
    """The policy is certified for a native task, and the evidence verifies."""
    policy = load_policy(entry.name)
    assert policy.certified
    assert policy.sha256 == entry.sha256
    assert policy.obs_dim == TASKS[entry.task].observation_size
    assert policy.act_dim == TASKS[entry.task].action_size
    assert verify_bundle(entry.path).problems == ()
    assert entry.bound <= 0.1
    assert entry.kilobytes < 250


def test_a_task_names_its_entry_with_the_highest_return():
    for task in {entry.task for entry in ENTRIES}:
        best = max((entry for entry in ENTRIES if entry.task == task), key=lambda entry: entry.mean_return)
        assert zoo.run_folder(f"zoo:{task}") == best.path


def test_unknown_names():
    entry = ENTRIES[0]
    for text in (entry.name[:-1], f"zoo:{entry.task}x", "zoo:", "zoo:../../policies", f"{entry.name}/.."):
        with pytest.raises(InputError, match=r"There is no policy .*; `steingate zoo` lists them"):
            steingate.load_policy(text)
    with pytest.raises(InputError, match=f"did you mean {entry.name}"):
        steingate.load_policy(entry.name[:-1])


def test_changed_files_are_refused(tmp_path, monkeypatch):
    one, other = ENTRIES[0], ENTRIES[-1]
    shutil.copytree(zoo.FOLDER, tmp_path / "zoo")
    shutil.copy(other.path / "policy.npz", tmp_path / "zoo" / one.task / one.algo)
    monkeypatch.setattr(zoo, "FOLDER", tmp_path / "zoo")
    with pytest.raises(RunError, match=r"policy.npz was changed"):
        load_policy(one.name)


def test_the_list(capsys):
    assert main(["zoo"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == len(ENTRIES) + 3
    for entry, line in zip(ENTRIES, lines[1:-2], strict=True):
        assert line.startswith(f"{entry.name} ")
        assert f"{entry.violations} of {entry.episodes}" in line


def test_evaluations_are_counted_outside_the_package(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    name = next(entry.name for entry in ENTRIES if "Circle" in entry.task)
    found = [steingate.evaluate(name, 2) for _ in range(2)]
    assert [result.number for result in found] == [2, 3]  # the test of the bundle was the first
    assert not list(zoo.FOLDER.rglob("evaluations.jsonl"))
    assert len(list(tmp_path.rglob("evaluations.jsonl"))) == 1


@pytest.mark.slow
def test_demo(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    name = next(entry.name for entry in ENTRIES if "Circle" in entry.task)
    assert main(["demo", name]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("With 95 % confidence, an episode in ")
    files = [line.partition(":")[0] for line in lines[-4:]]
    assert files == ["demo/film.mp4", "demo/evidence.html", "demo/argument.md", "demo/evidence"]
    assert all((tmp_path / file).stat().st_size > 10_000 for file in files[:2])
    assert verify_bundle("demo/evidence").ok
    assert main(["demo", name.removeprefix("zoo:").lower()]) == 2
    assert "(did you mean zoo:Safety" in capsys.readouterr().err
    assert main(["demo", "runs"]) == 2
    assert "'runs' is no policy of the zoo; `steingate zoo` lists them" in capsys.readouterr().err
