"""A live page on this machine alone: it reads run folders and answers nothing but GET.

Served are the page, its numbers, and three named files of each run folder. A path is never put together from
what a visitor sends: runs and files are looked up in lists, and a file that a symbolic link leads out of the
folders is refused.
"""

import hashlib
from collections.abc import Callable, Sequence
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from math import inf
from pathlib import Path
from threading import Lock
from time import monotonic
from urllib.parse import unquote, urlsplit

from steingate.errors import InputError, RunError
from steingate.report.evidence import gather
from steingate.report.loading import Run, inside, load_run, run_folders, run_id
from steingate.report.monitors import monitors_data
from steingate.report.page import fitting_data, packed, page
from steingate.runs import table_content, table_file

ADDRESS = "127.0.0.1"
POLL = 2000  # milliseconds
REST = 4.0
_FILES = {"config.json": "application/json", "progress.csv": "text/csv", "episodes.csv": "text/csv"}

Signature = tuple[tuple[str, int, int], ...]


class Source:
    """The numbers of some folders; a run is read again only when one of its files has changed.

    Parameters
    ----------
    roots
        Run folders, or folders that hold some.
    rest
        How long to rest after the numbers were made, in units of the time that took: training usually needs
        the same processor.
    clock
        Seconds from anywhere.
    """

    def __init__(
        self, roots: Sequence[str | Path], rest: float = REST, clock: Callable[[], float] = monotonic
    ) -> None:
        self.roots = [Path(root) for root in roots]
        self._rest, self._clock, self._until = rest, clock, -inf
        self._lock = Lock()
        self._known: dict[Path, tuple[Signature, Run]] = {}
        self._state: list[Signature] | None = None
        self._content = b""
        self._tag = ""

    def content(self) -> tuple[bytes, str]:
        """Return the page's numbers as JSON, and a tag that changes with them."""
        with self._lock:
            begun = self._clock()
            if begun < self._until:
                return self._content, self._tag
            # Looked at before reading: what is written meanwhile shows as a change the next time.
            state = [_signature(folder) for folder, _ in run_folders(self.roots)]
            if state != self._state:
                self._content = packed(fitting_data(gather(self.roots, self._load))).encode()
                self._tag = f'"{hashlib.sha256(self._content).hexdigest()[:24]}"'
                self._state = state
                ended = self._clock()
                self._until = ended + self._rest * (ended - begun)
            return self._content, self._tag

    def file(self, run: str, name: str) -> Path | None:
        """Return one of the three files of a run by the run's id, or ``None``."""
        found = [(folder, root) for folder, root in run_folders(self.roots) if run_id(folder) == run]
        if not found or name not in _FILES:
            return None
        folder, root = found[0]
        path = table_file(folder / name)
        return path if path.is_file() and inside(path, root) and inside(path, folder) else None

    def _load(self, folder: Path, root: Path) -> Run:
        signature = _signature(folder)
        if folder not in self._known or self._known[folder][0] != signature:
            self._known[folder] = (signature, load_run(folder, root))
        return self._known[folder][1]


def _signature(path: Path) -> Signature:
    """Return what changes when a file of the run does."""
    seen = []
    for name in _FILES:
        try:
            file = table_file(path / name)
            status = file.stat()
        except OSError:
            continue
        seen.append((str(file), status.st_mtime_ns, status.st_size))
    return tuple(seen)


def make_server(roots: Sequence[str | Path], port: int = 0, rest: float = REST) -> ThreadingHTTPServer:
    """Return a server of the runs below ``roots`` on 127.0.0.1; port 0 takes any that is free."""
    source = Source(roots, rest)
    document = page(None, "SteinGate runs, live", POLL).encode()

    class Handler(_Handler):
        pass

    Handler.source, Handler.document = source, document
    try:
        return _Server((ADDRESS, port), Handler)
    except (OSError, OverflowError) as error:
        raise InputError(
            f"Port {port} of {ADDRESS} cannot be used ({error}); choose another --port."
        ) from None


class _Server(ThreadingHTTPServer):
    daemon_threads = True


class _Handler(BaseHTTPRequestHandler):
    source: Source
    document: bytes
    server_version = "steingate"
    sys_version = ""
    timeout = 30

    def do_GET(self) -> None:
        """Answer with the page, its numbers, or a file of a run."""
        # A page elsewhere may point a name of its own at this machine; only our own address is answered.
        host = self.headers.get("Host", "").rsplit(":", 1)[0]
        if host not in (ADDRESS, "localhost"):
            self._refuse(HTTPStatus.FORBIDDEN)
            return
        path = urlsplit(self.path).path
        if path == "/":
            self._send(self.document, "text/html; charset=utf-8")
        elif path == "/data.json":
            self._send_numbers()
        elif path == "/monitors.json":
            monitors = {"monitors": monitors_data(self.source.roots)}
            self._send(packed(monitors).encode(), "application/json")
        else:
            self._send_file(unquote(path).split("/"))

    def parse_request(self) -> bool:
        """Refuse every method but GET before it is looked at further."""
        if not super().parse_request():
            return False
        if self.command != "GET":
            self._refuse(HTTPStatus.METHOD_NOT_ALLOWED, {"Allow": "GET"})
            return False
        return True

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing: the terminal shows where the page is."""

    def _send_numbers(self) -> None:
        content, tag = self.source.content()
        if self.headers.get("If-None-Match") == tag:
            self._headers(HTTPStatus.NOT_MODIFIED, {"ETag": tag})
            return
        self._send(content, "application/json", {"ETag": tag})

    def _send_file(self, parts: list[str]) -> None:
        """Send ``/runs/ID/NAME``."""
        path = self.source.file(parts[2], parts[3]) if len(parts) == 4 and parts[1] == "runs" else None
        if path is None:
            self._refuse(HTTPStatus.NOT_FOUND)
            return
        try:
            content = table_content(path)
        except (OSError, RunError):
            self._refuse(HTTPStatus.NOT_FOUND)
            return
        self._send(content, f"{_FILES[parts[3]]}; charset=utf-8")

    def _refuse(self, status: HTTPStatus, headers: dict[str, str] | None = None) -> None:
        self.close_connection = True
        self._send(f"{status.phrase}\n".encode(), "text/plain; charset=utf-8", headers, status)

    def _send(
        self,
        content: bytes,
        kind: str,
        headers: dict[str, str] | None = None,
        status: HTTPStatus = HTTPStatus.OK,
    ) -> None:
        self._headers(status, {"Content-Type": kind, "Content-Length": str(len(content)), **(headers or {})})
        if self.command != "HEAD":
            try:
                self.wfile.write(content)
            except (BrokenPipeError, ConnectionResetError):
                self.close_connection = True  # the visitor has left

    def _headers(self, status: HTTPStatus, headers: dict[str, str]) -> None:
        self.send_response(status)
        for name, value in {
            **headers,
            "Cache-Control": "no-cache",
            "X-Content-Type-Options": "nosniff",
            "X-Frame-Options": "DENY",
            "Referrer-Policy": "no-referrer",
            "Cross-Origin-Resource-Policy": "same-origin",
        }.items():
            self.send_header(name, value)
        self.end_headers()
