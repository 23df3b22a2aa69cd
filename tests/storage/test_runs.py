"""Run folders: paths, configuration files, identity of checkpoints and the lock."""

import subprocess
import sys

import pytest

from steingate.errors import RunError
from steingate.runs import RunFolder, folder_lock, load_certification, newest_checkpoint, run_path, write_config
from steingate.storage.checkpoint import write_checkpoint


@pytest.mark.parametrize(
    ("arguments", "path"),
    [
        (("runs", "steingate", "SafetyPointGoal1-v0", 0), "runs/steingate/SafetyPointGoal1-v0/seed-0"),
        (("runs", "cpo", "steingate/SafetyPointGoal1-v0", 3), "runs/cpo/SafetyPointGoal1-v0/seed-3"),
        (("r", "cpo", "my pkg:{Env}/../x", 1), "r/cpo/my-pkg-Env-..-x/seed-1"),
    ],
)
def test_paths_have_no_spaces_or_braces(arguments, path):
    assert str(run_path(*arguments)) == path


def test_a_certification_needs_a_result_and_a_sentence(tmp_path):
    assert load_certification(tmp_path) is None
    (tmp_path / "certification.json").write_text('{"certified": 1, "sentence": "Yes."}')
    with pytest.raises(RunError, match=r"certification\.json is damaged"):
        load_certification(tmp_path)


def test_a_checkpoint_of_another_run_is_skipped(tmp_path):
    run = RunFolder(tmp_path)
    write_config(run, {"identity": "this"})
    write_checkpoint(run.checkpoints, 1, {"identity": "this"})
    write_checkpoint(run.checkpoints, 2, {"identity": "other"})
    warnings = []
    assert newest_checkpoint(tmp_path, warnings.append).epoch == 1
    assert "epoch-00000002.safetensors does not belong to this run" in warnings[0]


def test_a_second_writer_is_refused_until_the_first_has_ended(tmp_path):
    code = (
        "import sys, time; from pathlib import Path; from steingate.runs import RunFolder, folder_lock\n"
        "with folder_lock(RunFolder(Path(sys.argv[1]))):\n"
        "    print('locked', flush=True); time.sleep(60)\n"
    )
    holder = subprocess.Popen([sys.executable, "-c", code, tmp_path], stdout=subprocess.PIPE, text=True)
    try:
        assert holder.stdout.readline() == "locked\n"
        with pytest.raises(RunError, match=f"in use by process {holder.pid}"), folder_lock(RunFolder(tmp_path)):
            pass
    finally:
        holder.kill()
        holder.communicate()
    with folder_lock(RunFolder(tmp_path)):
        pass
