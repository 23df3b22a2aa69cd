"""Files of others: links are not followed, devices stay devices, bombs are refused in little memory."""

import io
import json
import lzma
import os
import resource
import subprocess
import sys
import time
import zipfile
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from matplotlib.figure import Figure
from tests.report.made_up import write_run

from steingate.cli import main
from steingate.errors import InputError, RunError
from steingate.experiments.worker import log_path, start_worker
from steingate.policies.export import export_policy
from steingate.policies.policy import FORMAT, Policy
from steingate.report.plot_style import save_figure
from steingate.runs import RunFolder, folder_lock, require_no_rows
from steingate.storage import checkpoint
from steingate.storage.checkpoint import checkpoint_files, encode, read_tree, write_tree
from steingate.storage.files import replace_file
from steingate.storage.tables import Table
from steingate.training.config import load_options

PRECIOUS = "export PATH\n"


@pytest.fixture
def target(tmp_path):
    path = tmp_path / "bashrc"
    path.write_text(PRECIOUS)
    return path


def use_lock(run):
    with folder_lock(run):
        pass


def use_table(run):
    Table(run.progress).append([{PRECIOUS.strip(): 1}])


WRITERS = {
    "lock": use_lock,
    "progress.csv": use_table,
    "checkpoints": lambda run: checkpoint_files(run.checkpoints),
    "truncated": lambda run: Table(run.progress, ("a",)).truncate(0),
    "log": lambda run: start_worker("{}\n", run.path),
}


@pytest.mark.parametrize("name", WRITERS)
def test_a_link_in_a_run_folder_is_not_written_through(tmp_path, target, name):
    run = RunFolder(tmp_path / "run")
    run.path.mkdir()
    link = log_path(run.path) if name == "log" else run.progress if name == "truncated" else run.path / name
    link.symlink_to(target.parent if name == "checkpoints" else target)
    with pytest.raises(RunError, match=r"symbolic link|is not a folder"):
        WRITERS[name](run)
    assert target.read_text() == PRECIOUS


def test_temporary_files_have_random_names_and_links_are_replaced(tmp_path, target):
    for name in (".o.html.tmp", ".o.html.part"):
        (tmp_path / name).symlink_to(target)
    for name in ("o.html", "o.png"):
        (tmp_path / name).symlink_to(target)
    replace_file(tmp_path / "o.html", b"page")
    save_figure(Figure(), tmp_path / "o.png")
    assert (target.read_text(), (tmp_path / "o.html").read_text()) == (PRECIOUS, "page")
    assert not any((tmp_path / name).is_symlink() for name in ("o.html", "o.png"))


def test_leftovers_of_killed_processes_are_removed(tmp_path):
    left = tmp_path / f".config.json.{'0' * 16}.tmp"
    left.touch()
    with folder_lock(RunFolder(tmp_path)):
        assert not left.exists()


def test_pipes_and_devices_are_written_to_and_stay(tmp_path):
    before = os.stat("/dev/null").st_rdev
    replace_file(Path("/dev/null"), b"lost")
    assert os.stat("/dev/null").st_rdev == before
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(RunError, match="Cannot write"):  # nobody reads
        replace_file(pipe, b"x")
    content = b"y" * 300_000  # more than a pipe holds
    with open(tmp_path / "copy", "wb") as copy, subprocess.Popen(["cat", pipe], stdout=copy):
        for _ in range(1000):  # until cat has opened the pipe
            with suppress(RunError):
                replace_file(pipe, content)
                break
            time.sleep(0.01)
    assert (tmp_path / "copy").read_bytes() == content
    assert pipe.is_fifo()


@pytest.mark.parametrize("file", ["progress.csv", "episodes.csv", "certified.safetensors"])
def test_results_without_a_checkpoint_are_not_trained_over(tmp_path, file):
    run = RunFolder(tmp_path)
    require_no_rows(run)
    (tmp_path / file).write_text("a\n1\n")
    with pytest.raises(RunError, match="has results but no checkpoint"):
        require_no_rows(run)


def test_export_overwrites_no_other_file(tmp_path):
    (tmp_path / "policy.py").write_text("mine\n")
    policy = Policy({"w0": np.ones((3, 2), np.float32), "b0": np.zeros(2, np.float32), "discrete": np.array([2, 0])})
    with pytest.raises(InputError, match=r"policy\.py exists and is another file"):
        export_policy(policy, tmp_path / "my_env.npz")
    assert [path.name for path in tmp_path.iterdir()] == ["policy.py"]
    for _ in range(2):  # its own file is no other
        assert export_policy(policy, tmp_path / "new" / "a.npz")[1].name == "policy.py"


def in_little_memory(code, *arguments):
    """Run Python code in a process with 700 MB of memory; return its last line."""

    def limit():
        resource.setrlimit(resource.RLIMIT_AS, (700 << 20, 700 << 20))

    done = subprocess.run(
        [sys.executable, "-c", code, *map(str, arguments)], capture_output=True, text=True, check=False,
        preexec_fn=limit, timeout=60, env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-500:]
    return done.stdout.splitlines()[-1]


@pytest.mark.slow
def test_bombs_are_refused_in_little_memory(tmp_path):
    write_run(tmp_path, seed=1)
    for seed, columns in ((2, b"," * 5_000_000), (3, b"0,0,0,0,0\n" * 15_000_000)):
        run = write_run(tmp_path, seed=seed)
        (run / "episodes.csv").write_bytes((run / "episodes.csv").read_bytes() + columns)
    with lzma.open(tmp_path / "bomb.jsonl.xz", "wb", preset=1) as file:
        file.write(b'{"format":"steingate-archive","version":1}\n')
        file.write(b'{"run":"' + b" " * (200 << 20))
    code = (
        "import sys\nfrom steingate.report.load import load_runs\nruns, skipped = load_runs(sys.argv[1:])\n"
        "print(len(runs), len(skipped), *sorted(item.reason for item in skipped))"
    )
    found = in_little_memory(code, tmp_path)
    assert found.startswith("1 3 ")
    for reason in ("it has a line of more than", "is larger than 128 MiB", "is larger than any archive"):
        assert reason in found


@pytest.mark.parametrize(
    ("tree", "epoch"),
    [({"a": {"__array__": [1]}}, 1), ({"a": {"__array__": 10**400}}, 1), ({"__array__": 0}, 1), ({}, 10**400)],
)
def test_crafted_trees_are_refused(tmp_path, tree, epoch):
    (tmp_path / "x").write_bytes(encode(tree, epoch))
    with pytest.raises(RunError, match="is unusable"):
        read_tree(tmp_path / "x")


def test_checkpoints_have_at_most_the_size_that_is_read(tmp_path, monkeypatch):
    with open(tmp_path / "sparse", "wb") as file:
        file.truncate(600 << 20)
    with pytest.raises(RunError, match="is larger than 512 MiB"):
        read_tree(tmp_path / "sparse")
    monkeypatch.setattr(checkpoint, "MAX_FILE_BYTES", 1 << 20)
    with pytest.raises(RunError, match="would be larger than 1 MiB"):
        write_tree(tmp_path / "x", 1, {"a": np.zeros(1 << 18)})
    assert not (tmp_path / "x").exists()


ARRAYS = {
    "w0": np.ones((3, 1), np.float32), "b0": np.zeros(1, np.float32), "log_std": np.zeros(1, np.float32),
    "shift": np.zeros(1), "scale": np.ones(1), "format": np.array(FORMAT), "about": np.array("{}"),
    "test_inputs": np.zeros((2, 3)), "test_actions": np.zeros((2, 1)),
}  # fmt: skip
CHANGES = {
    "no arrays": dict.fromkeys(ARRAYS),
    **{f"no {name}": {name: None} for name in ARRAYS if name != "log_std"},
    "text": {"w0": np.full((3, 1), "a")},
    "scalar": {"w0": np.float32(1.0)},
    "negative std": {"obs_mean": np.zeros(3), "obs_std": -np.ones(3), "obs_clip": np.array(5.0)},
    "no bins": {"rings": np.array([0]), "bins": np.array(0)},
    "negative power": {"indices": np.array([0]), "powers": np.array([-2.0])},
}


@pytest.mark.parametrize("name", CHANGES)
def test_crafted_policies_are_refused_with_one_sentence(tmp_path, name):
    arrays = {key: value for key, value in (ARRAYS | CHANGES[name]).items() if value is not None}
    np.savez(tmp_path / "p.npz", **arrays)
    with pytest.raises(ValueError, match=r"is damaged|is not a policy|does not give the actions") as refused:
        Policy.load(tmp_path / "p.npz")
    assert "pickle" not in str(refused.value)


def test_junk_and_bombs_are_no_policies(tmp_path):
    np.savez(tmp_path / "good.npz", **ARRAYS)
    assert Policy.load(tmp_path / "good.npz").obs_dim == 3
    (tmp_path / "junk.npz").write_bytes(b"\x80\x04junk" * 9)
    np.save(tmp_path / "array", np.zeros(3))
    (tmp_path / "array.npy").rename(tmp_path / "array.npz")
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(header, {"descr": "<f4", "fortran_order": False, "shape": (65 << 20,)})
    with zipfile.ZipFile(tmp_path / "bomb.npz", "w", zipfile.ZIP_DEFLATED) as file, file.open("w0.npy", "w") as member:
        member.write(header.getvalue())
        for _ in range(257):
            member.write(bytes(1 << 20))
    for name in ("junk", "array", "bomb"):
        with pytest.raises(ValueError, match=r"is damaged, or not an exported policy") as refused:
            Policy.load(tmp_path / f"{name}.npz")
        assert "pickle" not in str(refused.value)


def test_settings_are_read_up_to_a_limit(tmp_path, capsys):
    with pytest.raises(InputError, match="it has more than 64 KiB"):
        load_options("/dev/zero")
    (tmp_path / "run.toml").write_bytes(b"\xef\xbb\xbfseed = 3\n")
    assert load_options(tmp_path / "run.toml") == {"seed": 3}
    (tmp_path / "config.json").write_text(json.dumps({"config": {"algo": "x" * 100_000}}))
    assert main(["report", str(tmp_path), "--out", str(tmp_path / "p.html")]) == 2
    assert len(capsys.readouterr().err) < 1000


@pytest.mark.parametrize("mark", [{}, {"rows": 1, "sha256": "0"}, {"rows": 1, "columns": 10**400}, [1], "x", 3])
def test_crafted_marks_of_tables_are_refused(tmp_path, mark):
    table = Table(tmp_path / "episodes.csv", ("a", "b"))
    table.append([{"a": 1, "b": 2}])
    with pytest.raises(RunError, match="was changed after the checkpoint"):
        table.truncate(1, mark)
