import numpy as np
from steingate.algorithms.common.base import eased
from steingate.gates.base import Decision, Mode


def policy(weight=1.0, deviations=(0.9, 0.1)):
    shape = np.full((1, 2), weight, np.float32)
    return {"w": (shape,), "b": (shape[0] + 1,), "log_std": np.log(np.float32(deviations))}


def test_no_action_keeps_more_noise_than_allowed():
    after = policy()
    calm = eased(policy(5.0), after, Decision(Mode.IMPROVE, noise=0.5))
    np.testing.assert_allclose(np.exp(calm["log_std"]), [0.5, 0.1], rtol=1e-6)
    assert calm["log_std"].dtype == np.float32
    assert calm["w"] is after["w"]
    assert eased(policy(5.0), after, Decision(Mode.IMPROVE)) is after


def test_part_of_the_way_is_the_same_part_for_every_parameter():
    before, after = policy(1.0, (1.0, 1.0)), policy(3.0, (np.exp(-1.0), np.exp(2.0)))
    there = eased(before, after, Decision(Mode.IMPROVE, part=0.25))
    np.testing.assert_allclose(there["w"][0], 1.5)
    np.testing.assert_allclose(there["b"][0], 2.5)
    np.testing.assert_allclose(there["log_std"], [-0.25, 0.5], rtol=1e-6)
    assert there["w"][0].dtype == there["log_std"].dtype == np.float32
    assert isinstance(there["w"], tuple)


def test_a_policy_without_noise_of_its_own_has_none_afterwards():
    choices = {"w": (), "b": ()}
    assert eased(choices, choices, Decision(Mode.IMPROVE, noise=0.1)) is choices
