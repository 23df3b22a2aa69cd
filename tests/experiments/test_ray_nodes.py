"""A cluster of two nodes on this machine that loses one of them, or its head; the engine's count of room."""

import os
import re
import signal
import socket
from pathlib import Path
from types import SimpleNamespace

import pytest
from tests.experiments.driving import (
    EPOCHS,
    WALK,
    alive,
    bench,
    folder,
    last_checkpoint,
    on_ray,
    parent,
    rows,
    unbroken_facts,
    wait_until,
    without_ray,
    writer,
)
from tests.training.runs_of_probes import facts, tiny

from steingate.errors import InputError, RunError
from steingate.experiments import ray_engine
from steingate.experiments.ray_engine import RayEngine, share_cpus

LOST = "lost, to be taken up again: its Ray node is gone"


def places(runs):
    """The processes behind each run, from the inside out: its own, Ray's worker, the raylet, the node."""
    chains = []
    for run in runs:
        chain = [writer(run)]
        for _ in range(3):
            chain.append(parent(chain[-1]))
        chains.append(chain)
    return chains


def is_head(node):
    return b"--head" in Path(f"/proc/{node}/cmdline").read_bytes()


def both_at_work(runs):
    return all(rows(run) >= 6 for run in runs)


@pytest.mark.slow
@pytest.mark.parametrize("with_its_run", [False, True])
def test_a_lost_node_loses_nothing(tmp_path, with_its_run):
    if without_ray(tmp_path, "--nodes", "2"):
        return
    out, unbroken = tmp_path / "ray", unbroken_facts(tmp_path / "whole")
    runs = [folder(out, seed) for seed in (0, 1)]
    driver = on_ray(WALK, out, "--nodes", "2")
    wait_until(lambda: both_at_work(runs), driver)
    chains = places(runs)
    nodes = [node for *_, node in chains]
    assert sorted(map(is_head, nodes)) == [False, True]  # one run on each
    seed = [is_head(node) for node in nodes].index(False)
    own, task, raylet, node = chains[seed]
    # As if the plug were pulled (a node takes its raylet with it), or a run left alone, which has to notice.
    for pid in (node, task, own) if with_its_run else (raylet,):
        os.kill(pid, signal.SIGKILL)
    wait_until(lambda: not alive(own), driver)
    saved = last_checkpoint(runs[seed])
    assert 0 < saved < EPOCHS
    assert with_its_run or saved == rows(runs[seed])
    said = driver.communicate(timeout=300)
    assert driver.returncode == 0, said
    assert "2 finished" in said[0]
    assert len(said[0].splitlines()) == 2  # nothing of Ray's own
    assert re.findall(r"seed (\d) (lost.*)", said[1]) == [(str(seed), LOST)]
    assert f"seed {seed} goes on" in said[1]
    ours = ("Ray nodes on this machine", "steingate tests.training.probes:Walk seed", "walk_grid: ")
    assert all(line.startswith(ours) for line in said[1].splitlines()), said[1]
    assert not any(map(alive, nodes))
    assert [facts(run) for run in runs] == unbroken


@pytest.mark.slow
def test_a_lost_head_and_a_killed_driver_lose_nothing(tmp_path):
    if without_ray(tmp_path, "--nodes", "2"):
        return
    out, unbroken = tmp_path / "ray", unbroken_facts(tmp_path / "whole")
    runs = [folder(out, seed) for seed in (0, 1)]
    driver = on_ray(WALK, out, "--nodes", "2")
    wait_until(lambda: both_at_work(runs), driver)
    chains = places(runs)
    os.kill(next(node for *_, node in chains if is_head(node)), signal.SIGKILL)
    said = driver.communicate(timeout=300)
    assert driver.returncode == 2, said
    last = said[1].splitlines()[-1]
    assert re.fullmatch(r"steingate: The head of the Ray cluster at 127.0.0.1:\d+ is lost; .*goes on.*", last)
    assert "Traceback" not in said[1]
    wait_until(lambda: not any(alive(pid) for chain in chains for pid in chain))
    saved = [last_checkpoint(run) for run in runs]
    assert saved == [rows(run) for run in runs]
    assert min(saved) < EPOCHS

    driver = on_ray(WALK, out, "--nodes", "2")
    begun = saved.index(min(saved))
    wait_until(lambda: rows(runs[begun]) > saved[begun], driver)
    own, *others = places(runs[begun : begun + 1])[0]
    driver.kill()
    driver.communicate(timeout=60)
    wait_until(lambda: not any(map(alive, (own, *others))))
    assert last_checkpoint(runs[begun]) == rows(runs[begun]) > saved[begun]

    said = bench(WALK, out).communicate(timeout=300)
    assert "2 finished" in said[0], said
    assert [facts(run) for run in runs] == unbroken


class DiedError(Exception):
    pass


class ToyRay:
    """As much of Ray as the engine asks for; tasks end when the test says so."""

    exceptions = SimpleNamespace(NodeDiedError=DiedError, RayTaskError=KeyError, RayError=Exception)

    def __init__(self, address, cpus):
        self.address, self.cpus, self.dead, self.tasks = address, cpus, [], 0

    def init(self, **options):
        assert options["address"] == self.address

    def shutdown(self):
        pass

    def cancel(self, task):
        pass

    def cluster_resources(self):
        return {"CPU": float(self.cpus)}

    def remote(self, **options):
        return lambda function: SimpleNamespace(remote=self.start)

    def start(self, *job):
        self.tasks += 1
        return self.tasks

    def wait(self, tasks, num_returns, timeout):
        assert tasks
        return [task for task in tasks if task in self.dead], []

    def get(self, task):
        raise DiedError


@pytest.fixture
def toy(monkeypatch):
    """A toy cluster with a true listener at its head, looked at as often as possible."""
    monkeypatch.setattr(ray_engine, "_LOOK_EVERY", 0.0)
    with socket.create_server(("127.0.0.1", 0)) as server:
        ray = ToyRay(f"127.0.0.1:{server.getsockname()[1]}", cpus=4)
        ray.server = server
        monkeypatch.setattr(ray_engine, "_import_ray", lambda: ray)
        yield ray


def test_room_follows_the_nodes_of_the_cluster(toy, tmp_path):
    with RayEngine(None, 100, toy.address) as engine:
        assert engine.slots == 4
        toy.cpus = 6  # a node joins
        engine.ended(0.0)
        assert engine.slots == 6
        for seed in range(6):
            engine.start(tiny(tmp_path, seed=seed))
        toy.dead = [1, 2]
        ended = engine.ended(0.0)
        assert [(cfg.seed, *end) for cfg, end in ended] == [
            (seed, "lost", LOST.rpartition(": ")[2]) for seed in (0, 1)
        ]
        assert engine.slots == 4  # though Ray still counts the CPUs of the dead node
        engine.ended(0.0)
        assert engine.slots == 4
        toy.cpus = 3
        engine.ended(0.0)
        assert engine.slots == 3
        toy.cpus = 0
        engine.ended(0.0)
        assert engine.slots == 1  # one waits for a node to come
    with RayEngine(2, 100, toy.address) as engine:
        assert engine.slots == 2
        toy.cpus = 1
        engine.ended(0.0)
        assert engine.slots == 2  # as asked for: it may wait in Ray's queue until a machine is added
    with RayEngine(None, 1, toy.address) as engine:
        assert engine.slots == 1


def test_cpus_that_ray_goes_on_counting_are_believed_in_the_end(toy, tmp_path, monkeypatch):
    monkeypatch.setattr(ray_engine, "_NODE_PATIENCE", 0.0)
    with RayEngine(None, 100, toy.address) as engine:
        engine.start(tiny(tmp_path))
        toy.dead = [1]
        engine.ended(0.0)
        assert engine.slots == 4


def test_a_silent_head_is_waited_for_and_then_said(toy, monkeypatch):
    with RayEngine(None, 100, toy.address) as engine:
        port = toy.server.getsockname()[1]
        toy.server.close()
        engine.ended(0.0)
        assert engine.slots == 0  # nothing is started meanwhile
        with socket.create_server(("127.0.0.1", port)):
            engine.ended(0.0)
            assert engine.slots == 4
        engine.ended(0.0)
        monkeypatch.setattr(ray_engine, "_HEAD_PATIENCE", 0.0)
        with pytest.raises(RunError, match=f"The head of the Ray cluster at {toy.address} is lost"):
            engine.ended(0.0)


def test_nodes_share_the_workers(monkeypatch):
    monkeypatch.setattr(ray_engine, "available_cores", lambda: [0, 1, 2, 3, 4])
    assert share_cpus(None, 2) == [3, 2]
    assert share_cpus(None, 8) == [1] * 8
    assert share_cpus(7, 3) == [3, 2, 2]
    with pytest.raises(InputError, match="--nodes is 0"):
        share_cpus(None, 0)
    with pytest.raises(InputError, match="--workers is 1: each of the 2 nodes needs one"):
        share_cpus(1, 2)


@pytest.mark.parametrize("options", [["--engine", "local"], ["--engine", "ray", "--address", "auto"]])
def test_nodes_are_for_a_ray_cluster_of_our_own(tmp_path, options, capsys):
    from steingate.cli import main

    assert main(["bench", str(WALK), "--out", str(tmp_path), "--nodes", "2", *options]) == 2
    assert capsys.readouterr().err == (
        "steingate: --nodes starts a Ray cluster: add --engine ray, and no --address.\n"
    )
