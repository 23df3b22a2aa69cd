import http.client
import json
import os
import threading
from contextlib import contextmanager

import pytest
from steingate.report.loading import run_id
from tests.report.browser import CHROMIUM, Browser
from tests.report.made_up import write_run

from steingate.errors import InputError
from steingate.report.dashboard import Source, make_server


@contextmanager
def serving(*roots):
    with make_server(roots, rest=0.0) as server:
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


def test_it_serves_the_page_its_numbers_and_the_files_of_runs(tmp_path):
    folder = write_run(tmp_path)
    with serving(tmp_path) as port:
        status, headers, body = ask(port)
        assert status == 200
        assert headers["Content-Type"].startswith("text/html")
        assert b"connect-src 'self'" in body
        status, headers, body = ask(port, "/data.json")
        (run,) = json.loads(body)["runs"]
        assert run["id"] == run_id(folder)
        assert ask(port, "/data.json", headers={"If-None-Match": headers["ETag"]})[0] == 304
        for name in ("config.json", "progress.csv", "episodes.csv"):
            status, headers, body = ask(port, f"/runs/{run['id']}/{name}")
            assert (status, body) == (200, (folder / name).read_bytes())
            assert headers["X-Content-Type-Options"] == "nosniff"


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "HEAD", "OPTIONS", "TRACE", "MADEUP"])
def test_other_methods_are_refused(tmp_path, method):
    write_run(tmp_path)
    before = sorted(path.name for path in tmp_path.rglob("*"))
    with serving(tmp_path) as port:
        status, headers, _ = ask(port, "/", method)
        assert (status, headers["Allow"]) == (405, "GET")
    assert sorted(path.name for path in tmp_path.rglob("*")) == before


def test_no_path_leads_out_of_the_runs(tmp_path):
    (tmp_path / "secret.txt").write_text("secret")
    runs = tmp_path / "runs"
    folder = write_run(runs)
    (folder / "notes.txt").write_text("secret")
    me = run_id(folder)
    paths = [
        "/secret.txt", "/../secret.txt", "/%2e%2e/secret.txt", "/etc/passwd", "//etc/passwd",
        "/assets/page.js", "/runs/../secret.txt", "/runs/%2e%2e/secret.txt", "/runs/0/config.json",
        *(
            f"/runs/{me}{rest}"
            for rest in (
                "", "/", "/notes.txt", "//config.json", "/../../../../../secret.txt", "/%2e%2e/config.json",
                "/..%2f..%2f..%2f..%2fsecret.txt", "/config.json%00.txt",
            )
        ),
    ]  # fmt: skip
    with serving(runs) as port:
        for path in paths:
            status, _, body = ask(port, path)
            assert (status, b"secret" in body, b"root:" in body) == (404, False, False), path


def test_links_out_of_the_runs_are_refused(tmp_path):
    secret = write_run(tmp_path / "other", seed=5)
    runs = tmp_path / "runs"
    folder = write_run(runs)
    whole = runs / "linked"
    os.symlink(secret, whole)
    with serving(runs) as port:
        (folder / "episodes.csv").unlink()
        os.symlink(secret / "episodes.csv", folder / "episodes.csv")
        assert ask(port, f"/runs/{run_id(folder)}/episodes.csv")[0] == 404
        assert ask(port, f"/runs/{run_id(whole)}/config.json")[0] == 404
        data = json.loads(ask(port, "/data.json")[2])
    assert data["runs"] == []
    assert all("leads out of the run folders" in reason for _, reason in data["skipped"])
    assert str(folder) in [path for path, _ in data["skipped"]]


def test_only_this_machine_is_answered(tmp_path):
    with serving(tmp_path) as port, make_server([tmp_path]) as other:
        assert other.server_address[0] == "127.0.0.1"
        assert ask(port, headers={"Host": f"localhost:{port}"})[0] == 200
        # A name that someone else points at this machine must not read the runs.
        for host in ("evil.example", f"evil.example:{port}", "127.0.0.1.evil.example", ""):
            assert ask(port, "/data.json", headers={"Host": host})[0] == 403


def test_a_port_in_use_is_named(tmp_path):
    with serving(tmp_path) as port, pytest.raises(InputError, match=rf"Port {port} .* choose another --port"):
        make_server([tmp_path], port)
    with pytest.raises(InputError, match="Port 99999"):
        make_server([tmp_path], 99_999)


def test_only_changed_runs_are_read_again(tmp_path, monkeypatch):
    import steingate.report.dashboard as dashboard

    read = []
    real = dashboard.load_run
    monkeypatch.setattr(dashboard, "load_run", lambda folder, root: read.append(folder) or real(folder, root))
    first, second = write_run(tmp_path, seed=0), write_run(tmp_path, seed=1)
    source = Source([tmp_path], rest=0.0)
    before = source.content()
    assert read == [first, second]
    assert source.content() == before
    assert read == [first, second]
    with open(second / "progress.csv", "a") as file:
        file.write("21000,20,1.0,2.0,1.0,2.0,0,,,,,,\n")
    after = source.content()
    assert read == [first, second, second]
    assert before[1] != after[1]


def test_it_rests_as_long_as_its_work_demands(tmp_path):
    folder = write_run(tmp_path)
    times = iter([0.0, 2.0, 2.5, 11.9, 12.0, 12.1])  # 2 seconds of work, then 5 times that of rest
    source = Source([tmp_path], rest=5.0, clock=lambda: next(times))
    first = source.content()
    grow(folder)
    assert source.content() == first
    assert source.content() == first
    assert source.content() != first


def grow(folder):
    """Append one epoch as training does: episodes first."""
    with open(folder / "progress.csv") as file:
        epoch = len(file.readlines()) - 1
    with open(folder / "episodes.csv", "a") as file:
        file.write(f"{epoch},{1000 * epoch + 500},5.0,3.0,250\n")
    with open(folder / "progress.csv", "a") as file:
        file.write(f"{1000 * (epoch + 1)},{epoch},5.0,3.0,5.0,3.0,0,0.1,0.1,0.1,0,0,0.1\n")


def test_a_live_run_grows(tmp_path):
    """Where a browser is installed it watches; the numbers are asserted either way."""
    with serving(tmp_path / "runs") as port:
        assert json.loads(ask(port, "/data.json")[2])["runs"] == []
        folder = write_run(tmp_path / "runs", epochs=5, planned=9)
        assert json.loads(ask(port, "/data.json")[2])["runs"][0]["epochs"] == 5
        if CHROMIUM is None:
            grow(folder)
        else:
            with Browser(tmp_path / "profile") as browser:
                browser.size(1000, 800)
                browser.open(
                    f"http://127.0.0.1:{port}/", "document.querySelectorAll('#run .curve').length > 0"
                )
                points = "document.querySelector('#run .curve').getAttribute('d').split(/[ML]/).length - 1"
                assert browser.ask(points) == 5
                assert "5 of 9" in browser.ask("document.querySelector('.facts').textContent")
                grow(folder)
                browser.until(f"{points} === 6")
                assert "6 of 9" in browser.ask("document.querySelector('.facts').textContent")
                assert browser.ask("document.querySelector('#status').textContent").startswith("live")
                assert browser.complaints == []
                assert all(
                    address.startswith((f"http://127.0.0.1:{port}/", "data:")) for address in browser.requests
                )
        assert json.loads(ask(port, "/data.json")[2])["runs"][0]["epochs"] == 6
