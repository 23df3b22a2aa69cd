"""Foreign run folders run no code: every command over hostile folders, watched by an audit hook and an import hook."""

import json
import shutil
import subprocess
import sys

import pytest
from tests.training.runs_of_probes import tiny

from steingate.envs.make import add_to_path
from steingate.errors import RunError
from steingate.experiments.worker import job_text, log_path, start_worker, stop_worker
from steingate.runs import digest
from steingate.storage.checkpoint import checkpoint_files, encode, read_tree
from steingate.training.config_file import load_run_config
from steingate.training.runner import train
from steingate.trust import is_sealed, outside_code

EVIL = (
    "from pathlib import Path\nPath(__file__).with_suffix('.ran').touch()\ndef X(*args, **options):\n    return 1.0\n"
)
SMALL = {"total_steps": 320, "checkpoint_every": 2}

# Runs commands in a process of its own and prints the modules that were imported from the present folder or the run.
WATCHED = """
import json, os, sys
from pathlib import Path
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
sys.addaudithook(hook)
statuses = []
for argv in json.loads(sys.argv[1]):
    try:
        statuses.append(main(argv))
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
    "old gym": {"config": {"env": "GymV21Environment-v0", "env_options": {"env_id": "evil:X-v0"}}},
}


@pytest.mark.slow
def test_no_command_runs_code_that_a_foreign_run_names(native, tmp_path):
    (tmp_path / "inside").mkdir()
    for name in ("evil.py", "inside/evil.py", "inside/mujoco.py", "inside/scipy.py"):
        (tmp_path / name).write_text(EVIL)
    commands = []
    for kind, changes in {**HOSTILE, "folder": {"env_folder": "inside"}}.items():
        run = str(forged(native, tmp_path / kind, **changes))
        commands += [
            ["report", run, "--out", "page.html", "--table", "t.md"],
            ["archive", run, "--out", "a.jsonl.xz", "--all"],
            ["export", run, "--to", "policy.npz"],
            ["certify", run, "--limit", "25"],
            ["evaluate", run, "--episodes", "1"],
            ["render", run, "--out", "video.gif", "--size", "32"],
            ["resume", run, "--quiet"],
        ]
    done = subprocess.run(
        [sys.executable, "-P", "-W", "ignore", "-c", WATCHED, json.dumps(commands)],
        cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    loaded, statuses = json.loads(done.stdout.splitlines()[-1])
    assert loaded == []
    assert not list(tmp_path.rglob("*.ran"))
    *hostile, ignored = [statuses[first : first + 7] for first in range(0, len(statuses), 7)]
    assert all(found == [0, 0, 0, 0, 2, 2, 2] for found in hostile), hostile
    assert ignored == [0] * 7  # the folder of a native task is not used
    assert done.stderr.count("--trust-code") == 3 * len(hostile)


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
    stop_worker(process)
    assert not list(tmp_path.rglob("*.ran"))
