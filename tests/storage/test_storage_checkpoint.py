import json
import resource
import struct
import subprocess
import sys
from collections import namedtuple
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from steingate.errors import RunError
from steingate.storage.checkpoint import (
    FORMAT,
    checkpoint_files,
    decode,
    encode,
    latest_checkpoint,
    read_checkpoint,
    write_checkpoint,
)

Pair = namedtuple("Pair", "a b")


def tree():
    return {
        "net": {
            "w": (np.arange(6, dtype=np.float32).reshape(2, 3), np.zeros((0, 4))),
            "b": [np.float64(1.5)],
        },
        "counts": np.array([1, 2**63], np.uint64),
        "flags": np.array([True, False]),
        "pair": Pair(1, -np.inf),
        "epoch": 7,
        "big": 2**70,
        "text": "Grenzwert ≤ 25",
        "nothing": None,
        "yes": True,
        "nan": float("nan"),
        "scalar": np.array(3, np.int64),
    }


def test_a_tree_comes_back_as_it_was():
    back, epoch = decode(encode(tree(), 12))
    assert epoch == 12
    np.testing.assert_array_equal(back["net"]["w"][0], tree()["net"]["w"][0])
    assert back["net"]["w"][0].dtype == np.float32
    assert back["net"]["w"][1].shape == (0, 4)
    assert back["net"]["b"][0] == 1.5
    assert back["counts"].tolist() == [1, 2**63]
    assert back["counts"].dtype == np.uint64
    assert back["flags"].dtype == np.bool_
    assert back["pair"] == [1, -np.inf]
    assert (back["epoch"], back["big"], back["text"], back["nothing"], back["yes"]) == (
        7, 2**70, "Grenzwert ≤ 25", None, True,
    )  # fmt: skip
    assert np.isnan(back["nan"])
    assert back["scalar"].shape == ()
    back["counts"][0] = 5  # arrays are one's own


def test_the_file_is_plain_safetensors(tmp_path):
    path = write_checkpoint(tmp_path, 3, {"a": np.arange(3, dtype=np.float32), "b": np.ones((2, 2))})
    content = path.read_bytes()
    length = struct.unpack("<Q", content[:8])[0]
    header = json.loads(content[8 : 8 + length])
    assert header["__metadata__"]["format"] == FORMAT
    assert all(isinstance(text, str) for text in header["__metadata__"].values())
    entry = header["000000"]
    begin, end = entry["data_offsets"]
    assert (entry["dtype"], entry["shape"]) == ("F32", [3])
    data = content[8 + length :]
    np.testing.assert_array_equal(np.frombuffer(data[begin:end], "<f4"), [0, 1, 2])


@pytest.mark.parametrize("value", [np.array(["a"]), np.array([object()]), object(), {1, 2}, 1 + 2j])
def test_what_is_not_plain_data_cannot_be_saved(value):
    with pytest.raises(TypeError):
        encode({"x": value}, 0)


def test_the_last_two_are_kept(tmp_path):
    for epoch in (0, 1, 5, 10):
        write_checkpoint(tmp_path, epoch, {"epoch": epoch})
    assert [epoch for epoch, _ in checkpoint_files(tmp_path)] == [5, 10]
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "epoch-00000005.safetensors",
        "epoch-00000010.safetensors",
    ]


def test_without_checkpoints_there_is_none(tmp_path):
    assert latest_checkpoint(tmp_path) is None
    assert latest_checkpoint(tmp_path / "missing") is None


def pickled(content):
    return b"\x80\x04\x95\x1d\0\0\0\0\0\0\0\x8c\x02os\x94\x8c\x06system\x94\x93\x94\x8c\x04true\x94\x85\x94R."


def truncated(content):
    return content[: len(content) // 2]


def flipped_in_data(content):
    return content[:-3] + bytes([content[-3] ^ 1]) + content[-2:]


def flipped_in_header(content):
    place = content.index(b"shape") + 10
    return content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :]


def with_tail(content):
    return content + b"more"


def foreign(content):
    header = json.dumps({"x": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}}).encode()
    return struct.pack("<Q", len(header)) + header + b"\0\0\0\0"


def endless_header(content):
    return struct.pack("<Q", 2**62) + content[8:]


def empty(content):
    return b""


def deep_json(content):
    header = b"[" * 100_000
    return struct.pack("<Q", len(header)) + header


@pytest.mark.parametrize(
    "damage",
    [
        pickled,
        truncated,
        flipped_in_data,
        flipped_in_header,
        with_tail,
        foreign,
        endless_header,
        empty,
        deep_json,
    ],
)
def test_a_damaged_checkpoint_is_named_and_the_older_one_used(tmp_path, damage):
    write_checkpoint(tmp_path, 4, tree())
    newest = write_checkpoint(tmp_path, 8, tree())
    newest.write_bytes(damage(newest.read_bytes()))
    with pytest.raises(RunError, match="epoch-00000008"):
        read_checkpoint(newest)
    told = []
    assert latest_checkpoint(tmp_path, told.append).epoch == 4
    assert len(told) == 1
    assert "epoch-00000008" in told[0]
    assert "epoch-00000004" in told[0]


def test_when_all_are_damaged_the_run_stops(tmp_path):
    for epoch in (1, 2):
        write_checkpoint(tmp_path, epoch, tree()).write_bytes(b"no")
    with pytest.raises(RunError, match=r"epoch-00000002.*epoch-00000001.*No usable checkpoint"):
        latest_checkpoint(tmp_path)


def hostile(layout, structure, data=b""):
    """A file whose checksum is right and whose content lies."""
    from steingate.storage.checkpoint import _digest

    metadata = {"format": FORMAT, "structure": structure, "sha256": _digest(structure, layout, data)}
    header = json.dumps({"__metadata__": metadata, **layout}).encode()
    return struct.pack("<Q", len(header)) + header + data


GOOD = json.dumps({"epoch": 1, "tree": {"dict": {}}})


@pytest.mark.parametrize(
    ("layout", "structure", "data"),
    [
        (
            {"000000": {"dtype": "F64", "shape": [2**40], "data_offsets": [0, 2**43]}},
            GOOD,
            b"",
        ),  # a memory bomb
        ({"000000": {"dtype": "F64", "shape": [-1], "data_offsets": [0, -8]}}, GOOD, b""),
        ({"000000": {"dtype": "O", "shape": [1], "data_offsets": [0, 8]}}, GOOD, b"12345678"),
        ({"000000": {"dtype": "F64", "shape": [1], "data_offsets": [8, 16]}}, GOOD, b"1" * 16),
        ({"000000": {"dtype": "F64", "shape": [1.0], "data_offsets": [0, 8]}}, GOOD, b"1" * 8),
        ({"000000": [1, 2]}, GOOD, b""),
        ({}, json.dumps({"epoch": 1, "tree": {"dict": {"x": {"array": 5}}}}), b""),
        ({}, json.dumps({"epoch": 1, "tree": {"dict": {"x": {"array": -1}}}}), b""),
        ({}, json.dumps({"epoch": 1, "tree": {"dict": {"x": {"call": "os.system"}}}}), b""),
        ({}, json.dumps({"epoch": 1, "tree": {"dict": {"x": {"float": "__import__('os')"}}}}), b""),
        ({}, json.dumps({"epoch": "1", "tree": {"dict": {}}}), b""),
        ({}, '{"epoch": 1, "tree": ' + '{"list": [' * 500 + "]}" * 500 + "}", b""),
        ({}, "nonsense", b""),
        ({}, json.dumps({"tree": {"dict": {}}}), b""),
    ],
)
def test_a_hostile_file_with_a_right_checksum_is_refused(tmp_path, layout, structure, data):
    path = tmp_path / "epoch-00000001.safetensors"
    path.write_bytes(hostile(layout, structure, data))
    with pytest.raises(RunError, match="epoch-00000001"):
        read_checkpoint(path)


def test_a_checkpoint_under_another_name_is_refused(tmp_path):
    path = write_checkpoint(tmp_path, 3, tree())
    path.rename(tmp_path / "epoch-00000009.safetensors")
    with pytest.raises(RunError, match="epoch 3"):
        read_checkpoint(tmp_path / "epoch-00000009.safetensors")
    (tmp_path / "epoch-00000001.safetensors").symlink_to("/dev/zero")
    with pytest.raises(RunError, match="regular file"):
        read_checkpoint(tmp_path / "epoch-00000001.safetensors")


@settings(max_examples=150, deadline=None)
@given(place=st.integers(0, 10_000), bit=st.integers(0, 7))
def test_any_flipped_bit_is_noticed(place, bit):
    content = bytearray(encode({"a": np.arange(5.0), "n": 3}, 2))
    content[place % len(content)] ^= 1 << bit
    from steingate.storage.checkpoint import _BadFileError

    try:
        back, epoch = decode(bytes(content))
    except _BadFileError:
        return
    # Only a flip that the header's JSON does not care about may pass, and then the content is the same.
    assert epoch == 2
    assert back["n"] == 3
    np.testing.assert_array_equal(back["a"], np.arange(5.0))


def test_a_full_disk_leaves_the_old_checkpoint(tmp_path):
    write_checkpoint(tmp_path, 1, {"a": np.zeros(10)})
    code = (
        "import resource, sys, numpy as np\n"
        "from pathlib import Path\n"
        "from steingate.errors import RunError\n"
        "from steingate.runs import write_checkpoint\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))\n"
        "try:\n"
        "    write_checkpoint(Path(sys.argv[1]), 2, {'a': np.zeros(100_000)})\n"
        "except RunError as error:\n"
        "    print(error)\n"
    )
    assert resource.RLIMIT_FSIZE >= 0
    out = subprocess.run([sys.executable, "-c", code, tmp_path], capture_output=True, text=True, check=True)
    assert "Cannot write" in out.stdout
    assert "epoch-00000002" in out.stdout
    assert [path.name for path in Path(tmp_path).iterdir()] == ["epoch-00000001.safetensors"]
    assert latest_checkpoint(tmp_path).epoch == 1
