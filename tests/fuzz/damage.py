"""Ways to damage a file, each by a seeded random generator; each returns what it did."""

import json
import math
import os
import shutil
from pathlib import Path

ODD_CELLS = [
    "", "text", "nan", "inf", "-inf", "1e400", "-1", "0", "9" * 400, "9" * 5000, "x" * 200_000, "[/red]",
    "0x10", "1_000", "²", "true", '"', "\r", "\x00", "None", "1.5", "-0.0", "1e308", "é", "\x1b[31m", "=1+1",
]  # fmt: skip
ODD_VALUES = [
    None, True, False, -1, 0, 1, 2.5, 1e308, math.inf, -math.inf, math.nan, 10**30, 10**400, 10**9, 10**12,
    -(10**9), "", "text", "[/red]", "\ud800", "x" * 100_000, "inf", "nan", "1e6", "../..", "\x00",
    [], {}, [1, "a"], {"a": {"b": 1}},
]  # fmt: skip


def damage_bytes(path: Path, rng) -> str:
    """Change some bytes of a file."""
    data = bytearray(path.read_bytes())
    size = len(data)
    spot = rng.randrange(size) if size else 0
    kind = rng.choice(
        ["flip", "cut", "insert", "delete", "repeat", "zero", "empty", "append", "utf16", "crlf", "bom"]
    )
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
    else:
        data[:0] = b"\xef\xbb\xbf"
    path.write_bytes(bytes(data))
    return kind


def damage_place(path: Path, rng) -> str:
    """Put something else where a file was."""
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
            file.truncate(5 << 30)  # sparse: it takes no room
    return kind


def damage_cells(path: Path, rng) -> str:
    """Change a table as somebody with an editor would."""
    lines = [line.split(",") for line in path.read_text().splitlines()]
    row, place = rng.randrange(1, len(lines)), rng.randrange(len(lines[0]))
    kind = rng.choice(
        [
            "cell",
            "cell",
            "cell",
            "header",
            "swap rows",
            "drop row",
            "repeat row",
            "drop column",
            "swap columns",
        ]
    )
    if kind == "cell":
        lines[row][place] = rng.choice(ODD_CELLS)
    elif kind == "header":
        lines[0][place] = rng.choice([*ODD_CELLS, lines[0][0]])
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
                del line[place]
            else:
                line[place], line[other] = line[other], line[place]
    path.write_bytes(("\n".join(",".join(line) for line in lines) + "\n").encode("utf-8", "surrogatepass"))
    return kind


def damage_json(path: Path, rng) -> str:
    """Change a value, a name or the depth of a JSON file."""
    tree = json.loads(path.read_text())
    kind = change_tree(tree, rng)
    text = json.dumps(tree)
    if kind == "digits":
        text = text.replace('"DIGITS"', "9" * 5000)
    elif kind == "deep":
        text = text.replace('"DEEP"', "[" * 50_000 + "]" * 50_000)
    path.write_text(text)
    return kind


def change_tree(tree, rng) -> str:
    """Change one spot of a tree of dicts and lists in place."""
    spots = list(_spots(tree))
    table, key = rng.choice(spots)
    kind = rng.choice(["value", "value", "value", "delete", "name", "digits", "deep"])
    if kind == "value":
        table[key] = rng.choice(ODD_VALUES)
    elif kind == "delete":
        del table[key]
    elif kind == "name" and isinstance(table, dict):
        table[rng.choice(["[/red]", "x", "\ud800", ""])] = table.pop(key)
    else:
        table[key] = kind.upper()
    return kind


def _spots(tree):
    pairs = tree.items() if isinstance(tree, dict) else enumerate(tree)
    for key, value in list(pairs):
        yield tree, key
        if isinstance(value, dict | list):
            yield from _spots(value)


def remove(path: Path) -> None:
    """Remove whatever is there."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
