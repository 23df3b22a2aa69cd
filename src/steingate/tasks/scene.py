"""Content of rendered frames: MuJoCo model of robot and vases, shapes for everything else, cameras.

A frame of simulation i is determined by the arrays ``env.scene(i)``: ``qpos`` (Point: x, y and heading in world axes;
otherwise as in the MuJoCo model), ``goal`` (1, 2) and ``hazards`` (n, 2) in the plane, ``vases`` (n, 7) with position
and quaternion, the last observation ``obs``, whose lidar blocks are drawn around the robot, and the last ``cost``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Literal, NamedTuple

import mujoco
import numpy as np
from numpy.typing import NDArray

from steingate.tasks.catalog import CIRCLE_RADIUS, GOAL_RADIUS, HAZARD_RADIUS, LIDAR_BINS, TaskSpec
from steingate.tasks.navigation_models import world_xml
from steingate.tasks.velocity import ROBOTS, robot_file

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
KINDS: dict[str, Color] = {"goal": GREEN, "hazards": VIOLET, "vases": TEAL, "circle": GREEN, "sigwalls": AMBER}

LIDAR_BEAD = 0.028  # largest radius of a bead
_LIDAR_RADIUS, _LIDAR_SPACING, _LIDAR_HEIGHT = 0.26, 0.06, 0.026
_RIM = 0.022
_WALL_HALF = 2.2
_POST = 0.4
_SECTION = 4.0  # distance after which the fixed camera of velocity tasks moves on
_HALO = 0.42
_ROBOT_VIEWS = {  # height of the target, distance, elevation
    "ant": (0.30, 4.4, -22.0),
    "half_cheetah": (0.40, 3.6, -14.0),
    "hopper": (0.65, 3.6, -14.0),
    "humanoid": (0.90, 4.2, -14.0),
    "swimmer": (0.0, 4.8, -42.0),
    "walker2d": (0.72, 3.8, -14.0),
}
_BAR_OFFSET = {"ant": 1.0, "humanoid": 0.8, "swimmer": 0.8}
_SKY = ((0.97, 0.98, 0.99), (0.70, 0.79, 0.88))
_TILES = ((0.93, 0.93, 0.92), (0.88, 0.885, 0.885))
_SHADES = (SLATE, (0.27, 0.40, 0.53), (0.36, 0.53, 0.66))  # of robots, by depth in the kinematic tree
_ACCENT = (0.93, 0.93, 0.95)
_ACCENTS = ("pointarrow", "left", "right", "rear", "front_bumper")


class Shape(NamedTuple):
    """A shape of a frame: MuJoCo geom type, half sizes, center, color with opacity.

    Shapes with ``decor`` throw no shadow.
    """

    kind: Literal["sphere", "cylinder", "box"]
    size: tuple[float, float, float]
    position: tuple[float, float, float]
    rgba: tuple[float, float, float, float]
    decor: bool = False


def camera_view(task: TaskSpec, camera: Camera, root: Array) -> mujoco.MjvCamera:
    """Return the camera of a frame; ``root`` (3,) is the position of the robot's first body."""
    x, y = float(root[0]), float(root[1])
    if task.family == "velocity":
        height, distance, elevation = _ROBOT_VIEWS[task.agent]
        azimuth = 105.0
        if camera == "fixed":
            x, y = (_SECTION * round(coordinate / _SECTION) for coordinate in (x, y))
            distance, azimuth = 1.7 * distance, 90.0
    else:
        height, distance, elevation, azimuth = 0.1, 2.6, -38.0, 90.0
        if camera == "fixed":
            half = 2.0 if task.family == "circle" else task.extent + 0.15
            x, y, height, distance, elevation = 0.0, -0.05 * half, 0.0, 2.6 * half, -56.0
    view = mujoco.MjvCamera()
    view.type, view.lookat[:] = mujoco.mjtCamera.mjCAMERA_FREE, (x, y, height)
    view.distance, view.azimuth, view.elevation = distance, azimuth, elevation
    return view


def model_qpos(task: TaskSpec, state: State) -> Array:
    """Return qpos of the model that is drawn: the robot, then the vases."""
    vases = np.ravel(state["vases"]) if task.count("vases") else ()
    return np.concatenate([state["qpos"], vases])


def shapes(task: TaskSpec, state: State, root: Array, heading: float) -> list[Shape]:
    """Return everything that a frame shows besides the robot and the vases.

    Goal, hazards, circle, walls and lidar, or the speed of a velocity task; and a red halo at steps with cost.
    ``root`` (3,) is the position of the robot's first body, ``heading`` the angle of its x axis in the plane.
    """
    velocity = task.family == "velocity"
    found = (
        [*_speed_bar(task, state, root)] if velocity else [*_objects(task, state), *_lidar(task, state, root, heading)]
    )
    if float(state["cost"]) > 0:
        floor = root[2] - 0.1 if task.agent == "swimmer" else 0.0
        found.append(_disc(_HALO, 0.012, root, (*RED, 0.33), floor, decor=True))
    return found


def _objects(task: TaskSpec, state: State) -> Iterator[Shape]:
    """Yield goal, hazards, circle and walls."""
    for group in task.objects:
        color = KINDS[group.kind]
        if group.kind == "goal":
            ((x, y),) = state["goal"].tolist()
            yield from _plate(GOAL_RADIUS, (x, y), color)
            yield Shape("cylinder", (0.012, _POST / 2, 0.0), (x, y, _POST / 2), (*color, 1.0))
            yield Shape("sphere", (0.05, 0.05, 0.05), (x, y, _POST), (*color, 1.0))
        elif group.kind == "hazards":
            for i, place in enumerate(state["hazards"]):
                yield from _plate(HAZARD_RADIUS, place, color, floor=0.0005 * i)  # they may overlap
        elif group.kind == "circle":
            yield from _plate(CIRCLE_RADIUS, (0.0, 0.0), color, lightness=0.82)
        elif group.kind == "sigwalls":
            for x, y in group.fixed:
                half = (0.015, _WALL_HALF, 0.07) if x else (_WALL_HALF, 0.015, 0.07)
                yield Shape("box", half, (x, y, half[2]), (*color, 0.50))


def _lidar(task: TaskSpec, state: State, root: Array, heading: float) -> Iterator[Shape]:
    """Yield one ring of beads per lidar block; a higher value gives a larger bead of stronger color."""
    values = state["obs"][task.sensors :].reshape(-1, LIDAR_BINS)
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
    """Yield a bar on the floor whose length is the speed in units of the limit, with a mark at the limit."""
    ratio = min(speed(task, state) / task.speed_limit, 2.5)
    color = RED if float(state["cost"]) > 0 else _blend(GREEN, AMBER, ratio)
    level = float(root[2]) - 0.1 if task.agent == "swimmer" else 0.0
    x, y = float(root[0]) - 0.5, float(root[1]) - _BAR_OFFSET.get(task.agent, 0.7)
    yield Shape("box", (0.5, 0.05, 0.004), (x + 0.5, y, level + 0.004), (*_blend(INK, WHITE, 0.55), 1.0))
    yield Shape("box", (0.015, 0.11, 0.014), (x + 1.0, y, level + 0.014), (*INK, 1.0))
    length = max(abs(ratio), 0.01)
    center = x + float(np.sign(ratio)) * length / 2
    yield Shape("box", (length / 2, 0.05, 0.010), (center, y, level + 0.010), (*color, 1.0))


def speed(task: TaskSpec, state: State) -> float:
    """Return the observed speed in m/s: along x, or in the plane if that is what costs."""
    robot = ROBOTS[task.agent]
    start = state["qpos"].size - robot.hidden  # of the velocities in the observation
    forward, sideways = state["obs"][start : start + 2]
    return float(np.hypot(forward, sideways)) if robot.planar else float(forward)


def _plate(radius: float, place: Any, color: Color, *, lightness: float = 0.45, floor: float = 0.0) -> Iterator[Shape]:
    """Yield a flat disc on the floor with a darker rim."""
    yield _disc(radius, 0.004, place, (*color, 1.0), floor)
    yield _disc(radius - _RIM, 0.006, place, (*_blend(color, WHITE, lightness), 1.0), floor)


def _disc(radius: float, half: float, place: Any, rgba: Any, floor: float = 0.0, decor: bool = False) -> Shape:
    center = (float(place[0]), float(place[1]), floor + half)
    return Shape("cylinder", (radius, half, 0.0), center, rgba, decor=decor)


def _blend(low: Color, high: Color, weight: float) -> Color:
    """Return (1 - weight) low + weight high, with the weight clipped to [0, 1]."""
    weight = min(max(weight, 0.0), 1.0)
    return tuple(float(a + weight * (b - a)) for a, b in zip(low, high, strict=True))  # type: ignore[return-value]


def render_model(task: TaskSpec, width: int, height: int) -> tuple[mujoco.MjModel, NDArray[np.int64]]:
    """Return the model that is drawn (robot, vases, floor, sky, light) and the geoms of the robot.

    Its qpos is that of the robot followed by that of the vases.
    """
    if task.family == "velocity":
        spec = _robot_spec(task)
    else:
        spec = mujoco.MjSpec.from_string(world_xml(task, task.count("vases")))
        for geom in spec.geoms:
            vase, accent = geom.name.startswith("vase"), geom.name in _ACCENTS
            geom.rgba = (*(KINDS["vases"] if vase else _ACCENT if accent else SLATE), 1.0)
    _add_floor_and_sky(spec)
    _add_light(spec, moving=task.family == "velocity")
    visual = spec.visual
    # Quality that software rendering can afford: four samples per pixel, larger shadow maps and finer spheres take
    # four times as long.
    visual.quality.shadowsize = 1024
    visual.quality.offsamples = 0
    visual.quality.numslices, visual.quality.numstacks = 28, 8
    visual.map.znear, visual.map.zfar = 0.1, 15.0
    visual.map.haze = 0.35
    visual.rgba.haze = (*_SKY[0], 1.0)
    visual.global_.offwidth, visual.global_.offheight = width, height
    spec.stat.extent, spec.stat.center = 3.0, (0.0, 0.0, 0.3)
    model = spec.compile()
    vases = [g for g in range(model.ngeom) if model.geom(g).name.startswith("vase")]
    robot = [g for g in range(model.ngeom) if model.geom_bodyid[g] != 0 and g not in vases]
    return model, np.array(robot)


def _robot_spec(task: TaskSpec) -> mujoco.MjSpec:
    """Return Gymnasium's model of a robot, in our colors."""
    spec = mujoco.MjSpec.from_file(robot_file(task.agent))
    spec.compiler.settotalmass = -1  # deprecated, and not needed for drawing
    for element in (*spec.lights, *spec.materials, *spec.textures):
        spec.delete(element)
    for body in spec.bodies:
        depth, ancestor = 0, body
        while ancestor.parent is not None and ancestor.parent.name != "world":
            ancestor, depth = ancestor.parent, depth + 1
        for geom in body.geoms:
            geom.material = ""
            geom.rgba = (*_SHADES[depth % len(_SHADES)], 1.0)
    return spec


def _add_floor_and_sky(spec: mujoco.MjSpec) -> None:
    texture, builtin = mujoco.mjtTexture, mujoco.mjtBuiltin
    gradient = {"type": texture.mjTEXTURE_SKYBOX, "builtin": builtin.mjBUILTIN_GRADIENT}
    spec.add_texture(name="sky", **gradient, rgb1=_SKY[0], rgb2=_SKY[1], width=256, height=256 * 6)
    checker = {"type": texture.mjTEXTURE_2D, "builtin": builtin.mjBUILTIN_CHECKER}
    spec.add_texture(name="tiles", **checker, rgb1=_TILES[0], rgb2=_TILES[1], width=256, height=256)
    floor = spec.add_material(name="floor", texrepeat=(1.0, 1.0), texuniform=True, specular=0.05, shininess=0.1)
    floor.textures[mujoco.mjtTextureRole.mjTEXROLE_RGB] = "tiles"
    spec.add_material(name="robot", specular=0.35, shininess=0.55)
    for geom in spec.geoms:
        if geom.type == mujoco.mjtGeom.mjGEOM_PLANE:
            geom.material, geom.rgba, geom.size = "floor", (1.0, 1.0, 1.0, 1.0), (0.0, 0.0, 0.1)
        else:
            geom.material = "robot"


def _add_light(spec: mujoco.MjSpec, moving: bool) -> None:
    """Add the headlight and a sun, which follows a robot that moves far."""
    body = spec.worldbody.first_body() if moving else spec.worldbody
    modes = mujoco.mjtCamLight
    body.add_light(
        name="sun", mode=modes.mjCAMLIGHT_TRACKCOM if moving else modes.mjCAMLIGHT_FIXED, castshadow=True,
        type=mujoco.mjtLightType.mjLIGHT_DIRECTIONAL, pos=(-4.0, -5.0, 10.0), dir=(0.33, 0.42, -0.84),
        diffuse=(0.60, 0.59, 0.56), ambient=(0.0, 0.0, 0.0), specular=(0.25, 0.25, 0.25),
    )  # fmt: skip
    headlight = spec.visual.headlight
    headlight.ambient, headlight.diffuse = (0.36, 0.37, 0.39), (0.10, 0.10, 0.10)
    headlight.specular = (0.05, 0.05, 0.05)
    spec.visual.map.shadowclip = 4.0 if moving else 2.0  # beyond it the floor shows noise
