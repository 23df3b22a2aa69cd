"""Pictures without a display: the graphics library is chosen here, the picture is drawn from ``scene``.

EGL is tried first, then OSMesa, each in a process of its own, because a failed attempt cannot be undone in
the process that made it. ``MUJOCO_GL`` is respected if it is set.
"""

import functools
import importlib
import os
import platform
import subprocess
import sys
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from steingate.errors import InputError
from steingate.tasks.catalog import TaskSpec

try:
    import mujoco

    from steingate.tasks import scene
    from steingate.tasks.looks import picture_model
except (AttributeError, RuntimeError) as broken:  # MuJoCo's own import trips over what MUJOCO_GL names
    raise InputError(
        f"MUJOCO_GL={os.environ.get('MUJOCO_GL')} does not work here: unset it, and what works is chosen."
    ) from broken

BACKENDS = ("egl", "osmesa")
_OFF = ("disable", "disabled", "off", "false", "0")
_PROBE = (
    "import importlib, mujoco, sys\n"
    "context = importlib.import_module('mujoco.' + sys.argv[1]).GLContext(8, 8)\n"
    "context.make_current()\n"
    "model = mujoco.MjModel.from_xml_string('<mujoco/>')\n"
    "mujoco.MjrContext(model, mujoco.mjtFontScale.mjFONTSCALE_100).free()\n"
    "print('works')\n"
)
_PROBE_SECONDS = 60
_NAMES = {"own": "the display's library"}
_MAX_SHAPES = 4000
_KINDS = {
    "sphere": mujoco.mjtGeom.mjGEOM_SPHERE,
    "cylinder": mujoco.mjtGeom.mjGEOM_CYLINDER,
    "box": mujoco.mjtGeom.mjGEOM_BOX,
    "capsule": mujoco.mjtGeom.mjGEOM_CAPSULE,
}


class Drawable(Protocol):
    """What the renderer asks of an environment; see ``scene`` for the mapping."""

    task: TaskSpec

    def scene(self, index: int) -> scene.State:
        """Return the state of one simulation."""


@functools.cache
def works(backend: str) -> bool:
    """Return whether a graphics library can draw here, found out by drawing in another process."""
    environment = {**os.environ, "MUJOCO_GL": backend, "PYOPENGL_PLATFORM": backend}
    command = [sys.executable, "-c", _PROBE, backend]
    try:
        done = subprocess.run(
            command, env=environment, capture_output=True, timeout=_PROBE_SECONDS, check=False, text=True
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return "works" in done.stdout


def find_backend() -> str:
    """Return the graphics library to draw with: the one ``MUJOCO_GL`` names, else the first that works.

    Raises
    ------
    InputError
        If drawing is switched off or nothing works.
    """
    chosen = os.environ.get("MUJOCO_GL", "").lower().strip()
    if chosen in _OFF:
        raise InputError(f"Rendering is switched off by MUJOCO_GL={chosen}: unset it to draw.")
    if platform.system() != "Linux":
        return "own"
    if chosen in BACKENDS:
        if works(chosen):
            return chosen
        raise InputError(f"MUJOCO_GL={chosen} does not work here: unset it, and what works is chosen.")
    if chosen in ("glfw", "glx"):
        return "own"
    for backend in BACKENDS:
        if works(backend):
            return backend
    raise InputError(
        "Nothing here can render without a display: "
        "install EGL (libegl1 and libgl1-mesa-dri) or OSMesa (libosmesa6)."
    )


def open_canvas(model: mujoco.MjModel, width: int, height: int) -> tuple[Any, mujoco.MjrContext]:
    """Return a current OpenGL context and the canvas of a model in it.

    Raises
    ------
    InputError
        If this process cannot draw; the sentence says what stands in the way.
    """
    backend = find_backend()
    platform_set = os.environ.get("PYOPENGL_PLATFORM", "").lower()
    if backend in BACKENDS and platform_set not in ("", backend):
        raise InputError(f"PYOPENGL_PLATFORM={platform_set} keeps {backend} from rendering: unset it.")
    before = os.environ.get("PYOPENGL_PLATFORM")
    try:
        module = importlib.import_module("mujoco.gl_context" if backend == "own" else f"mujoco.{backend}")
        context = module.GLContext(width, height)
        context.make_current()
        canvas = mujoco.MjrContext(model, mujoco.mjtFontScale.mjFONTSCALE_100)
    except (ImportError, AttributeError, RuntimeError, OSError, mujoco.FatalError) as error:
        reason = " ".join(str(error).split())
        raise InputError(
            f"Rendering by {_NAMES.get(backend, backend)} does not work in this process: {reason}"
        ) from error
    finally:
        if before is None:  # MuJoCo sets it, and other processes started from here would inherit it
            os.environ.pop("PYOPENGL_PLATFORM", None)
    mujoco.mjr_setBuffer(mujoco.mjtFramebuffer.mjFB_OFFSCREEN, canvas)
    return context, canvas


class Renderer:
    """Draws any simulation of a batch; nothing it does reaches the simulation.

    Parameters
    ----------
    env : environment with ``task`` and ``scene(i)``
    width, height : size of the picture in pixels; by default the environment's ``width`` and ``height``
    camera : "fixed" or "track"; by default the environment's ``camera``
    """

    def __init__(
        self,
        env: Drawable,
        *,
        width: int | None = None,
        height: int | None = None,
        camera: scene.Camera | None = None,
    ) -> None:
        self._context: Any = None
        self._canvas: Any = None
        self.env = env
        self.width = width or getattr(env, "width", None) or 480
        self.height = height or getattr(env, "height", None) or 480
        self.camera: scene.Camera = camera or getattr(env, "camera", None) or "fixed"
        if min(self.width, self.height) < 16:
            raise InputError(f"A picture of {self.width} x {self.height} is too small: 16 x 16 is the least.")
        if self.camera not in ("fixed", "track"):
            raise InputError(f"There is no camera {self.camera!r}: choose 'fixed' or 'track'.")
        self.model, self._robot = picture_model(env.task, self.width, self.height)
        self._context, self._canvas = open_canvas(self.model, self.width, self.height)
        self._colors = self.model.geom_rgba.copy()
        self._data = mujoco.MjData(self.model)
        self._scene = mujoco.MjvScene(self.model, _MAX_SHAPES)
        self._options = mujoco.MjvOption()
        # The first picture on a canvas differs from all later ones in the last bit of some pixels.
        self._look(scene.view(env.task, self.camera, np.zeros(3)))
        self._read()

    def frame(self, index: int = 0) -> NDArray[np.uint8]:
        """Return a picture of one simulation: (height, width, 3) in RGB."""
        if self._canvas is None:
            raise InputError("This renderer is closed: make another one.")
        count = getattr(self.env, "num_envs", index + 1)
        if not 0 <= index < count:
            raise InputError(f"There is no environment {index} to draw: they are numbered 0 to {count - 1}.")
        task, state = self.env.task, self.env.scene(index)
        self._pose(task, state)
        root = self._data.xpos[1]
        axis = self._data.xmat[1].reshape(3, 3)[:, 0]
        self._look(scene.view(task, self.camera, root))
        for shape in scene.shapes(task, state, root, float(np.arctan2(axis[1], axis[0]))):
            self._add(shape)
        return self._read()

    def close(self) -> None:
        """Let go of the graphics memory."""
        if self._canvas is not None:
            self._context.make_current()
            self._canvas.free()
            self._canvas = None
        if self._context is not None:
            self._context.free()
            self._context = None

    def __enter__(self) -> "Renderer":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _pose(self, task: TaskSpec, state: scene.State) -> None:
        """Put robot and vases where the simulation has them, and color the robot by its cost."""
        self.model.geom_rgba[:] = self._colors
        if float(state["cost"]) > 0:
            self.model.geom_rgba[self._robot, :3] = scene.RED
        self._data.qpos[:] = scene.pose(task, state)
        mujoco.mj_kinematics(self.model, self._data)
        mujoco.mj_comPos(self.model, self._data)
        mujoco.mj_camlight(self.model, self._data)

    def _look(self, view: scene.View) -> None:
        """Fill the scene with the model as seen from a view."""
        camera = mujoco.MjvCamera()
        camera.type = mujoco.mjtCamera.mjCAMERA_FREE
        camera.lookat[:] = view.target
        camera.distance, camera.azimuth, camera.elevation = view.distance, view.azimuth, view.elevation
        every = mujoco.mjtCatBit.mjCAT_ALL
        mujoco.mjv_updateScene(self.model, self._data, self._options, None, camera, every, self._scene)

    def _add(self, shape: scene.Shape) -> None:
        """Add one shape to the scene."""
        if self._scene.ngeom >= self._scene.maxgeom:
            raise InputError(f"The picture has more than {_MAX_SHAPES} shapes.")
        geom = self._scene.geoms[self._scene.ngeom]
        mujoco.mjv_initGeom(
            geom,
            _KINDS[shape.kind],
            np.array(shape.size, dtype=np.float64),
            np.array(shape.position, dtype=np.float64),
            np.ravel(shape.axes).astype(np.float64),
            np.array(shape.rgba, dtype=np.float32),
        )
        geom.transparent = shape.rgba[3] < 1
        if shape.decor:
            geom.category = mujoco.mjtCatBit.mjCAT_DECOR  # throws no shadow
        self._scene.ngeom += 1

    def _read(self) -> NDArray[np.uint8]:
        """Draw the scene and read its pixels."""
        self._context.make_current()
        mujoco.mjr_setBuffer(mujoco.mjtFramebuffer.mjFB_OFFSCREEN, self._canvas)
        area = mujoco.MjrRect(0, 0, self.width, self.height)
        pixels = np.empty((self.height, self.width, 3), dtype=np.uint8)
        mujoco.mjr_render(area, self._scene, self._canvas)
        mujoco.mjr_readPixels(pixels, None, area, self._canvas)
        return np.ascontiguousarray(pixels[::-1])
