"""Damage a file with a seeded random generator; each function returns what it did. Also random cost files."""

import io
import json
import math
import os
from pathlib import Path

import numpy as np

CELLS = [
    "", "text", "nan", "inf", "-inf", "1e400", "-1", "0", "9" * 400, "9" * 5000, "x" * 200_000, "[/red]",
    "0x10", "1_000", "²", "true", '"', "\r", "\x00", "None", "1.5", "-0.0", "1e308", "é", "\x1b[31m", "=1+1",
]  # fmt: skip
VALUES = [
    None, True, False, -1, 0, 1, 2.5, 1e308, math.inf, -math.inf, math.nan, 10**30, 10**400, 10**9, 10**12,
    -(10**9), "", "text", "[/red]", "\ud800", "x" * 100_000, "inf", "nan", "1e6", "../..", "\x00",
    [], {}, [1, "a"], {"a": {"b": 1}},
]  # fmt: skip
BYTES = ("flip", "cut", "insert", "delete", "repeat", "zero", "empty", "append", "utf16", "crlf", "bom")


def damage_bytes(path: Path, rng) -> str:
    """Change some bytes of a file."""
    data = bytearray(path.read_bytes())
    size, kind = len(data), rng.choice(BYTES)
    spot = rng.randrange(size) if size else 0
    if kind == "flip" and size:
        data[spot] ^= 1 << rng.randrange(8)
    elif kind == "cut":
        del data[spot:]
    elif kind == "insert":
        data[spot:spot] = rng.randbytes(rng.choice([1, 7, 300]))
    elif kind == "delete":
        del data[spot : spot + rng.choice([1, 9, 200])]
    elif kind == "repeat":
        data[spot:spot] = data[spot : spot + rng.choice([1, 50, 2000])]
    elif kind == "zero":
        end = min(spot + rng.choice([1, 64, 4096]), size)
        data[spot:end] = bytes(end - spot)
    elif kind == "empty":
        data.clear()
    elif kind == "append":
        data += rng.randbytes(rng.choice([1, 100, 5000]))
    elif kind == "utf16":
        data = bytearray(bytes(data).decode("latin-1").encode("utf-16"))
    elif kind == "crlf":
        data = data.replace(b"\n", b"\r\n")
    elif kind == "bom":
        data[:0] = b"\xef\xbb\xbf"
    path.write_bytes(bytes(data))
    return kind


def replace_file(path: Path, rng) -> str:
    """Replace a file by something else: nothing, a folder, a pipe, a link, a device, a huge file."""
    kind = rng.choice(["gone", "folder", "pipe", "loop", "dangling", "device", "huge"])
    path.unlink()
    if kind == "folder":
        path.mkdir()
    elif kind == "pipe":
        os.mkfifo(path)
    elif kind == "loop":
        path.symlink_to(path)
    elif kind == "dangling":
        path.symlink_to(path.with_name("nothing"))
    elif kind == "device":
        path.symlink_to("/dev/zero")
    elif kind == "huge":
        with open(path, "wb") as file:
            file.truncate(5 << 30)  # sparse
    return kind


def damage_table(path: Path, rng) -> str:
    """Edit a cell, row or column of a CSV file."""
    lines = [line.split(",") for line in path.read_text().splitlines()]
    row, column = rng.randrange(1, len(lines)), rng.randrange(len(lines[0]))
    edits = ("header", "swap rows", "drop row", "repeat row", "drop column", "swap columns")
    kind = rng.choice(["cell", "cell", "cell", *edits])
    if kind == "cell":
        lines[row][column] = rng.choice(CELLS)
    elif kind == "header":
        lines[0][column] = rng.choice([*CELLS, lines[0][0]])
    elif kind == "swap rows":
        other = rng.randrange(1, len(lines))
        lines[row], lines[other] = lines[other], lines[row]
    elif kind == "drop row":
        del lines[row]
    elif kind == "repeat row":
        lines.insert(row, lines[row])
    else:
        other = rng.randrange(len(lines[0]))
        for line in lines:
            if kind == "drop column":
                del line[column]
            else:
                line[column], line[other] = line[other], line[column]
    path.write_bytes(("\n".join(",".join(line) for line in lines) + "\n").encode("utf-8", "surrogatepass"))
    return kind


def damage_json(path: Path, rng) -> str:
    """Change a value or name of a JSON file."""
    tree = json.loads(path.read_text())
    kind = damage_tree(tree, rng)
    text = json.dumps(tree).replace('"DIGITS"', "9" * 5000).replace('"DEEP"', "[" * 50_000 + "]" * 50_000)
    path.write_text(text)
    return kind


def damage_tree(tree, rng) -> str:
    """Change one entry of a tree of dicts and lists in place."""
    table, key = rng.choice(list(_entries(tree)))
    kind = rng.choice(["value", "value", "value", "delete", "name", "digits", "deep"])
    if kind == "value":
        table[key] = rng.choice(VALUES)
    elif kind == "delete":
        del table[key]
    elif kind == "name" and isinstance(table, dict):
        table[rng.choice(["[/red]", "x", "\ud800", ""])] = table.pop(key)
    else:
        table[key] = kind.upper()
    return kind


def _entries(tree):
    for key, value in list(tree.items() if isinstance(tree, dict) else enumerate(tree)):
        yield tree, key
        if isinstance(value, dict | list):
            yield from _entries(value)


def random_costs(rng) -> bytes:
    """Return a cost file: lines, CSV, JSON lines, one JSON list, or NPY of some type."""
    costs = [rng.choice([0.0, 1.0, rng.uniform(0, 60)]) for _ in range(rng.choice([1, 5, 40]))]
    kind = rng.choice(["lines", ",", "\t", "json lines", "list", "npy"])
    if kind == "lines":
        return "".join(f"{cost}\n" for cost in costs).encode()
    if kind in (",", "\t"):
        rows = [["epoch", "cost", "length"], *([str(i), str(cost), "7"] for i, cost in enumerate(costs))]
        return "".join(kind.join(row) + "\n" for row in rows).encode()
    if kind == "json lines":
        return "".join(json.dumps({"cost": cost, "name": "a"}) + "\n" for cost in costs).encode()
    if kind == "list":
        return json.dumps(costs).encode()
    dtype = rng.choice(["<f8", ">f4", "<i4", "<f16", "<f2", "<c16", "S4", "|b1", "<u8"])
    with np.errstate(all="ignore"):
        values = np.array(costs).astype(dtype)
    if dtype == "<f16":
        values[0] = np.longdouble("1e4000")  # no 8-byte float has this value
    out = io.BytesIO()
    np.save(out, values)
    return out.getvalue()
