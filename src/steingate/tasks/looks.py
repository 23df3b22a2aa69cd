"""The look of the pictures: the model of robot and vases with light, sky, floor and colors."""

from pathlib import Path

import gymnasium
import mujoco
import numpy as np
from numpy.typing import NDArray

from steingate.tasks.catalog import TaskSpec
from steingate.tasks.models import world_xml
from steingate.tasks.scene import KINDS, SLATE

_SKY = ((0.97, 0.98, 0.99), (0.70, 0.79, 0.88))
_TILES = ((0.93, 0.93, 0.92), (0.88, 0.885, 0.885))
_LIGHT = ((-4.0, -5.0, 10.0), (0.33, 0.42, -0.84))  # from, towards
_SHADES = (SLATE, (0.27, 0.40, 0.53), (0.36, 0.53, 0.66))
_ACCENT = (0.93, 0.93, 0.95)
_ACCENTS = ("pointarrow", "left", "right", "rear", "front_bumper")


def picture_model(task: TaskSpec, width: int, height: int) -> tuple[mujoco.MjModel, NDArray[np.int64]]:
    """Return the model a task is drawn with, and which of its geoms are the robot's.

    Its state is the robot's and then the vases', as the simulated model has them; physics is of no account
    here.
    """
    spec = _robot_file(task) if task.family == "velocity" else _navigation(task)
    _furnish(spec, task, width, height)
    model = spec.compile()
    vases = [g for g in range(model.ngeom) if model.geom(g).name.startswith("vase")]
    robot = [g for g in range(model.ngeom) if model.geom_bodyid[g] != 0 and g not in vases]
    return model, np.array(robot)


def _navigation(task: TaskSpec) -> mujoco.MjSpec:
    """Return the world of the Point or the Car with its colors."""
    spec = mujoco.MjSpec.from_string(world_xml(task, task.count("vases")))
    for geom in spec.geoms:
        if geom.name.startswith("vase"):
            geom.rgba = (*KINDS["vases"], 1.0)
        else:
            geom.rgba = (*(_ACCENT if geom.name in _ACCENTS else SLATE), 1.0)
    return spec


def _robot_file(task: TaskSpec) -> mujoco.MjSpec:
    """Return the robot of a velocity task from Gymnasium's files, with its own colors taken off."""
    path = Path(gymnasium.__file__).parent / "envs" / "mujoco" / "assets" / f"{task.agent}.xml"
    spec = mujoco.MjSpec.from_file(str(path))
    spec.compiler.settotalmass = -1  # deprecated, and masses do not show
    for light in list(spec.lights):
        spec.delete(light)
    for material in list(spec.materials):
        spec.delete(material)
    for texture in list(spec.textures):
        spec.delete(texture)
    for body in spec.bodies:
        for geom in body.geoms:
            geom.material = ""
            geom.rgba = (*_SHADES[_depth(body) % len(_SHADES)], 1.0)
    return spec


def _depth(body: mujoco.MjsBody) -> int:
    """Return how many joints deep a body hangs on the robot, so that neighbors differ in shade."""
    depth = 0
    while body.parent is not None and body.parent.name != "world":
        body, depth = body.parent, depth + 1
    return depth


def _furnish(spec: mujoco.MjSpec, task: TaskSpec, width: int, height: int) -> None:
    """Add floor, sky and light to a model, and make room for the picture."""
    spec.add_texture(
        name="sky",
        type=mujoco.mjtTexture.mjTEXTURE_SKYBOX,
        builtin=mujoco.mjtBuiltin.mjBUILTIN_GRADIENT,
        rgb1=_SKY[0],
        rgb2=_SKY[1],
        width=256,
        height=256 * 6,
    )
    spec.add_texture(
        name="tiles",
        type=mujoco.mjtTexture.mjTEXTURE_2D,
        builtin=mujoco.mjtBuiltin.mjBUILTIN_CHECKER,
        rgb1=_TILES[0],
        rgb2=_TILES[1],
        width=256,
        height=256,
    )
    floor = spec.add_material(
        name="floor", texrepeat=(1.0, 1.0), texuniform=True, specular=0.05, shininess=0.1
    )
    floor.textures[mujoco.mjtTextureRole.mjTEXROLE_RGB] = "tiles"
    spec.add_material(name="robot", specular=0.35, shininess=0.55)
    for geom in spec.geoms:
        if geom.type == mujoco.mjtGeom.mjGEOM_PLANE:
            geom.material, geom.rgba, geom.size = "floor", (1.0, 1.0, 1.0, 1.0), (0.0, 0.0, 0.1)
        else:
            geom.material = "robot"
    moving = task.family == "velocity"
    body = spec.worldbody.first_body() if moving else spec.worldbody
    body.add_light(
        name="sun",
        mode=mujoco.mjtCamLight.mjCAMLIGHT_TRACKCOM if moving else mujoco.mjtCamLight.mjCAMLIGHT_FIXED,
        type=mujoco.mjtLightType.mjLIGHT_DIRECTIONAL,
        pos=_LIGHT[0],
        dir=_LIGHT[1],
        diffuse=(0.60, 0.59, 0.56),
        ambient=(0.0, 0.0, 0.0),
        specular=(0.25, 0.25, 0.25),
        castshadow=True,
    )
    visual = spec.visual
    visual.headlight.ambient = (0.36, 0.37, 0.39)
    visual.headlight.diffuse = (0.10, 0.10, 0.10)
    visual.headlight.specular = (0.05, 0.05, 0.05)
    # Without a graphics card all of this is computed: four samples a point, shadows of twice the size and
    # finer spheres take four times as long, and show as little more than softer edges.
    visual.quality.shadowsize = 1024
    visual.quality.offsamples = 0
    visual.quality.numslices, visual.quality.numstacks = 28, 8
    visual.map.znear, visual.map.zfar = 0.1, 15.0
    visual.map.haze = 0.35
    visual.map.shadowclip = 4.0 if moving else 2.0  # what lies beyond shows as noise on the floor
    visual.rgba.haze = (*_SKY[0], 1.0)
    visual.global_.offwidth, visual.global_.offheight = width, height
    spec.stat.extent, spec.stat.center = 3.0, (0.0, 0.0, 0.3)
