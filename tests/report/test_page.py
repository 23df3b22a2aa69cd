"""The page and the dashboard: numbers, safety against hostile names, and both in a browser."""

import base64
import hashlib
import http.client
import json
import re
import socket
import struct
import threading
import time
from contextlib import contextmanager, suppress
from html.parser import HTMLParser

import numpy as np
import pytest
from tests.report.browser import CHROMIUM, Browser
from tests.report.made_up import write_run

from steingate.errors import InputError
from steingate.report.dashboard import make_server
from steingate.report.load import load_runs
from steingate.report.page import BINS, cost_histogram, make_data, page, run_reference, to_json, write_page
from steingate.report.summary import load_report

SECTIONS = {"notices", "overview", "frontier", "profiles", "tables", "run", "skipped"}


class Reader(HTMLParser):
    """Collect tags, scripts and table cells of a page; fail if tags do not match."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.open, self.scripts, self.cells, self.policy = [], [], [], [], ""
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        attributes = dict(attrs)
        self.tags.append((tag, attributes))
        if attributes.get("http-equiv") == "Content-Security-Policy":
            self.policy = attributes["content"]
        if tag not in ("meta", "link", "input", "br"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] in ("script", "style"):
            self.scripts.append((self.open[-1], self.tags[-1][1], data))
        elif self.open and self.open[-1] in ("td", "th"):
            self.cells.append(data)

    @property
    def data(self):
        return json.loads(next(text for _, attributes, text in self.scripts if attributes.get("id") == "data"))


def unpack(text):
    counts = [int(cell or 0) for cell in text.split(",")]
    return counts + [0] * (2 + BINS - len(counts))


@pytest.fixture
def many(tmp_path):
    for seed in range(2):
        for algo in ("steingate", "cpo"):
            write_run(tmp_path / "runs", algo=algo, seed=seed, steps=20_000)
    broken = write_run(tmp_path / "runs", algo="cpo", seed=9)
    (broken / "progress.csv").write_text("nonsense\n1\n")
    return tmp_path / "runs"


def test_page_is_one_file_that_needs_no_network(many, tmp_path):
    write_page(load_report([many]), tmp_path / "page.html", title="A <title>")
    text = (tmp_path / "page.html").read_text()
    reader = Reader(text)
    assert "<title>A &lt;title&gt;</title>" in text
    assert not re.search(r"""(src|href)\s*=\s*["']?(https?:)?//""", text)
    for tag, attributes in reader.tags:
        assert tag not in ("iframe", "img", "object", "embed")
        assert not [name for name in attributes if name.startswith("on") or name in ("style", "src")]
    assert "default-src 'none'" in reader.policy
    assert "connect-src 'none'" in reader.policy
    for tag, attributes, content in reader.scripts:
        if attributes.get("type") != "application/json":
            digest = base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
            assert f"{tag}-src 'sha256-{digest}'" in reader.policy
    assert {attributes.get("id") for tag, attributes in reader.tags if tag == "section"} == SECTIONS
    assert "PointGoal1" in reader.cells
    assert len(reader.data["runs"]) == 4
    ((path, reason),) = reader.data["skipped"]
    assert ["seed-9" in path, "damaged" in reason] == [True, True]


def test_numbers_of_a_run_are_on_the_page(tmp_path):
    write_run(tmp_path, epochs=12, planned=15)
    report = load_report([tmp_path])
    (run,) = report.runs
    (shown,) = json.loads(to_json(make_data(report)))["runs"]
    assert (shown["epochs"], shown["planned"], shown["limit"]) == (12, 15, 25)
    np.testing.assert_allclose(shown["curves"]["cost"], run.progress["Metrics/EpCost"], rtol=1e-3)
    assert shown["modes"] == "".join(map(str, run.modes))
    terms = np.sum([shown["gate"][name] for name in ("reference", "atoms", "interior")], axis=0)
    np.testing.assert_allclose(terms, run.progress["Gate/Bound"], rtol=2e-3)
    costs = [run.episodes["cost"][run.episodes["epoch"] == epoch] for epoch in range(12)]
    for name, level in (("low", 0.1), ("high", 0.9), ("worst", 1.0)):
        np.testing.assert_allclose(shown["curves"][name], [np.quantile(c, level) for c in costs], rtol=1e-3)
    assert [frame[:2] for frame in shown["frames"]] == [[epoch, epoch] for epoch in range(1, 13)]
    for frame, cost in zip(shown["frames"], costs, strict=True):
        counts = unpack(frame[2])
        assert (sum(counts), counts[0]) == (len(cost), np.sum(cost == 0))
        assert counts[1] == np.sum(cost >= 49.995)
    phases = {name: (epochs, unpack(counts)) for name, epochs, counts in shown["phases"]}
    assert sum(phases["whole run"][1]) == 48
    assert phases["last fifth"][0] == 2
    assert sum(sum(phases[name][1]) for name in ("improve", "recover") if name in phases) == 48
    worst = int(np.argmax(run.episodes["cost"]))
    assert shown["worst"][0][3] == run.episodes["epoch"][worst] + 1
    assert [row[0] for row in shown["worst"]] == sorted(run.episodes["cost"], reverse=True)[:10]
    late = run.episodes["epoch"] >= 10
    assert shown["tail"][:2] == [late.sum(), (run.episodes["cost"][late] > 25).sum()]


def test_reference_is_that_of_the_certificate(tmp_path):
    write_run(tmp_path, algorithm={"preset": "released", "certificate": {"zero_mass": 0.2, "one_mass": 0.1}})
    (run,) = load_runs([tmp_path])[0]
    reference = run_reference(run)
    assert [reference[key] for key in ("scale", "zero", "one")] == [50.0, 0.2, 0.1]
    # The density is per bin: all bins have the probability that the atoms leave.
    grid = np.linspace(0, 1, len(reference["density"]))
    assert np.trapezoid(reference["density"], grid) * BINS == pytest.approx(0.7, abs=2e-3)
    sample = np.random.default_rng(0).beta(2.0, 5.0, 200_000) * 50.0
    heights = np.array(unpack(cost_histogram(sample, reference))[2:]) / len(sample)
    middles = np.interp((np.arange(BINS) + 0.5) / BINS, grid, np.array(reference["density"]) / 0.7)
    np.testing.assert_allclose(heights, middles, atol=2e-3)


@pytest.mark.parametrize(
    "algorithm",
    [
        {"preset": "unknown"},
        {"preset": "released", "certificate": {"reference": "tests.report.trap:Reference"}},
        {"preset": "released", "certificate": {"risk_function": "sys:exit"}},
        {"preset": "released", "certificate": 7},
    ],
)
def test_unusable_certificates_have_no_reference_and_run_no_code(tmp_path, algorithm):
    write_run(tmp_path, algorithm=algorithm)
    (run,) = make_data(load_report([tmp_path]))["runs"]
    assert (run["reference"]["name"], run["reference"]["scale"]) == ("", 50.0)


def test_many_runs_are_shown_with_fewer_points(tmp_path):
    for seed in range(3):
        write_run(tmp_path, seed=seed, epochs=200)
    report = load_report([tmp_path])
    full = len(to_json(make_data(report)))
    data = make_data(report, max_bytes=full // 2)
    assert len(to_json(data)) <= full // 2
    shown, run = data["runs"][0], report.runs[0]
    assert len(shown["steps"]) < 200
    assert (shown["steps"][-1], len(shown["modes"])) == (200_000, 200)
    assert sum(sum(unpack(frame[2])) for frame in shown["frames"]) == len(run.episodes["cost"])
    lengths = [len(part) for part in np.array_split(np.arange(200), len(shown["steps"]))]
    mean = np.average(shown["curves"]["epochCost"], weights=lengths)
    assert mean == pytest.approx(run.progress["Train/EpCost"].mean(), rel=1e-3)
    assert max(shown["curves"]["worst"]) == run.episodes["cost"].max()
    assert make_data(report, max_bytes=10)["runs"]  # the smallest page, if none is small enough


def test_hostile_names_are_text(tmp_path):
    evil = "</script><script>alert(1)</script>"
    folder = write_run(tmp_path, algorithm={evil: evil})
    record = json.loads((folder / "config.json").read_text())
    record["config"] |= {"env": evil, "algo": f'"{evil}'}
    record["versions"] = {evil: evil}
    (folder / "config.json").write_text(json.dumps(record))
    text = page(make_data(load_report([tmp_path])))
    assert text.count("<script") == 2
    assert Reader(text).data["runs"][0]["task"] == evil


@pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium")
@pytest.mark.parametrize("width", [1280, 390])
def test_page_in_a_browser(many, tmp_path, width):
    write_page(load_report([many]), tmp_path / "page.html")
    with Browser(tmp_path / "profile") as browser:
        browser.size(width, 900, phone=width < 400)
        browser.open(f"file://{tmp_path}/page.html", "document.querySelectorAll('.curve').length > 0")

        def count(selector):
            return browser.ask(f"document.querySelectorAll({selector!r}).length")

        def text(selector):
            return browser.ask(f"document.querySelector({selector!r}).textContent")

        assert browser.ask("document.documentElement.scrollWidth") <= width
        assert (count("#overview .curve"), count("#overview .plot line.limit")) == (4, 1)
        assert "violation rate (cost > 25)" in text("#notices")
        assert count("#profiles .curve") == 4
        assert count("#tables .hint") > 0 if width < 400 else count("#tables .hint") <= 1
        choose_curves(browser)
        marks = [count(f"#frontier {kind}") for kind in (".mark:not(.median)", ".median", ".interval")]
        assert marks == [4, 2, 4]
        assert "seed 1: return" in text("#frontier")
        assert count("#run .shade") > 0
        assert "recover" in text(".facts")
        assert "seed-9" in text("#skipped")
        seen = {  # the slider changes the bars
            browser.ask(
                f"(() => {{ const s = document.getElementById('epoch'); s.value = {value};"
                "s.dispatchEvent(new Event('input'));"
                "const b = document.querySelectorAll('#distribution rect');"
                "return document.querySelector('output').textContent"
                " + [...b].map((r) => r.getAttribute('height')).join(); })()"
            )
            for value in range(4)
        }
        assert len(seen) == 4
        before = text("pre")
        browser.ask("document.querySelector('[aria-label=\"next run\"]').click()")
        assert text("pre") != before
        assert browser.complaints == []
        own = {f"file://{tmp_path}/page.html", "data:,"}
        assert {address.split("#")[0] for address in browser.requests} <= own


def choose_curves(browser):
    """Choose other metrics, smoothing, axis and methods, look, and choose back."""
    curves = "[...document.querySelectorAll('#overview .curve')].map((c) => c.getAttribute('d'))"
    before = browser.ask(curves)

    def change(name, value, event):
        browser.ask(
            f"(() => {{ const e = document.getElementById('{name}'); e.value = '{value}';"
            f"e.dispatchEvent(new Event('{event}')); }})()"
        )

    for metric in ("violation_rate", "cvar"):
        browser.ask(f"document.querySelector('[data-metric={metric}]').click()")
        assert len(browser.ask(curves)) == 6
        browser.ask(f"document.querySelector('[data-metric={metric}]').click()")
        assert browser.ask(curves) == before
    change("smooth", 5, "change")
    smooth = browser.ask(curves)
    assert len(smooth) == 4
    assert not set(smooth) & set(before)
    change("smooth", 1, "change")
    change("axis", "hours", "change")  # which these runs did not log
    assert "have no log of their time" in browser.ask("document.querySelector('#overview').textContent")
    change("axis", "steps", "change")
    change("filter", "goal STEIN", "input")
    assert len(browser.ask(curves)) == 2
    change("filter", "no such words", "input")
    assert "No task or method" in browser.ask("document.querySelector('#overview').textContent")
    change("filter", "", "input")
    browser.ask("document.querySelector('#overview button.key').click()")
    assert len(browser.ask(curves)) == 2
    browser.ask("document.querySelector('#overview button.key').click()")
    assert browser.ask(curves) == before


def test_unusual_runs(tmp_path):
    """One epoch, no episodes, a limit of 0, an extreme reference, no run at all."""
    write_run(tmp_path / "one", epochs=1, cost_limit=0.0)
    (write_run(tmp_path / "none", algo="cpo", epochs=2) / "episodes.csv").unlink()
    odd = {"preset": "released", "certificate": {"reference": "Beta(1e-300, 1e300)"}}
    write_run(tmp_path / "odd", algo="evo", epochs=3, algorithm=odd)
    for name in ("one", "none", "odd", "nothing"):
        text = page(make_data(load_report([tmp_path / name])))
        (tmp_path / f"{name}.html").write_text(text)
        assert len(Reader(text).data["runs"]) == (name != "nothing")
    if CHROMIUM is None:
        return
    with Browser(tmp_path / "profile") as browser:
        browser.size(390, 800, phone=True)
        for name in ("one", "none", "odd"):
            ready = "document.querySelectorAll('#run .plot').length >= 4"
            browser.open(f"file://{tmp_path}/{name}.html", ready)
            assert browser.ask("document.documentElement.scrollWidth") <= 390
            assert "NaN" not in browser.ask("document.querySelector('main').innerHTML")
        browser.open(f"file://{tmp_path}/nothing.html", "document.querySelector('.empty') !== null")
        assert browser.complaints == []


# The dashboard


@contextmanager
def serving(*roots):
    with make_server(roots, pause=0.0) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        try:
            yield server.server_address[1]
        finally:
            server.shutdown()
            thread.join()


def ask(port, path="/", method="GET", headers=None):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    try:
        connection.putrequest(method, path, skip_host=bool(headers and "Host" in headers))
        for name, value in (headers or {}).items():
            connection.putheader(name, value)
        connection.endheaders()
        answer = connection.getresponse()
        return answer.status, dict(answer.getheaders()), answer.read()
    finally:
        connection.close()


def test_dashboard_serves_the_page_and_its_data(tmp_path):
    folder = write_run(tmp_path)
    with serving(tmp_path) as port:
        status, headers, body = ask(port)
        assert (status, headers["Content-Type"]) == (200, "text/html; charset=utf-8")
        assert b"connect-src 'self'" in body
        status, headers, body = ask(port, "/data.json")
        assert json.loads(body)["runs"][0]["path"] == str(folder)
        assert headers["X-Content-Type-Options"] == "nosniff"
        assert ask(port, "/data.json", headers={"If-None-Match": headers["ETag"]})[0] == 304


def test_dashboard_survives_clients_that_do_not_read(tmp_path, monkeypatch, capfd):
    write_run(tmp_path, epochs=3)
    monkeypatch.setattr("steingate.report.dashboard._MAX_CLIENTS", 4)
    monkeypatch.setattr("steingate.report.dashboard._Handler.timeout", 0.5)
    with serving(tmp_path) as port:
        clients = [socket.create_connection(("127.0.0.1", port)) for _ in range(20)]
        for client in clients:
            with suppress(OSError):
                client.sendall(b"GET / HTTP/1.0\r\n")  # and never ends the request
        disconnected = sum(closed(client) for client in clients)
        assert disconnected == 20
        for junk in (b"GET http://[ HTTP/1.1\r\n\r\n", b"\x00\xff\r\n\r\n", b"GET / HTTP/9\r\n\r\n"):
            with socket.create_connection(("127.0.0.1", port)) as client:
                client.sendall(junk)
                linger = struct.pack("ii", 1, 0)
                client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)  # the end resets the connection
        for _ in range(50):
            with suppress(OSError, http.client.HTTPException):
                assert ask(port, "/data.json")[0] == 200
                break
            time.sleep(0.1)
        else:
            pytest.fail("the server answers nobody")
    assert "Traceback" not in capfd.readouterr().err


def closed(client):
    """Return whether the server disconnects a client within some seconds."""
    client.settimeout(10)
    with client:
        try:
            while client.recv(1 << 16):
                pass
        except ConnectionError:
            pass
    return True


def test_dashboard_serves_nothing_else(tmp_path):
    (tmp_path / "secret.txt").write_text("secret")
    folder = write_run(tmp_path / "runs")
    paths = ("/secret.txt", "/../secret.txt", "/%2e%2e/secret.txt", "/etc/passwd", "//etc/passwd", str(folder))
    with serving(tmp_path / "runs") as port:
        for path in paths:
            assert ask(port, path)[0] == 404, path
        for method in ("POST", "PUT", "DELETE", "HEAD"):
            assert ask(port, "/", method)[0] == 501
        assert ask(port, headers={"Host": f"localhost:{port}"})[0] == 200
        # Another name that points at this machine must not read the runs.
        for host in ("evil.example", f"evil.example:{port}", "127.0.0.1.evil.example", ""):
            assert ask(port, "/data.json", headers={"Host": host})[0] == 403
        with pytest.raises(InputError, match=rf"Port {port} .* choose another --port"):
            make_server([tmp_path], port)


def grow(folder):
    """Append one epoch as training does: episodes first."""
    epoch = len((folder / "progress.csv").read_text().splitlines()) - 1
    with open(folder / "episodes.csv", "a") as file:
        file.write(f"{epoch},{1000 * epoch + 500},5.0,3.0,250\n")
    with open(folder / "progress.csv", "a") as file:
        file.write(f"{1000 * (epoch + 1)},{epoch},5.0,3.0,5.0,3.0,0,0.1,0.1,0.1,0,0,0.1\n")


def test_dashboard_follows_a_run(tmp_path):
    with serving(tmp_path / "runs") as port:
        assert json.loads(ask(port, "/data.json")[2])["runs"] == []
        folder = write_run(tmp_path / "runs", epochs=5, planned=9)
        assert json.loads(ask(port, "/data.json")[2])["runs"][0]["epochs"] == 5
        if CHROMIUM is not None:
            watch(f"http://127.0.0.1:{port}/", folder, tmp_path / "profile")
        grow(folder)
        assert json.loads(ask(port, "/data.json")[2])["runs"][0]["epochs"] in (6, 7)


def watch(address, folder, profile):
    with Browser(profile) as browser:
        browser.size(1000, 800)
        browser.open(address, "document.querySelectorAll('#run .curve').length > 0")
        points = "document.querySelector('#run .curve').getAttribute('d').split(/[ML]/).length - 1"
        assert browser.ask(points) == 5
        assert "5 of 9" in browser.ask("document.querySelector('.facts').textContent")
        grow(folder)
        browser.until(f"{points} === 6")
        assert "6 of 9" in browser.ask("document.querySelector('.facts').textContent")
        assert browser.ask("document.querySelector('#status').textContent").startswith("live")
        assert browser.complaints == []
        assert all(request.startswith((address, "data:")) for request in browser.requests)
