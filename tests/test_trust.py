"""Foreign run folders run no code: every command over hostile folders, watched by an audit hook and an import hook."""

import json
import shutil
import subprocess
import sys

import pytest
from tests.training.runs_of_probes import tiny

from steingate.cli import COMMANDS
from steingate.envs.make import add_to_path
from steingate.errors import InputError, RunError
from steingate.experiments.worker import job_text, log_path, start_worker
from steingate.runs import RunFolder, digest, load_certification, write_certification
from steingate.storage.checkpoint import checkpoint_files, encode, read_tree
from steingate.training.config import make_config
from steingate.training.config_file import load_run_config
from steingate.training.runner import resume, train
from steingate.trust import is_sealed, outside_code

WITHOUT_FILES = {"zoo", "demo", "plan", "algos", "envs", "doctor"}
GRID = """
from dataclasses import replace
from pathlib import Path
from steingate.settings import load_file
from steingate.training.config import read_stored
def grid(sizes):
    return [replace(read_stored(load_file(Path(__file__).with_suffix(".json"))["config"], "grid"), out=sizes.out)]
"""
EVIL = (
    "from pathlib import Path\nPath(__file__).with_suffix('.ran').touch()\ndef X(*args, **options):\n    return 1.0\n"
)
SMALL = {"total_steps": 320, "checkpoint_every": 2}

# Runs commands in a process of its own and prints the modules that were imported from the present folder or the run.
WATCHED = """
import json, os, sys
from http.server import ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from urllib.request import urlopen
loaded = []
class Finder:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "evil":
            loaded.append(name)
sys.meta_path.insert(0, Finder())
def hook(event, arguments):
    if event == "exec":
        file = str(getattr(arguments[0], "co_filename", ""))
        if not file.startswith("<") and Path(file).absolute().is_relative_to(Path.cwd()):
            loaded.append(file)
    if event == "os.system":
        loaded.append(event)
from steingate.cli import main
from steingate.training.api import Run
def serve(server, poll_interval):
    client = Thread(target=lambda: urlopen("http://127.0.0.1:%d/data.json" % server.server_address[1]).read())
    client.start()
    server.handle_request()
    client.join()
ThreadingHTTPServer.serve_forever = serve
sys.addaudithook(hook)
statuses = []
for argv in json.loads(sys.argv[1]):
    try:
        statuses.append(main(argv) if argv[0] != "plot" else Run(argv[1]).plot(argv[2]) and 0)
    except BaseException as error:
        statuses.append(f"{type(error).__name__}: {error}")
print(json.dumps([loaded, statuses]))
"""


@pytest.fixture(scope="module")
def native(tmp_path_factory):
    settings = {
        "env": "SafetyPointGoal1-v0",
        "algo": "steingate",
        "hidden": (8, 8),
        "env_options": {"max_episode_steps": 20},
    }
    return train(tiny(tmp_path_factory.mktemp("native"), **SMALL, **settings), quiet=True)


def forged(run, folder, config=None, algorithm=None, **record):
    """Copy a run, change its record, and sign it again, as anyone can who knows the format."""
    copy = shutil.copytree(run, folder)
    found = json.loads((copy / "config.json").read_text())
    found["config"] |= config or {}
    found["config"]["algorithm"] |= algorithm or {}
    found |= {"identity": digest(found["config"], steps=False), **record}
    (copy / "config.json").write_text(json.dumps(found))
    for file in [path for _, path in checkpoint_files(copy / "checkpoints")] + [copy / "certified.safetensors"]:
        if file.exists():
            tree, epoch = read_tree(file).tree, read_tree(file).epoch
            file.write_bytes(encode({**tree, "identity": found["identity"]}, epoch))
    write_certification(RunFolder(copy), {**load_certification(run), "identity": found["identity"]})
    return copy


HOSTILE = {
    "reference": {"algorithm": {"certificate": {"reference": "evil:X"}}},
    "risk": {"algorithm": {"certificate": {"risk_function": "evil:X"}}},
    "built-in": {"algorithm": {"certificate": {"risk_function": "builtins:input"}}},
    "algorithm": {"config": {"algo": "evil:R"}},
    "environment": {"config": {"env": "evil:E"}, "env_folder": "inside"},
    "registered": {"config": {"env": "evil:Some-v0"}},
    "file": {"config": {"env": "inside/evil.py:E"}},
    "cost": {"config": {"env": "CartPole-v1", "env_options": {"cost": "evil:X"}}},
    "other place": {"config": {"certificate": {"reference": "evil:X"}}},
    "other spelling": {"config": {"env": "CartPole-v1", "env-options": {"cost": "evil"}}},
    "Python object": {"config": {"env": "python:/../inside/evil.py:E"}},
    "old gym": {"config": {"env": "GymV21Environment-v0", "env_options": {"env_id": "evil:X-v0"}}},
}


@pytest.mark.slow
def test_no_command_runs_code_that_a_foreign_run_names(native, tmp_path):
    for name in ("inside", "python:"):
        (tmp_path / name).mkdir()
    for name in ("evil.py", "mujoco.py", "inside/evil.py", "inside/mujoco.py", "inside/scipy.py"):
        (tmp_path / name).write_text(EVIL)
    grid = tmp_path.parent / "grid.py"
    grid.write_text(GRID)
    shutil.copy(native / "config.json", grid.with_suffix(".json"))
    commands = []
    for kind, changes in {**HOSTILE, "folder": {"env_folder": "inside"}}.items():
        run = str(forged(native, tmp_path / kind / native.relative_to(native.parents[2]), **changes))
        commands += [
            ["report", run, "--out", "page.html", "--table", "t.md", "--figure", "f.png"],
            ["dashboard", run, "--port", "0"],
            ["plot", run, "plot.png"],
            ["archive", run, "--out", "a.jsonl.xz", "--all"],
            ["export", run, "--to", "policy.npz"],
            ["monitor", f"{run}/episodes.csv", "--limit", "25", "--state", f"{run}.monitor.json"],
            ["certify", run, "--limit", "25"],
            ["evaluate", run, "--episodes", "1"],
            ["compare", run, str(native), "--episodes", "4"],
            ["evidence", run, "--out", f"{run}-evidence", "--no-onnx"],
            ["render", run, "--out", "video.gif", "--size", "32"],
            ["resume", run, "--quiet"],
            ["train", "--config", f"{run}/config.json", "--out", str(tmp_path / "new" / kind), "--quiet"],
            ["bench", str(grid), "--out", str(tmp_path / kind), "--dry-run"],
        ]
    assert {words[0] for words in commands} == {*COMMANDS, "plot"} - WITHOUT_FILES
    done = subprocess.run(
        [sys.executable, "-P", "-W", "ignore", "-c", WATCHED, json.dumps(commands)],
        cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    loaded, statuses = json.loads(done.stdout.splitlines()[-1])
    assert loaded == []
    assert not list(tmp_path.rglob("*.ran"))
    *hostile, ignored = [statuses[first : first + 14] for first in range(0, len(statuses), 14)]
    assert dict(zip(HOSTILE, hostile, strict=True)) == dict.fromkeys(HOSTILE, [0] * 6 + [2] * 8)
    assert ignored == [0] * 6 + [2] + [0] * 7  # the folder of a native task is not used; certify takes no runs
    assert done.stderr.count("--trust-code") == 6 * len(hostile)


FORMS = {
    "text": {"config": {"env": "CartPole-v1", "env_options": "cost=evil"}},
    "words": {"config": {"env": "CartPole-v1", "env_options": ["cost=evil:1"]}},
    "environment": {"algorithm": {"env": "evil:Some-v0"}},
    "options": {"algorithm": {"env-options": "cost=evil"}},
}


@pytest.mark.parametrize("kind", FORMS)
def test_settings_in_a_form_that_training_does_not_write_are_refused(native, tmp_path, kind):
    run = forged(native, tmp_path / "run", **FORMS[kind])
    for use in (lambda: load_run_config(run), lambda: make_config({}, run / "config.json")):
        with pytest.raises((InputError, RunError), match=r"config\.json cannot be used"):
            use()


def test_a_replaced_environment_does_not_excuse_other_code(native, tmp_path):
    run = forged(native, tmp_path / "run", {"env": "evil:X"}, {"certificate": {"risk_function": "evil:X"}})
    with pytest.raises(RunError, match="would import 'evil:X'"):
        load_run_config(run, env="SafetyPointGoal1-v0")


def test_a_foreign_run_sends_nothing_to_its_project(native, tmp_path):
    run = forged(native, tmp_path / "run", {"wandb": "theirs/project"})
    assert load_run_config(run).wandb == "theirs/project"  # evaluations send nothing
    with pytest.raises(RunError, match=r"would import 'wandb:theirs/project'.*--trust-code"):
        resume(run, quiet=True)


@pytest.mark.parametrize("kind", HOSTILE)
def test_foreign_code_is_refused_by_name(native, tmp_path, kind):
    run = forged(native, tmp_path / "run", **HOSTILE[kind])
    record = json.loads((run / "config.json").read_text())
    with pytest.raises(RunError, match=f"would import {outside_code(record['config'])[0]!r}.*--trust-code"):
        load_run_config(run)
    assert not is_sealed(record)


def test_own_runs_are_sealed_and_a_seal_covers_code_and_its_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "configuration"))
    run = train(tiny(tmp_path, total_steps=80, certify={"enabled": False}), quiet=True)
    record = json.loads((run / "config.json").read_text())
    assert load_run_config(run).env == "tests.training.probes:Walk"
    key = tmp_path / "configuration" / "steingate" / "key"
    assert key.stat().st_mode & 0o777 == 0o600
    assert not is_sealed({**record, "env_folder": "/elsewhere"})
    assert not is_sealed({**record, "config": {**record["config"], "env_options": {"cost": "evil:X"}}})
    assert is_sealed({**record, "config": {**record["config"], "total_steps": 160}})  # a run may be extended
    for change in (lambda: key.chmod(0o644), lambda: key.write_bytes(b"0" * 32), key.unlink):
        change()
        with pytest.raises(RunError, match="would import 'tests"):
            load_run_config(run)
    assert load_run_config(run, trust_code=True).env == "tests.training.probes:Walk"
    assert load_run_config(run, env="tests.training.probes:Walk").seed == 0


def test_native_runs_need_no_key(native):
    assert json.loads((native / "config.json").read_text())["seal"] is None


def test_folders_of_runs_do_not_hide_installed_modules(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "path", list(sys.path))
    add_to_path(str(tmp_path))
    assert sys.path[-1] == str(tmp_path)


@pytest.mark.slow
def test_workers_of_grids_import_nothing_from_the_present_folder(tmp_path, monkeypatch):
    (tmp_path / "scipy.py").write_text(EVIL)
    monkeypatch.chdir(tmp_path)
    settings = {"env": "SafetyPointGoal1-v0", "env_options": {"max_episode_steps": 20}, "total_steps": 80}
    cfg = tiny(tmp_path / "runs", certify={"enabled": False}, **settings)
    process = start_worker(job_text(cfg), cfg.path)
    assert process.wait(120) == 0, log_path(cfg.path).read_text()
    process.stdin.close()
    assert not list(tmp_path.rglob("*.ran"))
