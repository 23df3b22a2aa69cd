import mujoco
import numpy as np
import pytest

from steingate.tasks.catalog import find_task
from steingate.tasks.models import compile_world
from steingate.tasks.physics import ACCELERATION, Simulations

CAR = find_task("SafetyCarGoal1-v0")


def loop(model, actions, stage):
    """Return final states of a plain loop over simulations."""
    rows = []
    for i in range(actions.shape[1]):
        data = mujoco.MjData(model)
        for action in actions[:, i]:
            data.ctrl[:] = action
            mujoco.mj_step(model, data, 10)
            if stage == ACCELERATION:
                mujoco.mj_forward(model, data)
        rows.append(np.concatenate([data.qpos, data.qvel]))
    return np.array(rows)


@pytest.mark.parametrize("persistent", [True, False])
@pytest.mark.parametrize("threads", [1, 2, 3])
def test_a_batch_is_a_loop_over_simulations_bit_for_bit(threads, persistent):
    model = compile_world(CAR, 1)
    actions = np.random.default_rng(0).uniform(-1, 1, (8, 5, 2))
    sims = Simulations(model, 5, threads, persistent=persistent)
    sims.reset()
    qacc = sims.bind("qacc")
    for action in actions:
        sims.ctrl[:] = action
        sims.step(10, stage=ACCELERATION)
    assert np.array_equal(np.hstack([sims.qpos, sims.qvel]), loop(model, actions, ACCELERATION))
    assert np.abs(qacc).max() > 0


def test_a_subset_leaves_the_others_alone():
    sims = Simulations(compile_world(CAR, 0), 4, 2)
    sims.reset()
    sims.ctrl[:] = 0.02
    before = sims.state.copy()
    sims.step(10, np.array([1, 3], np.int32))
    assert np.array_equal(sims.state[[0, 2]], before[[0, 2]])
    assert not np.array_equal(sims.state[[1, 3]], before[[1, 3]])
    assert np.array_equal(sims.qpos[1], sims.qpos[3])


@pytest.mark.parametrize("count", [1, 3])
def test_columns_say_where_the_fields_start(count):
    sims = Simulations(compile_world(CAR, 1), count, 1)
    fields = (sims.qpos, sims.qvel, sims.warmstart, sims.ctrl)
    for column, field in zip(sims.columns, fields, strict=True):
        field[:] = np.arange(field.size).reshape(field.shape) + 1.0
        assert np.array_equal(sims.state[:, column : column + field.shape[1]], field)


def test_forward_changes_no_positions():
    sims = Simulations(compile_world(CAR, 0), 1, 1)
    sims.reset()
    qpos, acc = sims.qpos.copy(), sims.bind("qacc")
    sims.forward()
    assert np.array_equal(sims.qpos, qpos)
    assert acc[0, 2] != 0.0
