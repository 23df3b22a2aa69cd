"""Without optional packages every command ends in one sentence that names the extra, or does its work."""

import json
import subprocess
import sys
from importlib import metadata

import pytest

from steingate import errors
from steingate.cli import COMMANDS
from steingate.errors import MissingExtraError, install_command, needs

# All in one process, for the time that starting one takes. A finder that refuses is what pip leaves undone.
SCRIPT = """
import contextlib, io, json, sys

class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {blocked}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Missing())
from steingate.cli import main
import steingate

found = {{}}
for words in {commands}:
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            status = main(words)
        except BaseException as error:
            status = repr(error)
    found[" ".join(words)] = [status, err.getvalue()]
for name in {names}:
    try:
        getattr(steingate, name)
        steingate.train(env="SafetyPointGoal1-v0") if name == "train" else None
        found[name] = "loads"
    except steingate.MissingExtraError as error:
        found[name] = str(error)
print(json.dumps(found))
"""
HEAVY = ("gymnasium", "mujoco", "numba", "jax", "jaxlib", "tensorboardX", "imageio", "imageio_ffmpeg")
NEEDS_TRAIN = ("train", "resume", "evaluate", "render", "bench")


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory):
    folder = tmp_path_factory.mktemp("bare")
    costs = folder / "costs.csv"
    costs.write_text("1\n2\n")
    calls = [[name, "--help"] for name in COMMANDS]
    calls += [["train", "--total-steps", "100"], ["resume", str(folder)], ["evaluate", str(folder)]]
    calls += [
        ["render", str(folder), "--out", str(folder / "a.mp4")],
        ["bench", "--list"],
        ["envs"],
        ["algos"],
        ["plan"],
    ]
    calls += [["certify", str(costs), "--limit", "25"]]
    calls += [["certify", str(costs), "--limit", "25", "--plot", str(folder / "a.png")]]
    names = [name for name in errors_free_names() if name != "train"] + ["train"]
    script = SCRIPT.format(blocked={*HEAVY, "matplotlib"}, commands=calls, names=names)
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def errors_free_names():
    import steingate

    return steingate.__all__


def test_no_command_ends_in_a_traceback(outcomes):
    calls = {words: outcome for words, outcome in outcomes.items() if isinstance(outcome, list)}
    assert len(calls) >= len(COMMANDS)
    for words, (status, err) in calls.items():
        assert status in (0, 2), (words, status)
        assert err.count("\n") == (status == 2), (words, err)
        if words.split()[0] in NEEDS_TRAIN and status == 2:
            assert f"The command {words.split()[0]} needs optional packages: run pip install " in err
            assert "[train]" in err
    assert calls["train --help"][0] == 2
    assert calls["train --total-steps 100"][0] == 2
    assert "[plot]" in next(err for words, (_, err) in calls.items() if "--plot" in words)
    assert all(calls[words][0] == 0 for words in ("certify --help", "plan", "plan --help", "algos", "envs"))


def test_every_public_name_loads_or_names_its_extra(outcomes):
    found = {name: outcome for name, outcome in outcomes.items() if isinstance(outcome, str)}
    assert found["SteinCertificate"] == found["Monitor"] == "loads"
    assert "steingate.train needs optional packages" in found["train"]
    assert "[train]" in found["train"]
    assert all(text == "loads" or "run pip install " in text for text in found.values())


class Installed:
    def __init__(self, origin):
        self.origin = origin

    def read_text(self, name):
        assert name == "direct_url.json"
        return self.origin


def test_the_command_fits_the_way_it_was_installed(monkeypatch, tmp_path):
    clone = tmp_path / "a clone"
    clone.mkdir()
    (clone / "pyproject.toml").touch()
    url, wheel = clone.as_uri(), clone / "a.whl"
    wheel.touch()
    monkeypatch.setattr(errors, "__file__", str(tmp_path / "site-packages" / "steingate" / "errors.py"))
    for origin, command in [
        (None, "pip install 'steingate[plot]'"),
        (json.dumps({"url": url, "dir_info": {}}), f"pip install '{clone}[plot]'"),
        (json.dumps({"url": url + "/gone", "dir_info": {}}), "pip install 'steingate[plot]'"),
        (json.dumps({"url": wheel.as_uri(), "archive_info": {}}), f"pip install '{wheel}[plot]'"),
        (json.dumps({"url": "https://host/a.whl", "archive_info": {}}), "pip install 'steingate[plot]'"),
        ("not JSON", "pip install 'steingate[plot]'"),
    ]:
        monkeypatch.setattr(metadata, "distribution", lambda name, origin=origin: Installed(origin))
        assert install_command("plot") == command
    monkeypatch.setattr(errors, "__file__", str(clone / "src" / "steingate" / "errors.py"))
    assert install_command("plot") == f"pip install -e '{clone}[plot]'"


def test_other_missing_modules_stay_what_they_are():
    with pytest.raises(ModuleNotFoundError, match="no_such_module_of_mine") as caught, needs("this"):
        import no_such_module_of_mine  # noqa: F401
    assert not isinstance(caught.value, MissingExtraError)
    assert set(errors.EXTRA_OF) >= set(HEAVY)
