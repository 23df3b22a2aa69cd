"""Recorded layouts against the reference stream: every position and yaw must agree in every bit."""

from __future__ import annotations

import numpy as np
from tests.parity.criteria import Finding, at_most
from tests.parity.recordings import Recording

from steingate.errors import InputError
from steingate.tasks.catalog import find_task
from steingate.tasks.layouts import placement, sample_layout
from steingate.tasks.streams import seeded_states


def judge_layouts(recording: Recording, env_id: str) -> list[Finding]:
    """Return the findings of criterion C for one task of a file of layouts.

    Parameters
    ----------
    recording : Recording
        A ``layouts`` file.
    env_id : str
        One of the tasks in its ``meta``.
    """
    law = placement(find_task(env_id))
    if len(recording.meta[env_id]) != len(law.kinds):
        raise InputError(
            f"{recording.name}: {env_id} has {len(recording.meta[env_id])} objects, not {len(law.kinds)}."
        )
    for name in ("xy", "rot", "agent_rot", "goal_first", "second_xy", "second_agent_rot"):
        if f"{env_id}/{name}" not in recording.arrays:
            raise InputError(f"{recording.name}: the array '{env_id}/{name}' is missing.")
    states = seeded_states(recording["seeds"].tolist(), "reference")
    again = len(recording[f"{env_id}/second_xy"])
    first = [sample_layout(law, state) for state in states]
    second = [sample_layout(law, state) for state in states[:again]]
    turning = law.high[1:, 0] - law.low[1:, 0] > 1e-6  # yaws of fixed objects are drawn and discarded
    yaws = np.array([layout.rot[1:][turning] for layout in first])
    pairs = {
        "positions": (np.array([layout.xy for layout in first]), recording[f"{env_id}/xy"]),
        "yaws": (yaws, recording[f"{env_id}/rot"][:, 1:][:, turning]),
        "agent yaw": (np.array([layout.rot[0] for layout in first]), recording[f"{env_id}/agent_rot"]),
        "positions, second reset": (
            np.array([layout.xy for layout in second]),
            recording[f"{env_id}/second_xy"],
        ),
        "agent yaw, second reset": (
            np.array([layout.rot[0] for layout in second]),
            recording[f"{env_id}/second_agent_rot"],
        ),
    }
    if law.goal >= 0:
        goals = np.array([layout.goal_first for layout in first])
        pairs["discarded first goal"] = (goals, recording[f"{env_id}/goal_first"])
    return [
        finding
        for name, (ours, theirs) in pairs.items()
        for finding in at_most(f"C {env_id} {name}", np.abs(ours - theirs), 0.0)
    ]
