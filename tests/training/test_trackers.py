"""Copies of the log: TensorBoard events read back with TensorBoard's own framing, and Weights & Biases."""

import struct
import sys
import types

import pytest
from tensorboardX.crc32c import crc32c
from tensorboardX.proto.event_pb2 import Event
from tests.training.runs_of_probes import tiny

from steingate.errors import MissingExtraError
from steingate.training.logging.trackers import TensorBoardLog, WandbLog
from steingate.training.runner import train


def records(path):
    content, events = path.read_bytes(), []
    while content:
        length, length_crc = struct.unpack("<QI", content[:12])
        data, (data_crc,) = content[12 : 12 + length], struct.unpack("<I", content[12 + length : 16 + length])
        for part, found in ((content[:8], length_crc), (data, data_crc)):
            crc = crc32c(part)
            assert found == (((crc >> 15) | (crc << 17)) + 0xA282EAD8) & 0xFFFFFFFF
        events.append(Event.FromString(data))
        content = content[16 + length :]
    return events


def test_tensorboard_gets_the_finite_numbers(tmp_path):
    log = TensorBoardLog(tmp_path)
    log.add({"TotalEnvSteps": 20_000, "Metrics/EpRet": 1.5, "Gate/Bound": float("nan"), "Gate/Name": "x"})
    log.add({"TotalEnvSteps": 40_000, "Metrics/EpRet": 2.5})
    log.close()
    version, first, second = records(log.path)
    assert version.file_version == "brain.Event:2"
    assert first.step == 20_000
    numbers = {value.tag: value.simple_value for value in first.summary.value}
    assert numbers == {"TotalEnvSteps": 20_000.0, "Metrics/EpRet": 1.5}
    assert (second.step, second.summary.value[1].simple_value) == (40_000, 2.5)
    assert first.wall_time > 1e9


def test_tensorboard_shows_every_epoch_of_a_resumed_run_once(tmp_path):
    (tmp_path / "progress.csv").write_text("TotalEnvSteps,Metrics/EpRet\n20000,1.0\n40000,2.0\n")
    (tmp_path / "events.out.tfevents.1.steingate").write_bytes(b"left over from before")
    log = TensorBoardLog(tmp_path)
    log.add({"TotalEnvSteps": 60_000, "Metrics/EpRet": 3.0})
    log.close()
    assert [path.name for path in tmp_path.glob("events*")] == [log.path.name]
    assert [event.step for event in records(log.path)[1:]] == [20_000, 40_000, 60_000]


def test_the_missing_wandb_is_named(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "wandb", None)
    with pytest.raises(MissingExtraError, match=r"pip install .*\[wandb\]"):
        WandbLog("project", tmp_path, {}, "abc")


def test_wandb_gets_every_epoch_once(tmp_path, monkeypatch):
    sent, options = [], {}
    run = types.SimpleNamespace(
        log=lambda numbers, step: sent.append((step, numbers)), finish=lambda: sent.append("end")
    )
    package = types.SimpleNamespace(init=lambda **given: options.update(given) or run)
    monkeypatch.setitem(sys.modules, "wandb", package)
    path = train(tiny(tmp_path, wandb="tails"), quiet=True)
    assert options["project"] == "tails"
    assert options["id"].startswith("-".join(path.parts[-3:]) + "-")
    assert options["config"]["algo"] == "steingate"
    assert sent[-1] == "end"
    assert [step for step, _ in sent[:-1]] == [80 * (k + 1) for k in range(6)]
    assert all(isinstance(value, int | float) for _, numbers in sent[:-1] for value in numbers.values())
