from math import inf

import numpy as np

from steingate.algos.base import quieter


def test_no_action_keeps_more_noise_than_allowed():
    policy = {"w": (np.ones((1, 2), np.float32),), "b": (), "log_std": np.log(np.float32([0.9, 0.1]))}
    calm = quieter(policy, 0.5)
    np.testing.assert_allclose(np.exp(calm["log_std"]), [0.5, 0.1], rtol=1e-6)
    assert calm["log_std"].dtype == np.float32
    assert calm["w"] is policy["w"]
    assert quieter(policy, inf) is policy


def test_a_policy_without_noise_of_its_own_stays():
    policy = {"w": (), "b": ()}
    assert quieter(policy, 0.1) is policy
