"""One page of HTML that needs no network: the numbers as JSON, and a small script that draws them."""

import base64
import hashlib
import json
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import Any

from steingate import __version__
from steingate.report.evidence import Evidence
from steingate.report.formats import to_html, write_text
from steingate.report.page_data import Detail, page_data
from steingate.report.report_tables import report_tables

MAX_BYTES = 9_500_000
_SCRIPTS = ("chart.js", "overview.js", "sections.js", "page.js", "monitors.js")


def write_page(evidence: Evidence, path: str | Path, title: str = "SteinGate runs") -> None:
    """Write the page of some runs."""
    write_text(Path(path), page(fitting_data(evidence), title))


def fitting_data(evidence: Evidence, most: int = MAX_BYTES) -> dict[str, Any]:
    """Return the data of a page of at most ``most`` bytes: many runs are shown less finely than one."""
    detail = Detail()
    tables = [to_html(table) for table in report_tables(evidence)]
    while True:
        data = page_data(evidence, tables, detail)
        if len(packed(data)) <= most or detail == detail.coarser():
            return data
        detail = detail.coarser()


def page(data: dict[str, Any] | None, title: str = "SteinGate runs", poll: int = 0) -> str:
    """Return the page as HTML; with ``poll``, one that asks for ``data.json`` every so many milliseconds.

    The policy in its head allows this script and style alone, and no request to anywhere but the server of a
    live page.
    """
    style = _asset("page.css")
    script = "\n".join(_asset(name) for name in _SCRIPTS)
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
    content = "null" if data is None else packed(data)
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
<section id="notices" aria-label="At a glance"></section>
<section id="overview" aria-label="Curves"></section>
<section id="frontier" aria-label="Return against safety"></section>
<section id="profiles" aria-label="Over all tasks"></section>
<section id="tables" aria-label="Tables">{tables}</section>
<section id="run" aria-label="One run"></section>
<section id="skipped" aria-label="Left out"></section>
<noscript><p class="note">The tables need no script; the curves do.</p></noscript>
</main>
<footer>Made by steingate {__version__} from run folders alone.</footer>
<script type="application/json" id="data">{content}</script>
<script>{script}</script>
</body>
</html>
"""


def packed(data: dict[str, Any]) -> str:
    """Return the data as JSON that cannot end the script element which holds it."""
    text = json.dumps(data, separators=(",", ":"), allow_nan=False, ensure_ascii=True)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _asset(name: str) -> str:
    return (files("steingate.report") / "assets" / name).read_text(encoding="utf-8")


def _digest(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
