"""Report page: one HTML file with the data as JSON and a script that draws it. It makes no requests."""

import base64
import hashlib
import json
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import Any

from steingate import __version__
from steingate.report.page_data import Resolution, page_data
from steingate.report.summary import Report
from steingate.report.tables import report_tables, to_html, write_text

MAX_BYTES = 9_500_000
_SCRIPTS = ("chart.js", "overview.js", "sections.js", "page.js", "monitors.js")


def write_page(report: Report, path: str | Path, title: str = "SteinGate runs") -> None:
    """Write the page of a report."""
    write_text(Path(path), page(make_data(report), title))


def make_data(report: Report, max_bytes: int = MAX_BYTES) -> dict[str, Any]:
    """Return the data of a page; the resolution of its curves is halved until it fits into ``max_bytes``."""
    resolution = Resolution()
    tables = [to_html(table) for table in report_tables(report)]
    while True:
        data = page_data(report, tables, resolution)
        if len(to_json(data)) <= max_bytes or resolution == resolution.halved():
            return data
        resolution = resolution.halved()


def page(data: dict[str, Any] | None, title: str = "SteinGate runs", poll: int = 0) -> str:
    """Return the page as HTML.

    Parameters
    ----------
    data
        Result of ``make_data``; None for a page that requests its data from a server.
    title
        Title and heading.
    poll
        If not 0, request ``data.json`` from the server of the page every ``poll`` milliseconds.
    """
    style = _asset("page.css")
    script = "\n".join(_asset(name) for name in _SCRIPTS)
    # Browsers run this script and style only, and refuse requests to other servers.
    policy = "; ".join(
        [
            "default-src 'none'",
            f"script-src '{_digest(script)}'",
            f"style-src '{_digest(style)}'",
            "img-src data:",
            "connect-src 'self'" if poll else "connect-src 'none'",
            "base-uri 'none'",
            "form-action 'none'",
        ]
    )
    tables = "" if data is None else "".join(data["tables"])
    content = "null" if data is None else to_json(data)
    return f"""<!doctype html>
<html lang="en" data-poll="{poll}">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="generator" content="steingate {__version__}">
<link rel="icon" href="data:,">
<title>{escape(title)}</title>
<style>{style}</style>
</head>
<body>
<header><h1>{escape(title)}</h1><p id="status"></p></header>
<main>
<section id="notices" aria-label="Summary"></section>
<section id="overview" aria-label="Curves"></section>
<section id="frontier" aria-label="Return against violation rate"></section>
<section id="profiles" aria-label="Over all tasks"></section>
<section id="tables" aria-label="Tables">{tables}</section>
<section id="run" aria-label="One run"></section>
<section id="skipped" aria-label="Skipped runs"></section>
<noscript><p class="note">The curves need JavaScript; the tables do not.</p></noscript>
</main>
<footer>Made by steingate {__version__}.</footer>
<script type="application/json" id="data">{content}</script>
<script>{script}</script>
</body>
</html>
"""


def to_json(data: dict[str, Any]) -> str:
    """Return data as JSON without the characters that could end an HTML script element."""
    text = json.dumps(data, separators=(",", ":"), allow_nan=False, ensure_ascii=True)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _asset(name: str) -> str:
    return (files("steingate.report") / "assets" / name).read_text(encoding="utf-8")


def _digest(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
