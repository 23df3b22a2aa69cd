"""The same seeds give the same bits as recorded, on the machine and JAX they were recorded with.

Elsewhere XLA may round differently, so only the first epoch, which no learning has touched, is compared.
"""

import hashlib

import numpy as np
import pytest
from tests.machine import RECORDED, same_machine

from steingate.runs import newest_checkpoint
from steingate.storage.tables import read_progress
from steingate.training.config import make_config
from steingate.training.runner import train


def leaves(tree):
    if isinstance(tree, dict):
        for key in sorted(tree):
            yield from leaves(tree[key])
    elif isinstance(tree, list | tuple):
        for item in tree:
            yield from leaves(item)
    else:
        yield np.asarray(tree)


def digest(tree):
    return hashlib.sha256(b"".join(leaf.tobytes() for leaf in leaves(tree))).hexdigest()[:24]


@pytest.mark.slow
@pytest.mark.parametrize("algo", RECORDED["runs"])
def test_five_epochs_are_those_that_were_recorded(tmp_path, algo):
    given = {"env": "SafetyPointCircle1-v0", "algo": algo, "total_steps": 100_000, "out": str(tmp_path)}
    path = train(make_config(given), quiet=True)
    expected, found = RECORDED["runs"][algo], read_progress(path)
    for name, column in expected["progress"].items():
        assert found[name][0] == column[0]
        if same_machine():
            assert found[name] == column
    if same_machine():
        tree = newest_checkpoint(path).tree
        assert digest(tree["policy"]) == expected["policy"]
        assert digest(tree["critics"]) == expected["critics"]
