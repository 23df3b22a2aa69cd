"""Live page: the report page of some folders, served on this machine and refreshed while runs train."""

import hashlib
import sys
from collections.abc import Sequence
from contextlib import suppress
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import BoundedSemaphore, Lock
from time import monotonic
from typing import Any

from steingate.errors import InputError
from steingate.report.load import run_files, signature
from steingate.report.page import make_data, page, to_json
from steingate.report.summary import load_report

ADDRESS = "127.0.0.1"
POLL = 2000  # milliseconds between requests of the page
_MAX_CLIENTS = 32
_PAUSE = 4.0  # after computing the data, wait this many times as long as it took before doing so again
_HEADERS = {
    "Cache-Control": "no-cache",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Cross-Origin-Resource-Policy": "same-origin",
}


class _Handler(BaseHTTPRequestHandler):
    server: "_Server"
    timeout = 10  # seconds for the request, and for sending all of an answer

    def do_GET(self) -> None:
        """Send the page or its data."""
        # Refuse other host names: a foreign page could point its own name at this machine (DNS rebinding).
        if self.headers.get("Host", "").rsplit(":", 1)[0] not in (ADDRESS, "localhost"):
            self._send(HTTPStatus.FORBIDDEN, b"Forbidden\n", "text/plain")
        elif self.path == "/":
            self._send(HTTPStatus.OK, self.server.document, "text/html; charset=utf-8")
        elif self.path == "/data.json":
            self._send(HTTPStatus.OK, self.server.data(), "application/json")
        else:
            self._send(HTTPStatus.NOT_FOUND, b"Not found\n", "text/plain")

    def log_message(self, format: str, *args: object) -> None:
        """Write no log."""

    def _send(self, status: HTTPStatus, content: bytes, kind: str) -> None:
        tag = f'"{hashlib.sha256(content).hexdigest()[:24]}"'
        if status is HTTPStatus.OK and self.headers.get("If-None-Match") == tag:
            status, content = HTTPStatus.NOT_MODIFIED, b""
        with suppress(OSError):  # the client has gone, or does not read
            self.send_response(status)
            length = str(len(content))
            for name, value in {"Content-Type": kind, "ETag": tag, **_HEADERS, "Content-Length": length}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(content)


class _Server(ThreadingHTTPServer):
    """Server of the runs in ``roots`` for a limited number of clients at a time; further ones are disconnected."""

    daemon_threads = True

    def __init__(self, port: int, roots: Sequence[str | Path], pause: float) -> None:
        self.document = page(None, "SteinGate runs, live", POLL).encode()
        self._roots, self._pause, self._next = list(roots), pause, 0.0
        self._free, self._lock = BoundedSemaphore(_MAX_CLIENTS), Lock()
        self._state: object = None
        self._data = b""
        super().__init__((ADDRESS, port), _Handler)

    def data(self) -> bytes:
        """Return the data of the page as JSON, computed again when a file has changed."""
        with self._lock:
            start = monotonic()
            if start >= self._next:
                # Taken before loading, so that files written meanwhile count as changed at the next request.
                state = [(path, signature(path)) for path in run_files(self._roots)]
                if state != self._state:
                    self._data = to_json(make_data(load_report(self._roots))).encode()
                    self._state = state
                    now = monotonic()
                    self._next = now + self._pause * (now - start)
            return self._data

    def process_request(self, request: Any, client_address: Any) -> None:
        """Answer in a thread of its own."""
        if self._free.acquire(blocking=False):
            super().process_request(request, client_address)
        else:
            self.shutdown_request(request)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Answer one client."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._free.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Print nothing if a client disconnects or sends junk."""
        if not isinstance(sys.exc_info()[1], OSError | ValueError):
            super().handle_error(request, client_address)


def make_server(roots: Sequence[str | Path], port: int = 0, pause: float = _PAUSE) -> ThreadingHTTPServer:
    """Return a server of the live page on 127.0.0.1; port 0 takes any free one."""
    try:
        return _Server(port, roots, pause)
    except (OSError, OverflowError) as error:
        reason = f"Port {port} of {ADDRESS} cannot be used ({error}); choose another --port."
        raise InputError(reason) from None
