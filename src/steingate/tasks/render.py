"""Offscreen rendering with MuJoCo; the content of frames is in ``scene``.

EGL is tried first, then OSMesa, each in a new process, because a failed attempt cannot be undone in the process that
made it. ``MUJOCO_GL`` overrides this.
"""

from __future__ import annotations

import functools
import importlib
import os
import platform
import subprocess
import sys
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steingate.errors import InputError
from steingate.tasks.catalog import TaskSpec

try:
    import mujoco

    from steingate.tasks import scene
except (AttributeError, RuntimeError) as error:  # the import of MuJoCo fails if MUJOCO_GL is not usable
    raise InputError(
        f"MUJOCO_GL={os.environ.get('MUJOCO_GL')} does not work here: unset it to choose automatically."
    ) from error

BACKENDS = ("egl", "osmesa")
_DISABLED = ("disable", "disabled", "off", "false", "0")
_PROBE = """
import importlib, mujoco, sys
context = importlib.import_module("mujoco." + sys.argv[1]).GLContext(8, 8)
context.make_current()
model = mujoco.MjModel.from_xml_string("<mujoco/>")
mujoco.MjrContext(model, mujoco.mjtFontScale.mjFONTSCALE_100).free()
print("works")
"""
_PROBE_SECONDS = 60
_DISPLAY = "display"  # the graphics library of the desktop
_MAX_SHAPES = 4000
_GEOMS = {
    "sphere": mujoco.mjtGeom.mjGEOM_SPHERE,
    "cylinder": mujoco.mjtGeom.mjGEOM_CYLINDER,
    "box": mujoco.mjtGeom.mjGEOM_BOX,
}


@functools.cache
def works(backend: str) -> bool:
    """Return whether a graphics library can draw on this machine; tried in a new process."""
    environment = {**os.environ, "MUJOCO_GL": backend, "PYOPENGL_PLATFORM": backend}
    command = [sys.executable, "-P", "-c", _PROBE, backend]  # -P: not from the working directory
    try:
        done = subprocess.run(
            command, env=environment, capture_output=True, timeout=_PROBE_SECONDS, check=False, text=True
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return "works" in done.stdout


def find_backend() -> str:
    """Return the graphics library that ``MUJOCO_GL`` names, else the first that works."""
    chosen = os.environ.get("MUJOCO_GL", "").lower().strip()
    if chosen in _DISABLED:
        raise InputError(f"Rendering is disabled by MUJOCO_GL={chosen}: unset it to render.")
    if platform.system() != "Linux" or chosen in ("glfw", "glx"):
        return _DISPLAY
    if chosen in BACKENDS:
        if works(chosen):
            return chosen
        raise InputError(f"MUJOCO_GL={chosen} does not work here: unset it to choose automatically.")
    for backend in BACKENDS:
        if works(backend):
            return backend
    raise InputError(
        "No graphics library works without a display: install EGL (libegl1 and libgl1-mesa-dri) or OSMesa (libosmesa6)."
    )


def open_context(model: mujoco.MjModel, width: int, height: int) -> tuple[Any, mujoco.MjrContext]:
    """Return a current OpenGL context and MuJoCo's rendering context of a model; InputError if this fails."""
    backend = find_backend()
    selected = os.environ.get("PYOPENGL_PLATFORM")
    if backend in BACKENDS and (selected or "").lower() not in ("", backend):
        raise InputError(f"PYOPENGL_PLATFORM={selected} does not allow {backend}: unset it.")
    try:
        module = "mujoco.gl_context" if backend == _DISPLAY else f"mujoco.{backend}"
        gl_context = importlib.import_module(module).GLContext(width, height)
        gl_context.make_current()
        context = mujoco.MjrContext(model, mujoco.mjtFontScale.mjFONTSCALE_100)
    except (ImportError, AttributeError, RuntimeError, OSError, mujoco.FatalError) as error:
        reason = " ".join(str(error).split())
        raise InputError(f"Rendering with {backend} does not work in this process: {reason}") from error
    finally:
        if selected is None:  # MuJoCo sets it, and child processes would inherit it
            os.environ.pop("PYOPENGL_PLATFORM", None)
    mujoco.mjr_setBuffer(mujoco.mjtFramebuffer.mjFB_OFFSCREEN, context)
    return gl_context, context


class Renderer:
    """Renderer of an environment with ``task`` and ``scene(index)``; it does not change the simulations.

    By default ``width``, ``height`` (pixels) and ``camera`` ("fixed" or "track") are the environment's.
    """

    def __init__(
        self, env: Any, *, width: int | None = None, height: int | None = None, camera: scene.Camera | None = None
    ) -> None:
        self._gl_context: Any = None
        self._context: Any = None
        self.env = env
        self.width = width or getattr(env, "width", None) or 480
        self.height = height or getattr(env, "height", None) or 480
        self.camera: scene.Camera = camera or getattr(env, "camera", None) or "fixed"
        if min(self.width, self.height) < 16:
            raise InputError(f"A frame of {self.width} x {self.height} is too small: use at least 16 x 16.")
        if self.camera not in ("fixed", "track"):
            raise InputError(f"There is no camera {self.camera!r}: choose 'fixed' or 'track'.")
        self.model, self._robot = scene.render_model(env.task, self.width, self.height)
        self._gl_context, self._context = open_context(self.model, self.width, self.height)
        self._colors = self.model.geom_rgba.copy()
        self._data = mujoco.MjData(self.model)
        self._scene = mujoco.MjvScene(self.model, _MAX_SHAPES)
        self._options = mujoco.MjvOption()
        # The first frame of a context differs from all later ones in the last bit of some pixels.
        self._set_view(scene.camera_view(env.task, self.camera, np.zeros(3)))
        self._read_pixels()

    def frame(self, index: int = 0) -> NDArray[np.uint8]:
        """Return a frame (height, width, 3) of one simulation."""
        if self._context is None:
            raise InputError("This renderer is closed: make a new one.")
        count = getattr(self.env, "num_envs", index + 1)
        if not 0 <= index < count:
            raise InputError(f"There is no environment {index}: they are numbered 0 to {count - 1}.")
        task, state = self.env.task, self.env.scene(index)
        self._set_state(task, state)
        root = self._data.xpos[1]
        axis = self._data.xmat[1].reshape(3, 3)[:, 0]
        self._set_view(scene.camera_view(task, self.camera, root))
        for shape in scene.shapes(task, state, root, float(np.arctan2(axis[1], axis[0]))):
            self._add(shape)
        return self._read_pixels()

    def close(self) -> None:
        """Release the graphics memory; closing twice has no effect."""
        if self._context is not None:
            self._gl_context.make_current()
            self._context.free()
            self._context = None
        if self._gl_context is not None:
            self._gl_context.free()
            self._gl_context = None

    def __enter__(self) -> Renderer:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _set_state(self, task: TaskSpec, state: scene.State) -> None:
        """Set poses of robot and vases; the robot is red at a step with cost."""
        self.model.geom_rgba[:] = self._colors
        if float(state["cost"]) > 0:
            self.model.geom_rgba[self._robot, :3] = scene.RED
        self._data.qpos[:] = scene.model_qpos(task, state)
        mujoco.mj_kinematics(self.model, self._data)
        mujoco.mj_comPos(self.model, self._data)
        mujoco.mj_camlight(self.model, self._data)

    def _set_view(self, view: scene.View) -> None:
        """Fill MuJoCo's scene with the model as seen by a camera."""
        camera = mujoco.MjvCamera()
        camera.type = mujoco.mjtCamera.mjCAMERA_FREE
        camera.lookat[:] = view.target
        camera.distance, camera.azimuth, camera.elevation = view.distance, view.azimuth, view.elevation
        every = mujoco.mjtCatBit.mjCAT_ALL
        mujoco.mjv_updateScene(self.model, self._data, self._options, None, camera, every, self._scene)

    def _add(self, shape: scene.Shape) -> None:
        """Add a shape to MuJoCo's scene."""
        if self._scene.ngeom >= self._scene.maxgeom:
            raise InputError(f"The frame has more than {_MAX_SHAPES} shapes.")
        geom = self._scene.geoms[self._scene.ngeom]
        size, position = np.array(shape.size, np.float64), np.array(shape.position, np.float64)
        rgba = np.array(shape.rgba, np.float32)
        mujoco.mjv_initGeom(geom, _GEOMS[shape.kind], size, position, np.eye(3).ravel(), rgba)
        geom.transparent = shape.rgba[3] < 1
        if shape.decor:
            geom.category = mujoco.mjtCatBit.mjCAT_DECOR  # throws no shadow
        self._scene.ngeom += 1

    def _read_pixels(self) -> NDArray[np.uint8]:
        """Draw the scene and return its pixels."""
        self._gl_context.make_current()
        mujoco.mjr_setBuffer(mujoco.mjtFramebuffer.mjFB_OFFSCREEN, self._context)
        area = mujoco.MjrRect(0, 0, self.width, self.height)
        pixels = np.empty((self.height, self.width, 3), dtype=np.uint8)
        mujoco.mjr_render(area, self._scene, self._context)
        mujoco.mjr_readPixels(pixels, None, area, self._context)
        return np.ascontiguousarray(pixels[::-1])
