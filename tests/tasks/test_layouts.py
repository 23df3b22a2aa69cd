"""Random streams against published outputs and NumPy; layouts against the placement rule (recordings: parity)."""

import dataclasses
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from steingate.errors import InputError
from steingate.tasks import layouts
from steingate.tasks.catalog import TASKS, ObjectSpec
from steingate.tasks.layouts import draw_layouts, make_placement, next_double, seeded_states

DATA = Path(__file__).parent.parent / "data" / "envs"
NAVIGATION = [task for task in TASKS.values() if task.family != "velocity"]
POINT = [task for task in NAVIGATION if task.agent == "point"]

# First outputs of xoshiro256++ from the state (1, 2, 3, 4), from its authors' C code.
XOSHIRO = [
    *(41943041, 58720359, 3588806011781223, 3591011842654386, 9228616714210784205),
    *(9973669472204895162, 14011001112246962877, 12406186145184390807, 15849039046786891736),
    10450023813501588000,
]


def test_independent_stream_is_xoshiro():
    state = np.array([1, 2, 3, 4], dtype=np.uint64)
    assert [next_double(state) for _ in XOSHIRO] == [(word >> 11) * 2.0**-53 for word in XOSHIRO]


@pytest.mark.parametrize("seed", [0, 1, 20017, 2**32 - 1])
def test_reference_stream_is_numpys_legacy_generator(seed):
    (state,) = seeded_states([seed], "reference")
    numbers = [next_double(state) for _ in range(2000)]  # several refills of the key
    assert numbers == np.random.RandomState(seed).random_sample(2000).tolist()


def test_seeds_of_the_reference_stream_have_32_bits():
    with pytest.raises(InputError, match="4294967296"):
        seeded_states([2**32], "reference")


def draw(placement, states, ids, xy, yaw):
    ids = np.array(ids, np.int32)
    return draw_layouts(ids, states, placement.low, placement.high, placement.keepout, placement.goal, xy, yaw)


def batch(task, count, *, stream="independent", seed=0):
    placement = make_placement(task)
    rows = len(placement.kinds)
    xy, yaw = np.empty((count, rows, 2)), np.empty((count, rows))
    assert draw(placement, seeded_states(range(seed, seed + count), stream), range(count), xy, yaw)
    return placement, xy, yaw


@pytest.mark.parametrize("task", NAVIGATION, ids=lambda task: task.env_id)
@pytest.mark.parametrize(("stream", "count"), [("independent", 5_000), ("reference", 500)])
def test_no_layout_violates_a_keepout(task, stream, count):
    placement, xy, yaw = batch(task, count, stream=stream)
    assert np.all((xy >= placement.low) & (xy <= placement.high))
    for i in range(1, len(placement.kinds)):
        gap = np.linalg.norm(xy[:, i, None] - xy[:, :i], axis=-1)
        assert np.all(gap >= placement.keepout[i] + placement.keepout[:i] - 1e-12)
    assert np.all((yaw >= 0.0) & (yaw < 2 * np.pi))


@pytest.mark.parametrize("task", POINT, ids=lambda task: task.env_id)
def test_marginals_match_the_recorded_ones(task):
    recorded = np.load(DATA / "layouts.npz")
    placement, xy, yaw = batch(task, 10_000, seed=1_000_000)
    theirs = recorded[f"{task.env_id}/xy"]
    pairs = [(yaw[:, 0], recorded[f"{task.env_id}/agent_rot"])]
    for kind in ("agent", "goal", "hazards", "vases"):
        rows = placement.rows(kind)
        pairs += [(xy[:, rows, axis].ravel(), theirs[:, rows, axis].ravel()) for axis in (0, 1) if rows.stop]
    if placement.goal >= 0:
        ours, others = (np.linalg.norm(p[:, placement.goal] - p[:, 0], axis=-1) for p in (xy, theirs))
        pairs.append((ours, others))
    assert min(stats.ks_2samp(a, b).pvalue for a, b in pairs) > 1e-3


def test_impossible_placements_are_reported():
    placement, xy, _ = batch(TASKS["SafetyPointGoal0-v0"], 1)
    (state,), before = seeded_states([0]), xy[0].copy()
    huge = np.array([10.0, placement.keepout[1]])
    assert not layouts.draw_goal(state, placement.low, placement.high, huge, placement.goal, xy[0])
    np.testing.assert_array_equal(xy[0], before)
    crowd = (ObjectSpec("goal", 1, 0.305), ObjectSpec("hazards", 60, 0.4))
    with pytest.raises(AssertionError):
        batch(dataclasses.replace(TASKS["SafetyPointGoal1-v0"], objects=crowd), 1)
