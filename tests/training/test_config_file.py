"""A run continues with the configuration it was started with, or not at all."""

import json
import shutil

import pytest
from tests.training.runs_of_probes import facts, tiny

from steingate.algorithms import ALGORITHMS
from steingate.algorithms.base import EnvParams
from steingate.errors import InputError, RunError
from steingate.report.load import NO_EFFECT
from steingate.runs import WITHOUT_EFFECT
from steingate.training.config import make_config
from steingate.training.config_file import load_run_config
from steingate.training.play import load_player
from steingate.training.runner import resume, train


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    return train(tiny(tmp_path_factory.mktemp("whole"), total_steps=160), quiet=True)


@pytest.fixture
def copy(whole, tmp_path):
    return shutil.copytree(whole, tmp_path / "copy")


def edit(run, change):
    record = json.loads((run / "config.json").read_text())
    change(record)
    (run / "config.json").write_text(json.dumps(record))


EDITS = {
    "seed is 1, but was 0": lambda config: config.update(seed=1),
    "gamma is 0.5, but was 0.99": lambda config: config["algorithm"].update(gamma=0.5),
    "env is 'tests.training.probes:Costless', but was 'tests.training.probes:Walk'": lambda config: config.update(
        env="tests.training.probes:Costless"
    ),
    "certificate.budget is 0.9, but was": lambda config: config["algorithm"]["certificate"].update(budget=0.9),
    "max_kl is inf, but was 0.01": lambda config: config["algorithm"].update(max_kl=float("inf")),
    "cost_limit is None, but was 4.0": lambda config: config.pop("cost_limit"),
}


@pytest.mark.parametrize("what", EDITS)
def test_an_edited_setting_is_refused_by_name(copy, what):
    edit(copy, lambda record: EDITS[what](record["config"]))
    before = facts(copy)
    for use in (lambda: resume(copy, quiet=True), lambda: load_player(copy, print)):
        with pytest.raises(RunError) as refused:
            use()
        assert f"config.json was changed after the run was started: {what}" in str(refused.value)
        assert f"steingate resume {copy} --total-steps N." in str(refused.value)
    assert facts(copy) == before


def test_another_algorithm_is_refused(copy):
    edit(copy, lambda record: record["config"].update(algo="cpo"))
    with pytest.raises(RunError, match=r"config\.json cannot be used"):
        resume(copy, quiet=True)


def test_a_folder_with_results_but_no_settings_is_not_trained_over(tmp_path):
    cfg = tiny(tmp_path, total_steps=80)
    cfg.path.mkdir(parents=True)
    (cfg.path / "progress.csv").write_text("a\n1\n")
    with pytest.raises(RunError, match=r"already holds a run: restore .*config\.json"):
        train(cfg, quiet=True)
    assert (cfg.path / "progress.csv").read_text() == "a\n1\n"


def test_without_a_checkpoint_an_edit_is_noticed_too(copy):
    shutil.rmtree(copy / "checkpoints")
    edit(copy, lambda record: record["config"].update(seed=9))
    with pytest.raises(RunError, match="its settings do not match its identity; restore it"):
        resume(copy, quiet=True)


def test_the_identity_may_not_be_removed_or_forged(copy):
    edit(copy, lambda record: record.pop("identity"))
    with pytest.raises(RunError, match="its identity is missing"):
        resume(copy, quiet=True)
    edit(copy, lambda record: record["config"].update(seed=1))
    with pytest.raises(RunError, match="seed is 1, but was 0, its identity is missing"):
        resume(copy, quiet=True)
    edit(copy, lambda record: record.update(identity=tiny("anywhere", seed=1).identity))
    with pytest.raises(RunError, match=r"epoch-00000002.* does not belong to this run"):
        resume(copy, quiet=True)


def test_settings_without_effect_may_change(copy):
    edit(copy, lambda record: record["config"].update(threads=1, checkpoint_every=3, cost_limit=4))
    assert resume(copy, quiet=True) == copy
    assert load_run_config(copy).threads == 1
    assert set(NO_EFFECT) == {*WITHOUT_EFFECT, "seed"}  # reports ignore the same ones


def test_a_setting_that_a_later_version_adds_is_no_edit(copy):
    edit(copy, lambda record: record["config"].pop("carry_episodes"))
    assert resume(copy, quiet=True) == copy


def test_sizes_beyond_any_checkpoint_or_counter_are_refused():
    for hidden in ("200000,200000", (16384, 16384), "3000000000"):
        with pytest.raises(InputError, match=r"hidden is \([0-9, ]+\): networks of that size do not fit"):
            make_config({"hidden": hidden})
    assert make_config({"hidden": (2048, 2048)}).algo.networks.hidden == (2048, 2048)
    for name in ("total_steps", "steps_per_epoch", "num_envs", "window"):
        with pytest.raises(InputError, match=r"and less than 2\*\*63"):
            make_config({name: 10**400})


@pytest.mark.parametrize("name", ALGORITHMS)
def test_a_limit_of_0_works_or_is_refused(name):
    cfg = make_config({"algo": name, "cost_limit": 0.0})
    if not any(word in name for word in ("saute", "simmer", "allowance")):
        cfg.algo.initial_messages(cfg.context)
        return
    with pytest.raises(InputError, match=r"cost_limit of 0 leaves none.*0\.5 means the same"):
        cfg.algo.safety_state(cfg.context, EnvParams())
