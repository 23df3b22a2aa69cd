"""Every algorithm in whole runs: kill and resume, evaluation, what the log and the stored policy contain."""

import numpy as np
import pytest
from tests.training.runs_of_probes import facts, tiny

from steingate.algorithms import ALGORITHMS
from steingate.policies.load import load_policy
from steingate.runs import newest_checkpoint
from steingate.settings import option_names
from steingate.storage.tables import read_progress
from steingate.training import runner
from steingate.training.epoch import run_epoch
from steingate.training.play import load_player
from steingate.training.runner import resume, train

MINIBATCH = {"ppo.epochs": 3, "ppo.batch_size": 16}
CARRY = {"carry_episodes": True, "env_options": {"limit": 50, "out": 9.0}}  # episodes longer than an epoch
FAST = [
    ("allowance", {}),
    ("evo", CARRY),
    ("trpo-simmer", {"variant": "published"}),
    ("trpo-lag", {"multiplier": "pid"}),
    ("cup", {}),
]
SLOW = [
    *((name, {}) for name in ALGORITHMS if name not in ("allowance", "cup")),
    ("evo", {"variant": "published"}),
    ("steingate", {"recovery": "tail"}),
    *((name, CARRY) for name in ("trpo-simmer", "cvar-cpo", "allowance")),
]
RUNS = [*FAST, *(pytest.param(*run, marks=pytest.mark.slow) for run in SLOW)]


class Killed(BaseException):
    """No code of the package catches this."""


def run_of(out, name, **options):
    if "ppo.epochs" in option_names(ALGORITHMS[name]()):
        options = {**MINIBATCH, **options}
    options = {"total_steps": 400, "certify.enabled": False, **options}
    return tiny(out, algo=name, **options)


@pytest.mark.parametrize(("name", "options"), RUNS)
def test_a_killed_and_resumed_run_equals_an_uninterrupted_one(tmp_path, monkeypatch, name, options):
    """The fast runs have every kind of state and update; the slow ones add the other algorithms."""
    expected = facts(train(run_of(tmp_path / "whole", name, overlap=False, **options), quiet=True))
    broken, left = run_of(tmp_path / "broken", name, **options), iter(range(3))

    def run_three_epochs(*args):
        if next(left, None) is None:
            raise Killed
        return run_epoch(*args)

    with monkeypatch.context() as patch:
        patch.setattr(runner, "epoch_function", lambda algorithm: run_three_epochs)
        with pytest.raises(Killed):
            train(broken, quiet=True)
    assert newest_checkpoint(broken.path).epoch == 2
    resume(broken.path, quiet=True)
    assert facts(broken.path) == expected
    assert "nan" not in (broken.path / "progress.csv").read_text().lower()


def test_the_learning_rate_decays_and_critics_follow_the_epochs_of_the_policy(tmp_path):
    stopping = {**MINIBATCH, "ppo.epochs": 6, "ppo.max_kl": 0.003, "ppo.lr": 0.01}
    epochs = {}
    for vf_epochs in (None, 2):
        path = train(run_of(tmp_path / str(vf_epochs), "ppo", vf_epochs=vf_epochs, **stopping), quiet=True)
        progress = read_progress(path)
        np.testing.assert_allclose(progress["Loss/LearningRate"], 0.01 * (1.0 - np.arange(5) / 5), rtol=1e-6)
        epochs[vf_epochs] = sum(progress["Loss/Epochs"])
        adam = newest_checkpoint(path).tree["critics"][1]
        minibatches = 3  # of 32 samples, from 80
        assert adam[0] == minibatches * (epochs[None] if vf_epochs is None else 2 * 5)
    assert epochs[None] < 6 * 5


def test_evaluation_uses_the_budget_that_training_reached(tmp_path):
    strong = {"controller.kp": 1.0, "controller.smoothing": 0.0, "cost_limit": 0.5}
    found = {}
    for variant in ("corrected", "published"):
        path = train(run_of(tmp_path / variant, "trpo-simmer", variant=variant, **strong), quiet=True)
        found[variant] = load_player(path, print, "last").cost_budget_fraction
        assert load_policy(path, "last").z == pytest.approx(found[variant])
    assert 0.0 < found["corrected"] < 1.0
    assert found["published"] == 1.0


def test_the_log_has_the_rewards_of_the_task(tmp_path):
    """The first epoch of both runs has the same actions, although one learns from another reward."""
    shaped = {"budget_discount": 0.9, "unsafe_reward": -77.0}
    constant = {"cost_limit": 0.01, "env": "tests.training.probes:Constant", "total_steps": 80}
    for name, options in (("trpo", {}), ("trpo-saute", shaped)):
        progress = read_progress(train(run_of(tmp_path, name, **constant, **options), quiet=True))
        assert (progress["Train/EpRet"], progress["Train/EpCost"]) == ([10.0], [5.0])


def test_the_safety_state_is_not_normalized(tmp_path):
    tree = newest_checkpoint(train(run_of(tmp_path, "trpo-saute", total_steps=80), quiet=True)).tree
    assert len(tree["stats"]["mean"]) == 3
    assert tree["policy"]["w"][0].shape[0] == 4
