"""MuJoCo models of the Point's and the Car's worlds, with options that reproduce the results of the original.

A model has only what can touch or be touched: floor, agent, vases. Goals, hazards, circle and walls have no contacts
and are plain arrays. The poses of agent and vases are state, so one compiled model serves every layout.
"""

from __future__ import annotations

import functools
import itertools
from typing import Final

import mujoco
import numpy as np
import numpy.typing as npt

from steingate.tasks.catalog import VASE_HALF, VASE_HEIGHT, TaskSpec

STATE_SIZE: Final = {"point": (3, 3), "car": (13, 11)}  # entries of the agent in qpos and qvel
_SETTLING_STEPS = 64  # environment steps; the vertical speed falls below 1e-14 m/s well before

_POINT = """
    <body name="agent" pos="0 0 0.1">
      <joint name="x" type="slide" axis="1 0 0" damping="0.01"/>
      <joint name="y" type="slide" axis="0 1 0" damping="0.01"/>
      <joint name="z" type="hinge" axis="0 0 1" damping="0.005"/>
      <geom name="agent" type="sphere" size="0.1" friction="1 0.01 0.01"/>
      <geom name="pointarrow" type="box" size="0.05 0.05 0.05" pos="0.1 0 0"/>
      <site name="agent"/>
    </body>"""
_POINT_ACTUATORS = """
    <motor name="x" site="agent" gear="0.3 0 0 0 0 0" ctrlrange="-1 1" forcerange="-0.05 0.05"/>
    <velocity name="z" joint="z" gear="0.3" kv="1" ctrlrange="-1 1" forcerange="-0.05 0.05"/>"""

# Wheels are given by their end points, because a rounded quaternion would tilt them.
_CAR = """
    <body name="agent" pos="0 0 0.1">
      <freejoint name="agent"/>
      <geom name="agent" type="box" size="0.1 0.1 0.05"/>
      <geom name="back_bumper" type="box" size="0.1 0.01 0.05" pos="0 0.15 0"/>
      <geom name="back_connector" type="box" size="0.01 0.025 0.03" pos="0 0.125 0"/>
      <geom name="front_bumper" type="box" size="0.05 0.01 0.05" pos="0 -0.165 0"/>
      <geom name="front_connector" type="box" size="0.05 0.03 0.01" pos="0 -0.13 0.04"/>
      <site name="agent"/>
      <body name="left" pos="-0.1 0.1 -0.05">
        <joint name="left" type="hinge" axis="1 0 0"/>
        <geom name="left" type="cylinder" size="0.05" fromto="-0.055 0 0 -0.005 0 0"/>
      </body>
      <body name="right" pos="0.1 0.1 -0.05">
        <joint name="right" type="hinge" axis="1 0 0"/>
        <geom name="right" type="cylinder" size="0.05" fromto="0.005 0 0 0.055 0 0"/>
      </body>
      <body name="rear" pos="0 -0.1 -0.05">
        <joint name="rear" type="ball"/>
        <geom name="rear" type="sphere" size="0.05"/>
      </body>
    </body>"""
_CAR_ACTUATORS = """
    <motor name="left" joint="left" ctrlrange="-1 1" forcerange="-0.02 0.02"/>
    <motor name="right" joint="right" ctrlrange="-1 1" forcerange="-0.02 0.02"/>"""

_AGENTS = {"point": (_POINT, _POINT_ACTUATORS, 1.0), "car": (_CAR, _CAR_ACTUATORS, 5.0)}  # with geom density

# MuJoCo's solver now stops earlier than the version of the original tasks, and its convex collision differs: the
# tolerance and the first two flags restore the original results at no cost. Islands and warm starts slow down so few
# bodies, and change nothing at this tolerance.
_WORLD = """
<mujoco model="{agent}">
  <compiler angle="radian"/>
  <option timestep="{timestep}" magnetic="0 -0.5 0" tolerance="1e-14">
    <flag nativeccd="disable" multiccd="disable" island="disable" warmstart="disable"/>
  </option>
  <default>
    <geom condim="6" density="{density}" friction="1 0.005 0.0001"/>
    <joint damping="0.001"/>
  </default>
  <worldbody>
    <geom name="floor" type="plane" size="3.5 3.5 0.1"/>{body}{vases}
  </worldbody>
  <contact>{pairs}
  </contact>
  <actuator>{actuators}
  </actuator>
  <sensor>{sensors}
  </sensor>
</mujoco>"""
_VASE = f"""
    <body name="vase{{i}}" pos="{{i}} 5 {VASE_HEIGHT}">
      <freejoint name="vase{{i}}"/>
      <geom name="vase{{i}}" type="box" size="{VASE_HALF} {VASE_HALF} {VASE_HALF}" density="0.001"/>
    </body>"""
_TOUCH_SENSOR = '\n    <contact name="touch{i}" subtree1="agent" body2="vase{i}" data="found"/>'

# MuJoCo now reports the full depth of box against box, not half of it; half the stiffness restores the force.
_BOXES = {
    "point": ("pointarrow",),
    "car": ("agent", "back_bumper", "back_connector", "front_bumper", "front_connector"),
}
_PAIR = (
    '\n    <pair geom1="{}" geom2="{}" condim="6" friction="1 1 0.005 0.0001 0.0001" solref="-1250 -100"'
    ' solimp="0.9 0.95 0.002 0.5 2"/>'
)


def world_xml(task: TaskSpec, vases: int) -> str:
    """Return the MJCF text of a Goal or Circle task with some vases, which are parked in a row."""
    body, actuators, density = _AGENTS[task.agent]
    names = [f"vase{i}" for i in range(vases)]
    pairs = [*itertools.product(_BOXES[task.agent], names), *itertools.combinations(names, 2)]
    touch = _TOUCH_SENSOR if "cost_vases_contact" in task.cost_parts else ""
    return _WORLD.format(
        agent=task.agent, timestep=task.timestep, density=density, body=body,
        vases="".join(_VASE.format(i=i) for i in range(vases)), pairs="".join(_PAIR.format(*pair) for pair in pairs),
        actuators=actuators, sensors="".join(touch.format(i=i) for i in range(vases)),
    )  # fmt: skip


@functools.lru_cache(maxsize=64)
def compile_world(task: TaskSpec, vases: int) -> mujoco.MjModel:
    """Return the compiled model of a Goal or Circle task with some vases; cached."""
    return mujoco.MjModel.from_xml_string(world_xml(task, vases))


@functools.lru_cache(maxsize=16)
def settling_curve(task: TaskSpec) -> npt.NDArray[np.float64]:
    """Return height and vertical speed (T, 2) of an untouched vase after 0, 1, 2, ... MuJoCo steps."""
    model = compile_world(task, 1)
    data = mujoco.MjData(model)
    curve = np.empty((_SETTLING_STEPS * task.substeps, 2))
    for row in curve:
        row[:] = data.qpos[-5], data.qvel[-4]
        mujoco.mj_step(model, data)
    curve[-1, 1] = 0.0
    return curve
