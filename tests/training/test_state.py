"""The state of a run: before the first epoch, and in checkpoints."""

import numpy as np
import pytest
from tests.training.fakes import TRUST_REGION, RestorableEnv, recording, run_epochs, small

from steingate.algorithms import ALGORITHMS
from steingate.algorithms.base import EnvParams
from steingate.envs.safety_state import SafetyStateWrapper
from steingate.errors import RunError
from steingate.storage.checkpoint import read_checkpoint, write_checkpoint
from steingate.training.environment import build_algorithm
from steingate.training.rollout import Carry
from steingate.training.state import TrainState, first_state, from_tree, to_tree


def initial(name="cpo", **changes):
    cfg = small(name, **changes)
    algorithm = build_algorithm(cfg)
    return first_state(cfg, algorithm, 3 + ("saute" in name), 2)


def leaves(value):
    """Return all numbers, arrays and names of classes in a state."""
    if isinstance(value, dict):
        return [leaf for key in sorted(value) for leaf in [key, *leaves(value[key])]]
    if isinstance(value, tuple | list):
        return [type(value).__name__, *(leaf for item in value for leaf in leaves(item))]
    if hasattr(value, "dtype"):
        return [str(value.dtype), np.shape(value), np.asarray(value).tobytes()]
    return [value]


def same(one, other):
    """Return whether two states hold the same bits in the same types."""
    finished = [state._replace(critics=state.critics.result()) for state in (one, other)]
    return leaves(finished[0]) == leaves(finished[1])


def from_disk(state, first, folder):
    write_checkpoint(folder, 2, to_tree(state))
    return from_tree(read_checkpoint(next(folder.iterdir())).tree, first, "it")


def test_sizes_before_the_first_epoch():
    state = initial(hidden=(4, 5))
    assert [weights.shape for weights in state.policy["w"]] == [(3, 4), (4, 5), (5, 2)]
    critics = state.critics.result()
    assert [weights.shape for weights in critics.cost["w"]] == [(3, 4), (4, 5), (5, 1)]
    assert critics.reward_adam.steps == critics.cost_adam.steps == state.epoch == state.finished == 0
    assert state.carry is state.env_state is None
    assert state.window.shape == (0, 3)
    assert state.stats.count == 0
    saute = initial("trpo-saute")
    assert saute.policy["w"][0].shape == (4, 4)
    assert saute.stats.mean.shape == (3,)  # the safety state is not normalized


@pytest.mark.parametrize("name", ALGORITHMS)
def test_checkpoints_of_every_algorithm_are_exact(tmp_path, name):
    cfg = small(name)
    algorithm, _ = recording(cfg)
    envs = RestorableEnv()
    if algorithm.safety_state(cfg.context, EnvParams()):
        envs = SafetyStateWrapper(envs, algorithm, cfg.context)
    first = first_state(cfg, algorithm, envs.single_observation_space.shape[0], 2)
    state, _ = run_epochs(cfg, algorithm, envs, 2)
    back = from_disk(state, first, tmp_path)
    assert same(back, state)
    assert not same(back, first)
    assert type(back.algorithm) is type(state.algorithm)


def test_checkpoints_of_running_episodes_are_exact(tmp_path):
    cfg = small("evo", carry_episodes=True, **TRUST_REGION)
    algorithm, _ = recording(cfg)
    state, _ = run_epochs(cfg, algorithm, RestorableEnv(length=8), 2)
    assert len(state.algorithm.memory.running[0].logp) == 4
    back = from_disk(state, first_state(cfg, algorithm, 3, 2), tmp_path)
    assert same(back, state)
    assert isinstance(back.carry, Carry)


class TestForeignCheckpoints:
    """A checkpoint of another run is refused in one sentence with the cause."""

    @pytest.mark.parametrize(
        ("change", "cause"),
        [
            (lambda tree: tree["policy"]["w"].__setitem__(0, np.zeros((3, 4))), "the type float64 instead of float32"),
            (
                lambda tree: tree["policy"]["w"].__setitem__(0, np.zeros((3, 9), np.float32)),
                r"the shape \(3, 9\) instead of \(3, 4\)",
            ),
            (lambda tree: tree["stats"].update(mean=np.zeros(7)), r"the shape \(7,\) instead of \(3,\)"),
            (lambda tree: tree["critics"].pop(), "one of its sequences has a different length"),
            (
                lambda tree: tree["policy"].update(bias=tree["policy"].pop("b")),
                "it lacks one of w, b, log_std",
            ),
            (lambda tree: tree["algorithm"].__setitem__(0, np.arange(3)), "the type int64 instead of float64"),
            *((lambda tree, field=field: tree.pop(field), field) for field in TrainState._fields),
        ],
    )
    def test_cause(self, change, cause):
        first = initial()
        tree = to_tree(first)
        change(tree)
        with pytest.raises(RunError, match=rf"^Checkpoint c\.npz does not belong to this run: .*{cause}"):
            from_tree(tree, first, "c.npz")

    def test_an_array_in_place_of_a_number(self):
        first = initial("steingate")
        tree = to_tree(first)
        tree["algorithm"][1] = np.zeros(2)
        with pytest.raises(RunError, match="it has a ndarray instead of a number"):
            from_tree(tree, first, "c.npz")

    def test_algorithms_may_have_seen_more_episodes(self):
        first = initial()
        tree = to_tree(first)
        tree["algorithm"][0] = np.arange(3.0)
        assert len(from_tree(tree, first, "it").algorithm.costs) == 3
