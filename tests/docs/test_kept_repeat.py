"""The kept runs are those that today's code makes: their first epochs, made again.

Kept numbers have four digits. On another processor or JAX only the first epoch is the same.
"""

from itertools import groupby
from pathlib import Path

import numpy as np
import pytest
from tests.machine import same_machine

from steingate.report.loading import load_run
from steingate.training.assemble import build_algorithm, make_envs
from steingate.training.config import read_stored
from steingate.training.epoch import run_epoch
from steingate.training.loop import second_thread
from steingate.training.state import first_state

KEPT = Path(__file__).parents[2] / "results" / "kept"
PLACES = sorted(path.parent.relative_to(KEPT) for path in KEPT.rglob("config.json"))
FIRST = [
    next(group) for _, group in groupby(PLACES, lambda place: place.parents[1])
]  # of each method in a grid
EPOCHS = 4


def epochs_again(config, count):
    cfg = read_stored(config, "the kept run")
    algo = build_algorithm(cfg)
    envs = make_envs(cfg, algo)
    state = first_state(cfg, algo, envs.single_observation_space.shape[0], envs.single_action_space.shape[0])
    with second_thread(cfg.overlap) as pool:
        for _ in range(count):
            state, report = run_epoch(algo, cfg, state, envs, pool)
            yield report.row
        state.critics.result()
    envs.close()


@pytest.mark.slow
@pytest.mark.parametrize("place", FIRST, ids=str)
def test_the_first_epochs_repeat(place):
    run = load_run(KEPT / place)
    for epoch, row in enumerate(epochs_again(run.config, EPOCHS if same_machine() else 1)):
        for name in ("Epoch/EpRet", "Epoch/EpCost", "Epoch/WorstCost", "TotalEnvSteps"):
            kept = run.progress[name][epoch]
            assert float(row[name]) == pytest.approx(kept, rel=6e-4, nan_ok=True), (epoch, name)
    assert np.isfinite(run.progress["Epoch/EpCost"][:1]).all()
