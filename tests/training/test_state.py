"""The state of a run: before the first epoch, and in checkpoints."""

import numpy as np
import pytest
from tests.training.fakes import FakeEnv, small

from steingate.errors import RunError
from steingate.storage.checkpoint import encode
from steingate.training.state import TrainState, first_state, from_tree, to_tree


def initial(name="cpo", **changes):
    cfg = small(name, **changes)
    algorithm = cfg.algo
    return first_state(cfg, algorithm, FakeEnv())


class TestForeignCheckpoints:
    """A checkpoint of another run is refused in one sentence with the cause."""

    @pytest.mark.parametrize(
        ("change", "cause"),
        [
            (lambda tree: tree["policy"]["w"].__setitem__(0, np.zeros((3, 4))), "float64.* instead of float32"),
            (lambda tree: tree["policy"]["w"].__setitem__(0, np.zeros((3, 9), np.float32)), r"\[3, 9\] instead of"),
            (lambda tree: tree["stats"].update(mean=np.zeros(7)), r"float64\[7\] instead of float64\[3\]"),
            (lambda tree: tree["critics"].pop(), "one of its sequences has a different length"),
            (lambda tree: tree["policy"].update(bias=tree["policy"].pop("b")), "it lacks one of w, b, log_std"),
            (lambda tree: tree["algorithm"][0].__setitem__(0, np.arange(3)), "int64.* instead of float64"),
            (lambda tree: tree.update(epoch="x"), "a number that is no count"),
            (lambda tree: tree.update(env_state=3), "object is not iterable"),
            (lambda tree: tree.update(window="x"), "it has an array <U1"),
            (lambda tree: tree["selection"].__setitem__(2, -1), "a number that is no count"),
            (lambda tree: tree["selection"].__setitem__(7, {"epoch": 1}), "finished"),
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
        tree["algorithm"][0][0] = np.arange(3.0)
        assert len(from_tree(tree, first, "it").algorithm.recent.costs) == 3


def test_a_restored_state_gives_the_same_file():
    first = initial()
    stored = to_tree(first)
    for tree in (stored["policy"], stored["critics"][0]):
        for name in sorted(tree):  # the order after an epoch
            tree[name] = tree.pop(name)
    tree = to_tree(from_tree(stored, first, "it"))
    assert encode(tree, 1) == encode(stored, 1)
