"""Files of episode costs for ``certify`` and ``monitor``: good ones in every form, to be damaged."""

import io
import json

import numpy as np


def cost_file(rng) -> bytes:
    """Return the bytes of a file of costs: lines, CSV, JSON lines, one JSON list, or NPY of some type."""
    costs = [rng.choice([0.0, 1.0, rng.uniform(0, 60)]) for _ in range(rng.choice([1, 5, 40]))]
    kind = rng.choice(["lines", "csv", "tabs", "json lines", "list", "npy"])
    if kind == "lines":
        return "".join(f"{cost}\n" for cost in costs).encode()
    if kind in ("csv", "tabs"):
        mark = "," if kind == "csv" else "\t"
        rows = [["epoch", "cost", "length"], *([str(i), str(cost), "7"] for i, cost in enumerate(costs))]
        return "".join(mark.join(row) + "\n" for row in rows).encode()
    if kind == "json lines":
        return "".join(json.dumps({"cost": cost, "name": "a"}) + "\n" for cost in costs).encode()
    if kind == "list":
        return json.dumps(costs).encode()
    return npy(costs, rng.choice(["<f8", ">f4", "<i4", "<f16", "<f2", "<c16", "S4", "|b1", "<u8"]))


def npy(costs, kind: str) -> bytes:
    """Return costs as an NPY file of a given type; long floats get one that eight bytes cannot hold."""
    with np.errstate(all="ignore"):
        values = np.array(costs).astype(kind)
    if kind == "<f16":
        values[0] = np.longdouble("1e4000")
    out = io.BytesIO()
    np.save(out, values)
    return out.getvalue()
