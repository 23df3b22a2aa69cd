"""Checkpoint files: exact round trip, plain safetensors, and one error for every kind of damage."""

import json
import struct
import subprocess
import sys
from collections import namedtuple
from pathlib import Path

import numpy as np
import pytest
import safetensors.numpy
from hypothesis import given, settings
from hypothesis import strategies as st

from steingate.errors import RunError
from steingate.storage.checkpoint import (
    FORMAT,
    BadCheckpointError,
    _digest,
    checkpoint_files,
    decode,
    encode,
    latest_checkpoint,
    read_checkpoint,
    write_checkpoint,
)

Pair = namedtuple("Pair", "a b")
ARRAYS = {
    "matrix": np.arange(6, dtype=np.float32).reshape(2, 3),
    "fortran": np.asfortranarray(np.arange(6.0).reshape(2, 3)),
    "strided": np.arange(10)[::3],
    "empty": np.zeros((0, 4)),
    "large": np.array([1, 2**63], np.uint64),
    "flags": np.array([True, False]),
    "scalar": np.array(3, np.int64),
    "number": np.float32(0.1),
    "not finite": np.array([np.nan, -np.inf, -0.0]),
}
PLAIN = {
    "pair": Pair(1, -np.inf),
    "big": 2**70,
    "text": "Grenzwert ≤ 25",
    "nothing": None,
    "yes": True,
    "float": np.float64(0.1),
    "nested": {"list": [{"dict": [1, 2]}]},
}


def test_a_tree_is_restored_exactly():
    back, epoch = decode(encode({"arrays": ARRAYS, "nan": float("nan"), **PLAIN}, 12))
    assert epoch == 12
    assert np.isnan(back.pop("nan"))
    for name, array in back.pop("arrays").items():
        expected = np.asarray(ARRAYS[name])
        assert (array.dtype, array.shape) == (expected.dtype, expected.shape)
        assert array.tobytes() == expected.tobytes()
        assert array.flags.writeable
    assert back == {**PLAIN, "pair": [1, -np.inf]}


def test_the_file_is_plain_safetensors_and_equal_for_equal_content(tmp_path):
    path = write_checkpoint(tmp_path, 3, {"a": np.arange(3, dtype=np.float32), "b": np.ones((2, 2))})
    tensors = safetensors.numpy.load_file(path)
    assert tensors["000000"].tolist() == [0, 1, 2]
    assert tensors["000001"].shape == (2, 2)
    code = "import numpy as np; from steingate.storage.checkpoint import encode; import sys\n"
    code += "sys.stdout.buffer.write(encode({'a': np.arange(3, dtype=np.float32), 'b': np.ones((2, 2))}, 3))"
    again = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True).stdout
    assert again == path.read_bytes()


def test_the_last_two_checkpoints_are_kept(tmp_path):
    assert latest_checkpoint(tmp_path) is None
    assert latest_checkpoint(tmp_path / "missing") is None
    for epoch in (0, 1, 5, 10):
        write_checkpoint(tmp_path, epoch, {"epoch": epoch})
    assert [epoch for epoch, _ in checkpoint_files(tmp_path)] == [5, 10]
    assert len(list(tmp_path.iterdir())) == 2


def with_header(header):
    return struct.pack("<Q", len(header)) + header + b"\0\0\0\0"


DAMAGE = {
    "pickle": lambda content: b"\x80\x04\x95\x1d\0\0\0\0\0\0\0\x8c\x02os\x94\x8c\x06system\x94\x93\x94.",
    "truncated": lambda content: content[: len(content) // 2],
    "other version": lambda content: content.replace(FORMAT.encode(), b"steingate-checkpoint-1"),
    "endless header": lambda content: struct.pack("<Q", 2**62) + content[8:],
    "deep JSON": lambda content: with_header(b"[" * 100_000),
}


@pytest.mark.parametrize("kind", DAMAGE)
def test_a_damaged_checkpoint_is_named_and_the_previous_one_is_used(tmp_path, kind):
    write_checkpoint(tmp_path, 4, {"a": ARRAYS["matrix"]})
    newest = write_checkpoint(tmp_path, 8, {"a": ARRAYS["matrix"]})
    newest.write_bytes(DAMAGE[kind](newest.read_bytes()))
    warnings = []
    assert latest_checkpoint(tmp_path, warnings.append).epoch == 4
    (warning,) = warnings
    assert "epoch-00000008" in warning
    assert "epoch-00000004" in warning
    checkpoint_files(tmp_path)[0][1].write_bytes(b"no")
    with pytest.raises(RunError, match=r"epoch-00000008.*epoch-00000004.*No usable checkpoint"):
        latest_checkpoint(tmp_path)


def crafted(layout, text, data=b""):
    """Return a file with a correct checksum and wrong content."""
    header = {"__metadata__": {"steingate": f"{FORMAT} {_digest(text, [])} {text}"}, **layout}
    content = json.dumps(header).encode()
    return struct.pack("<Q", len(content)) + content + data


def tensor(dtype, shape, end):
    return {"000000": {"dtype": dtype, "shape": shape, "data_offsets": [0, end]}}


EMPTY = '{"epoch": 1, "tree": {}}'


@pytest.mark.parametrize(
    ("layout", "text", "data"),
    [
        (tensor("F64", [2**40], 2**43), EMPTY, b""),  # would need 8 TiB
        (tensor("O", [1], 8), EMPTY, b"12345678"),
        ({"000000": [1, 2]}, EMPTY, b""),
        ({}, '{"epoch": 1, "tree": {"x": {"__array__": 5}}}', b""),
        ({}, '{"epoch": "1", "tree": {}}', b""),
        ({}, '{"epoch": 1, "tree": ' + "[" * 10**5 + "]" * 10**5 + "}", b""),
    ],
)
def test_wrong_content_with_a_correct_checksum_is_refused(tmp_path, layout, text, data):
    path = tmp_path / "epoch-00000001.safetensors"
    path.write_bytes(crafted(layout, text, data))
    with pytest.raises(RunError, match="epoch-00000001"):
        read_checkpoint(path)


def test_a_renamed_checkpoint_and_a_link_are_refused(tmp_path):
    path = write_checkpoint(tmp_path, 3, PLAIN)
    path.rename(tmp_path / "epoch-00000009.safetensors")
    with pytest.raises(RunError, match="epoch 3"):
        read_checkpoint(tmp_path / "epoch-00000009.safetensors")
    (tmp_path / "epoch-00000001.safetensors").symlink_to("/dev/zero")
    with pytest.raises(RunError, match="regular file"):
        read_checkpoint(tmp_path / "epoch-00000001.safetensors")


@settings(max_examples=150, deadline=None)
@given(place=st.integers(0, 10_000), bit=st.integers(0, 7))
def test_every_flipped_bit_is_detected(place, bit):
    content = bytearray(encode({"a": np.arange(5.0), "n": 3}, 2))
    content[place % len(content)] ^= 1 << bit
    try:
        back, epoch = decode(bytes(content))
    except BadCheckpointError:
        return
    # A flip of white space in the header does not change the content.
    assert (epoch, back["n"], back["a"].tolist()) == (2, 3, [0, 1, 2, 3, 4])


def test_a_full_disk_leaves_the_previous_checkpoint(tmp_path):
    write_checkpoint(tmp_path, 1, {"a": np.zeros(10)})
    code = (
        "import resource, sys, numpy as np\n"
        "from pathlib import Path\n"
        "from steingate.errors import RunError\n"
        "from steingate.storage.checkpoint import write_checkpoint\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))\n"
        "try:\n"
        "    write_checkpoint(Path(sys.argv[1]), 2, {'a': np.zeros(100_000)})\n"
        "except RunError as error:\n"
        "    print(error)\n"
    )
    out = subprocess.run([sys.executable, "-c", code, tmp_path], capture_output=True, text=True, check=True)
    assert "Cannot write" in out.stdout
    assert "epoch-00000002" in out.stdout
    assert [path.name for path in Path(tmp_path).iterdir()] == ["epoch-00000001.safetensors"]
    assert latest_checkpoint(tmp_path).epoch == 1
