import os
import signal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.experiments.driving import (
    EPOCHS,
    WALK,
    alive,
    bench,
    end,
    folder,
    last_checkpoint,
    rows,
    unbroken_facts,
    wait_until,
    writer,
)
from tests.training.runs_of_probes import facts

from steingate.errors import InputError
from steingate.experiments.local import LocalEngine, available_cores, share_cores


@given(st.integers(1, 40), st.integers(1, 60))
def test_every_core_has_its_share(count, shares):
    cores = list(range(100, 100 + count))
    split = share_cores(cores, shares)
    assert len(split) == shares
    assert all(split)
    used = [core for share in split for core in share]
    assert set(used) == set(cores[:shares] if shares > count else cores)
    if shares <= count:
        assert used == cores  # none twice
        assert max(map(len, split)) - min(map(len, split)) <= 1
    else:
        assert max(map(used.count, used)) - min(map(used.count, used)) <= 1


def test_few_runs_share_all_cores():
    assert LocalEngine(None, runs=1).shares == [available_cores()]
    assert LocalEngine(3, runs=100).slots == 3
    with pytest.raises(InputError, match="--workers is 0"):
        LocalEngine(0, runs=1)


@pytest.fixture(scope="module")
def unbroken(tmp_path_factory):
    """What the runs of the grid compute when nothing happens to them, one after the other in this process."""
    return unbroken_facts(tmp_path_factory.mktemp("whole"))


def test_killed_workers_drivers_and_ctrl_c_change_nothing(tmp_path, unbroken):
    runs = [folder(tmp_path, seed) for seed in (0, 1)]

    driver = bench(WALK, tmp_path, "--workers", "2")
    wait_until(lambda: min(map(rows, runs)) >= 6, driver)
    cores = [os.sched_getaffinity(writer(run)) for run in runs]
    assert len(available_cores()) == 1 or not cores[0] & cores[1]
    lost = writer(runs[0])
    os.kill(lost, signal.SIGKILL)
    wait_until(lambda: writer(runs[0]) not in (None, lost) and rows(runs[0]) >= 8, driver)
    workers = [writer(run) for run in runs]
    driver.kill()
    _, said = driver.communicate(timeout=60)
    assert "2 runs, 2 to do: how long tests.training.probes:Walk takes is not known yet" in said
    assert "seed 0 lost, to be taken up again: its process was ended by signal 9" in said
    assert "seed 0 goes on" in said
    wait_until(lambda: not any(map(alive, workers)))  # nobody is there to wait for them
    saved = last_checkpoint(runs[0])
    assert saved == rows(runs[0])
    assert 8 <= saved < EPOCHS

    driver = bench(WALK, tmp_path, "--workers", "2")
    wait_until(lambda: writer(runs[0]) not in workers and rows(runs[0]) > saved, driver)
    _, said = end(driver, signal.SIGINT, 130)
    assert " to do: about " in said  # from the speeds that the first command left behind
    assert "the same command goes on with them" in said
    assert "Traceback" not in said
    assert not any(alive(writer(run)) for run in runs)
    assert last_checkpoint(runs[0]) == rows(runs[0]) > saved

    out, said = bench(WALK, tmp_path).communicate(timeout=180)
    assert "2 finished" in out, said
    assert [facts(run) for run in runs] == unbroken

    before = [(run / "progress.csv").stat().st_mtime_ns for run in runs]
    driver = bench(WALK, tmp_path)
    out, said = driver.communicate(timeout=60)
    assert driver.returncode == 0
    assert "2 of them before" in out
    assert "started" not in said
    assert [(run / "progress.csv").stat().st_mtime_ns for run in runs] == before


def test_a_failed_run_is_reported_and_the_others_go_on(tmp_path):
    grid = tmp_path / "mixed.py"
    grid.write_text(
        "from tests.experiments.walk_grid import SETTINGS, SIZES\n"
        "def grid(sizes):\n"
        "    walk = 'tests.training.probes:Walk'\n"
        "    good = sizes.runs(walk, 'cpo', **SETTINGS)\n"
        "    crashing = sizes.runs(walk, 'cpo', folder='crashing', env_options={'pause': 'x'}, **SETTINGS)\n"
        "    return crashing + good\n"
    )
    driver = bench(grid, tmp_path / "out", "--seeds", "0", "--total-steps", "160")
    out, said = driver.communicate(timeout=180)
    assert driver.returncode == 1, said
    assert "TypeError: 'str' object cannot be interpreted as an integer (" in said
    assert "fix the environment" in said
    assert "Traceback" not in said
    assert out.count("1 finished") == 1
    assert out.count("1 failed") == 1
    logs = {log: log.read_text() for log in (tmp_path / "out").rglob("seed-0.log")}
    assert len(logs) == 2
    assert not any("Traceback" in text for text in logs.values())
    assert all(str(log) in said for log, text in logs.items() if "Traceback" in text)
