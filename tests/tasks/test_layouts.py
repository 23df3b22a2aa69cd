"""Layouts: the recorded ones bit for bit, and the law of the default stream."""

import dataclasses
import json
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from steingate.errors import InputError
from steingate.tasks import layouts
from steingate.tasks.catalog import TASKS, ObjectSpec
from steingate.tasks.streams import STREAMS, seeded_states

DATA = Path(__file__).parent.parent / "data" / "envs"
NAVIGATION = [task for task in TASKS.values() if task.family != "velocity"]
POINT = [task for task in NAVIGATION if task.agent == "point"]
NAMES = [task.env_id for task in POINT]


@pytest.fixture(scope="module")
def recorded():
    with np.load(DATA / "layouts.npz") as file:
        return dict(file)


def batch(spec, count, *, stream="independent", seed=0):
    law = layouts.placement(spec)
    states = seeded_states(range(seed, seed + count), stream)
    rows = len(law.kinds)
    xy, rot, first = np.empty((count, rows, 2)), np.empty((count, rows)), np.empty((count, 2))
    layouts.sample_layouts(law, states, np.ones(count, bool), xy, rot, first)
    return law, xy, rot, first


@pytest.mark.parametrize("spec", POINT, ids=NAMES)
def test_reference_stream_repeats_recorded_layouts(spec, recorded):
    law = layouts.placement(spec)
    assert len(json.loads(str(recorded["meta"]))[spec.env_id]) == len(law.kinds)
    states = seeded_states(recorded["seeds"].tolist(), "reference")
    drawn = [layouts.sample_layout(law, state) for state in states]
    again = [layouts.sample_layout(law, state) for state in states[:10]]
    key = spec.env_id
    np.testing.assert_array_equal([lay.xy for lay in drawn], recorded[f"{key}/xy"])
    np.testing.assert_array_equal([lay.rot[0] for lay in drawn], recorded[f"{key}/agent_rot"])
    np.testing.assert_array_equal([lay.goal_first for lay in drawn], recorded[f"{key}/goal_first"])
    np.testing.assert_array_equal([lay.xy for lay in again], recorded[f"{key}/second_xy"])
    np.testing.assert_array_equal([lay.rot[0] for lay in again], recorded[f"{key}/second_agent_rot"])
    if spec.family == "goal":
        np.testing.assert_array_equal([lay.rot[1:] for lay in drawn], recorded[f"{key}/rot"][:, 1:])


@pytest.mark.parametrize("spec", NAVIGATION, ids=[task.env_id for task in NAVIGATION])
@pytest.mark.parametrize(("stream", "count"), [("independent", 10_000), ("reference", 500)])
def test_no_layout_violates_a_keepout(spec, stream, count):
    law, xy, rot, first = batch(spec, count, stream=stream)
    if law.goal >= 0:
        # Others respect the discarded first goal; the final goal respects them.
        before = xy.copy()
        before[:, law.goal] = first
        assert not np.array_equal(before, xy)
    for positions in (xy,) if law.goal < 0 else (xy, before):
        assert np.all((positions >= law.low) & (positions <= law.high))
        for i in range(1, len(law.kinds)):
            gap = np.linalg.norm(positions[:, i, None] - positions[:, :i], axis=-1)
            assert np.all(gap >= law.keepout[i] + law.keepout[:i] - 1e-12)
    assert np.all((rot >= 0.0) & (rot < 2 * np.pi))


@pytest.mark.parametrize("spec", POINT, ids=NAMES)
def test_marginals_match_the_recorded_ones(spec, recorded):
    law, xy, rot, _ = batch(spec, 10_000, seed=1_000_000)
    theirs = recorded[f"{spec.env_id}/xy"]
    pairs = [(rot[:, 0], recorded[f"{spec.env_id}/agent_rot"])]
    for kind in ("agent", "goal", "hazards", "vases"):
        rows = law.rows(kind)
        pairs += [(xy[:, rows, axis].ravel(), theirs[:, rows, axis].ravel()) for axis in (0, 1) if rows.stop]
    if law.goal >= 0:
        ours, others = (np.linalg.norm(p[:, law.goal] - p[:, 0], axis=-1) for p in (xy, theirs))
        pairs.append((ours, others))
    assert min(stats.ks_2samp(a, b).pvalue for a, b in pairs) > 1e-3


@pytest.mark.parametrize("stream", STREAMS)
def test_an_environments_layouts_do_not_depend_on_the_others(stream):
    spec = TASKS["SafetyPointGoal2-v0"]
    law, xy, rot, first = batch(spec, 6, stream=stream)
    states = seeded_states(range(6), stream)
    alone = layouts.sample_layout(law, states[4])
    np.testing.assert_array_equal(alone.xy, xy[4])
    np.testing.assert_array_equal(alone.rot, rot[4])
    np.testing.assert_array_equal(alone.goal_first, first[4])


def test_only_masked_rows_change():
    law, xy, rot, first = batch(TASKS["SafetyCarGoal1-v0"], 5)
    states = seeded_states(range(50, 55))
    kept = [a.copy() for a in (states, xy, rot, first)]
    mask = np.array([False, True, False, False, True])
    layouts.sample_layouts(law, states, mask, xy, rot, first)
    for now, before in zip((states, xy, rot, first), kept, strict=True):
        changed = np.any((now != before).reshape(5, -1), axis=1)
        np.testing.assert_array_equal(changed, mask)


def test_a_new_goal_keeps_clear_of_present_positions():
    law, xy, _, _ = batch(TASKS["SafetyPointGoal2-v0"], 300)
    states = seeded_states(range(900, 1200))
    xy[:, 0] = xy[:, law.goal]  # the agent stands on the goal it has reached
    for state, positions in zip(states, xy, strict=True):
        others = positions.copy()
        assert layouts.draw_goal(state, law.low, law.high, law.keepout, law.goal, positions)
        gap = np.linalg.norm(positions[law.goal] - np.delete(positions, law.goal, axis=0), axis=1)
        assert np.all(gap >= np.delete(law.keepout, law.goal) + law.keepout[law.goal] - 1e-12)
        np.testing.assert_array_equal(np.delete(positions, law.goal, 0), np.delete(others, law.goal, 0))


def test_a_goal_without_room_is_refused_and_changes_nothing():
    law, xy, _, _ = batch(TASKS["SafetyPointGoal0-v0"], 1)
    (state,) = seeded_states([0])
    keepout = law.keepout.copy()
    keepout[0] = 10.0
    before = xy[0].copy()
    assert not layouts.draw_goal(state, law.low, law.high, keepout, law.goal, xy[0])
    np.testing.assert_array_equal(xy[0], before)


@pytest.mark.parametrize("stream", STREAMS)
def test_impossible_placements_end_in_an_error(stream):
    crowded = dataclasses.replace(
        TASKS["SafetyPointGoal1-v0"], objects=(ObjectSpec("goal", 1, 0.305), ObjectSpec("hazards", 60, 0.4))
    )
    (state,) = seeded_states([0], stream)
    with pytest.raises(InputError, match=r"SafetyPointGoal1-v0.*keepouts"):
        layouts.sample_layout(layouts.placement(crowded), state)


def test_a_keepout_larger_than_the_extent_is_an_error():
    narrow = dataclasses.replace(TASKS["SafetyPointGoal1-v0"], extent=0.17, agent_extent=1.0)
    with pytest.raises(InputError, match="goal"):
        layouts.placement(narrow)


def test_a_goal_that_cannot_be_drawn_again_at_reset_is_an_error():
    law = layouts.placement(TASKS["SafetyCarGoal2-v0"])
    with pytest.raises(InputError, match=r"SafetyCarGoal2-v0.*goal"):
        layouts.check_status(law, layouts.NO_GOAL)
