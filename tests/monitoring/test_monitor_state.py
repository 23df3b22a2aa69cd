"""The state: bit for bit through JSON and files, refused when damaged, whole after kill -9."""

import copy
import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from steingate import InputError, Monitor, Monitors, RunError
from steingate.certificates.risk import Hinge, Power


def costs_of(seed, n=700, p=0.06):
    rng = np.random.default_rng(seed)
    return np.where(rng.random(n) < p, 25.0 + 60.0 * rng.random(n), 25.0 * rng.random(n))


@pytest.mark.parametrize("at", [0, 1, 35, 36, 400, 700])
def test_going_on_from_a_state_gives_the_same_bits(tmp_path, at):
    costs = costs_of(at)
    whole = Monitor(budget=0.08, baseline=0.03, run_length=500, cap=70.0, risk=Hinge(0.4))
    whole.update_many(costs)
    part = Monitor(budget=0.08, baseline=0.03, run_length=500, cap=70.0, risk=Hinge(0.4))
    part.update_many(costs[:at])
    part.save(tmp_path / "m.json")
    resumed = Monitor.load(tmp_path / "m.json")
    assert resumed.to_dict() == part.to_dict()
    assert resumed.summary() == part.summary()
    for cost in costs[at:].tolist():
        resumed.update(cost)
    assert json.dumps(resumed.to_dict()) == json.dumps(whole.to_dict())


@given(st.lists(st.floats(0, 200), max_size=60))
def test_json_keeps_every_bit(costs):
    monitor = Monitor(run_length=5.0)
    monitor.update_many(costs)
    text = json.dumps(monitor.to_dict(), allow_nan=False)
    assert json.dumps(Monitor.from_dict(json.loads(text)).to_dict()) == text


def damaged(change):
    monitor = Monitor()
    monitor.update_many(costs_of(1))
    state = copy.deepcopy(monitor.to_dict())
    change(state)
    return state


@pytest.mark.parametrize(
    "change",
    [
        lambda s: s.update(format="other"),
        lambda s: s.pop("cells"),
        lambda s: s.update(episodes=3),
        lambda s: s.update(over=-1),
        lambda s: s.update(over=s["over"] + 1),
        lambda s: s.update(last_over="yes"),
        lambda s: s["cells"].append([5000, 1]),
        lambda s: s["cells"][0].__setitem__(1, 2.5),
        lambda s: s["settings"].update(delta=7),
        lambda s: s["settings"].update(other=7),
        lambda s: s["settings"]["risk"].update(name="os.system"),
        lambda s: s["safe"].update(best=float("nan")),
        lambda s: s["safe"].update(first=10**9),
        lambda s: s["drift"].update(sums=[0.0]),
        lambda s: s["drift"].update(pending=10**6),
        lambda s: s["trace"].pop(0),
        lambda s: s.update(worst=None),
    ],
)
def test_what_cannot_be_a_state_is_refused(change):
    with pytest.raises(InputError, match=r"\.$"):
        Monitor.from_dict(damaged(change))


@pytest.mark.parametrize("state", [None, [], {}, "text", 3])
def test_what_is_no_state_at_all_is_refused(state):
    with pytest.raises(InputError, match="not the state"):
        Monitor.from_dict(state)
    with pytest.raises(InputError, match="not the state"):
        Monitors.from_dict(state)


def test_damaged_files_are_one_sentence(tmp_path):
    path = tmp_path / "m.json"
    monitor = Monitor()
    monitor.update_many([1.0] * 40)
    monitor.save(path)
    content = path.read_bytes()
    path.write_bytes(content.replace(b'"episodes": 40', b'"episodes": 41'))
    with pytest.raises(RunError, match="checksum"):
        Monitor.load(path)
    for bad in (b"", content[:100], b"[]", b"\xff\xfe", b'{"state": 1, "sha256": 2}', b"[" * 100_000):
        path.write_bytes(bad)
        with pytest.raises(RunError, match=r"\.$"):
            Monitor.load(path)
    with pytest.raises(RunError, match="No such file"):
        Monitor.load(tmp_path / "none.json")
    with pytest.raises(RunError, match="Cannot write"):
        monitor.save(tmp_path / "no" / "folder.json")


def test_a_risk_of_ones_own_cannot_be_stored_and_says_so():
    with pytest.raises(InputError, match="Power"):
        Monitor(risk=lambda x: x).to_dict()
    assert Monitor.from_dict(Monitor(risk=Power(2.0)).to_dict()).risk == Power(2.0)


CHILD = """
import sys, numpy as np
from steingate import Monitor
path, seed = sys.argv[1], int(sys.argv[2])
rng = np.random.default_rng(seed)
costs = np.where(rng.random(100_000) < 0.06, 40.0, 3.0)
try:
    monitor = Monitor.load(path)
except Exception:
    monitor = Monitor()
    print("new", flush=True)
for cost in costs[monitor.episodes:].tolist():
    monitor.update(cost)
    monitor.save(path)
"""


def test_kill_9_at_any_moment_leaves_a_state_that_goes_on_bit_for_bit(tmp_path):
    path, seed = tmp_path / "m.json", 3
    rng = np.random.default_rng(seed)
    costs = np.where(rng.random(100_000) < 0.06, 40.0, 3.0)
    reached = []
    for kill in range(3):
        child = subprocess.Popen([sys.executable, "-c", CHILD, str(path), str(seed)], stdout=subprocess.PIPE)
        deadline = time.monotonic() + 60
        target = (reached[-1] if reached else 0) + 20 + 7 * kill
        while time.monotonic() < deadline:
            if path.exists() and Monitor.load(path).episodes >= target:
                break
            time.sleep(0.002)
        os.kill(child.pid, signal.SIGKILL)
        out, _ = child.communicate()
        assert (out == b"new\n") == (kill == 0)
        stored = Monitor.load(path)
        reached.append(stored.episodes)
        exact = Monitor()
        exact.update_many(costs[: stored.episodes])
        assert stored.to_dict() == exact.to_dict()
    assert reached == sorted(set(reached))
