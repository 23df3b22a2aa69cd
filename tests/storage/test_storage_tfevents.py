import struct

from tensorboardX.crc32c import crc32c as reference_crc
from tensorboardX.proto.event_pb2 import Event

from steingate.storage.tfevents import EventFile, crc32c


def records(path):
    """Parse an event file with somebody else's checksum and message classes."""
    content, events = path.read_bytes(), []
    while content:
        length, length_crc = struct.unpack("<QI", content[:12])
        data, (data_crc,) = content[12 : 12 + length], struct.unpack("<I", content[12 + length : 16 + length])
        for part, found in ((content[:8], length_crc), (data, data_crc)):
            crc = reference_crc(part)
            assert found == (((crc >> 15) | (crc << 17)) + 0xA282EAD8) & 0xFFFFFFFF
        events.append(Event.FromString(data))
        content = content[16 + length :]
    return events


def test_scalars_come_back_through_another_reader(tmp_path):
    file = EventFile(tmp_path)
    file.add(20_000, {"Metrics/EpRet": 1.5, "Gate/Bound": float("nan"), "Größe": -3})
    file.add(2**40, {"Metrics/EpRet": 2.5})
    version, first, second = records(file.path)
    assert version.file_version == "brain.Event:2"
    assert first.step == 20_000
    assert {v.tag: v.simple_value for v in first.summary.value} == {"Metrics/EpRet": 1.5, "Größe": -3.0}
    assert second.step == 2**40
    assert first.wall_time > 1e9


def test_the_checksum_is_castagnolis():
    assert crc32c(b"123456789") == 0xE3069283
    assert crc32c(b"") == 0
