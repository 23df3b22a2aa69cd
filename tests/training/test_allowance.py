"""The allowance through the whole trainer: what it learns where the answer is known, and what it is told."""

import numpy as np
import pytest
from tests.training.runs_of_probes import tiny
from tests.training.test_probe_answers import conflict, late

from steingate.algos.methods.allowance import Allowance
from steingate.algos.recipe import Setup
from steingate.policy import load
from steingate.runs import newest_checkpoint, read_progress
from steingate.training.assemble import build_algorithm
from steingate.training.loop import train
from steingate.training.state import first_state


@pytest.mark.parametrize("algo", ["allowance", "allowance-ppo"])
def test_it_stays_within_the_limit_and_earns_more_than_nothing(algo):
    """Unconstrained: cost 10. Under the limit 2.5 the best return is -2.5; doing nothing has -10."""
    rows = conflict(algo, {"pace.block": 32})
    assert late(rows, "Epoch/EpCost") < 2.5
    assert -7.5 < late(rows, "Epoch/EpRet") < -2.4
    assert rows[0]["Epoch/OverLimit"] > 0.9
    assert late(rows, "Epoch/OverLimit", 60) < 0.07  # it swings around half the budget while the share moves


def test_the_share_reaches_environments_checkpoint_and_policy(tmp_path):
    pace = {"pace.block": 4, "pace.fade": 0.3, "pace.quiet": 0.2, "first_std": 1.0}
    path = train(tiny(tmp_path, algo="allowance", **pace, cost_limit=0.5), quiet=True)
    progress = read_progress(path)
    shares = progress["Gate/Share"]
    assert shares[-1] < shares[0] <= 0.6  # the walk is over this limit more often than not
    tree = newest_checkpoint(path).tree
    assert tree["budget"] == shares[-1]
    policy = load(path, "last").policy
    assert np.exp(policy.log_std).max() == pytest.approx(progress["Gate/Noise"][-1], rel=1e-5)
    assert progress["Gate/Noise"][-1] < 0.5
    assert policy.extra.start == shares[-1]
    assert policy.extra.following(policy.extra.start, 0.25) == pytest.approx(shares[-1] - 0.5)


def test_the_first_epoch_starts_with_the_first_share(tmp_path):
    cfg = tiny(tmp_path, algo="allowance", **{"pace.start": 0.4})
    state = first_state(cfg, build_algorithm(cfg), 4, 2)
    assert state.budget == 0.4


@pytest.mark.parametrize("kept", [0.0, 1.0])
def test_cost_is_cheap_within_the_allowance_and_dear_beyond_it(kept):
    account = Allowance(price=0.2, early=0.5, kept=kept).build(Setup(limit=10.0)).account
    number, reward, cost = np.array([0.1, -0.1]), np.array([3.0, 3.0]), np.array([2.0, 2.0])
    expected = [3.0 - 0.5 * 1.6, kept * 3.0 - 1.6]
    np.testing.assert_allclose(account.reward(number, reward, cost, 0.5), expected)
