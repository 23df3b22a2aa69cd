"""A policy as an ONNX graph: lidar features, normalization, network, and action range."""

import json
from typing import Any

import numpy as np

from steingate.errors import needs
from steingate.policies.policy import TINY, Policy, ring_bins

with needs("An ONNX file"):
    import onnx
    from onnx import TensorProto, helper, numpy_helper


class Graph:
    """Nodes and constants of a graph; values are referred to by name."""

    def __init__(self) -> None:
        self.nodes: list[Any] = []
        self.constants: list[Any] = []

    def __call__(self, operator: str, *inputs: str, **attributes: Any) -> str:
        """Add a node and return the name of its output."""
        name = f"v{len(self.nodes)}"
        self.nodes.append(helper.make_node(operator, list(inputs), [name], **attributes))
        return name

    def constant(self, value: Any, dtype: Any = np.float32) -> str:
        """Return the name of a constant."""
        name = f"c{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.asarray(value, dtype), name))
        return name

    def columns(self, value: str, index: Any) -> str:
        """Return columns of a matrix."""
        return self("Gather", value, self.constant(index, np.int64), axis=1)

    def clip(self, value: str, low: Any, high: Any) -> str:
        """Return a value clipped to a range."""
        return self("Max", self("Min", value, self.constant(high)), self.constant(low))

    def norm(self, x: str, y: str) -> str:
        """Return the length of (x, y), at least ``TINY``."""
        squares = self("Add", self("Mul", x, x), self("Mul", y, y))
        return self("Max", self("Sqrt", squares), self.constant(TINY))


def onnx_file(policy: Policy) -> bytes:
    """Return the content of an ONNX file with the policy; see ``export_policy``."""
    graph, widths = Graph(), {"observation": policy.obs_dim}
    metadata: dict[str, Any] = {"about": policy.about}
    value = graph("Concat", "observation", *_features(graph, policy), axis=1)
    if policy.array("obs_mean").size:
        mean, std, clip = (graph.constant(policy.array(name)) for name in ("obs_mean", "obs_std", "obs_clip"))
        scaled = graph("Div", graph("Sub", value, mean), std)
        value = graph("Max", graph("Min", scaled, clip), graph("Neg", clip))
    if policy.has_safety_state:  # not normalized
        start, scale, discount, floor = policy.array("safety_state").tolist()
        if discount == 1.0:
            name = "accumulated_cost"
            metadata[name] = "sum of the costs of the episode so far, 0 at its start"
            z = graph("Sub", graph.constant(start), graph("Div", name, graph.constant(scale)))
            z = graph("Max", z, graph.constant(max(floor, float(np.finfo(np.float32).min))))
        else:
            z = name = "safety_state"
            update = "max((safety_state - cost / scale) / discount, floor)"
            constants = {"start": start, "scale": scale, "discount": discount, "floor": str(floor)}
            metadata[name] = {**constants, "next": update}
        widths[name] = 1
        value = graph("Concat", value, z, axis=1)
    for i, (weight, bias) in enumerate(policy.layers):
        value = graph("Add", graph("MatMul", value, graph.constant(weight)), graph.constant(bias))
        if i < len(policy.layers) - 1:
            value = graph("Tanh", value)
    shape: tuple[str | int, ...]
    if policy.array("discrete").size:
        start = graph.constant(policy.array("discrete")[1], np.int64)
        graph("Add", graph("ArgMax", value, axis=1, keepdims=0), start)
        dtype, shape = TensorProto.INT64, ("n",)
    else:
        scaled = graph("Mul", graph.clip(value, -1.0, 1.0), graph.constant(policy.array("scale")))
        graph("Add", scaled, graph.constant(policy.array("shift")))
        dtype, shape = TensorProto.FLOAT, ("n", policy.act_dim)
    graph.nodes[-1].output[0] = "action"
    inputs = [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n", width]) for name, width in widths.items()]
    outputs = [helper.make_tensor_value_info("action", dtype, shape)]
    whole = helper.make_graph(graph.nodes, "policy", inputs, outputs, graph.constants)
    model = helper.make_model(whole, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    for key, entry in metadata.items():
        model.metadata_props.add(key=key, value=json.dumps(entry))
    onnx.checker.check_model(model)
    return bytes(model.SerializeToString())


def _features(graph: Graph, policy: Policy) -> list[str]:
    """Return the lidar features of ``observation``, part by part; see ``Policy``."""
    obs, features = "observation", []
    rings, compass, velocity = (policy.array(name) for name in ("rings", "compass", "velocity"))
    if policy.array("indices").size:
        readings = graph.clip(graph.columns(obs, policy.array("indices")), 0.0, 1.0)
        features = [graph("Pow", readings, graph.constant(power)) for power in policy.array("powers")]
    if not rings.size:
        return features
    index, *directions = ring_bins(tuple(rings.tolist()), int(policy.array("bins")))
    ring, axis = graph.clip(graph.columns(obs, index), 0.0, 1.0), graph.constant([2], np.int64)
    x, y = (
        graph("ReduceSum", graph("Mul", ring, graph.constant(direction)), axis, keepdims=0) for direction in directions
    )
    distance = graph("Sub", graph.constant(1.0), graph("ReduceMax", ring, axes=[2], keepdims=0))
    size = graph("Div", distance, graph.norm(x, y))
    x, y = graph("Mul", size, x), graph("Mul", size, y)
    if not compass.size:
        return [*features, x, y]
    forward, left = (graph.columns(obs, [i]) for i in compass)
    norm = graph.norm(forward, left)
    a, b = graph("Div", forward, norm), graph("Div", left, norm)

    def rotate(u: str, v: str) -> list[str]:
        first = graph("Add", graph("Mul", u, a), graph("Mul", v, b))
        return [first, graph("Sub", graph("Mul", v, a), graph("Mul", u, b))]

    moving = rotate(*(graph.columns(obs, [i]) for i in velocity)) if velocity.size else []
    return [*features, x, y, *rotate(x, y), *moving]
