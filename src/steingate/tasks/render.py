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

import mujoco
import numpy as np
from numpy.typing import NDArray

from steingate.errors import InputError
from steingate.tasks import scene
from steingate.tasks.catalog import TaskSpec

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
        done = subprocess.run(command, env=environment, capture_output=True, timeout=_PROBE_SECONDS, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return b"works" in done.stdout


def find_backend() -> str:
    """Return the graphics library that ``MUJOCO_GL`` names, else the first that works."""
    chosen = os.environ.get("MUJOCO_GL", "").lower().strip()
    if chosen in _DISABLED:
        raise InputError(f"Rendering is disabled by MUJOCO_GL={chosen}: unset it to render.")
    if platform.system() != "Linux" or chosen in ("glfw", "glx"):
        return _DISPLAY
    for backend in (chosen,) if chosen else BACKENDS:
        if works(backend):
            return backend
    if chosen:
        raise InputError(f"MUJOCO_GL={chosen} does not work here: unset it to choose automatically.")
    raise InputError(
        "No graphics library works without a display: install EGL (libegl1 and libgl1-mesa-dri) or OSMesa (libosmesa6)."
    )


def open_context(model: mujoco.MjModel, width: int, height: int) -> tuple[Any, mujoco.MjrContext]:
    """Return a current OpenGL context and MuJoCo's rendering context of a model; InputError if this fails."""
    backend = find_backend()
    platform_before = os.environ.get("PYOPENGL_PLATFORM")
    try:
        module = "mujoco.gl_context" if backend == _DISPLAY else f"mujoco.{backend}"
        gl_context = importlib.import_module(module).GLContext(width, height)
        gl_context.make_current()
        context = mujoco.MjrContext(model, mujoco.mjtFontScale.mjFONTSCALE_100)
    except (ImportError, AttributeError, RuntimeError, OSError, mujoco.FatalError) as error:
        reason = " ".join(str(error).split())
        raise InputError(f"Rendering with {backend} does not work in this process: {reason}") from error
    finally:
        if platform_before is None:  # MuJoCo sets it, and child processes would inherit it
            os.environ.pop("PYOPENGL_PLATFORM", None)
    return gl_context, context


class Renderer:
    """Renderer of one task: frames of ``width`` x ``height`` pixels, from the camera "fixed" or "track"."""

    def __init__(self, task: TaskSpec, width: int = 480, height: int = 480, camera: scene.Camera = "fixed") -> None:
        if min(width, height) < 16:
            raise InputError(f"A frame of {width} x {height} is too small: use at least 16 x 16.")
        self.task, self.width, self.height, self.camera = task, width, height, camera
        self.model, self._robot = scene.render_model(task, width, height)
        self._gl_context, self._context = open_context(self.model, width, height)
        self._colors = self.model.geom_rgba.copy()
        self._data = mujoco.MjData(self.model)
        self._scene = mujoco.MjvScene(self.model, _MAX_SHAPES)
        # The first frame of a context differs from all later ones in the last bit of some pixels.
        self._set_view(np.zeros(3))
        self._read_pixels()

    def frame(self, state: scene.State) -> NDArray[np.uint8]:
        """Return the frame (height, width, 3) of a state, see ``scene``; the robot is red at a step with cost."""
        self.model.geom_rgba[:] = self._colors
        if float(state["cost"]) > 0:
            self.model.geom_rgba[self._robot, :3] = scene.RED
        self._data.qpos[:] = scene.model_qpos(self.task, state)
        mujoco.mj_kinematics(self.model, self._data)
        mujoco.mj_comPos(self.model, self._data)
        mujoco.mj_camlight(self.model, self._data)
        root, axis = self._data.xpos[1], self._data.xmat[1].reshape(3, 3)[:, 0]
        self._set_view(root)
        for shape in scene.shapes(self.task, state, root, float(np.arctan2(axis[1], axis[0]))):
            geom = self._scene.geoms[self._scene.ngeom]
            size, position = np.array(shape.size, np.float64), np.array(shape.position, np.float64)
            rgba = np.array(shape.rgba, np.float32)
            mujoco.mjv_initGeom(geom, _GEOMS[shape.kind], size, position, np.eye(3).ravel(), rgba)
            geom.transparent = shape.rgba[3] < 1
            if shape.decor:
                geom.category = mujoco.mjtCatBit.mjCAT_DECOR  # throws no shadow
            self._scene.ngeom += 1
        return self._read_pixels()

    def close(self) -> None:
        """Release the graphics memory."""
        self._gl_context.make_current()
        self._context.free()
        self._gl_context.free()

    def _set_view(self, root: NDArray[np.float64]) -> None:
        """Fill MuJoCo's scene with the model as seen by the camera."""
        view, every = scene.camera_view(self.task, self.camera, root), mujoco.mjtCatBit.mjCAT_ALL
        mujoco.mjv_updateScene(self.model, self._data, mujoco.MjvOption(), None, view, every, self._scene)

    def _read_pixels(self) -> NDArray[np.uint8]:
        """Draw the scene and return its pixels."""
        self._gl_context.make_current()
        mujoco.mjr_setBuffer(mujoco.mjtFramebuffer.mjFB_OFFSCREEN, self._context)
        area = mujoco.MjrRect(0, 0, self.width, self.height)
        pixels = np.empty((self.height, self.width, 3), dtype=np.uint8)
        mujoco.mjr_render(area, self._scene, self._context)
        mujoco.mjr_readPixels(pixels, None, area, self._context)
        return np.ascontiguousarray(pixels[::-1])
