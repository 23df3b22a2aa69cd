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
from steingate.report.monitors import monitors_data
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


class Source:
    """Data of the runs in ``roots`` as JSON, computed again when a file has changed."""

    def __init__(self, roots: Sequence[str | Path], pause: float = _PAUSE) -> None:
        self.roots = list(roots)
        self._pause, self._next = pause, 0.0
        self._lock = Lock()
        self._state: object = None
        self._content = b""

    def content(self) -> bytes:
        """Return the data of the page."""
        with self._lock:
            start = monotonic()
            if start >= self._next:
                # Taken before loading, so that files written meanwhile count as changed at the next request.
                state = [(path, signature(path)) for path in run_files(self.roots)]
                if state != self._state:
                    self._content = to_json(make_data(load_report(self.roots))).encode()
                    self._state = state
                    now = monotonic()
                    self._next = now + self._pause * (now - start)
            return self._content


class _Handler(BaseHTTPRequestHandler):
    source: Source
    document: bytes
    timeout = 10  # seconds for the request, and for sending all of an answer

    def do_GET(self) -> None:
        """Send the page, its data, or the data of monitors."""
        # Refuse other host names: a foreign page could point its own name at this machine (DNS rebinding).
        if self.headers.get("Host", "").rsplit(":", 1)[0] not in (ADDRESS, "localhost"):
            self._send(HTTPStatus.FORBIDDEN, b"Forbidden\n", "text/plain")
        elif self.path == "/":
            self._send(HTTPStatus.OK, self.document, "text/html; charset=utf-8")
        elif self.path == "/data.json":
            self._send(HTTPStatus.OK, self.source.content(), "application/json")
        elif self.path == "/monitors.json":
            monitors = to_json({"monitors": monitors_data(self.source.roots)})
            self._send(HTTPStatus.OK, monitors.encode(), "application/json")
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
            for name, value in (("Content-Type", kind), ("ETag", tag), *_HEADERS.items()):
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)


class _Server(ThreadingHTTPServer):
    """Serves a limited number of clients at a time; further ones are disconnected."""

    daemon_threads = True

    def __init__(self, *arguments: Any) -> None:
        self._free = BoundedSemaphore(_MAX_CLIENTS)
        super().__init__(*arguments)

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
    document = page(None, "SteinGate runs, live", POLL).encode()
    handler = type("Handler", (_Handler,), {"source": Source(roots, pause), "document": document})
    try:
        return _Server((ADDRESS, port), handler)
    except (OSError, OverflowError) as error:
        reason = f"Port {port} of {ADDRESS} cannot be used ({error}); choose another --port."
        raise InputError(reason) from None
