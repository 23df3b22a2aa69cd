"""Whole small runs: made longer, from outside, from earlier versions, logged elsewhere, repeated."""

import json
import signal
import sys
import types

import numpy as np
import pytest
from tests.training.test_config import earlier

from steingate.cli import main
from steingate.errors import RunError
from steingate.policies.load import load_policy
from steingate.runs import RunFolder, latest_checkpoint, read_config, read_progress, write_config
from steingate.storage.checkpoint import checkpoint_files
from steingate.training import evaluate as evaluate_module
from steingate.training import loop
from steingate.training import play as play_module
from steingate.training.api import train as train_from_python
from steingate.training.config import make_config
from steingate.training.config_file import load_run_config
from steingate.training.evaluate import evaluate, load_player
from steingate.training.rollout_kernels import FROZEN, OFF
from steingate.training.runner import resume, train
from steingate.training.stop import StopRequest

SIZES = {
    "env": "tests.training.probes:Walk",
    "total_steps": 160,
    "steps_per_epoch": 80,
    "num_envs": 4,
    "cost_limit": 4.0,
    "hidden": (8,),
    "critic_passes": 1,
    "critic_batch": 40,
}
SECOND = {"algo": "cpo", "cg_iters": 3, "search_steps": 3}
FIRST = {"algo": "ppo", "clipped.passes": 2, "clipped.batch_size": 40}


def run_of(out, **changes):
    return make_config({**SIZES, "out": str(out), **changes})


def rows(path):
    """The columns of a run that are no times."""
    return {name: column for name, column in read_progress(path).items() if not name.startswith("Time/")}


def same_runs(one, other):
    """Assert that two run folders hold the same bits: policy, critics and all states, rows, episodes."""
    assert rows(one) == rows(other)
    assert (one / "episodes.csv").read_text() == (other / "episodes.csv").read_text()
    (first, one_last), (second, other_last) = (checkpoint_files(run / "checkpoints")[-1] for run in (one, other))
    assert first == second
    assert one_last.read_bytes() == other_last.read_bytes()


class TestLonger:
    def test_a_run_made_longer_equals_one_that_was_longer_from_the_start(self, tmp_path, capsys):
        short = train(run_of(tmp_path / "short", **SECOND), quiet=True)
        assert main(["resume", str(short), "--total-steps", "320", "--quiet"]) == 0
        assert capsys.readouterr().out.strip() == str(short)
        whole = train(run_of(tmp_path / "whole", **SECOND, total_steps=320), quiet=True)
        same_runs(short, whole)
        assert len(rows(whole)["Train/Epoch"]) == 4
        assert load_run_config(short).total_steps == 320
        assert read_config(short)["identity"] == read_config(whole)["identity"]
        before = (short / "config.json").read_bytes()
        resume(short, quiet=True)
        assert (short / "config.json").read_bytes() == before
        same_runs(short, whole)

    def test_one_whose_rate_falls_is_refused_unless_it_does_not_fall(self, tmp_path, capsys):
        falling = train(run_of(tmp_path / "falling", **FIRST), quiet=True)
        before = (falling / "config.json").read_bytes()
        assert main(["resume", str(falling), "--total-steps", "320", "--quiet"]) == 2
        said = capsys.readouterr().err
        assert "cannot be made longer: the learning rate of ppo falls to 0 over the steps" in said
        assert "--no-clipped.decay" in said
        assert said.count("\n") == 1
        assert (falling / "config.json").read_bytes() == before
        assert resume(falling, quiet=True, total_steps=160) == falling
        steady = {**FIRST, "clipped.decay": False}
        short = train(run_of(tmp_path / "short", **steady), quiet=True)
        resume(short, quiet=True, total_steps=320)
        same_runs(short, train(run_of(tmp_path / "whole", **steady, total_steps=320), quiet=True))

    def test_none_is_made_shorter(self, tmp_path, capsys):
        path = train(run_of(tmp_path, **SECOND), quiet=True)
        for steps, said in (("80", "is planned for 160 already"), ("many", "must be an integer")):
            assert main(["resume", str(path), "--total-steps", steps, "--quiet"]) == 2
            assert said in capsys.readouterr().err

    def test_a_stopped_run_can_be_made_longer_too(self, tmp_path, monkeypatch):
        stop, real = StopRequest(), loop.run_epoch

        def run_epoch(*given):
            outcome = real(*given)
            stop.signum = signal.SIGINT
            return outcome

        cfg = run_of(tmp_path / "short", **SECOND)
        monkeypatch.setattr(loop, "run_epoch", run_epoch)
        with pytest.raises(KeyboardInterrupt):
            train(cfg, quiet=True, stop=stop)
        monkeypatch.undo()
        assert latest_checkpoint(cfg.path / "checkpoints").epoch == 1
        resume(cfg.path, quiet=True, total_steps=240)
        same_runs(cfg.path, train(run_of(tmp_path / "whole", **SECOND, total_steps=240), quiet=True))


class TestRepeats:
    def test_the_same_seed_gives_the_same_rows_and_another_gives_others(self, tmp_path):
        paths = [
            train(run_of(tmp_path / name, **SECOND, seed=seed, overlap=overlap), quiet=True)
            for name, seed, overlap in (("a", 0, True), ("b", 0, False), ("c", 1, True))
        ]
        same_runs(*paths[:2])
        assert rows(paths[0])["Metrics/EpRet"] != rows(paths[2])["Metrics/EpRet"]

    def test_epochs_are_fresh(self, tmp_path):
        path = train(run_of(tmp_path, **SECOND), quiet=True)
        first, second = read_progress(path)["Train/EpRet"]
        assert first != second


METHOD = '''
"""A method of a user's own."""

from dataclasses import dataclass

from steingate.algorithms.common.base import Algorithm
from steingate.algorithms.common.recipe import About, Constrained, SecondOrder
from steingate.gates.base import Decision, Gate, Mode, Ruling


@dataclass(frozen=True)
class Mine(SecondOrder, Constrained):
    """Raise reward, but every so many epochs lower cost."""

    every: int = 2

    def build(self, setup):
        def decide(state, episodes):
            shut = state % self.every == self.every - 1
            mode = Mode.RECOVER if shut else Mode.IMPROVE
            return Ruling(Decision(mode, 0.0), state + 1, {"gate/turn": float(state)})

        return Algorithm(Gate(lambda: 0, decide), self.step(setup), notes=(f"Limit {setup.limit:g}.",))
'''


class TestOutsiders:
    @pytest.fixture
    def module(self, tmp_path, monkeypatch):
        (tmp_path / "method_of_a_user.py").write_text(METHOD)
        monkeypatch.syspath_prepend(str(tmp_path))
        yield "method_of_a_user"
        sys.modules.pop("method_of_a_user", None)

    def test_a_class_in_a_module_trains_resumes_and_is_evaluated(self, module, tmp_path, capsys):
        words = [f"--{name.replace('_', '-')}={value}" for name, value in SIZES.items() if name != "hidden"]
        words += ["--hidden=8", "--cg-iters=3", "--search-steps=3", "--every=3", f"--out={tmp_path / 'runs'}"]
        assert main(["train", "--algo", f"{module}:Mine", *words, "--quiet"]) == 0
        path = tmp_path / "runs" / f"{module}-Mine" / "tests.training.probes-Walk" / "seed-0"
        assert capsys.readouterr().out.strip() == str(path)
        assert main(["resume", str(path), "--total-steps", "320", "--quiet"]) == 0
        found = rows(path)
        assert found["Gate/Mode"] == [0, 0, 2, 0]
        assert found["Gate/Turn"] == [0.0, 1.0, 2.0, 3.0]
        assert read_config(path)["notes"] == ["Limit 4."]
        assert read_config(path)["config"]["algo"] == f"{module}:Mine"
        assert evaluate(path, 2, policy="last").epoch == 4
        assert load_policy(path, "last")(np.zeros(3)).shape == (2,)
        capsys.readouterr()
        assert main(["train", "--algo", f"{module}:Mine", "--evry=3"]) == 2
        assert f"{module}:Mine has no option --evry (did you mean --every?)" in capsys.readouterr().err

    def test_from_python_it_may_be_a_recipe(self, module, tmp_path):
        from method_of_a_user import Mine

        sizes = {**SIZES, "cg_iters": 3, "search_steps": 3, "quiet": True}
        run = train_from_python(algo=Mine(every=1), out=str(tmp_path / "a"), **sizes)
        assert rows(run.path)["Gate/Mode"] == [2, 2]
        named = train_from_python(algo=f"{module}:Mine", every=1, out=str(tmp_path / "b"), **sizes)
        same_runs(run.path, named.path)


class TestEarlierVersions:
    @pytest.fixture
    def old(self, tmp_path):
        """A run whose config.json is of the earlier form."""
        path = train(run_of(tmp_path, **SECOND), quiet=True)
        record = read_config(path)
        sizes = {**SIZES, "hidden": list(SIZES["hidden"]), "cg_iters": 3, "search_steps": 3, "max_kl": 0.01}
        stored = earlier(**sizes, algo="cpo", out=str(tmp_path), seed=0, window=100, normalize_obs=True)
        write_config(RunFolder(path), {**record, "config": stored})
        return path

    def test_it_is_read_and_evaluated_but_not_resumed(self, old, capsys):
        found = evaluate(old, 3, policy="last")
        assert found.epoch == 2
        assert found.limit == 4.0
        for words in ((), ("--total-steps", "320")):
            assert main(["resume", str(old), *words, "--quiet"]) == 2
            said = capsys.readouterr().err
            assert "was started by an earlier version" in said
            assert "cannot be resumed; train it anew." in said
            assert said.count("\n") == 1

    def test_what_no_version_wrote_is_refused_in_one_sentence(self, old):
        record = read_config(old)
        write_config(RunFolder(old), {**record, "config": {**record["config"], "zeal": 1}})
        with pytest.raises(RunError, match="cpo has no option 'zeal'"):
            load_run_config(old)
        write_config(RunFolder(old), {**record, "config": 3})
        with pytest.raises(RunError, match="has no table 'config'"):
            load_run_config(old)


class TestEvaluation:
    @pytest.mark.parametrize(("normalize", "mode"), [(False, OFF), (True, FROZEN)])
    def test_observations_are_normalized_as_in_training(self, tmp_path, monkeypatch, normalize, mode):
        path = train(run_of(tmp_path, **SECOND, normalize_obs=normalize), quiet=True)
        assert load_player(path, lambda text: None, "last").mode == mode
        tree = latest_checkpoint(path / "checkpoints").tree
        assert tree["normalize"] is normalize
        assert (tree["stats"]["count"] > 0) is normalize
        modes, real = [], play_module.collect

        def collect(*given, **options):
            modes.append(options["mode"])
            return real(*given, **options)

        monkeypatch.setattr(play_module, "collect", collect)
        evaluate(path, 2)
        assert set(modes) == {mode}

    @pytest.mark.parametrize(("variant", "whole"), [("corrected", False), ("published", True)])
    def test_episodes_start_with_the_share_that_training_reached(self, tmp_path, monkeypatch, variant, whole):
        strong = {"controller.proportional": 1.0, "controller.smoothing": 0.0, "cost_limit": 0.5}
        given = {**SECOND, "algo": "trpo-simmer", "variant": variant, "env_options": {"limit": 5}, **strong}
        path = train(run_of(tmp_path, **given), quiet=True)
        reached = latest_checkpoint(path / "checkpoints").tree["budget"]
        assert 0.0 < reached < 1.0
        shown, real = [], evaluate_module.play

        def play(envs, *rest):
            shown.append(envs.reset(seed=0)[0][0, -1])
            return real(envs, *rest)

        monkeypatch.setattr(evaluate_module, "play", play)
        evaluate(path, 1, policy="last")
        assert shown == [1.0 if whole else reached]


class TestWandb:
    def test_two_presets_never_share_a_run(self, tmp_path, monkeypatch):
        asked = []
        run = types.SimpleNamespace(log=lambda numbers, step: None, finish=lambda: None)
        package = types.SimpleNamespace(init=lambda **options: asked.append(options) or run)
        monkeypatch.setitem(sys.modules, "wandb", package)
        given = {"cg_iters": 3, "search_steps": 3, "wandb": "tails"}
        # The folders of a grid differ above what W&B is told, so their names are the same.
        paths = [
            train(run_of(tmp_path / preset, algo="steingate", preset=preset, **given), quiet=True)
            for preset in ("released", "paper")
        ]
        resume(paths[0], quiet=True)
        assert asked[0]["name"] == asked[1]["name"]
        assert asked[0]["id"] != asked[1]["id"]
        assert asked[0]["id"] == asked[2]["id"]
        assert [options["resume"] for options in asked] == ["allow"] * 3
        assert json.dumps(asked[0]["config"])
        assert asked[1]["config"]["recipe"]["preset"] == "paper"
