"""Pictures without a display: chosen library, cameras, colors, and no trace in the simulation.

Where nothing can draw, every test that needs a picture checks the sentence that says so instead.
"""

import os
import subprocess
import sys

import numpy as np
import pytest

from steingate.errors import InputError
from steingate.tasks import render, scene
from steingate.tasks.catalog import TASKS
from steingate.tasks.render import Renderer
from steingate.tasks.vector import SafetyVectorEnv


class Album:
    """An environment whose simulation i stands still in state i."""

    def __init__(self, task, states):
        self.task, self.states, self.num_envs = task, states, len(states)

    def scene(self, index):
        return self.states[index]


def can_draw():
    try:
        render.find_backend()
    except InputError:
        return False
    return True


def refusal():
    """Expect the one sentence of a machine that cannot draw."""
    return pytest.raises(InputError, match=r"^[^.]*(install EGL|MUJOCO_GL)[^.]*\.$")


def pictures(env, indices=(0,), **options):
    """Return frames, or None after checking the sentence of a machine that cannot draw."""
    if not can_draw():
        with refusal():
            Renderer(env, **options)
        return None
    with Renderer(env, **options) as renderer:
        return [renderer.frame(index) for index in indices]


def batch(task="SafetyPointGoal1-v0", num_envs=3, steps=4, **options):
    env = SafetyVectorEnv(task, num_envs, threads=1, **options)
    env.reset(seed=3)
    for _ in range(steps):
        env.step(np.zeros(env.action_space.shape))
    return env


def redness(frame):
    """Return the number of plainly red pixels."""
    red, green, blue = (frame[..., c].astype(int) for c in range(3))
    return int(((red > 110) & (red > 2 * green) & (red > 2 * blue)).sum())


@pytest.mark.parametrize("camera", ["fixed", "track"])
@pytest.mark.parametrize("task", ["SafetyPointGoal2-v0", "SafetyCarCircle2-v0", "SafetyHopperVelocity-v1"])
def test_pictures_have_the_size_asked_for_and_show_something(task, camera):
    frames = pictures(batch(task), width=96, height=64, camera=camera)
    if frames is not None:
        (frame,) = frames
        assert frame.shape == (64, 96, 3)
        assert frame.dtype == np.uint8
        assert frame.std() > 5
        assert len(np.unique(frame.reshape(-1, 3), axis=0)) > 50


def test_the_same_state_gives_the_same_picture_and_others_differ():
    env = batch()
    frames = pictures(env, (0, 1, 2, 0), width=80, height=80)
    if frames is not None:
        assert np.array_equal(frames[0], frames[3])
        assert not np.array_equal(frames[0], frames[1])
        assert not np.array_equal(frames[1], frames[2])


@pytest.mark.parametrize("task", ["SafetyPointGoal1-v0", "SafetyCarCircle1-v0", "SafetyAntVelocity-v1"])
def test_cost_is_red(task):
    env = batch(task, num_envs=1)
    states = [{**env.scene(0), "cost": np.array(cost)} for cost in (0.0, 1.0)]
    frames = pictures(Album(env.task, states), (0, 1), width=120, height=120, camera="track")
    if frames is not None:
        calm, costly = map(redness, frames)
        assert calm < 20
        assert costly > 100


def test_hazards_goal_vases_and_lidar_are_seen():
    """Taking one thing out of the state changes the picture where that thing was, in its color."""
    env = batch("SafetyPointGoal2-v0", num_envs=1)
    whole = env.scene(0)
    away = {
        "goal": np.full((1, 2), 50.0),
        "hazards": np.full_like(whole["hazards"], 50.0),
        "vases": np.tile([50.0, 50.0, 0.1, 1, 0, 0, 0], (len(whole["vases"]), 1)),
        "obs": np.zeros_like(whole["obs"]),
    }
    states = [whole, *({**whole, key: value} for key, value in away.items())]
    frames = pictures(Album(env.task, states), range(len(states)), width=160, height=160)
    if frames is None:
        return
    full = frames[0]
    for key, frame in zip(away, frames[1:], strict=True):
        changed = (frame != full).any(axis=2)
        assert changed.sum() > 20, key
        if key in scene.KINDS:
            excess = full[changed].mean(axis=0) - full.mean(axis=(0, 1))
            assert np.argmax(excess) == np.argmax(scene.KINDS[key]), key


@pytest.mark.parametrize("task", ["SafetyPointGoal2-v0", "SafetyCarGoal1-v0", "SafetyAntVelocity-v1"])
def test_drawing_leaves_no_trace_in_the_simulation(task):
    drawn, plain = batch(task, steps=0, render_mode="rgb_array", width=32, height=32), batch(task, steps=0)
    rng = np.random.default_rng(5)
    for step in range(12):
        actions = rng.uniform(-1, 1, drawn.action_space.shape) * drawn.task.action_bound
        left, right = drawn.step(actions), plain.step(actions)
        for a, b in zip(left[:4], right[:4], strict=True):
            assert np.array_equal(a, b)
        assert np.array_equal(left[4]["cost"], right[4]["cost"])
        if step % 3 == 0:
            if can_draw():
                assert [frame.shape for frame in drawn.render()] == [(32, 32, 3)] * 3
            else:
                with refusal():
                    drawn.render()
    one, other = drawn.snapshot(), plain.snapshot()
    assert one.keys() == other.keys()
    assert all(np.array_equal(one[key], other[key], equal_nan=True) for key in one)
    drawn.close()


def test_wrong_wishes_are_one_sentence():
    env = batch(num_envs=2, steps=0)
    with pytest.raises(InputError, match="no camera 'drone'"):
        Renderer(env, camera="drone")
    with pytest.raises(InputError, match="too small"):
        Renderer(env, width=4)
    if not can_draw():
        with refusal():
            Renderer(env, width=32, height=32)
        return
    renderer = Renderer(env, width=32, height=32)
    with pytest.raises(InputError, match="no environment 2 to draw"):
        renderer.frame(2)
    renderer.close()
    renderer.close()
    with pytest.raises(InputError, match="closed"):
        renderer.frame(0)


def test_the_first_library_that_works_is_chosen(monkeypatch):
    tried = []

    def only(*good):
        def works(backend):
            tried.append(backend)
            return backend in good

        monkeypatch.setattr(render, "works", works)

    monkeypatch.delenv("MUJOCO_GL", raising=False)
    monkeypatch.setattr(render.platform, "system", lambda: "Linux")
    only("egl", "osmesa")
    assert render.find_backend() == "egl"
    only("osmesa")
    assert render.find_backend() == "osmesa"
    assert tried == ["egl", "egl", "osmesa"]
    only()
    with pytest.raises(InputError, match=r"libegl1.*libosmesa6"):
        render.find_backend()
    monkeypatch.setenv("MUJOCO_GL", "osmesa")
    with pytest.raises(InputError, match="MUJOCO_GL=osmesa does not work here"):
        render.find_backend()
    only("egl", "osmesa")
    assert render.find_backend() == "osmesa"


def test_drawing_can_be_switched_off(monkeypatch):
    monkeypatch.setenv("MUJOCO_GL", "disable")
    with pytest.raises(InputError, match="switched off by MUJOCO_GL=disable"):
        Renderer(Album(TASKS["SafetyPointGoal0-v0"], [{}]))


def test_a_library_that_is_not_there_does_not_work():
    assert not render.works("nonsense")


def test_a_wrong_variable_is_one_sentence():
    """MuJoCo cannot even be imported with it, so neither can a task be made."""
    for use in ("import steingate.tasks.render", "make_vec('SafetyPointGoal0-v0', 1)"):
        code = f"from steingate.envs.make import make_vec\n{use}\n"
        environment = {**os.environ, "MUJOCO_GL": "nonsense"}
        command = [sys.executable, "-c", code]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        last = done.stderr.strip().splitlines()[-1]
        assert last.startswith("steingate.errors.InputError: MUJOCO_GL=nonsense does not work here")


@pytest.mark.parametrize("backend", render.BACKENDS)
def test_each_library_draws_by_itself_or_is_refused(backend):
    """Both libraries for real, each in its own process: a picture, or the sentence that refuses."""
    code = f"""
import os
import numpy as np
from steingate.errors import InputError

os.environ["MUJOCO_GL"] = {backend!r}
refused = "MUJOCO_GL={backend} does not work here"
try:
    from steingate.tasks.catalog import TASKS
    from steingate.tasks.render import Renderer

    class Env:
        task = TASKS["SafetyPointCircle0-v0"]

        def scene(self, index):
            return dict(qpos=np.zeros(3), obs=np.ones(28), cost=np.array(1.0))

    with Renderer(Env(), width=40, height=30) as renderer:
        frame = renderer.frame(0)
except InputError as error:
    assert refused in str(error), error
    print("refused")
else:
    assert frame.shape == (30, 40, 3)
    assert frame.std() > 5
    print("drawn")
"""
    command = [sys.executable, "-W", "error", "-c", code]
    environment = {key: value for key, value in os.environ.items() if key != "PYOPENGL_PLATFORM"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == ("drawn" if render.works(backend) else "refused")
    assert done.stderr == ""
