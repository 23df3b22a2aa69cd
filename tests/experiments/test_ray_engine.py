"""The Ray engine (``make test-ray``), and what happens without Ray."""

import os
import secrets
import signal
import socket
from importlib.util import find_spec
from pathlib import Path

import pytest
from tests.experiments.driving import (
    WALK,
    alive,
    bench,
    folder,
    last_checkpoint,
    mixed_grid,
    rows,
    uninterrupted_facts,
    wait_until,
    writer,
)
from tests.training.runs_of_probes import facts

needs_ray = pytest.mark.skipif(find_spec("ray") is None, reason="Ray is not installed")


def parent(pid):
    """Return the process that started another."""
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()[1]


@pytest.mark.skipif(find_spec("ray") is not None, reason="Ray is installed")
def test_without_ray_the_message_names_the_extra(tmp_path):
    driver = bench(WALK, tmp_path, "--ray", "local")
    _, stderr = driver.communicate(timeout=120)
    assert driver.returncode == 2
    assert stderr.startswith("steingate: steingate bench --ray needs optional packages: run pip install ")
    assert not list(tmp_path.iterdir())


@needs_ray
def test_an_address_without_a_cluster(tmp_path):
    address = f"127.0.0.1:{free_port()}"
    driver = bench(WALK, tmp_path / "out", "--ray", address)
    _, stderr = driver.communicate(timeout=120)
    assert driver.returncode == 2
    assert stderr.startswith(f"steingate: No Ray cluster answers at {address}: ")
    assert len(stderr.splitlines()) == 1


@needs_ray
@pytest.mark.slow
def test_killed_workers_killed_drivers_and_ctrl_c_change_nothing(tmp_path):
    out, uninterrupted = tmp_path / "ray", uninterrupted_facts(tmp_path / "whole")
    runs = [folder(out, seed) for seed in (0, 1)]
    options = ("--ray", "local", "--workers", "2")

    driver = bench(WALK, out, *options)
    wait_until(lambda: rows(runs[0]) >= 6, driver)
    killed = writer(runs[0])
    os.kill(killed, signal.SIGKILL)
    wait_until(lambda: writer(runs[0]) not in (None, killed) and rows(runs[0]) >= 8, driver)
    killed = writer(runs[0])
    os.kill(parent(killed), signal.SIGKILL)  # the Ray worker that waits for it
    wait_until(lambda: not alive(killed), driver)
    wait_until(lambda: writer(runs[0]) not in (None, killed) and rows(runs[0]) >= 10, driver)
    workers = [writer(run) for run in runs]
    driver.kill()
    _, stderr = driver.communicate(timeout=60)
    assert "seed-0 restarted: its process was ended by signal 9" in stderr
    assert "seed-0 restarted: Ray reported WorkerCrashedError" in stderr
    wait_until(lambda: not any(map(alive, workers)))
    saved = last_checkpoint(runs[0])
    assert saved == rows(runs[0])

    driver = bench(WALK, out, *options)
    wait_until(lambda: writer(runs[0]) not in workers and rows(runs[0]) > saved, driver)
    os.kill(driver.pid, signal.SIGINT)
    _, stderr = driver.communicate(timeout=180)
    assert driver.returncode == 130, stderr
    assert "run the same command to continue" in stderr
    assert not any(alive(writer(run)) for run in runs)
    assert last_checkpoint(runs[0]) == rows(runs[0]) > saved

    stdout, stderr = bench(WALK, out, *options).communicate(timeout=300)
    assert "2 finished" in stdout, stderr
    assert [facts(run) for run in runs] == uninterrupted


@pytest.fixture
def cluster(monkeypatch):
    """A cluster of two nodes with one CPU each, on this machine."""
    monkeypatch.setenv("RAY_AUTH_MODE", "token")
    monkeypatch.setenv("RAY_AUTH_TOKEN", secrets.token_hex(32))
    from ray.cluster_utils import Cluster

    options = {"num_cpus": 1, "include_dashboard": False, "object_store_memory": 100 << 20}
    found = Cluster(initialize_head=True, head_node_args=options)
    found.second = found.add_node(num_cpus=1, object_store_memory=100 << 20)
    yield found
    found.shutdown()


@needs_ray
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_runs_of_a_lost_node_continue_on_another(tmp_path, cluster):
    out, uninterrupted = tmp_path / "ray", uninterrupted_facts(tmp_path / "whole")
    runs = [folder(out, seed) for seed in (0, 1)]
    driver = bench(WALK, out, "--ray", cluster.address)
    wait_until(lambda: all(rows(run) >= 6 for run in runs), driver)
    workers = [writer(run) for run in runs]
    cluster.remove_node(cluster.second, allow_graceful=False)
    wait_until(lambda: not all(map(alive, workers)), driver)
    stdout, stderr = driver.communicate(timeout=300)
    assert driver.returncode == 0, stderr
    assert "2 finished" in stdout
    assert stderr.count("restarted: its Ray node is gone") == 1
    assert [facts(run) for run in runs] == uninterrupted

    options = ("--ray", cluster.address, "--seeds", "0", "--total-steps", "160")
    driver = bench(mixed_grid(tmp_path), tmp_path / "mixed", *options)
    stdout, stderr = driver.communicate(timeout=300)
    assert driver.returncode == 1, stderr
    assert "TypeError: 'str' object cannot be interpreted as an integer (" in stderr
    assert stdout.count("1 finished") == stdout.count("1 failed") == 1
