"""The contact test between agent and vase against sampled points of a vase and contacts of MuJoCo."""

import mujoco
import numpy as np
import pytest

from steingate.tasks.catalog import find_task
from steingate.tasks.geometry import agent_parts, may_touch_vase, vase_gap
from steingate.tasks.navigation_models import compile_world


def vase(x, y, quaternion=(1.0, 0.0, 0.0, 0.0)):
    return np.array([x, y, 0.1, *np.asarray(quaternion) / np.linalg.norm(quaternion)])


def test_gap_never_exceeds_the_distance_to_any_point_of_the_vase():
    rng = np.random.default_rng(0)
    corners = 0.1 * np.array(np.meshgrid([-1, 1], [-1, 1], [-1, 1])).reshape(3, -1).T
    inner = rng.uniform(-0.1, 0.1, (400, 3))
    for k in range(300):
        turn = rng.normal(size=4) if k % 2 else [1, 1e-3 * rng.normal(), 1e-3 * rng.normal(), rng.normal()]
        box = vase(*rng.uniform(-1, 1, 2), turn)
        w, u = box[3], box[4:]
        points = np.vstack([corners, inner])
        turned = points + 2 * np.cross(u, np.cross(u, points) + w * points)
        agent = rng.uniform(-1, 1, 2)
        nearest = np.linalg.norm(turned[:, :2] + box[:2] - agent, axis=1).min()
        assert vase_gap(*agent, box) <= nearest


def poses(agent, rng, count):
    """Yield qpos of a world with one vase: agent and vase close to each other, mostly upright."""
    for k in range(count):
        tilt = 0.3 * (k % 3 == 0)
        yaw, turned = rng.uniform(0, np.pi), rng.uniform(0, np.pi)
        box = [np.cos(turned), *(tilt * rng.normal(size=2)), np.sin(turned)]
        if k % 5 == 0:  # on another face
            box = np.array([1.0, 1.0, np.tan(turned), np.tan(turned)])
        direction, distance = rng.uniform(0, 2 * np.pi), rng.uniform(0.1, 0.4)
        place = [distance * np.cos(direction), distance * np.sin(direction), 0.1, *box / np.linalg.norm(box)]
        if agent == "point":
            yield [0.0, 0.0, yaw, *place]
        else:
            body = np.array([np.cos(yaw), *(tilt * rng.normal(size=2)), np.sin(yaw)])
            ball = rng.normal(size=4)
            wheels = rng.uniform(0, 6, 2)
            yield [0, 0, 0.1, *body / np.linalg.norm(body), *wheels, *ball / np.linalg.norm(ball), *place]


@pytest.mark.parametrize("agent", ["point", "car"])
def test_no_contact_of_mujoco_is_missed_and_few_are_reported_without_one(agent):
    model = compile_world(find_task(f"Safety{agent.title()}Goal1-v0"), 1)
    data, parts = mujoco.MjData(model), agent_parts(model)
    nq, box = (3, model.geom("vase0").id) if agent == "point" else (13, model.geom("vase0").id)
    agents = set(np.flatnonzero(model.body_rootid[model.geom_bodyid] == model.body("agent").id))
    found, upright = [], []
    for k, qpos in enumerate(poses(agent, np.random.default_rng(0), 3000)):
        data.qpos[:] = qpos
        mujoco.mj_fwdPosition(model, data)
        touching = any(box in c.geom and agents & set(c.geom) for c in data.contact)
        turned = data.xmat[model.body("agent").id]
        guess = may_touch_vase(parts, tuple(turned), data.qpos[0], data.qpos[1], data.qpos[nq:])
        assert guess or not touching, qpos
        found.append((touching, guess))
        upright.append(k % 3 != 0 and k % 5 != 0)
    touching, guess = np.array(found).T
    assert 500 < touching.sum() < 2500
    assert (guess & ~touching)[upright].sum() <= 0.01 * touching[upright].sum()
