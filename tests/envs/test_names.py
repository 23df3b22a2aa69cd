"""Names of environments: what can be found again, and what a run records for the rest."""

import functools
import os
import pickle
import sys

import gymnasium
import pytest
from tests.training.probes import Walk

from steingate.envs.make import find_maker, make_vec
from steingate.envs.names import EnvName, again, env_name, folder_of, short_name
from steingate.errors import InputError

FILE = """
from dataclasses import dataclass
from beside import GAIN
from tests.training.probes import Walk

@dataclass
class Size:
    limit: int = 7

class Mine(Walk):
    def __init__(self, **options):
        super().__init__(limit=Size().limit, **options)
        self.gain = GAIN

def cost(obs, action, next_obs, info):
    return 0.25
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with a file of the user's and a module beside it; the path is put back afterwards."""
    (tmp_path / "my_file.py").write_text(FILE)
    (tmp_path / "beside.py").write_text("GAIN = 3\n")
    (tmp_path / "wrong.py").write_text("import a_package_nobody_has\n")
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.chdir(tmp_path)
    yield tmp_path
    for name in [name for name in sys.modules if "my_file" in name or name == "beside"]:
        del sys.modules[name]


def local_maker():
    return Walk()


class Making:
    """Makes environments when it is called."""

    def __call__(self):
        return Walk(limit=3)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (Walk, "tests.training.probes:Walk"),
        ("CartPole-v1", "CartPole-v1"),
        ("a.b:C", "a.b:C"),
        (lambda: Walk(), "python:lambda"),
        (functools.partial(Walk, limit=4), "python:Walk"),
        (Making(), "python:Making"),
    ],
    ids=["class", "id", "module", "lambda", "partial", "instance"],
)
def test_what_is_recorded(value, text):
    name = env_name(value)
    assert name == text
    assert env_name(name) is name
    if text.startswith("python:"):
        assert isinstance(name, EnvName)
        vec = make_vec(name, 2)
        assert isinstance(vec.envs[0], Walk)


def test_a_class_of_a_function_or_of_the_main_module_has_no_name(monkeypatch):
    class Inner(Walk):
        pass

    assert env_name(Inner) == "python:Inner"
    monkeypatch.setattr(Walk, "__module__", "__main__")
    assert env_name(Walk) == "python:Walk"
    with pytest.raises(InputError, match="env is 3: give a name"):
        env_name(3)


def test_a_name_without_its_source_asks_for_it():
    with pytest.raises(InputError, match=r"'Inner' was given from Python.*give it once more as env="):
        find_maker("python:Inner")
    assert again("python:Inner", Walk) == "python:Inner"
    assert isinstance(make_vec(again("python:Inner", Walk), 1).envs[0], Walk)
    there = again("old.place:Walk", "tests.training.probes:Walk")
    assert (str(there), find_maker(there).make().limit) == ("old.place:Walk", 12)
    assert pickle.loads(pickle.dumps(there)).source == "tests.training.probes:Walk"


def test_a_file_and_what_is_beside_it(folder):
    name = env_name("./my_file.py:Mine")
    assert name == f"{folder}{os.sep}my_file.py:Mine"
    assert short_name(name) == "my_file:Mine"
    one = make_vec("./my_file.py:Mine", 2, cost="./my_file.py:cost", workers=2)
    try:
        assert one.workers == 2  # the workers find the file and its neighbor, too
        one.reset(seed=0)
        assert one.step(one.action_space.sample())[4]["cost"].tolist() == [0.25, 0.25]
    finally:
        one.close()
    made = make_vec(name, 1).envs[0]
    assert (made.limit, made.gain) == (7, 3)
    assert env_name(type(made)) == name
    with pytest.raises(InputError, match=r"There is no file .*none\.py: give the path"):
        make_vec("./none.py:Mine", 1)
    with pytest.raises(InputError, match=r"has no 'Mina' to make an environment of; did you mean .*Mine'"):
        make_vec("my_file.py:Mina", 1)
    with pytest.raises(
        InputError, match=r"wrong\.py' cannot be imported: No module named 'a_package_nobody_has'"
    ):
        make_vec("wrong.py:Mine", 1)


def test_a_module_of_the_present_folder(folder):
    sys.path[:] = [
        place for place in sys.path if place not in ("", str(folder))
    ]  # as the console script has it
    assert make_vec("my_file:Mine", 1).envs[0].gain == 3
    assert folder_of("my_file:Mine") == str(folder)
    assert folder_of("tests.training.probes:Walk") is None
    assert folder_of("CartPole-v1") is None
    with pytest.raises(InputError, match=r"There is no module 'nobody' for 'nobody:Mine': .*give its file"):
        make_vec("nobody:Mine", 1)


def test_an_id_registered_in_this_process_alone_falls_back_to_it():
    gymnasium.register("OnlyHere-v0", entry_point=lambda: Walk(), max_episode_steps=5)
    try:
        vec = make_vec("OnlyHere-v0", 2, workers=2)
        assert vec.workers == 1
        assert vec.notes[0].startswith("All environments are stepped in one process: There is no environment")
    finally:
        del gymnasium.registry["OnlyHere-v0"]
