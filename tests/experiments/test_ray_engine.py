"""The Ray engine where Ray is installed; the sentence that says how to install it where it is not."""

import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from tests.experiments.driving import (
    EPOCHS,
    WALK,
    alive,
    bench,
    end,
    folder,
    last_checkpoint,
    listening,
    on_ray,
    parent,
    rows,
    unbroken_facts,
    wait_until,
    without_ray,
    writer,
)
from tests.training.runs_of_probes import facts


def test_both_engines_give_the_same_numbers(tmp_path):
    if without_ray(tmp_path):
        return
    driver = on_ray(WALK, tmp_path / "ray", "--total-steps", "800")
    out, said = driver.communicate(timeout=300)
    assert driver.returncode == 0, said
    assert "2 finished" in out
    out, said = bench(WALK, tmp_path / "local", "--total-steps", "800").communicate(timeout=300)
    assert "2 finished" in out, said
    for seed in (0, 1):
        assert facts(folder(tmp_path / "ray", seed)) == facts(folder(tmp_path / "local", seed))


@pytest.mark.slow
def test_killed_workers_drivers_and_ctrl_c_change_nothing_on_ray(tmp_path):
    if without_ray(tmp_path):
        return
    out, unbroken = tmp_path / "ray", unbroken_facts(tmp_path / "whole")
    runs = [folder(out, seed) for seed in (0, 1)]

    driver = on_ray(WALK, out)
    wait_until(lambda: rows(runs[0]) >= 6, driver)
    lost = writer(runs[0])
    os.kill(lost, signal.SIGKILL)  # the process of the run
    wait_until(lambda: writer(runs[0]) not in (None, lost) and rows(runs[0]) >= 8, driver)
    lost = writer(runs[0])
    os.kill(parent(lost), signal.SIGKILL)  # Ray's own worker, which waits for it
    wait_until(lambda: not alive(lost), driver)
    wait_until(lambda: writer(runs[0]) not in (None, lost) and rows(runs[0]) >= 10, driver)
    workers = [writer(run) for run in runs]
    driver.kill()
    _, said = driver.communicate(timeout=60)
    assert "seed 0 lost, to be taken up again: its process was ended by signal 9" in said
    assert "seed 0 lost, to be taken up again: Ray reported WorkerCrashedError" in said
    wait_until(lambda: not any(map(alive, workers)))
    saved = last_checkpoint(runs[0])
    assert saved == rows(runs[0])
    assert 10 <= saved < EPOCHS

    driver = on_ray(WALK, out)
    wait_until(lambda: writer(runs[0]) not in workers and rows(runs[0]) > saved, driver)
    _, said = end(driver, signal.SIGINT, 130)
    assert "the same command goes on with them" in said
    assert "Traceback" not in said
    assert not any(alive(writer(run)) for run in runs)
    assert last_checkpoint(runs[0]) == rows(runs[0]) > saved

    said = on_ray(WALK, out).communicate(timeout=300)
    assert "2 finished" in said[0], said
    assert [facts(run) for run in runs] == unbroken


def test_an_address_where_nobody_listens(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    if without_ray(tmp_path, "--address", f"127.0.0.1:{port}"):
        return
    driver = on_ray(WALK, tmp_path / "out", "--address", f"127.0.0.1:{port}")
    _, said = driver.communicate(timeout=120)
    assert driver.returncode == 2
    assert f"No Ray cluster answers at 127.0.0.1:{port}" in said
    assert len(said.strip().splitlines()) == 1


@pytest.mark.slow
def test_a_cluster_by_its_address_and_a_failed_run(tmp_path):
    if without_ray(tmp_path, "--address", "auto"):
        return
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    grid = tmp_path / "mixed.py"
    grid.write_text(
        "from tests.experiments.walk_grid import SETTINGS, SIZES\n"
        "def grid(sizes):\n"
        "    walk = 'tests.training.probes:Walk'\n"
        "    good = sizes.runs(walk, 'steingate', **SETTINGS)\n"
        "    bad = sizes.runs(walk, 'steingate', folder='bad', env_options={'pause': 'x'}, **SETTINGS)\n"
        "    return bad + good\n"
    )
    short = tempfile.mkdtemp(dir="/tmp")  # the names of sockets in it must not be long
    guarded = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(32)}
    head = subprocess.Popen(
        [Path(sys.executable).with_name("ray"), "start", "--head", f"--port={port}", "--num-cpus=1",
         "--include-dashboard=false", "--disable-usage-stats", "--block",
         f"--temp-dir={short}"],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env={**os.environ, **guarded},
    )  # fmt: skip
    try:
        wait_until(lambda: listening(port), head)
        address = ("--address", f"127.0.0.1:{port}")
        driver = on_ray(grid, tmp_path / "out", *address, "--seeds", "0", "--total-steps", "160", **guarded)
        out, said = driver.communicate(timeout=300)
        assert head.poll() is None  # the cluster outlives the grid
    finally:
        head.terminate()
        head.wait(timeout=120)
        shutil.rmtree(short, ignore_errors=True)
    assert driver.returncode == 1, said
    assert "TypeError: 'str' object cannot be interpreted as an integer (" in said
    assert out.count("1 finished") == out.count("1 failed") == 1
    assert rows(folder(tmp_path / "out", 0)) == 2
