"""A policy as an ONNX graph, with all that it is shown beside its observation."""

import json
from collections.abc import Callable
from typing import Any

import numpy as np

from steingate.errors import MissingExtraError
from steingate.policies.lidar_features import TINY, LidarFeatures, ring_bins
from steingate.policies.normalizer import CLIP
from steingate.policies.policy import Policy


class Graph:
    """Nodes and constants of a graph in the making; values are known by name."""

    def __init__(self, make_node: Callable[..., Any], make_tensor: Callable[..., Any]) -> None:
        self.nodes: list[Any] = []
        self.constants: list[Any] = []
        self._node, self._tensor = make_node, make_tensor

    def of(self, value: Any, kind: Any = np.float32) -> str:
        """Return the name of a constant."""
        name = f"c{len(self.constants)}"
        self.constants.append(self._tensor(np.asarray(value, kind), name))
        return name

    def __call__(self, kind: str, *inputs: str, **attributes: Any) -> str:
        """Return the name of what a node makes of its inputs."""
        out = f"v{len(self.nodes)}"
        self.nodes.append(self._node(kind, list(inputs), [out], **attributes))
        return out

    def at(self, value: str, index: Any) -> str:
        """Return the columns of a value."""
        return self("Gather", value, self.of(index, np.int64), axis=1)

    def between(self, value: str, low: Any, high: Any) -> str:
        """Return a value cut at both ends."""
        return self("Max", self("Min", value, self.of(high)), self.of(low))

    def length(self, x: str, y: str) -> str:
        """Return the length of (x, y), never 0."""
        return self("Max", self("Sqrt", self("Add", self("Mul", x, x), self("Mul", y, y))), self.of(TINY))


def onnx_file(policy: Policy, about: dict[str, Any]) -> bytes:
    """Return the ONNX file: what is added, normalize, clip, layers, and clip and scale or choose."""
    try:
        import onnx
        from onnx import TensorProto, helper, numpy_helper
    except ModuleNotFoundError as error:
        raise MissingExtraError("An ONNX file", "onnx") from error
    graph = Graph(helper.make_node, numpy_helper.from_array)
    shape: tuple[str | int, ...]
    own = policy.obs_dim - (policy.safety_state is not None)
    now = "obs"
    if policy.lidar_features is not None:
        account = [] if policy.safety_state is None else [graph.at(now, [own])]
        parts = [graph.at(now, np.arange(own)), *_shown(graph, now, policy.lidar_features), *account]
        now = graph("Concat", *parts, axis=1)
    if policy.obs_mean is not None and policy.obs_std is not None:
        rest = policy.weights[0].shape[0] - policy.obs_mean.size  # the account is never normalized
        mean, std = np.append(policy.obs_mean, np.zeros(rest)), np.append(policy.obs_std, np.ones(rest))
        edge = np.append(np.full(policy.obs_mean.size, CLIP), np.full(rest, np.finfo(np.float32).max))
        scaled = graph("Div", graph("Sub", now, graph.of(mean)), graph.of(std))
        now = graph.between(scaled, -edge, edge)
    for i, (w, b) in enumerate(zip(policy.weights, policy.biases, strict=True)):
        now = graph("Add", graph("MatMul", now, graph.of(w)), graph.of(b))
        if i < len(policy.weights) - 1:
            now = graph("Tanh", now)
    if policy.choice is None:
        scaled = graph("Mul", graph.between(now, -1.0, 1.0), graph.of(policy.scale))
        now = graph("Add", scaled, graph.of(policy.shift))
        kind, shape = TensorProto.FLOAT, ("n", policy.act_dim)
    else:
        likeliest = graph("ArgMax", now, axis=1, keepdims=0)
        now = graph("Add", likeliest, graph.of(policy.choice.start, np.int64))
        kind, shape = TensorProto.INT64, ("n",)
    graph.nodes[-1].output[0] = "action"
    given = helper.make_tensor_value_info("obs", TensorProto.FLOAT, ["n", policy.obs_dim])
    action = helper.make_tensor_value_info("action", kind, shape)
    whole = helper.make_graph(graph.nodes, "policy", [given], [action], graph.constants)
    model = helper.make_model(whole, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    model.metadata_props.add(key="about", value=json.dumps(about))
    if policy.safety_state is not None:
        model.metadata_props.add(key="safety_state", value=json.dumps([str(x) for x in policy.safety_state.to_list()]))
    onnx.checker.check_model(model)
    return bytes(model.SerializeToString())


def _shown(graph: Graph, obs: str, lidar: LidarFeatures) -> list[str]:
    """Return what :class:`LidarFeatures` adds to an observation, part by part."""
    parts: list[str] = []
    if lidar.indices:
        near = graph.between(graph.at(obs, lidar.indices), 0.0, 1.0)
        parts += [graph("Pow", near, graph.of(power)) for power in lidar.powers]
    if not lidar.rings:
        return parts
    index, *sides = ring_bins(lidar.rings, lidar.bins)
    ring = graph.between(graph.at(obs, index), 0.0, 1.0)
    last = graph.of([2], np.int64)
    x, y = (graph("ReduceSum", graph("Mul", ring, graph.of(side)), last, keepdims=0) for side in sides)
    distance = graph("Sub", graph.of(1.0), graph("ReduceMax", ring, axes=[2], keepdims=0))
    scale = graph("Div", distance, graph.length(x, y))
    x, y = graph("Mul", scale, x), graph("Mul", scale, y)
    if not lidar.compass:
        return [*parts, x, y]
    ahead, left = (graph.at(obs, [i]) for i in lidar.compass)
    size = graph.length(ahead, left)
    along, across = graph("Div", ahead, size), graph("Div", left, size)

    def turned(a: str, b: str) -> list[str]:
        first = graph("Add", graph("Mul", a, along), graph("Mul", b, across))
        return [first, graph("Sub", graph("Mul", b, along), graph("Mul", a, across))]

    moving = turned(*(graph.at(obs, [i]) for i in lidar.velocity)) if lidar.velocity else []
    return [*parts, x, y, *turned(x, y), *moving]
