"""Monitors on the dashboard: every state file below a folder, damaged ones named."""

import http.client
import json
import threading

import numpy as np
import pytest
from tests.report.browser import CHROMIUM, Browser

from steingate import Monitor, Monitors
from steingate.report.dashboard import make_server
from steingate.report.monitors import monitors_data


def test_every_state_file_is_told_and_damage_is_named(tmp_path):
    one = Monitor(25)
    one.update_many([1.0] * 50)
    one.save(tmp_path / "walker.monitor.json")
    (tmp_path / "deep").mkdir()
    two = Monitors({"a": 1, "b": 2})
    two.update_many({"a": [5.0] * 30, "b": [1.0] * 30})
    two.save(tmp_path / "deep" / "arm.monitor.json")
    (tmp_path / "bad.monitor.json").write_text("{}")
    (tmp_path / "other.json").write_text("{}")
    (tmp_path / "link.monitor.json").symlink_to(tmp_path / "walker.monitor.json")
    entries = {entry["name"]: entry for entry in monitors_data([tmp_path])}
    assert sorted(entries) == ["arm: a", "arm: b", "bad", "walker"]
    assert entries["walker"]["state"] == "certified"
    assert entries["walker"]["trace"][-1][0] == 50
    assert entries["walker"]["bound"] == one.bound
    assert entries["arm: a"]["state"] == "unsafe"
    assert entries["arm: b"]["state"] == "undecided"
    assert "not the state" in entries["bad"]["problem"]
    json.dumps(list(entries.values()), allow_nan=False)
    assert len(monitors_data([tmp_path / "walker.monitor.json"])) == 1
    assert monitors_data([tmp_path / "deep"])[0]["name"] == "arm: a"


def served(root, use):
    with make_server([root], pause=0.0) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        try:
            return use(server.server_address[1])
        finally:
            server.shutdown()
            thread.join()


def stored(folder, seed=0, n=900):
    rng = np.random.default_rng(seed)
    monitor = Monitor(25)
    monitor.update_many(np.where(rng.random(n) < 0.05, 40.0, 20.0 * rng.random(n)))
    monitor.save(folder / "walker.monitor.json")
    return monitor


def test_the_dashboard_serves_them(tmp_path):
    monitor = stored(tmp_path)

    def ask(port):
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
        connection.request("GET", "/monitors.json")
        answer = connection.getresponse()
        return answer.status, json.loads(answer.read())

    status, data = served(tmp_path, ask)
    assert status == 200
    assert [entry["bound"] for entry in data["monitors"]] == [monitor.bound]


@pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium")
def test_a_browser_shows_them_and_follows(tmp_path):
    stored(tmp_path)

    def look(port):
        with Browser(tmp_path / "profile") as browser:
            browser.open(f"http://127.0.0.1:{port}/")
            text = "(document.getElementById('monitors')?.textContent ?? '')"
            browser.until(f"{text}.includes('episodes 900')")
            first = browser.ask(text)
            stored(tmp_path, n=1200)
            browser.until(f"{text}.includes('episodes 1.2k')")
            return first, browser.complaints

    first, complaints = served(tmp_path, look)
    assert "state certified" in first
    assert "budget 0.1" in first
    assert complaints == []
