"""Evidence bundles: what is in them follows from the episodes, and no change of a file goes unnoticed."""

import json
import os
import re
import subprocess
import sys
from datetime import timedelta
from pathlib import Path
from shutil import copytree

import numpy as np
import pytest
from scipy.stats import beta
from tests.training.runs_of_probes import tiny

from steingate.cli import main
from steingate.errors import InputError, RunError
from steingate.evidence import Plan, verify_bundle, write_bundle
from steingate.evidence.files import read_folder, sha256, sums
from steingate.evidence.statistics import EpisodeTable, exact_upper, summarize
from steingate.monitoring.monitor import Monitor
from steingate.policies.load import load_policy
from steingate.training.evaluate import evaluate, read_evaluations
from steingate.training.runner import train

FILES = [
    "SHA256SUMS", "argument.md", "config.json", "contract.json", "episodes.csv", "evidence.html", "evidence.json",
    "plan.toml", "policy.npz", "policy.onnx",
]  # fmt: skip
PLAN = Plan(limit=9.0, budget=0.3, episodes=40, domain="<b>walks</b> \x1b[1m of | a robot")


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return train(tiny(tmp_path_factory.mktemp("runs")), quiet=True)


@pytest.fixture(scope="module")
def bundle(run, tmp_path_factory):
    return write_bundle(run, tmp_path_factory.mktemp("bundles") / "one", PLAN, policy="last", warn=lambda text: None)


def read(bundle, name="evidence.json"):
    return json.loads((bundle / name).read_text())


def forged(bundle, target, changes):
    """Copy a bundle, change files, and write all hashes again, as somebody would who knows the format."""
    copytree(bundle, target)
    for name, change in changes.items():
        text = (target / name).read_text()
        assert change(text) != text
        (target / name).write_text(change(text))
    evidence = read(target)
    evidence["files"] = {name: sha256((target / name).read_bytes()) for name in evidence["files"]}
    (target / "evidence.json").write_text(json.dumps(evidence, indent=2) + "\n")
    (target / "SHA256SUMS").write_bytes(sums(read_folder(target)[0]))
    return verify_bundle(target).problems


def test_a_bundle_holds_the_test_of_a_policy(run, bundle):
    assert sorted(path.name for path in bundle.iterdir()) == FILES
    assert verify_bundle(bundle).ok
    evidence, ledger = read(bundle), read_evaluations(run)
    assert ledger[0]["sha256"] == evidence["policy"]["sha256"] == load_policy(run, "last").sha256
    assert (ledger[0]["number"], ledger[0]["episodes"]) == (evidence["test"]["number"], 40) == (1, 40)
    delta = 0.05 * 6 / np.pi**2
    rows = np.genfromtxt(bundle / "episodes.csv", delimiter=",", names=True, dtype=None, encoding=None)
    over = int(np.sum(rows["cost"] > 9.0))
    assert evidence["result"]["bound"] == pytest.approx(beta.isf(delta, over + 1, 40 - over), rel=1e-9)
    assert evidence["result"]["bound"] == pytest.approx(ledger[0]["bound"], rel=1e-9)
    assert evidence["result"]["certified"] == ledger[0]["certified"] == evidence["claim"]["established"]
    assert set(rows["end"]) <= {"terminated", "truncated"}
    page, argument = (bundle / "evidence.html").read_text(), (bundle / "argument.md").read_text()
    for text in (page, argument):
        assert "<b>walks" not in text
        assert "\x1b" not in text
        assert evidence["retest_triggers"][0]["text"] in text
    assert "<script" not in page


def test_results_are_those_of_evaluate(run, tmp_path):
    copy = copytree(run, tmp_path / "run")
    for until in (False, True):
        found = evaluate(copy, 60, limit=9.0, risk=0.2, policy="last", until_certified=until)
        played = found.episodes
        table = EpisodeTable(np.array(found.seeds), played.cost, played.ret, played.length, played.truncated)
        result = summarize(table, Plan(9.0, 0.2, episodes=60, until_certified=until), 1.0 - found.confidence)
        assert result["bound"] == pytest.approx(found.bound, rel=1e-9)
        assert (result["violations"], result["certified"]) == (found.violations, found.certified)


def test_the_policy_of_a_bundle_is_the_one_that_was_tested(run, bundle, tmp_path):
    policy, original = load_policy(bundle), load_policy(run, "last")
    observations = np.random.default_rng(0).normal(size=(5, original.obs_dim))
    np.testing.assert_array_equal(policy(observations), original(observations))
    assert policy.certified == read(bundle)["claim"]["established"]
    copytree(bundle, tmp_path / "changed")
    content = bytearray((bundle / "policy.npz").read_bytes())
    content[400] ^= 1
    (tmp_path / "changed" / "policy.npz").write_bytes(content)
    with pytest.raises(RunError, match="was changed"):
        load_policy(tmp_path / "changed")


@pytest.mark.parametrize("name", FILES)
def test_a_flipped_bit_anywhere_is_found(bundle, tmp_path, name):
    copy = copytree(bundle, tmp_path / "copy")
    content = (bundle / name).read_bytes()
    for place in {0, len(content) - 1, *np.random.default_rng(1).integers(0, len(content), 4).tolist()}:
        changed = bytearray(content)
        changed[place] ^= 1
        (copy / name).write_bytes(changed)
        assert not verify_bundle(copy).ok, place
    (copy / name).unlink()
    if name == "evidence.json":
        with pytest.raises(RunError, match=r"has no evidence\.json"):
            verify_bundle(copy)
    else:
        assert not verify_bundle(copy).ok


@pytest.mark.parametrize(
    ("file", "change", "problem"),
    [
        ("evidence.json", lambda t: t.replace('"episodes": 40', '"episodes": 41'), "result.episodes is 41"),
        ("evidence.json", lambda t: t.replace('"number": 1', '"number": 2'), "seeds of the episodes"),
        ("evidence.json", lambda t: t.replace('"started": "2', '"started": "1'), "plan is younger"),
        ("plan.toml", lambda t: t.replace("created = 2", "created = 3"), "plan is younger"),
        ("plan.toml", lambda t: t.replace("budget = 0.3", "budget = 0.9"), r"plan.budget is 0.3, .* give 0.9"),
        ("plan.toml", lambda t: t.replace("episodes = 40", "episodes = 90"), "did not end when the plan says"),
        ("episodes.csv", lambda t: "\n".join(t.split("\n")[:1] + t.split("\n")[2:]), "seeds of the episodes"),
        ("episodes.csv", lambda t: t.replace("ed\n", "ed,1\n", 1), "Line 2 of episodes.csv is no episode"),
        ("contract.json", lambda t: t.replace('"shape": [', '"shape": [1,', 1), "another shape"),
        ("config.json", lambda t: t.replace('"identity": "', '"identity": "0'), "belongs to another run"),
    ],
)
def test_a_change_with_new_hashes_does_not_fit_the_episodes(bundle, tmp_path, file, change, problem):
    assert re.search(problem, "\n".join(forged(bundle, tmp_path / "forged", {file: change})))


def test_the_digest_and_the_replay_find_what_hashes_cannot(bundle, tmp_path):
    def lower_return(text):
        lines = text.split("\n")
        cells = lines[3].split(",")
        cells[2] = repr(np.nextafter(float(cells[2]), -np.inf).item())
        return "\n".join([*lines[:3], ",".join(cells), *lines[4:]])

    assert forged(bundle, tmp_path / "forged", {"episodes.csv": lower_return}) == ()
    assert not verify_bundle(tmp_path / "forged", digest=verify_bundle(bundle).digest).ok
    assert verify_bundle(bundle, digest=verify_bundle(bundle).digest, replay=40).replayed == 40
    (problem,) = verify_bundle(tmp_path / "forged", replay=2, first=2).problems
    assert problem.startswith("Episode 3 differs")
    with pytest.raises(InputError, match="no episode 41"):
        verify_bundle(bundle, replay=1, first=41)


def test_links_pipes_and_large_files_are_not_read(bundle, tmp_path):
    for kind in ("link", "pipe", "folder", "large", "deep"):
        copy = copytree(bundle, tmp_path / kind)
        file = copy / "argument.md"
        file.unlink()
        if kind == "link":
            file.symlink_to(bundle / "argument.md")
        elif kind == "pipe":
            os.mkfifo(file)
        elif kind == "folder":
            file.mkdir()
        elif kind == "large":
            with file.open("wb") as stream:
                stream.truncate(1 << 31)
            with pytest.raises(RunError, match="larger than 64 MiB"):
                verify_bundle(copy)
            continue
        else:
            (copy / "evidence.json").write_text("[" * 100_000)
        assert not verify_bundle(copy).ok
    with pytest.raises(RunError, match="no evidence bundle"):
        verify_bundle(tmp_path / "missing")


def test_plans_are_fixed_before_the_test(run, tmp_path):
    late = Plan(9.0, created=PLAN.created + timedelta(days=1))
    with pytest.raises(RunError, match="must be older than the episodes"):
        write_bundle(run, tmp_path / "late", late)
    assert Plan.from_toml(PLAN.to_toml().encode(), "plan.toml") == PLAN
    for text, problem in ((b"limit = 3", "schema version"), (b"[", "not valid TOML"), (b"\xff", "not valid TOML")):
        with pytest.raises(InputError, match=problem):
            Plan.from_toml(text, "plan.toml")
    (tmp_path / "other").write_text("")
    with pytest.raises(InputError, match="exists"):
        write_bundle(run, tmp_path, PLAN)


def test_commands(run, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["evidence", "plan", "--limit", "9", "--until-certified", "--domain", "walks", "--out", "p.toml"]) == 0
    assert main(["evidence", str(run), "--plan", "p.toml", "--out", "b", "--policy", "last", "--no-onnx"]) == 0
    evidence, out = read(Path("b")), capsys.readouterr().out
    assert "verifies" in out
    assert evidence["method"]["name"] == "Anytime-valid monitor"
    monitor = Monitor(9.0, 0.1, evidence["result"]["error_probability"])
    for line in Path("b/episodes.csv").read_text().splitlines()[1:]:
        assert monitor.status == "undecided"
        monitor.update(float(line.split(",")[1]))
    assert (monitor.certified, monitor.bound) == (evidence["result"]["certified"], evidence["result"]["bound"])
    assert main(["evidence", "verify", "b", "--replay", "3"]) == 0
    Path("b/argument.md").write_text("")
    assert main(["evidence", "verify", "b"]) == 1
    assert "argument.md was changed" in capsys.readouterr().out
    # Without a plan, one with the claim of the run is written; the test is the next evaluation of the run.
    assert main(["evidence", str(run), "--out", "c", "--policy", "last"]) == 0
    assert read(Path("c"))["plan"]["limit"] == 4.0
    assert read(Path("c"))["test"]["number"] == evidence["test"]["number"] + 1
    assert main(["evidence", "verify", "missing"]) == 2


def test_verification_needs_numpy_alone(bundle):
    blocked = ("scipy", "safetensors", "jax", "gymnasium", "numba", "mujoco", "matplotlib", "onnx")
    code = f"import sys; sys.modules.update(dict.fromkeys({blocked!r}))\nfrom steingate.cli import main\n"
    code += "sys.exit(main(['evidence', 'verify', sys.argv[1]]))"
    done = subprocess.run([sys.executable, "-c", code, bundle], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


def test_the_exact_bound_is_that_of_scipy():
    for n in (1, 7, 300, 20_000):
        for k in {0, 1, n // 20, n - 1, n}:
            for delta in (0.05, 1e-6):
                expected = 1.0 if k == n else beta.isf(delta, k + 1, n - k)
                assert exact_upper(k, n, delta) == pytest.approx(expected, rel=1e-8)


def test_a_monitor_takes_claim_and_calibration_from_a_bundle(bundle, tmp_path, capsys):
    costs, state, told = tmp_path / "costs.csv", tmp_path / "state.json", tmp_path / "told"
    costs.write_text("20.0\n" * 60)
    words = [str(costs), "--evidence", str(bundle), "--state", str(state)]
    alarm = ["--alarm-command", f"echo $STEINGATE_EVENT $STEINGATE_TRIGGER >> {told}"]
    assert main(["monitor", *words, *alarm]) == 0
    out, triggers = capsys.readouterr().out, read(bundle)["retest_triggers"]
    assert f"unsafe - re-test trigger T1: {triggers[0]['text']}" in out
    assert f"drift - re-test trigger T2: {triggers[1]['text']}" in out
    assert {line[:9] for line in told.read_text().splitlines()} == {"unsafe T1", "drift T2:"}
    monitor, expected = (
        Monitor.load(state),
        Monitor.watch(
            np.loadtxt(bundle / "episodes.csv", delimiter=",", skiprows=1, usecols=1), limit=9.0, budget=0.3, delta=0.05
        ),
    )
    assert (monitor.limit, monitor.budget, monitor.delta) == (9.0, 0.3, 0.05)
    assert monitor.baseline == expected.baseline
    assert monitor.cost_detector.calibration == expected.cost_detector.calibration
    assert main(["monitor", *words, "--json"]) == 0  # continues with the same settings
    assert json.loads(capsys.readouterr().out)["retest_triggers"][0].startswith("T1: ")
    assert main(["monitor", *words, "--limit", "3"]) == 2
    copy = copytree(bundle, tmp_path / "copy")
    (copy / "plan.toml").write_text("")
    assert main(["monitor", str(costs), "--evidence", str(copy)]) == 2
    assert "does not verify" in capsys.readouterr().err
