import base64
import hashlib
import json
import re
import tomllib
from html.parser import HTMLParser

import numpy as np
import pytest
from steingate.report.cost_bars import BINS, bars, run_reference
from steingate.report.evidence import gather
from steingate.report.loading import load_runs
from tests.report.browser import CHROMIUM, Browser
from tests.report.made_up import write_run

from steingate.certificates.certificate import Certificate
from steingate.report.page import fitting_data, packed, page, write_page
from steingate.report.page_data import Detail


class Reader(HTMLParser):
    """Collects what the tests ask of a page, and fails on tags that do not match."""

    VOID = ("meta", "link", "input", "br")

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
        if tag not in self.VOID:
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
        return json.loads(
            next(text for _, attributes, text in self.scripts if attributes.get("id") == "data")
        )


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


def test_the_page_is_whole_and_needs_no_network(many, tmp_path):
    write_page(gather([many]), tmp_path / "page.html", title="A <title>")
    text = (tmp_path / "page.html").read_text()
    reader = Reader(text)
    assert "<title>A &lt;title&gt;</title>" in text
    assert not re.search(r"""(src|href)\s*=\s*["']?(https?:)?//""", text)
    for tag, attributes in reader.tags:
        assert tag not in ("iframe", "img", "object", "embed")
        assert "src" not in attributes
        assert not [name for name in attributes if name.startswith("on") or name == "style"]
    assert "default-src 'none'" in reader.policy
    assert "connect-src 'none'" in reader.policy
    for tag, attributes, content in reader.scripts:
        if attributes.get("type") != "application/json":
            digest = base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
            assert (
                f"{tag.replace('script', 'script-src').replace('style', 'style-src')} 'sha256-{digest}'"
                in reader.policy
            )
    assert "0.987" in reader.cells
    assert len(reader.data["runs"]) == 4
    (left_out,) = reader.data["skipped"]
    assert "seed-9" in left_out[0]
    assert "damaged" in left_out[1]


def test_the_numbers_of_a_run_are_on_the_page(tmp_path):
    write_run(tmp_path, epochs=12, planned=15)
    evidence = gather([tmp_path])
    (run,) = evidence.runs
    data = json.loads(packed(fitting_data(evidence)))
    (shown,) = data["runs"]
    assert (shown["epochs"], shown["planned"], shown["limit"]) == (12, 15, 25)
    np.testing.assert_allclose(shown["curves"]["cost"], run.progress["Metrics/EpCost"], rtol=1e-3)
    assert shown["modes"] == "".join(map(str, run.modes))
    terms = np.sum([shown["gate"][name] for name in ("reference", "atoms", "interior")], axis=0)
    np.testing.assert_allclose(terms, run.progress["Gate/Bound"], rtol=2e-3)
    costs = [run.episodes["cost"][run.episodes["epoch"] == epoch] for epoch in range(12)]
    for name, level in (("low", 0.1), ("high", 0.9), ("worst", 1.0)):
        np.testing.assert_allclose(shown["curves"][name], [np.quantile(c, level) for c in costs], rtol=1e-3)
    assert [frame[:2] for frame in shown["frames"]] == [[epoch, epoch] for epoch in range(12)]
    for frame, cost in zip(shown["frames"], costs, strict=True):
        counts = unpack(frame[2])
        assert sum(counts) == len(cost)
        assert counts[0] == np.sum(cost == 0)
        assert counts[1] == np.sum(cost >= 49.995)
    phases = {name: (epochs, unpack(counts)) for name, epochs, counts in shown["phases"]}
    assert sum(phases["whole run"][1]) == 48
    assert phases["last fifth"][0] == 2
    parts = [sum(phases[name][1]) for name in ("improve", "recover") if name in phases]
    assert sum(parts) == 48
    assert [row[0] for row in shown["worst"]] == sorted(run.episodes["cost"], reverse=True)[:10]


def test_epochs_without_an_episode_leave_gaps(tmp_path):
    folder = write_run(tmp_path, epochs=6)
    lines = (folder / "episodes.csv").read_text().splitlines()
    (folder / "episodes.csv").write_text(
        "\n".join(line for line in lines if not line.startswith("3,")) + "\n"
    )
    data = fitting_data(gather([tmp_path]))
    assert data["runs"][0]["curves"]["worst"][3] is None
    assert data["runs"][0]["curves"]["worst"][5] is not None
    assert unpack(data["runs"][0]["frames"][3][2]) == [0] * (2 + BINS)
    (folder / "episodes.csv").unlink()
    assert fitting_data(gather([tmp_path]))["runs"][0]["worst"] == []


def test_the_reference_is_the_certificates(tmp_path):
    write_run(tmp_path, certificate={"zero_mass": 0.2, "one_mass": 0.1})
    (run,) = load_runs([tmp_path])[0]
    reference = run_reference(run)
    certificate = Certificate.preset("released", 25.0, zero_mass=0.2, one_mass=0.1)
    assert (reference.scale, reference.zero_mass, reference.one_mass) == (50.0, 0.2, 0.1)
    # Per bin, the curve lies over shares of episodes: all bins together hold what the atoms leave.
    grid = np.linspace(0, 1, len(reference.density))
    assert np.trapezoid(reference.density, grid) * BINS == pytest.approx(0.7, abs=2e-3)
    sample = certificate.interior.sample(np.random.default_rng(0), 200_000) * 50.0
    heights = bars(sample, np.zeros(len(sample), np.int64), 1, reference)[0][2:] / len(sample)
    middles = np.interp((np.arange(BINS) + 0.5) / BINS, grid, reference.density / 0.7)
    np.testing.assert_allclose(heights, middles, atol=2e-3)


def test_a_certificate_that_cannot_be_built_does_not_stop_the_page(tmp_path):
    write_run(tmp_path, preset="of the future")
    data = fitting_data(gather([tmp_path]))
    assert data["references"][0]["name"] == ""
    assert data["references"][0]["scale"] == 50.0


def test_many_runs_are_shown_less_finely(tmp_path):
    for seed in range(3):
        write_run(tmp_path, seed=seed, epochs=200)
    evidence = gather([tmp_path])
    runs = evidence.runs
    full = len(packed(fitting_data(evidence)))
    data = fitting_data(evidence, most=full // 2)
    assert len(packed(data)) <= full // 2
    shown = data["runs"][0]
    assert len(shown["steps"]) < 200
    assert shown["steps"][-1] == 200_000
    assert len(shown["modes"]) == 200
    assert sum(sum(unpack(frame[2])) for frame in shown["frames"]) == len(runs[0].episodes["cost"])
    lengths = [len(part) for part in np.array_split(np.arange(200), len(shown["steps"]))]
    mean = np.average(shown["curves"]["epochCost"], weights=lengths)
    assert mean == pytest.approx(runs[0].progress["Train/EpCost"].mean(), rel=1e-3)
    assert max(shown["curves"]["worst"]) == runs[0].episodes["cost"].max()
    # A size that cannot be met ends with the coarsest page, not without one.
    assert fitting_data(evidence, most=10)["runs"]


def test_detail_ends():
    detail = Detail()
    for _ in range(20):
        detail = detail.coarser()
    assert detail == detail.coarser()


def test_names_from_a_run_folder_cannot_become_markup(tmp_path):
    evil = "</script><script>alert(1)</script>"
    folder = write_run(tmp_path)
    record = json.loads((folder / "config.json").read_text())
    record["config"] |= {"env": evil, "algo": f'"{evil}'}
    record["versions"] = {evil: evil}
    (folder / "config.json").write_text(json.dumps(record))
    text = page(fitting_data(gather([tmp_path])))
    assert text.count("<script") == 2
    assert Reader(text).data["runs"][0]["task"] == evil


def test_no_runs_give_a_page_that_says_so(tmp_path):
    data = fitting_data(gather([tmp_path]))
    reader = Reader(page(data))
    assert reader.data["runs"] == []
    assert reader.cells == []


def test_a_run_of_todays_form_is_shown_whole(tmp_path):
    recipe = {"variant": "corrected", "preset": "released", "certificate": {"zero_mass": 0.2}, "max_kl": 0.1}
    write_run(tmp_path, recipe=recipe, look={"order": 200, "color": "#123456"})
    data = fitting_data(gather([tmp_path]))
    assert data["references"][0]["zero"] == 0.2
    assert data["tasks"][0]["groups"][0]["color"] == "#123456"
    assert tomllib.loads(data["runs"][0]["toml"]).items() >= recipe.items()


def test_the_frontier_has_a_point_for_each_seed(many):
    evidence = gather([many])
    (task,) = fitting_data(evidence)["tasks"]
    for group, shown in zip(evidence.groups, task["groups"], strict=True):
        assert [seed for _, _, seed in shown["points"]] == [0, 1]
        for run, (over, ret, _) in zip(group.runs, shown["points"], strict=True):
            late = run.episodes["epoch"] >= 16
            assert over == pytest.approx(np.mean(run.episodes["cost"][late] > 25), rel=1e-3)
            assert ret == pytest.approx(run.episodes["return"][late].mean(), rel=1e-3)
        for axis, (value, low, high) in enumerate(shown["medians"]):
            points = [point[axis] for point in shown["points"]]
            assert value == pytest.approx(np.median(points), rel=2e-3)
            assert (low, high) == (min(points), max(points))


def test_the_page_in_a_browser(many, tmp_path):
    """Where a browser is installed it opens the page; the structure is asserted either way."""
    write_page(gather([many]), tmp_path / "page.html")
    reader = Reader((tmp_path / "page.html").read_text())
    sections = {attributes.get("id") for tag, attributes in reader.tags if tag == "section"}
    assert sections == {"notices", "overview", "frontier", "profiles", "tables", "run", "skipped"}
    if CHROMIUM is None:
        return
    with Browser(tmp_path / "profile") as browser:
        for width, phone in ((1280, False), (390, True)):
            browser.size(width, 900, phone)
            browser.open(f"file://{tmp_path}/page.html", "document.querySelectorAll('.curve').length > 0")
            assert browser.ask("document.documentElement.scrollWidth") <= width
            assert browser.ask("document.querySelectorAll('#overview .curve').length") == 4
            assert browser.ask("document.querySelectorAll('#overview .plot line.limit').length") == 1
            assert "episodes over the limit of 25" in browser.ask(
                "document.querySelector('#notices').textContent"
            )
            assert browser.ask("document.querySelectorAll('#profiles .curve').length") == 4
            hints = browser.ask("document.querySelectorAll('#tables .hint').length")
            assert hints > 0 if phone else hints <= 1
            choose(browser)
            assert browser.ask("document.querySelectorAll('#frontier .mark:not(.median)').length") == 4
            assert browser.ask("document.querySelectorAll('#frontier .median').length") == 2
            assert browser.ask("document.querySelectorAll('#frontier .interval').length") == 4
            assert "seed 1: return" in browser.ask("document.querySelector('#frontier').textContent")
            assert browser.ask("document.querySelectorAll('#run .shade').length") > 0
            assert "recover" in browser.ask("document.querySelector('.facts').textContent")
            assert browser.ask("document.querySelector('#skipped').textContent.includes('seed-9')")
            # The slider moves, and the bars with it.
            seen = {
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
            # Another run can be chosen.
            before = browser.ask("document.querySelector('pre').textContent")
            browser.ask("document.querySelector('[aria-label=\"next run\"]').click()")
            assert browser.ask("document.querySelector('pre').textContent") != before
        assert browser.complaints == []
        assert {address.split("#")[0] for address in browser.requests} <= {
            f"file://{tmp_path}/page.html",
            "data:,",
        }


def choose(browser):
    """Choose other metrics, smoothing, axis and methods, look, and choose back."""
    curves = "[...document.querySelectorAll('#overview .curve')].map((c) => c.getAttribute('d'))"
    before = browser.ask(curves)

    def change(name, value, event):
        browser.ask(
            f"(() => {{ const e = document.getElementById('{name}'); e.value = '{value}';"
            f"e.dispatchEvent(new Event('{event}')); }})()"
        )

    browser.ask("document.querySelector('[data-metric=over]').click()")
    assert len(browser.ask(curves)) == 6
    browser.ask("document.querySelector('[data-metric=over]').click()")
    assert browser.ask(curves) == before
    change("smooth", 5, "change")
    smooth = browser.ask(curves)
    assert len(smooth) == 4
    assert not set(smooth) & set(before)
    change("smooth", 1, "change")
    change("axis", "hours", "change")  # which these runs did not log
    assert "did not log their time" in browser.ask("document.querySelector('#overview').textContent")
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


def test_odd_runs_in_a_browser(tmp_path):
    """One epoch, no episodes, no bound, a certificate that cannot be built, and no run at all."""
    write_run(tmp_path / "one", epochs=1)
    (write_run(tmp_path / "none", algo="cpo", epochs=2) / "episodes.csv").unlink()
    write_run(tmp_path / "odd", algo="evo", epochs=3, preset="of the future")
    for name in ("one", "none", "odd", "nothing"):
        data = fitting_data(gather([tmp_path / name]))
        (tmp_path / f"{name}.html").write_text(page(data))
        assert len(Reader(page(data)).data["runs"]) == (name != "nothing")
    if CHROMIUM is None:
        return
    with Browser(tmp_path / "profile") as browser:
        browser.size(390, 800, phone=True)
        for name in ("one", "none", "odd"):
            browser.open(
                f"file://{tmp_path}/{name}.html", "document.querySelectorAll('#run .plot').length >= 4"
            )
            assert browser.ask("document.documentElement.scrollWidth") <= 390
        browser.open(f"file://{tmp_path}/nothing.html", "document.querySelector('.empty') !== null")
        assert browser.complaints == []
