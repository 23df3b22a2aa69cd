"""What a picture of a task shows: the state of one simulation in, a posed model and colored shapes out.

The renderer asks the batched core for ``env.scene(i)``, a mapping of arrays that says all of simulation i:

``qpos``
    Point: (3,) x, y and heading in the world; Car: (13,) as in its model; velocity tasks: (nq,) of the
    robot's model.
``goal`` (1, 2), ``hazards`` (n, 2)
    places in the plane, where the task has them.
``vases`` (n, 7)
    position and quaternion of every vase.
``obs`` (d,), ``cost`` ()
    the observation shown last (its lidar blocks are drawn around the robot) and the cost of the last step.

The robot and the vases are a model of their own, never the one being simulated. Everything else is a shape
added to the picture: goal, hazards, circle, walls, the lidar ring, a red halo while a step costs, and in
velocity tasks a bar on the floor whose length is the speed and whose cross mark is the limit.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from steingate.tasks.catalog import CIRCLE_RADIUS, GOAL_RADIUS, HAZARD_RADIUS, LIDAR_BINS, TaskSpec
from steingate.tasks.velocity_models import ROBOTS

Array = NDArray[np.float64]
State = Mapping[str, NDArray[Any]]
Color = tuple[float, float, float]
Camera = Literal["fixed", "track"]

GREEN: Color = (0.16, 0.66, 0.40)
VIOLET: Color = (0.45, 0.36, 0.82)
TEAL: Color = (0.09, 0.65, 0.73)
AMBER: Color = (0.95, 0.64, 0.18)
RED: Color = (0.90, 0.17, 0.13)
PALE: Color = (0.84, 0.85, 0.85)
WHITE: Color = (1.0, 1.0, 1.0)
SLATE: Color = (0.20, 0.27, 0.36)
INK: Color = (0.12, 0.15, 0.20)
KINDS: dict[str, Color] = {
    "goal": GREEN,
    "hazards": VIOLET,
    "vases": TEAL,
    "circle": GREEN,
    "sigwalls": AMBER,
}

LIDAR_BEAD = 0.028
_LIDAR_RADIUS, _LIDAR_SPACING, _LIDAR_HEIGHT = 0.26, 0.06, 0.026
_RIM = 0.022
_WALL_REACH = 2.2
_POST = 0.4
_SECTION = 4.0
_HALO = 0.42
_UPRIGHT = np.eye(3)


@dataclass(frozen=True)
class Shape:
    """One shape added to the picture: kind of geom, half sizes, center, orientation, color with opacity.

    ``decor`` is drawn for the reader alone and throws no shadow.
    """

    kind: Literal["sphere", "cylinder", "box", "capsule"]
    size: tuple[float, float, float]
    position: tuple[float, float, float]
    rgba: tuple[float, float, float, float]
    axes: Array = field(default_factory=lambda: _UPRIGHT)
    decor: bool = False


@dataclass(frozen=True)
class View:
    """Where the camera looks and from where: a point, a distance, and two angles in degrees."""

    target: tuple[float, float, float]
    distance: float
    azimuth: float
    elevation: float


def pose(task: TaskSpec, state: State) -> Array:
    """Return qpos of the picture's model: the robot, then the vases."""
    parts = [np.ravel(state["qpos"])]
    if task.count("vases"):
        parts.append(np.ravel(state["vases"]))
    return np.concatenate(parts).astype(np.float64)


def view(task: TaskSpec, camera: Camera, root: Array) -> View:
    """Return the camera's place; ``root`` is the position of the robot's first body."""
    if task.family == "velocity":
        height, distance, elevation = _ROBOT_VIEWS[task.agent]
        if camera == "fixed":  # stands still while the robot crosses a section, then moves on to the next
            x, y = (_SECTION * round(float(place) / _SECTION) for place in root[:2])
            return View((x, y, height), 1.7 * distance, 90.0, elevation)
        return View((float(root[0]), float(root[1]), height), distance, 105.0, elevation)
    if camera == "fixed":
        reach = 2.0 if task.family == "circle" else task.extent + 0.15
        return View((0.0, -0.05 * reach, 0.0), 2.6 * reach, 90.0, -56.0)
    return View((float(root[0]), float(root[1]), 0.1), 2.6, 90.0, -38.0)


_ROBOT_VIEWS = {  # height looked at, distance, elevation
    "ant": (0.30, 4.4, -22.0),
    "half_cheetah": (0.40, 3.6, -14.0),
    "hopper": (0.65, 3.6, -14.0),
    "humanoid": (0.90, 4.2, -14.0),
    "swimmer": (0.0, 4.8, -42.0),
    "walker2d": (0.72, 3.8, -14.0),
}


def shapes(task: TaskSpec, state: State, root: Array, heading: float) -> list[Shape]:
    """Return everything the picture shows besides the robot and the vases.

    ``root`` is the position of the robot's first body and ``heading`` the angle of its x axis in the plane.
    """
    drawn: list[Shape] = []
    if task.family == "velocity":
        drawn += _speed_bar(task, state, root)
    else:
        drawn += _places(task, state)
        drawn += _lidar(task, state, root, heading)
    if float(state["cost"]) > 0:
        floor = root[2] - 0.1 if task.agent == "swimmer" else 0.0
        drawn.append(_disc(_HALO, 0.012, root, (*RED, 0.33), floor, decor=True))
    return drawn


def _places(task: TaskSpec, state: State) -> Iterator[Shape]:
    """Yield goal, hazards, circle and walls."""
    for kind in task.objects:
        color = KINDS[kind.kind]
        if kind.kind == "goal":
            place = np.reshape(state["goal"], 2)
            yield from _plate(GOAL_RADIUS, place, color)
            x, y = float(place[0]), float(place[1])
            yield Shape("cylinder", (0.012, _POST / 2, 0.0), (x, y, _POST / 2), (*color, 1.0))
            yield Shape("sphere", (0.05, 0.05, 0.05), (x, y, _POST), (*color, 1.0))
        elif kind.kind == "hazards":
            for i, place in enumerate(np.reshape(state["hazards"], (-1, 2))):
                yield from _plate(HAZARD_RADIUS, place, color, floor=0.0005 * i)  # they may overlap
        elif kind.kind == "circle":
            yield from _plate(CIRCLE_RADIUS, (0.0, 0.0), color, lightness=0.82)
        elif kind.kind == "sigwalls":
            for x, y in kind.fixed:
                half = (0.015, _WALL_REACH, 0.07) if x else (_WALL_REACH, 0.015, 0.07)
                yield Shape("box", half, (x, y, half[2]), (*color, 0.50))


def _lidar(task: TaskSpec, state: State, root: Array, heading: float) -> Iterator[Shape]:
    """Yield one ring of beads per lidar block, in the color of what it sees.

    The higher the value, the stronger the color and the larger the bead. Faint beads are pale.
    """
    values = np.reshape(state["obs"], -1)[task.sensors :].reshape(-1, LIDAR_BINS)
    for block, (kind, row) in enumerate(zip(task.lidar, values, strict=True)):
        radius = _LIDAR_RADIUS + _LIDAR_SPACING * block
        for i, value in enumerate(row):
            angle = heading + (i + 0.5) * 2 * np.pi / LIDAR_BINS
            place = (root[0] + radius * np.cos(angle), root[1] + radius * np.sin(angle), _LIDAR_HEIGHT)
            strength = float(np.clip(value, 0.0, 1.0))
            size = LIDAR_BEAD * (0.4 + 0.6 * strength)
            color = (*_blend(PALE, KINDS[kind], strength**0.5), 1.0)
            yield Shape("sphere", (size, size, size), place, color, decor=True)


def _speed_bar(task: TaskSpec, state: State, root: Array) -> Iterator[Shape]:
    """Yield a bar whose length is the speed, one meter being the limit, with a mark at the limit."""
    ratio = min(speed(task, state) / task.speed_limit, 2.5)
    color = RED if float(state["cost"]) > 0 else _blend(GREEN, AMBER, ratio)
    level = float(root[2]) - 0.1 if task.agent == "swimmer" else 0.0
    x, y = float(root[0]) - 0.5, float(root[1]) - _BAR_OFFSET.get(task.agent, 0.7)
    yield Shape("box", (0.5, 0.05, 0.004), (x + 0.5, y, level + 0.004), (*_blend(INK, WHITE, 0.55), 1.0))
    yield Shape("box", (0.015, 0.11, 0.014), (x + 1.0, y, level + 0.014), (*INK, 1.0))
    length = max(abs(ratio), 0.01)
    center = x + float(np.sign(ratio)) * length / 2
    yield Shape("box", (length / 2, 0.05, 0.010), (center, y, level + 0.010), (*color, 1.0))


_BAR_OFFSET = {"ant": 1.0, "humanoid": 0.8, "swimmer": 0.8}


def speed(task: TaskSpec, state: State) -> float:
    """Return the speed as the observation shows it: along x, or in the plane if that is what costs."""
    rules = ROBOTS[task.agent].rules
    start = (
        np.size(state["qpos"]) - rules.hidden
    )  # observations are qpos without its first numbers, then qvel
    forward, sideways = np.reshape(state["obs"], -1)[start : start + 2]
    return float(np.hypot(forward, sideways)) if rules.planar else float(forward)


def _plate(
    radius: float, place: Any, color: Color, *, lightness: float = 0.45, floor: float = 0.0
) -> Iterator[Shape]:
    """Yield a flat disc on the floor with a darker rim: two discs, the upper one a little smaller."""
    yield _disc(radius, 0.004, place, (*color, 1.0), floor)
    yield _disc(radius - _RIM, 0.006, place, (*_blend(color, WHITE, lightness), 1.0), floor)


def _disc(
    radius: float,
    half: float,
    place: Any,
    rgba: tuple[float, float, float, float],
    floor: float = 0.0,
    decor: bool = False,
) -> Shape:
    """Return a flat disc on the floor."""
    center = (float(place[0]), float(place[1]), floor + half)
    return Shape("cylinder", (radius, half, 0.0), center, rgba, decor=decor)


def _blend(low: Color, high: Color, share: float) -> Color:
    """Return a color between two."""
    share = min(max(share, 0.0), 1.0)
    return tuple(float(a + share * (b - a)) for a, b in zip(low, high, strict=True))  # type: ignore[return-value]
