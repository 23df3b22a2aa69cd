"""Monitors on the dashboard: every state file below a folder, damaged ones named."""

import json

from steingate import Monitor, Monitors
from steingate.report.monitors import monitors_data


def test_every_state_file_is_told_and_damage_is_named(tmp_path):
    one = Monitor()
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
