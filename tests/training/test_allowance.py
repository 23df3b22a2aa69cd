"""The allowance through the whole trainer: what it learns where the answer is known, and what it is told."""

import numpy as np
import pytest
from steingate.algorithms.common.backend import configure

configure()

from steingate.algorithms.common.recipe import Setup  # noqa: E402
from steingate.training.assemble import build_algorithm  # noqa: E402
from tests.training.runs_of_probes import tiny  # noqa: E402
from tests.training.test_probe_answers import conflict, late  # noqa: E402

from steingate.algorithms.allowance import Allowance  # noqa: E402
from steingate.policies.load import load_policy  # noqa: E402
from steingate.runs import newest_checkpoint, read_progress  # noqa: E402
from steingate.training.runner import train  # noqa: E402
from steingate.training.state import first_state  # noqa: E402


@pytest.mark.parametrize("algo", ["allowance", "allowance-ppo"])
def test_it_stays_within_the_limit_and_earns_more_than_nothing(algo):
    """Unconstrained: cost 10. Under the limit 2.5 the best return is -2.5; doing nothing has -10."""
    rows = conflict(algo, {"pace.block": 32})
    assert late(rows, "Train/EpCost") < 2.5
    assert -7.5 < late(rows, "Train/EpRet") < -2.4
    assert rows[0]["Train/ViolationRate"] > 0.9
    assert late(rows, "Train/ViolationRate", 60) < 0.07


def test_the_share_reaches_environments_checkpoint_and_policy(tmp_path):
    pace = {"pace.block": 4, "pace.fade": 0.3, "pace.quiet": 0.2, "first_std": 1.0}
    path = train(tiny(tmp_path, algo="allowance", **pace, cost_limit=0.5), quiet=True)
    progress = read_progress(path)
    shares = progress["Gate/Share"]
    assert shares[-1] < shares[0] <= 0.6  # the walk is over this limit more often than not
    tree = newest_checkpoint(path).tree
    assert tree["budget"] == shares[-1]
    policy = load_policy(path, "last")
    assert np.exp(policy.array("log_std")).max() == pytest.approx(progress["Gate/Noise"][-1], rel=1e-5)
    assert progress["Gate/Noise"][-1] < 0.5
    policy.observe(0.25)
    assert policy.z == -0.5
    assert tree["worth"] == progress["Gate/Worth"][-1] > 0.0


def test_the_first_epoch_starts_with_the_first_share(tmp_path):
    cfg = tiny(tmp_path, algo="allowance", **{"pace.start": 0.4})
    state = first_state(cfg, build_algorithm(cfg), 4, 2)
    assert state.budget == 0.4


@pytest.mark.parametrize("kept", [0.0, 1.0])
def test_cost_is_cheap_within_the_allowance_and_dear_beyond_it(kept):
    account = Allowance(price=0.2, least=0.5, early=0.5, kept=kept).build(Setup(limit=10.0)).account
    number, reward, cost = np.array([-0.4, -0.6]), np.array([3.0, 3.0]), np.array([2.0, 2.0])
    expected = [3.0 - 0.5 * 1.6, kept * 3.0 - 1.6]
    np.testing.assert_allclose(account.reward(number, reward, cost, 0.5, 3.9), expected)
    # A limit of cost takes at least half of a return of 40, divided by 0.5^2: 80, or 8 for each unit.
    expected = [3.0 - 0.5 * 16.0, kept * 3.0 - 16.0]
    np.testing.assert_allclose(account.reward(number, reward, cost, 0.5, 40.0), expected)


def test_large_rewards_are_shaped_in_proportion_and_small_ones_by_the_price():
    """Rewards and a worth a thousand times as large are shaped to a thousand times the same."""
    account = Allowance().build(Setup(limit=10.0)).account
    number, reward, cost = np.array([-0.4, -0.9]), np.array([3.0, -1.0]), np.array([2.0, 1.0])
    shaped = account.reward(number, reward, cost, 0.5, 200.0)
    np.testing.assert_allclose(account.reward(number, 1e3 * reward, cost, 0.5, 2e5), 1e3 * shaped)
    small = account.reward(number, 1e-3 * reward, cost, 0.5, 0.2)
    np.testing.assert_allclose(small - 1e-3 * reward, [-0.25 * 0.8, -0.4])
