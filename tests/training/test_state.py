"""TrainState: what a run begins with, and its way into a checkpoint and back."""

import json

import numpy as np
import pytest
from tests.training.fakes import SECOND_ORDER, Told, epochs, small, watched

from steingate.algorithms import METHODS
from steingate.envs.safety_state import Augmented
from steingate.errors import RunError
from steingate.gates.base import Recent
from steingate.gates.mean import PerStep
from steingate.storage.checkpoint import read_checkpoint, write_checkpoint
from steingate.training.assemble import build_algorithm
from steingate.training.rollout import Carry
from steingate.training.state import TrainState, finished, first_state, from_tree, to_tree


def begun(name="cpo", **changes):
    cfg = small(name, **changes)
    algo = build_algorithm(cfg)
    return first_state(cfg, algo, 3 + (algo.account is not None), 2)


def leaves(value):
    """All numbers, arrays and names of classes in a state."""
    if isinstance(value, dict):
        return [leaf for key in sorted(value) for leaf in [key, *leaves(value[key])]]
    if isinstance(value, tuple | list):
        return [type(value).__name__, *(leaf for item in value for leaf in leaves(item))]
    if hasattr(value, "dtype"):
        return [str(value.dtype), np.shape(value), np.asarray(value).tobytes()]
    return [value]


def same(one, other):
    """Whether two states hold the same bits in the same types."""
    unfinished = [state._replace(critics=state.critics.result()) for state in (one, other)]
    return leaves(unfinished[0]) == leaves(unfinished[1])


class TestFirst:
    def test_sizes_are_those_of_the_run(self):
        state = begun(hidden=(4, 5))
        assert [weights.shape for weights in state.policy["w"]] == [(3, 4), (4, 5), (5, 2)]
        critics = state.critics.result()
        assert [weights.shape for weights in critics.cost["w"]] == [(3, 4), (4, 5), (5, 1)]
        assert critics.reward_adam.steps == critics.cost_adam.steps == 0
        assert (state.epoch, state.finished, state.budget, state.carry, state.world) == (
            0,
            0,
            1.0,
            None,
            None,
        )
        assert state.window.shape == (0, 3)
        assert state.stats.count == 0

    def test_what_an_account_adds_is_not_normalized(self):
        assert begun("cpo").stats.mean.shape == (3,)
        state = begun("trpo-saute")
        assert state.stats.mean.shape == (3,)
        assert state.policy["w"][0].shape == (4, 4)

    def test_parts_begin_as_they_say(self):
        assert begun("ppo").step.epoch == 0
        gate = begun("cpo").gate
        assert isinstance(gate, PerStep)
        assert isinstance(gate.gate, Recent)
        assert gate.gate.costs.shape == gate.lengths.shape == (0,)
        memory = begun("evo").memory
        assert len(memory.running) == 2
        assert memory.steps.obs.shape == (0, 3)
        assert memory.steps.act.shape == (0, 2)


class TestStored:
    @pytest.mark.parametrize("name", METHODS)
    def test_every_method_comes_back_from_the_disk_as_it_was(self, tmp_path, name):
        cfg = small(name)
        algo, _ = watched(cfg)
        envs = Told() if algo.account is None else Augmented(Told(), algo.account)
        first = first_state(cfg, algo, envs.single_observation_space.shape[0], 2)
        state, _ = epochs(cfg, algo, envs, 2)
        write_checkpoint(tmp_path, 2, to_tree(state))
        found = read_checkpoint(next(tmp_path.iterdir()))
        back = from_tree(found.tree, first, "it")
        assert same(back, state)
        assert not same(back, first)
        assert type(back.gate) is type(state.gate)

    def test_so_do_running_episodes(self, tmp_path):
        cfg = small("evo", carry_episodes=True, **SECOND_ORDER)
        algo, _ = watched(cfg)
        state, _ = epochs(cfg, algo, Told(length=8), 2)
        assert len(state.memory.running[0].logp) == 4
        write_checkpoint(tmp_path, 2, to_tree(state))
        tree = read_checkpoint(next(tmp_path.iterdir())).tree
        back = from_tree(tree, first_state(cfg, algo, 3, 2), "it")
        assert same(back, state)
        assert isinstance(back.carry, Carry)

    def test_the_tree_waits_for_the_critics_and_is_plain(self):
        state = begun()
        later = finished(state.critics.result())
        tree = to_tree(state._replace(critics=later))
        assert set(tree) == set(TrainState._fields)

        def plain(value):
            if isinstance(value, dict):
                return all(plain(item) for item in value.values())
            if isinstance(value, list):
                return all(map(plain, value))
            return value is None or isinstance(value, bool | int | float | str | np.ndarray)

        assert plain(tree)
        assert json.dumps(sorted(tree))


class TestForeign:
    """A checkpoint of another run is refused, in one sentence that says what is wrong."""

    def complaint(self, change, name="cpo"):
        first = begun(name)
        tree = to_tree(first)
        change(tree)
        with pytest.raises(RunError, match=r"^Checkpoint c\.npz does not belong to this run: ") as error:
            from_tree(tree, first, "c.npz")
        return str(error.value)

    def test_a_wrong_type_is_called_a_type(self):
        def change(tree):
            tree["policy"]["w"][0] = tree["policy"]["w"][0].astype(np.float64)

        said = self.complaint(change)
        assert "an array has the type float64 instead of float32" in said
        assert "shape" not in said

    def test_a_wrong_shape_is_called_a_shape(self):
        def change(tree):
            tree["policy"]["w"][0] = np.zeros((3, 9), np.float32)

        assert "an array has the shape (3, 9) instead of (3, 4)" in self.complaint(change)

    def test_statistics_are_checked_too(self):
        def change(tree):
            tree["stats"]["mean"] = np.zeros(7)

        assert "the shape (7,) instead of (3,)" in self.complaint(change)

    @pytest.mark.parametrize("part", TrainState._fields)
    def test_a_part_that_is_missing_is_named(self, part):
        assert part in self.complaint(lambda tree: tree.pop(part))

    def test_another_optimizer_is_refused(self):
        def change(tree):
            tree["critics"].pop()

        assert "one of its sequences has a different length" in self.complaint(change)

    def test_other_names_are_refused(self):
        def change(tree):
            tree["policy"]["bias"] = tree["policy"].pop("b")

        assert "it lacks one of w, b, log_std" in self.complaint(change)

    def test_a_number_is_no_array(self):
        def change(tree):
            tree["step"][1] = np.zeros(2)

        assert "it has a ndarray instead of a number" in self.complaint(change, "ppo")

    def test_gates_may_have_seen_more_episodes_but_of_one_type(self):
        first = begun()
        tree = to_tree(first)
        tree["gate"][0][0] = np.arange(3.0)
        assert len(from_tree(tree, first, "it").gate.gate.costs) == 3

        def change(tree):
            tree["gate"][0][0] = np.arange(3)

        assert "the type int64 instead of float64" in self.complaint(change)
