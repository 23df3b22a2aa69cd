import mujoco
import numpy as np
import pytest

from steingate.tasks.catalog import VASE_SPEED_LIMIT, find_task
from steingate.tasks.models import compile_world, settling_curve, world_xml

POINT, CAR = find_task("SafetyPointGoal2-v0"), find_task("SafetyCarGoal2-v0")


def test_point_has_the_tabled_mass_centre_and_inertia():
    model = compile_world(POINT, 1)
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    inertia = np.zeros((model.nv, model.nv))
    mujoco.mj_fullM(model, data, inertia)
    assert model.body("agent").mass[0] == pytest.approx(0.005188790204786, abs=1e-15)
    assert model.body("agent").ipos == pytest.approx([0.019272315136, 0, 0], abs=1e-12)
    assert inertia[2, 2] == pytest.approx(2.842182748581e-5, abs=1e-16)
    assert inertia[1, 2] == pytest.approx(1e-4, abs=1e-17)


def test_car_has_the_tabled_masses_and_moments():
    model = compile_world(CAR, 1)
    masses = [model.body(name).mass[0] for name in ("agent", "left", "right", "rear")]
    assert masses == pytest.approx([0.0239, 0.00196349540849, 0.00196349540849, 0.00261799387799], abs=1e-14)
    assert sum(masses) == pytest.approx(0.03044498469498, abs=1e-14)
    assert model.body("agent").ipos == pytest.approx([0, 0.003953974895, 0.0010041841], abs=1e-10)
    moments = [2.284420719e-4, 1.739005823e-4, 9.481184368e-5]
    assert model.body("agent").inertia == pytest.approx(moments, abs=1e-13)


@pytest.mark.parametrize("task", [POINT, CAR], ids=["point", "car"])
def test_vases_and_options(task):
    model = compile_world(task, 3)
    assert model.body("vase2").mass[0] == pytest.approx(8e-6)
    assert model.opt.tolerance == 1e-14
    assert model.opt.disableflags & mujoco.mjtDisableBit.mjDSBL_NATIVECCD
    assert model.opt.timestep == task.timestep
    assert set(model.geom_condim) == {6}
    assert compile_world(task, 3) is model
    agents = 1 if task is POINT else 5
    assert model.npair == 3 * agents + 3
    assert set(model.pair_solref[:, 0]) == {-1250.0}


def test_the_full_model_moves_like_the_one_without_ghosts():
    """Bodies without contacts may be left out."""
    lean = compile_world(CAR, 1)
    full = mujoco.MjModel.from_xml_string(world_xml(CAR, 1, ghosts=True))
    assert full.nbody == lean.nbody + 11
    rng = np.random.default_rng(0)
    one, other = mujoco.MjData(lean), mujoco.MjData(full)
    for _ in range(20):
        one.ctrl[:] = other.ctrl[:] = rng.uniform(-1, 1, 2)
        mujoco.mj_step(lean, one, 10)
        mujoco.mj_step(full, other, 10)
    assert np.array_equal(one.qpos, other.qpos)


@pytest.mark.parametrize("task", [POINT, CAR], ids=["point", "car"])
def test_settling_curve_is_what_the_engine_does_to_untouched_vases(task):
    model = compile_world(task, 4)
    data = mujoco.MjData(model)
    curve = settling_curve(task)
    data.qpos[-4:] = np.cos(0.4), 0, 0, np.sin(0.4)
    for step in range(1000):
        row = curve[min(step, len(curve) - 1)]
        assert data.qpos[-5] == pytest.approx(row[0], abs=1e-12)
        assert data.qvel[-4] == pytest.approx(row[1], abs=1e-11)
        mujoco.mj_step(model, data)
    assert np.abs(curve[:, 1]).max() < VASE_SPEED_LIMIT
    assert curve[-2, 0] == pytest.approx(curve[-1, 0], abs=1e-15)
