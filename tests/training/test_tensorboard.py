"""TensorBoard events, read back with TensorBoard's own framing and messages."""

import struct

from tensorboardX.crc32c import crc32c
from tensorboardX.proto.event_pb2 import Event

from steingate.training.logging.tensorboard import Events


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


def test_finite_numbers_come_back_and_text_stays_out(tmp_path):
    events = Events(tmp_path)
    events.add({"TotalEnvSteps": 20_000, "Metrics/EpRet": 1.5, "Gate/Bound": float("nan"), "Gate/Name": "x"})
    events.add({"TotalEnvSteps": 40_000, "Metrics/EpRet": 2.5})
    events.close()
    version, first, second = records(events.path)
    assert version.file_version == "brain.Event:2"
    assert first.step == 20_000
    assert {v.tag: v.simple_value for v in first.summary.value} == {
        "TotalEnvSteps": 20_000.0,
        "Metrics/EpRet": 1.5,
    }
    assert (second.step, second.summary.value[1].simple_value) == (40_000, 2.5)
    assert first.wall_time > 1e9


def test_a_resumed_run_shows_every_epoch_once(tmp_path):
    (tmp_path / "progress.csv").write_text("TotalEnvSteps,Metrics/EpRet\n20000,1.0\n40000,2.0\n")
    (tmp_path / "events.out.tfevents.1.steingate").write_bytes(b"left over from before")
    events = Events(tmp_path)
    events.add({"TotalEnvSteps": 60_000, "Metrics/EpRet": 3.0})
    events.close()
    assert [path.name for path in tmp_path.glob("events*")] == [events.path.name]
    assert [event.step for event in records(events.path)[1:]] == [20_000, 40_000, 60_000]
