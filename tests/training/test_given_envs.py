"""Runs on environments that are given as files, as modules of the current folder, or as objects."""

import json
import shutil
import sys

import numpy as np
import pytest
from gymnasium.spaces import flatten
from tests.training.probes import Parts, Walk
from tests.training.runs_of_probes import TINY, facts, tiny

import steingate
from steingate.cli import main
from steingate.errors import InputError
from steingate.training.evaluate import evaluate
from steingate.training.runner import resume, train

MINE = "from tests.training.probes import Walk\n\nclass Mine(Walk):\n    pass\n"
SMALL = {name: TINY[name] for name in ("steps_per_epoch", "num_envs", "cost_limit", "hidden", "cg_iters")}


@pytest.fixture
def folders(tmp_path, monkeypatch):
    """Return two folders; the first is the current folder and holds a file. Modules and path are restored."""
    here, there = tmp_path / "here", tmp_path / "there"
    here.mkdir()
    there.mkdir()
    (here / "user_env.py").write_text(MINE)
    monkeypatch.chdir(here)
    monkeypatch.setattr(sys, "path", [folder for folder in sys.path if folder])
    yield here, there
    forget()


def forget():
    """Remove the imported modules, so that the next import searches for the file as another process would."""
    for name in [name for name in sys.modules if "user_env" in name]:
        del sys.modules[name]


def elsewhere(there, monkeypatch):
    forget()
    monkeypatch.chdir(there)
    monkeypatch.setattr(sys, "path", [folder for folder in sys.path if not folder.endswith("here")])


def stored(run):
    return json.loads((run / "config.json").read_text())


def test_a_run_is_the_same_with_one_process_and_with_several(tmp_path):
    settings = {"algo": "trpo", "total_steps": 240}
    one, two = (train(tiny(tmp_path / str(n), workers=n, **settings), quiet=True) for n in (1, 2))
    assert facts(one) == facts(two)
    assert stored(one)["identity"] == stored(two)["identity"]


def test_a_file_is_found_from_another_folder_until_it_moves(folders, monkeypatch, capsys):
    here, there = folders
    words = [f"--{name.replace('_', '-')}={value}" for name, value in SMALL.items() if name != "hidden"]
    command = ["train", "--env=./user_env.py:Mine", "--algo=trpo", "--workers=1", "--hidden=8,8", "--quiet"]
    assert main([*command, *words, "--total-steps=160", f"--out={there}"]) == 0
    run = there / "trpo" / "user_env-Mine" / "seed-0"
    assert capsys.readouterr().out.strip() == str(run)
    assert stored(run)["config"]["env"] == f"{here}/user_env.py:Mine"
    elsewhere(there, monkeypatch)
    resume(run, quiet=True, total_steps=240)
    forget()
    shutil.move(here / "user_env.py", there / "user_env.py")
    with pytest.raises(InputError, match=r"There is no file .*here/user_env\.py: give the path"):
        resume(run, quiet=True, total_steps=320)
    assert main(["resume", str(run), "--total-steps=320", "--quiet", "--env=user_env.py:Mine"]) == 0
    whole = train(tiny(there / "whole", env="tests.training.probes:Walk", algo="trpo", workers=1, **SMALL,
                       total_steps=320, vf_epochs=10, vf_batch_size=128), quiet=True)  # fmt: skip
    assert facts(run)["episodes"] == facts(whole)["episodes"]
    assert evaluate(run, 2, policy="last", env="./user_env.py:Mine").episodes.cost.size == 2


def test_a_python_object_has_to_be_passed_again(tmp_path):
    def make():
        return Walk(limit=9)

    run = steingate.train(
        env=make, algo="trpo", total_steps=160, workers=1, out=str(tmp_path / "a"), quiet=True, **SMALL
    )
    assert stored(run.path)["config"]["env"] == "python:make"
    assert run.path.parent.name == "make"
    assert steingate.load_policy(run, "last").obs_dim == 3
    for use in (lambda: steingate.resume(run.path, total_steps=240), lambda: evaluate(run, 1, policy="last")):
        with pytest.raises(InputError, match=r"'make' was a Python object.*pass it again as env="):
            use()
    assert steingate.evaluate(run, 1, env=make, policy="last").episodes.cost.size == 1
    steingate.resume(run.path, env=make, total_steps=240, quiet=True)
    whole = steingate.train(
        env=make, algo="trpo", total_steps=240, workers=1, out=str(tmp_path / "b"), quiet=True, **SMALL
    )
    assert facts(run.path) == facts(whole.path)


def test_policies_take_the_dict_observations_of_their_task(tmp_path):
    run = train(tiny(tmp_path, env="tests.training.probes:Parts", total_steps=80), quiet=True)
    policy = steingate.load_policy(run, "last")
    file = steingate.export_policy(policy, tmp_path / "policy.npz")[0]
    env = Parts()
    obs, _ = env.reset(seed=0)
    vector = flatten(env.observation_space, obs).astype(float)
    assert policy.obs_dim == len(vector) == 13
    np.testing.assert_array_equal(policy(obs), policy(vector))
    np.testing.assert_array_equal(steingate.load_policy(file)(obs), policy(vector))
    assert policy(np.stack([vector, vector])).shape == (2, 2)
    assert steingate.certify_policy(policy, env, limit=1e3).certified
    with pytest.raises(ValueError, match="unlike those of its task"):
        policy({"a": 4})
