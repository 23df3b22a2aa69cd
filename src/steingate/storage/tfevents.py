"""TensorBoard event files: scalars as length-prefixed, checksummed protocol-buffer records.

Written here, synchronously, rather than by a library's background thread, so that a full disk is an error
like any other. A record is length, masked CRC-32C of it, data, masked CRC-32C of it; the data is
an ``Event`` message with wall_time = 1, step = 2, file_version = 3 and summary = 5.
"""

import math
import struct
import time
from collections.abc import Mapping
from pathlib import Path

from steingate.storage.files import writing


class EventFile:
    """An event file that scalars are appended to.

    Parameters
    ----------
    folder
        Where; the name is made from the time, as TensorBoard expects.
    """

    def __init__(self, folder: Path) -> None:
        now = time.time()
        self.path = folder / f"events.out.tfevents.{int(now)}.steingate"
        version = _varint_field(2, 0) + _bytes_field(3, b"brain.Event:2")
        with writing(self.path):
            self.path.write_bytes(_record(_double_field(1, now) + version))

    def add(self, step: int, scalars: Mapping[str, float]) -> None:
        """Append one event with all finite scalars of one step."""
        finite = [(tag, value) for tag, value in scalars.items() if math.isfinite(value)]
        summary = b"".join(
            _bytes_field(1, _bytes_field(1, tag.encode()) + _float_field(2, v)) for tag, v in finite
        )
        event = _double_field(1, time.time()) + _varint_field(2, step) + _bytes_field(5, summary)
        with writing(self.path, "the last checkpoint is intact"), open(self.path, "ab") as file:
            file.write(_record(event))


def crc32c(data: bytes) -> int:
    """Return the CRC-32C (Castagnoli) checksum."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc = _TABLE[(crc ^ byte) & 0xFF] ^ (crc >> 8)
    return crc ^ 0xFFFFFFFF


def _table_entry(index: int) -> int:
    for _ in range(8):
        index = (index >> 1) ^ (0x82F63B78 if index & 1 else 0)
    return index


_TABLE = [_table_entry(index) for index in range(256)]


def _masked(data: bytes) -> bytes:
    crc = crc32c(data)
    return struct.pack("<I", (((crc >> 15) | (crc << 17)) + 0xA282EAD8) & 0xFFFFFFFF)


def _record(data: bytes) -> bytes:
    length = struct.pack("<Q", len(data))
    return length + _masked(length) + data + _masked(data)


def _varint(number: int) -> bytes:
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def _varint_field(field: int, number: int) -> bytes:
    return _varint(field << 3) + _varint(number)


def _bytes_field(field: int, content: bytes) -> bytes:
    return _varint(field << 3 | 2) + _varint(len(content)) + content


def _double_field(field: int, number: float) -> bytes:
    return _varint(field << 3 | 1) + struct.pack("<d", number)


def _float_field(field: int, number: float) -> bytes:
    return _varint(field << 3 | 5) + struct.pack("<f", number)
