import subprocess
import sys

import pytest

from steingate.errors import RunError
from steingate.runs import RunFolder, completed, find_runs, folder_lock, read_config, run_path, write_config
from steingate.training.config import make_config, read_stored


def test_paths_have_no_spaces_or_braces(tmp_path):
    assert (
        str(run_path("runs", "steingate", "SafetyPointGoal1-v0", 0))
        == "runs/steingate/SafetyPointGoal1-v0/seed-0"
    )
    assert (
        str(run_path("runs", "cpo", "steingate/SafetyPointGoal1-v0", 3))
        == "runs/cpo/SafetyPointGoal1-v0/seed-3"
    )
    assert str(run_path("r", "cpo", "my pkg:{Env}/../x", 1)) == "r/cpo/my-pkg-Env-..-x/seed-1"


def test_config_round_trip_and_errors(tmp_path):
    run = RunFolder(tmp_path)
    write_config(run, {"config": {"seed": 3}})
    assert read_config(tmp_path) == {"config": {"seed": 3}}
    assert find_runs(tmp_path) == [tmp_path]
    assert find_runs(tmp_path / "missing") == []
    for text, message in (("{", "damaged"), ("[1]", "JSON object"), ("[" * 10**5, "damaged")):
        run.config.write_text(text)
        with pytest.raises(RunError, match=message):
            read_config(tmp_path)
    run.config.unlink()
    with pytest.raises(RunError, match="not a run folder"):
        read_config(tmp_path)


def test_what_was_no_setting_yet_is_as_it_was_then():
    found = completed({"lam": 0.9, "inward": 0.2, "pace": {"loosen": 1.1}})
    assert found == {
        "first_std": 1.0, "places": False, "inward": 0.2, "lam": 0.9,
        "pace": {"settled": 1.05, "patience": 1.0, "loosen": 1.1},
    }  # fmt: skip
    stored = make_config({"algo": "allowance"}).to_dict()
    for name in ("places", "inward", "first_std"):
        del stored["recipe"][name]
    del stored["recipe"]["pace"]["settled"], stored["recipe"]["pace"]["patience"]
    algo = read_stored(stored, "here").algo
    assert (algo.places, algo.inward, algo.first_std) == (False, 0.0, 1.0)
    assert (algo.pace.settled, algo.pace.patience) == (1.05, 1.0)


def test_a_second_writer_is_refused_and_a_dead_one_is_not(tmp_path):
    hold = (
        "import sys, time; from pathlib import Path; from steingate.runs import RunFolder, folder_lock\n"
        "with folder_lock(RunFolder(Path(sys.argv[1]))):\n"
        "    print('held', flush=True); time.sleep(60)\n"
    )
    holder = subprocess.Popen([sys.executable, "-c", hold, tmp_path], stdout=subprocess.PIPE, text=True)
    try:
        assert holder.stdout.readline() == "held\n"
        with (
            pytest.raises(RunError, match=f"in use by process {holder.pid}"),
            folder_lock(RunFolder(tmp_path)),
        ):
            pass
    finally:
        holder.kill()
        holder.communicate()
    with folder_lock(RunFolder(tmp_path)):
        pass
