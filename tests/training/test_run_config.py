"""RunConfig: one run from command line, TOML and Python; errors; identity; config.json."""

import json
from dataclasses import dataclass, replace

import gymnasium
import pytest

from steingate.algorithms import ALGORITHMS
from steingate.algorithms.cpo import CPO
from steingate.cli import main
from steingate.errors import InputError
from steingate.runs import WITHOUT_EFFECT
from steingate.training import runner
from steingate.training.config import CertifyConfig, RunConfig, make_config, read_stored


@dataclass(frozen=True)
class OwnAlgorithm(CPO):
    """An algorithm from outside the package."""

    scale: float = 1.0


class TestSources:
    def test_text_files_and_python_give_the_same_run(self, tmp_path, monkeypatch):
        python = make_config(
            {
                "algo": "ppo-lag", "env": "a:B", "total_steps": 40_000, "steps_per_epoch": 2000, "seed": 3,
                "cost_limit": 10, "hidden": (32, 16), "ppo.epochs": 7, "ppo.lr_decay": False,
                "multiplier": "pid", "pid.smoothing": 0.5, "env_options": {"limit": 5}, "threads": None,
            }
        )  # fmt: skip
        file = tmp_path / "run.toml"
        file.write_text(
            'algo = "ppo-lag"\nenv = "a:B"\ntotal-steps = 40_000\nsteps_per_epoch = 2e3\nseed = 3\n'
            'cost-limit = 10.0\nhidden = [32, 16]\nmultiplier = "pid"\n'
            "[ppo]\nepochs = 7.0\nlr-decay = false\n[pid]\nsmoothing = 0.5\n[env-options]\nlimit = 5\n"
        )
        seen = []
        monkeypatch.setattr(runner, "train", lambda cfg, quiet, stop: seen.append(cfg))
        words = (
            "train --algo ppo-lag --env a:B --total-steps 4e4 --steps-per-epoch 2000 --seed 3 "
            "--cost-limit 10 --hidden 32,16 --ppo.epochs 7 --no-ppo.lr-decay "
            "--multiplier pid --pid.smoothing 0.5 --env-options limit=5 --threads none"
        )
        assert main(words.split()) == 0
        assert main(["train", "--config", str(file)]) == 0
        assert [*seen, make_config({}, file), make_config({"seed": "3"}, file)] == [python] * 4
        assert {cfg.identity for cfg in seen} == {python.identity}
        assert make_config({"seed": "5", "ppo.epochs": 8}, file).algo.ppo.epochs == 8

    @pytest.mark.parametrize(("one", "other"), [(2, 2.0), ("2", 2.0), ("2.0", 2), (2, "2e0")])
    def test_equal_numbers_give_equal_runs(self, one, other):
        names = ("cost_limit", "cg_damping", "cg_iters", "window")
        cfg = [make_config({"algo": "trpo", **dict.fromkeys(names, value)}) for value in (one, other)]
        assert cfg[0].identity == cfg[1].identity

    def test_an_algorithm_may_be_a_name_a_class_an_object_or_a_path(self):
        given = ("cpo", CPO, CPO(), f"{CPO.__module__}:CPO")
        found = [make_config({"algo": algo, "max_kl": "0.5"}) for algo in given]
        assert all(cfg == found[0] for cfg in found)
        assert found[0].algo.trust_region.max_kl == 0.5
        with pytest.raises(InputError, match="algo is 'cpo': give an algorithm, or make the run with make_config"):
            RunConfig(algo="cpo")


class TestErrors:
    @pytest.mark.parametrize(
        ("given", "message"),
        [
            ({"algo": "ppo", "max_kl": 0.5},
             r"ppo has no option 'max_kl' \(did you mean ppo.max_kl\?\); steingate algos ppo lists"),
            ({"algo": "cpo", "ppo": {"epochs": 3}}, r"cpo has no option 'ppo'"),
            ({"algo": "cpo", "totl_steps": 3}, r"no option 'totl_steps' \(did you mean total_steps\?\)"),
            ({"ppo.epochs": True, "algo": "ppo"}, "ppo.epochs must be an integer, got True"),
            ({"total_steps": 1000.5}, "total_steps must be an integer, got 1000.5"),
            ({"seed": -1}, "seed is -1: it must be a whole number from 0"),
            ({"cost_limit": -1}, "cost_limit is -1.0: it must be zero or a finite number above it"),
            ({"threads": 0}, "threads is 0: it must be greater than zero"),
            ({"algo": 3}, "algo is 3: give a name, module:Class, or an algorithm"),
            ({"env": 3}, "env is 3: give a name, or a class or function that makes an environment"),
            ({"num_envs": 3, "steps_per_epoch": 100}, r"is 100: it must be a multiple of num_envs \(3\)"),
            ({"env_options": {"cost": {1}}}, "'cost' of env_options is .*config.json cannot hold it"),
        ],
    )  # fmt: skip
    def test_are_one_sentence_with_the_value_and_the_remedy(self, given, message):
        with pytest.raises(InputError, match=message) as error:
            make_config(given)
        assert "\n" not in str(error.value)

    def test_of_the_command_line_name_the_flag(self, capsys):
        assert main(["train", "--algo", "ppo", "--max-kl", "0.5", "--preset", "released"]) == 2
        message = capsys.readouterr().err
        assert "no option --max-kl (did you mean --ppo.max-kl?)" in message
        assert message.count("\n") == 1


class TestDerivedValues:
    def test_episode_length_is_the_time_limit_of_the_task(self):
        known = next(name for name, spec in gymnasium.registry.items() if spec.max_episode_steps == 200)
        for env, length in (("SafetyPointCircle1-v0", 500), (known, 200), ("unknown:Task", 1000)):
            assert make_config({"env": env}).episode_length == length
        given = {"env": "SafetyPointGoal1-v0", "env_options": {"max_episode_steps": 77}}
        assert make_config(given).episode_length == 77


class TestIdentity:
    """Runs with the same identity have the same results."""

    def test_fields_of_the_run(self):
        cfg = make_config({"algo": "cpo", "threads": 2})
        effective = {
            "env": "other", "steps_per_epoch": 10_000, "num_envs": 4, "seed": 1, "cost_limit": 24.0,
            "window": 50, "carry_episodes": True, "env_options": {"x": 1}, "algo": OwnAlgorithm(),
        }  # fmt: skip
        without_effect = {
            "overlap": False, "threads": 3, "workers": 3, "checkpoint_every": 7, "wandb": "x", "out": "there",
            "certify": CertifyConfig(enabled=False),
        }  # fmt: skip
        assert all(replace(cfg, **{name: value}).identity != cfg.identity for name, value in effective.items())
        assert all(replace(cfg, **{name: value}).identity == cfg.identity for name, value in without_effect.items())
        assert without_effect.keys() == set(WITHOUT_EFFECT)
        presets = ("paper", "released", "corrected", "violation")
        assert len({make_config({"algo": "steingate", "preset": preset}).identity for preset in presets}) == 4


class TestStored:
    @pytest.mark.parametrize("algo", [*ALGORITHMS, OwnAlgorithm(scale=0.5)])
    def test_a_written_configuration_is_read_back(self, algo):
        cfg = make_config({"algo": algo, "seed": 3, "out": "there", "hidden": "5", "env_options": {"x": [1]}})
        text = json.dumps(cfg.to_dict(), allow_nan=False)
        back = read_stored(json.loads(text), "config.json")
        assert back.algo == cfg.algo
        assert back.identity == cfg.identity
        assert replace(back, algo=cfg.algo) == cfg

    def test_damaged_configurations_are_refused(self):
        stored = make_config({"algo": "cpo"}).to_dict()
        for change, message in (
            (3, r"x cannot be used: algorithm is 3: a table of names and values is expected\."),
            ({"scale": 3}, "x cannot be used: cpo has no option 'scale'"),
            ({"max_kl": "much"}, r"max_kl must be a number, got .much."),
        ):
            with pytest.raises(InputError, match=message):
                read_stored({**stored, "algorithm": change}, "x")
