"""Stored runs repeat: training with their configuration gives their first episodes."""

from itertools import groupby

import numpy as np
import pytest
from tests.docs.scripts import docs_script
from tests.machine import same_machine

import steingate
from steingate.report.load import to_toml
from steingate.storage.tables import read_episodes

SUMMARY = docs_script("summary")
EARLIER_SCHEDULE = {"allowance-0.2", "unseen"}  # runs of the allowance's earlier schedule, which cannot be repeated
# Options of EVO and Saute when the runs were stored, with the values of the variant, which they always have now.
FOLLOW_VARIANT = {
    "clamp", "count_twice", "free_location", "zero_is_safe", "whole_epoch", "everywhere", "buffer", "budget_length",
}  # fmt: skip


def present_settings(table):
    """Return a stored configuration without the options that no longer exist."""
    return {
        name: present_settings(value) if isinstance(value, dict) else value
        for name, value in table.items()
        if name not in FOLLOW_VARIANT
    }


@pytest.mark.slow
@pytest.mark.parametrize("grid", [grid for grid in SUMMARY.GRIDS if grid not in EARLIER_SCHEDULE])
def test_first_epochs_repeat(grid, tmp_path):
    """One run of each configuration. On other processors only the first epoch is the same."""
    groups = groupby(SUMMARY.grid_runs(grid), lambda run: run.path.parents[1])
    for number, (_, runs) in enumerate(groups):
        run = next(runs)
        (tmp_path / "run.toml").write_text(to_toml(present_settings(run.config)))
        decays = "ppo" in run.config["algorithm"]  # the learning rate, over the planned number of epochs
        steps = (4 if same_machine() and not decays else 1) * run.config["steps_per_epoch"]
        options = {"total_steps": steps, "out": tmp_path / str(number), "certify.enabled": False}
        again = steingate.train(config=tmp_path / "run.toml", quiet=True, **options)
        for name, values in read_episodes(again.path).items():
            stored = run.episodes[name][: len(values)]  # with four digits
            np.testing.assert_allclose(values, stored, rtol=5e-4, err_msg=f"{run.path} {name}")
