import os
import signal

import pytest
from tests.experiments.driving import (
    EPOCHS,
    WALK,
    alive,
    bench,
    certified_epoch,
    folder,
    last_checkpoint,
    mixed_grid,
    rows,
    uninterrupted_facts,
    wait_until,
    writer,
)
from tests.training.runs_of_probes import facts

from steingate.errors import InputError
from steingate.experiments.engines import LocalEngine, split_cores
from steingate.tasks.validation import usable_cores


def test_cores_are_split_evenly():
    assert split_cores(list(range(7)), 3) == [[0, 1, 2], [3, 4], [5, 6]]
    assert split_cores([4, 5], 5) == [[4], [5], [4], [5], [4]]


def test_few_runs_use_all_cores():
    assert LocalEngine(None, runs=1).cores == [usable_cores()]
    assert LocalEngine(3, runs=100).slots == 3
    with pytest.raises(InputError, match="--workers is 0"):
        LocalEngine(0, runs=1)


@pytest.mark.slow
def test_killed_workers_killed_drivers_and_ctrl_c_change_nothing(tmp_path):
    uninterrupted = uninterrupted_facts(tmp_path / "whole")
    out = tmp_path / "out"
    runs = [folder(out, seed) for seed in (0, 1)]

    driver = bench(WALK, out, "--workers", "2")
    wait_until(lambda: min(map(rows, runs)) >= 6, driver)
    cores = [os.sched_getaffinity(writer(run)) for run in runs]
    assert len(usable_cores()) == 1 or not cores[0] & cores[1]
    killed = writer(runs[0])
    os.kill(killed, signal.SIGKILL)
    wait_until(lambda: writer(runs[0]) not in (None, killed) and rows(runs[0]) >= 8, driver)
    workers = [writer(run) for run in runs]
    driver.kill()
    _, stderr = driver.communicate(timeout=60)
    assert "walk_grid: 2 runs, 2 to do, 2 at a time" in stderr
    assert "seed-0 restarted: its process was ended by signal 9" in stderr
    wait_until(lambda: not any(map(alive, workers)))
    saved = last_checkpoint(runs[0])
    assert saved == rows(runs[0])
    assert 8 <= saved < EPOCHS

    driver = bench(WALK, out, "--workers", "2")
    wait_until(lambda: writer(runs[0]) not in workers and rows(runs[0]) > saved, driver)
    os.kill(driver.pid, signal.SIGINT)
    _, stderr = driver.communicate(timeout=180)
    assert driver.returncode == 130, stderr
    assert "run the same command to continue" in stderr
    assert "Traceback" not in stderr
    assert not any(alive(writer(run)) for run in runs)
    assert last_checkpoint(runs[0]) == rows(runs[0]) > saved

    stdout, stderr = bench(WALK, out).communicate(timeout=180)
    assert "2 finished" in stdout, stderr
    assert [facts(run) for run in runs] == uninterrupted

    # A worker that was killed between its last checkpoint and the certification is not finished.
    (runs[0] / "certification.json").unlink()
    stdout, stderr = bench(WALK, out).communicate(timeout=180)
    assert "2 finished" in stdout
    assert "1 of them before" in stdout
    assert certified_epoch(runs[0]) == EPOCHS

    before = [(run / "progress.csv").stat().st_mtime_ns for run in runs]
    stdout, _ = bench(WALK, out).communicate(timeout=60)
    assert "2 of them before" in stdout
    assert [(run / "progress.csv").stat().st_mtime_ns for run in runs] == before


def test_a_failed_run_is_reported_and_the_others_continue(tmp_path):
    options = ("--seeds", "0", "--total-steps", "160")
    driver = bench(mixed_grid(tmp_path), tmp_path / "out", *options)
    stdout, stderr = driver.communicate(timeout=180)
    assert driver.returncode == 1, stderr
    assert "TypeError: 'str' object cannot be interpreted as an integer (" in stderr
    assert "fix the environment" in stderr
    assert "Traceback" not in stderr
    assert stdout.count("1 finished") == stdout.count("1 failed") == 1
    logs = [log.read_text() for log in (tmp_path / "out").rglob("seed-0.log")]
    assert len(logs) == 2
    assert not any("Traceback" in text for text in logs)
