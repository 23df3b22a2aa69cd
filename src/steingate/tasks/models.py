"""The Point's and the Car's worlds as MJCF text, with the engine options that repeat the original's results.

Only what can touch or be touched is in a world: floor, agent, vases. Goals, hazards, circle and walls have no
contacts and live in arrays. The agent's and the vases' poses are state, so one compiled model serves every
layout.
"""

from __future__ import annotations

import functools
import itertools

import mujoco
import numpy as np
import numpy.typing as npt

from steingate.tasks.catalog import GOAL_RADIUS, HAZARD_RADIUS, VASE_HALF, VASE_HEIGHT, TaskSpec

# qpos, qvel entries of the agent
STATE_SIZE = {"point": (3, 3), "car": (13, 11)}

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

# the wheels are given by their end points: a rounded quaternion would tilt them
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

_AGENTS = {"point": (_POINT, _POINT_ACTUATORS, 1.0), "car": (_CAR, _CAR_ACTUATORS, 5.0)}

_WORLD = """
<mujoco model="{agent}">
  <compiler angle="radian"/>
  <option timestep="{timestep}" magnetic="0 -0.5 0" {accuracy}>
    <flag {flags}/>
  </option>
  <default>
    <geom condim="6" density="{density}" friction="1 0.005 0.0001"/>
    <joint damping="0.001"/>
  </default>
  <worldbody>
    <geom name="floor" type="plane" size="3.5 3.5 0.1"/>{body}{vases}{ghosts}
  </worldbody>
  <contact>{pairs}
  </contact>
  <actuator>{actuators}
  </actuator>
  <sensor>{sensors}
  </sensor>
</mujoco>"""

# The engine's solver stops earlier than the one the tasks were designed on, and its convex collision differs;
# this tolerance and the first two flags bring the old results back at no cost. Without islands and warm
# starts the engine is faster on so few bodies, and at this tolerance they change nothing.
_ACCURACY = 'tolerance="1e-14"'
_FLAGS = 'nativeccd="disable" multiccd="disable" island="disable" warmstart="disable"'

# The engine now reports the full depth of box against box where it used to report half of it. Half the
# stiffness over twice the depth is the old force.
_BOXES = {
    "point": ("pointarrow",),
    "car": ("agent", "back_bumper", "back_connector", "front_bumper", "front_connector"),
}
_PAIR = (
    '\n    <pair geom1="{}" geom2="{}" condim="6" friction="1 1 0.005 0.0001 0.0001" solref="-1250 -100"'
    ' solimp="0.9 0.95 0.002 0.5 2"/>'
)


def _vases(count: int) -> str:
    """Return the bodies of the vases, parked in a row: their places are state."""
    body = (
        '\n    <body name="vase{i}" pos="{x} 5 {z}"><freejoint name="vase{i}"/>'
        '<geom name="vase{i}" type="box" size="{h} {h} {h}" density="0.001"/></body>'
    )
    return "".join(body.format(i=i, x=i, z=VASE_HEIGHT, h=VASE_HALF) for i in range(count))


def _box_pairs(agent: str, count: int) -> str:
    """Return the contact parameters of every pair of boxes that can meet."""
    vases = [f"vase{i}" for i in range(count)]
    pairs = [*itertools.product(_BOXES[agent], vases), *itertools.combinations(vases, 2)]
    return "".join(_PAIR.format(*pair) for pair in pairs)


def _contact_sensors(count: int) -> str:
    """Return one sensor per vase that is positive when the agent touches it."""
    sensor = '\n    <contact name="touch{i}" subtree1="agent" body2="vase{i}" data="found"/>'
    return "".join(sensor.format(i=i) for i in range(count))


def _ghosts(spec: TaskSpec) -> str:
    """Return the bodies without contacts, which the tasks themselves do not need (benchmark, pictures)."""
    shapes = {
        "goal": (f'type="cylinder" size="{GOAL_RADIUS} {GOAL_RADIUS / 2}"', GOAL_RADIUS / 2 + 0.01),
        "hazards": (f'type="cylinder" size="{HAZARD_RADIUS} 0.01"', 0.02),
        "circle": ('type="cylinder" size="1.5 0.01"', 0.01),
        "sigwalls": ('type="box" size="0.05 3.5 0.3"', 0.25),
    }
    text = ""
    for kind in spec.objects:
        if kind.kind not in shapes:
            continue
        shape, height = shapes[kind.kind]
        for i in range(kind.count):
            x, y = kind.fixed[i] if kind.fixed else (0.0, 0.0)
            turn = "1.5707963267948966" if kind.kind == "sigwalls" and x == 0.0 else "0"
            text += (
                f'\n    <body name="{kind.kind}{i}" pos="{x} {y} {height}" euler="0 0 {turn}">'
                f'<geom name="{kind.kind}{i}" {shape} contype="0" conaffinity="0"/></body>'
            )
    return text


def world_xml(spec: TaskSpec, vases: int, *, ghosts: bool = False, original_options: bool = False) -> str:
    """Return the MJCF text of a navigation world.

    Parameters
    ----------
    spec : TaskSpec
        A Goal or Circle task.
    vases : int
        Number of vases among the free bodies.
    ghosts : bool
        Include goal, hazards, circle and walls as bodies without contacts.
    original_options : bool
        Leave tolerance, collision flags and contact pairs at the engine's defaults, as the original does.
    """
    body, actuators, density = _AGENTS[spec.agent]
    return _WORLD.format(
        agent=spec.agent,
        timestep=spec.timestep,
        accuracy="" if original_options else _ACCURACY,
        flags="" if original_options else _FLAGS,
        density=density,
        body=body,
        vases=_vases(vases),
        ghosts=_ghosts(spec) if ghosts else "",
        pairs="" if original_options else _box_pairs(spec.agent, vases),
        actuators=actuators,
        sensors=_contact_sensors(vases) if "cost_vases_contact" in spec.cost_parts else "",
    )


@functools.lru_cache(maxsize=64)
def compile_world(spec: TaskSpec, vases: int) -> mujoco.MjModel:
    """Return the compiled navigation world with some vases; the same object for the same arguments.

    Parameters
    ----------
    spec : TaskSpec
        A Goal or Circle task.
    vases : int
        Number of vases among the free bodies.
    """
    return mujoco.MjModel.from_xml_string(world_xml(spec, vases))


_SETTLING_STEPS = 64  # of the task; the vertical speed falls below 1e-14 well before


@functools.lru_cache(maxsize=16)
def settling_curve(spec: TaskSpec) -> npt.NDArray[np.float64]:
    """Return height and vertical speed of an untouched vase after 0, 1, 2, ... engine steps, as (T, 2).

    Parameters
    ----------
    spec : TaskSpec
        A Goal task; the time step matters.
    """
    model = compile_world(spec, 1)
    data = mujoco.MjData(model)
    curve = np.empty((_SETTLING_STEPS * spec.substeps, 2))
    for row in curve:
        row[:] = data.qpos[-5], data.qvel[-4]
        mujoco.mj_step(model, data)
    curve[-1, 1] = 0.0
    return curve
