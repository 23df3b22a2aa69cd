"""A Ray cluster of several nodes on this machine: to see a grid survive a lost node before renting machines.

Each node is a process of its own, ``python -m steingate.experiments.ray_nodes`` with the options of
``ray start``:
killing one is to the others what losing a machine is. Its stdin stays open as long as the node is wanted.
"""

import os
import secrets
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress

from steingate.errors import RunError

OBJECT_STORE_BYTES = 100 << 20  # nothing but short texts goes through it
_HOST = "127.0.0.1"
_START_SECONDS = 180.0
_END_SECONDS = 40.0
_GLANCE = 0.2
_STDIN = 0
Node = subprocess.Popen[bytes]


def guard() -> None:
    """Give clusters started from here a token that lives as long as this process, unless the user chose.

    Must be called before Ray is imported.
    """
    if "RAY_AUTH_MODE" not in os.environ:
        os.environ["RAY_AUTH_MODE"] = "token"
        os.environ.setdefault("RAY_AUTH_TOKEN", secrets.token_hex(32))


@contextmanager
def local_nodes(cpus: Sequence[int]) -> Iterator[tuple[str, list[Node]]]:
    """Start a node for each number of CPUs, the head first; yield the address of the head and the processes.

    The nodes end on leaving, and also when this process is killed.

    Raises
    ------
    RunError
        If the head does not start.
    """
    (port,) = _free_ports(1)
    address = f"{_HOST}:{port}"
    nodes = [_start(cpus[0], "--head", f"--port={port}", "--include-dashboard=false")]
    try:
        wait_for(lambda: listens(address), nodes)
        nodes += [_start(count, f"--address={address}") for count in cpus[1:]]
        yield address, nodes
    finally:
        _end(nodes)


def wait_for(claim: Callable[[], bool], nodes: Sequence[Node]) -> None:
    """Wait until a claim about the nodes holds; raise a ``RunError`` if one ends before, or in vain."""
    patience = time.monotonic() + _START_SECONDS
    while not claim():
        gone = [node.returncode for node in nodes if node.poll() is not None]
        if gone or time.monotonic() > patience:
            what = (
                f"ended with status {gone[0]}" if gone else f"was not there after {_START_SECONDS:g} seconds"
            )
            raise RunError(f"A Ray node on this machine {what}; ray start --head --block shows what it says.")
        time.sleep(_GLANCE)


def listens(address: str, timeout: float = 1.0) -> bool:
    """Return whether somebody accepts connections at ``host:port``."""
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host, int(port)), timeout).close()
    except OSError:
        return False
    return True


def _start(cpus: int, *options: str) -> Node:
    # Without ports a node waits for its agents to choose them, and gives up when a busy machine lets it wait.
    agents = ("dashboard-agent-grpc", "dashboard-agent-listen", "metrics-export", "runtime-env-agent")
    ports = [f"--{name}-port={port}" for name, port in zip(agents, _free_ports(len(agents)), strict=True)]
    return subprocess.Popen(
        # Worker ports of any number: nodes of one machine would fight for those of the default range.
        [sys.executable, "-m", "steingate.experiments.ray_nodes", "start", "--block", f"--num-cpus={cpus}",
         f"--node-ip-address={_HOST}", f"--object-store-memory={OBJECT_STORE_BYTES}", "--disable-usage-stats",
         "--min-worker-port=0", "--max-worker-port=0", *ports, *options],
        stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
    )  # fmt: skip


def _free_ports(count: int) -> list[int]:
    with ExitStack() as stack:
        servers = [stack.enter_context(socket.create_server((_HOST, 0))) for _ in range(count)]
        return [server.getsockname()[1] for server in servers]


def _end(nodes: Sequence[Node]) -> None:
    """End the nodes, the head last, because the others take leave of it; without a head they are killed."""
    patience = time.monotonic() + (_END_SECONDS if nodes[0].poll() is None else 0.0)
    for some in (nodes[1:], nodes[:1]):
        for node in some:
            assert node.stdin is not None
            with suppress(OSError):
                node.stdin.close()
        for node in some:
            try:
                node.wait(max(patience - time.monotonic(), 0.0))
            except subprocess.TimeoutExpired:
                node.kill()  # what it started dies with it; runs notice, save and leave
                node.wait()


def _end_with_stdin() -> None:
    while os.read(_STDIN, 1 << 16):
        pass
    os.kill(os.getpid(), signal.SIGTERM)


if __name__ == "__main__":
    threading.Thread(target=_end_with_stdin, daemon=True).start()
    from ray.scripts.scripts import main

    sys.exit(main())
