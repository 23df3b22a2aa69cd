"""The six robots of the velocity tasks: their models, and their rules as numbers."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal, NamedTuple

import gymnasium
import mujoco

# With the default tolerance the engine's solver now stops before it reaches the original's results.
TOLERANCE: Final = 1e-14

# Islands and warm starts cost more than they save on one robot, and at this tolerance they change nothing.
_SLOWER: Final = int(mujoco.mjtDisableBit.mjDSBL_ISLAND | mujoco.mjtDisableBit.mjDSBL_WARMSTART)

# The engine adds the margins of the two geoms of a pair, the original took the larger one: half restores it.
_MARGIN_SCALE: Final = 0.5


class Rules(NamedTuple):
    """Reward, cost, observation and termination of one robot; plain numbers, so compiled code can take it.

    Attributes
    ----------
    hidden : leading entries of qpos left out of the observation
    clip : bound on the observed velocities
    forward, alive, control : weights of forward speed, of every step, and of the squared action
    planar : cost on the planar speed, otherwise on the signed speed along x
    mortal : whether an unhealthy state ends the episode
    height : entry of qpos that must stay strictly between ``low`` and ``high``
    lean : strict bound on the entry after ``height``
    bounded : first entry of (qpos, qvel) that must stay strictly within ±``bound``; -1 for none
    """

    hidden: int
    forward: float
    alive: float
    control: float
    clip: float = math.inf
    planar: bool = False
    mortal: bool = True
    height: int = 1
    low: float = -math.inf
    high: float = math.inf
    lean: float = math.inf
    bounded: int = -1
    bound: float = math.inf


@dataclass(frozen=True)
class Robot:
    """One robot: its model file, rules and reset noise.

    Attributes
    ----------
    rules : reward, cost, observation, termination
    place : whose motion is the velocity: coordinate ``qpos[0]``, the torso body, or the center of mass
    noise_qpos, noise_qvel : half width of the uniform reset noise (``normal``: standard deviation of qvel's)
    normal : whether the noise of qvel is normal
    free : whether the root is a free joint, with a quaternion in qpos[3:7]
    inner : whether the observation goes on with inertias, body velocities, actuator and contact forces
    margin : whether the geom margins need the correction
    """

    rules: Rules
    place: Literal["root", "torso", "mass"]
    noise_qpos: float
    noise_qvel: float
    normal: bool = False
    free: bool = False
    inner: bool = False
    margin: bool = False


ROBOTS: Final[dict[str, Robot]] = {
    "half_cheetah": Robot(
        Rules(hidden=1, forward=1.0, alive=0.0, control=0.1, mortal=False),
        place="root",
        noise_qpos=0.1,
        noise_qvel=0.1,
        normal=True,
    ),
    "ant": Robot(
        Rules(
            hidden=2,
            forward=1.0,
            alive=1.0,
            control=0.5,
            planar=True,
            height=2,
            # 0.2 and 1.0 themselves are healthy, so the strict bounds lie one number outside.
            low=math.nextafter(0.2, 0.0),
            high=math.nextafter(1.0, 2.0),
            bounded=0,
        ),
        place="torso",
        noise_qpos=0.1,
        noise_qvel=0.1,
        normal=True,
        free=True,
        margin=True,
    ),
    "humanoid": Robot(
        Rules(hidden=2, forward=1.25, alive=5.0, control=0.1, planar=True, height=2, low=1.0, high=2.0),
        place="mass",
        noise_qpos=0.01,
        noise_qvel=0.01,
        free=True,
        inner=True,
        margin=True,
    ),
    "swimmer": Robot(
        Rules(hidden=2, forward=1.0, alive=0.0, control=1e-4, mortal=False),
        place="root",
        noise_qpos=0.1,
        noise_qvel=0.1,
    ),
    "hopper": Robot(
        Rules(
            hidden=1,
            forward=1.0,
            alive=1.0,
            control=1e-3,
            clip=10.0,
            low=0.7,
            lean=0.2,
            bounded=2,
            bound=100.0,
        ),
        place="root",
        noise_qpos=0.005,
        noise_qvel=0.005,
        margin=True,
    ),
    "walker2d": Robot(
        Rules(hidden=1, forward=1.0, alive=1.0, control=1e-3, clip=10.0, low=0.8, high=2.0, lean=1.0),
        place="root",
        noise_qpos=0.005,
        noise_qvel=0.005,
    ),
}


def load_robot(name: str) -> mujoco.MjModel:
    """Return the compiled model of a robot, with the corrections that current engines need.

    The files come with the installed ``gymnasium`` package.

    Parameters
    ----------
    name : str
        Key of ``ROBOTS``.
    """
    path = Path(gymnasium.__file__).parent / "envs" / "mujoco" / "assets" / f"{name}.xml"
    spec = mujoco.MjSpec.from_file(str(path))
    # The compiler's own attribute is deprecated and prints a warning; scaling afterwards gives equal masses.
    total = spec.compiler.settotalmass
    spec.compiler.settotalmass = -1
    model = spec.compile()
    if total > 0:
        mujoco.mj_setTotalmass(model, total)
        mujoco.mj_setConst(model, mujoco.MjData(model))
    model.opt.tolerance = TOLERANCE
    model.opt.disableflags |= _SLOWER
    if ROBOTS[name].margin:
        model.geom_margin[:] *= _MARGIN_SCALE
    return model
