import math

import mujoco
import numpy as np

from steingate.tasks import point
from steingate.tasks.catalog import find_task
from steingate.tasks.navigation_models import compile_world

MODEL = compile_world(find_task("SafetyPointCircle1-v0"), 0)
H = 0.002
NO_VASES = np.zeros((0, 7)), np.zeros((0, 7)), np.zeros(0, bool), 0, 0.0


def states(count, seed=0):
    """Yield poses, velocities and controls: full range, and within the band where force limits do not act."""
    rng = np.random.default_rng(seed)
    for k in range(count):
        action = rng.uniform(-1, 1, 2) * (0.06 if k % 2 else 1.0)
        yield rng.normal(size=3) * [2, 2, 5], rng.normal(size=3) * [1, 1, 2], action


def test_a_step_is_mujocos():
    data = mujoco.MjData(MODEL)
    errors = []
    for q, v, action in states(400):
        data.qpos[:], data.qvel[:], data.ctrl[:] = q, v, action
        mujoco.mj_step(MODEL, data, 10)
        point.advance(q, v, action[0], action[1], H, 10, *NO_VASES, np.zeros(3))
        errors.append((np.abs(q - data.qpos).max(), np.abs(v - data.qvel).max()))
    qpos, qvel = np.array(errors).T
    assert qpos.max() < 1e-11
    assert np.quantile(qvel, 0.99) < 1e-10
    assert qvel.max() < 1e-8  # the turn servo multiplies rounding errors by about four per substep


def test_bounds_of_the_contact_test_hold():
    """No action moves the origin further in a step than the bound, and no geom exceeds the reach."""
    worst = 0.0
    for q, v, action in states(4000, seed=2):
        v[2] = np.clip(v[2], -4, 4)  # the limit of 3 rad/s and oscillations of up to 1
        speed, start = math.hypot(v[0], v[1]), q[:2].copy()
        point.advance(q, v, action[0], action[1], H, 10, *NO_VASES, np.zeros(3))
        worst = max(worst, math.hypot(*(q[:2] - start)) - speed * 10 * H)
    assert 0.0 < worst < point.SPEED_GAIN * 10 * H
    corner = math.hypot(0.15, 0.05)
    assert corner <= point.REACH < corner + 1e-3
