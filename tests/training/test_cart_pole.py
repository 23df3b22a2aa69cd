"""What is delivered is certified, or the user is told: a task whose episodes vary in length."""

import warnings

import pytest

import steingate
from steingate.monitoring.episodes import run_episodes
from steingate.training.config import make_config
from steingate.training.runner import train

RUN = {
    "env": "tests.training.cart_pole:CartPole",
    "steps_per_epoch": 1600,
    "num_envs": 8,
    "cost_limit": 10.0,
    "hidden": (32, 32),
    "critic_passes": 4,
}


@pytest.mark.parametrize(
    ("algo", "epochs", "settings"),
    [
        ("steingate", 25, {"max_kl": 0.05}),
        ("ppo-lag", 15, {"critic_passes": None}),
        ("ppo", 18, {"critic_passes": None}),
    ],
)
def test_the_delivered_policy_is_certified_or_the_user_is_told(tmp_path, capsys, algo, epochs, settings):
    cfg = make_config({**RUN, "algo": algo, "total_steps": 1600 * epochs, "out": str(tmp_path), **settings})
    path = train(cfg)
    run = steingate.Run(path)
    assert run.certification["finished"]
    assert run.certification["sentence"] in capsys.readouterr().err
    assert run.certification["sentence"] in str(run)
    if not run.certified:
        with pytest.warns(UserWarning, match="not certified"):
            steingate.load_policy(path)
        return
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        loaded, fresh = steingate.load_policy(path), steingate.evaluate(run, 300, seed=11)
    assert loaded.about["checkpoint"] == fresh.which == "certified"
    assert fresh.violations <= 45  # of 300; with a true share of 0.1 the chance of more is below 4e-3
    alone = run_episodes(loaded, _cart_pole(), seed=3)
    assert sum(next(alone)[0] > 10.0 for _ in range(20)) <= 6
    if algo == "ppo":  # knows no cost: its last policy drives to where it costs
        last = steingate.evaluate(run, 100, policy="last")
        assert last.violations > 50
        assert run.certification["which"] == "earlier"
        assert "The last policy is not certified" in run.certification["sentence"]


def _cart_pole():
    from tests.training.cart_pole import CartPole

    return CartPole()
