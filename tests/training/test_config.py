"""RunConfig: one run from text, files and Python; what it is, what it refuses, how it is stored and read."""

import json
import sys
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any, Literal, get_args, get_origin

import gymnasium
import jax
import numpy as np
import pytest
from steingate.algorithms.common.base import Algorithm
from steingate.algorithms.common.descent import _compiled as compiled_descent
from steingate.algorithms.common.recipe import FirstOrder, Recipe, SecondOrder, Setup
from steingate.gates.mean import open_gate
from steingate.training.assemble import build_algorithm
from tests.training.fakes import Told, epochs, small

from steingate.algorithms import METHODS
from steingate.algorithms.common import recipe as recipe_module
from steingate.algorithms.common import sizes
from steingate.algorithms.common.critics import _compiled as compiled_fit
from steingate.algorithms.common.trust_region import _compiled as compiled_step
from steingate.algorithms.cpo import CPO
from steingate.algorithms.steingate import SteinGate
from steingate.cli import main
from steingate.envs.safety_state import Augmented
from steingate.errors import InputError
from steingate.runs import WITHOUT_EFFECT
from steingate.settings import field_types, option_names, to_json, with_options
from steingate.training import batch as batch_module
from steingate.training import loop
from steingate.training.config import CertifyConfig, RunConfig, make_config, read_stored


@dataclass(frozen=True)
class Outsider(SecondOrder):
    """A method from outside the package."""

    zeal: float = 1.0

    def build(self, setup: Setup) -> Algorithm:
        return Algorithm(open_gate(), self.step(setup), uses_cost=False)


class TestOneRunManyWays:
    def test_text_files_and_python_give_the_same_run(self, tmp_path, monkeypatch):
        python = make_config(
            {
                "algo": "ppo-lag", "env": "a:B", "total_steps": 40_000, "steps_per_epoch": 2000, "seed": 3,
                "cost_limit": 10, "hidden": (32, 16), "clipped.passes": 7, "clipped.decay": False,
                "multiplier": "pid", "pid.smoothing": 0.5, "env_options": {"limit": 5}, "threads": None,
            }
        )  # fmt: skip
        file = tmp_path / "run.toml"
        file.write_text(
            'algo = "ppo-lag"\nenv = "a:B"\ntotal-steps = 40_000\nsteps_per_epoch = 2e3\nseed = 3\n'
            'cost-limit = 10.0\nhidden = [32, 16]\nmultiplier = "pid"\n'
            "[clipped]\npasses = 7.0\ndecay = false\n[pid]\nsmoothing = 0.5\n[env-options]\nlimit = 5\n"
        )
        seen = []
        monkeypatch.setattr(loop, "train", lambda cfg, quiet, stop: seen.append(cfg))
        words = (
            "train --algo ppo-lag --env a:B --total-steps 4e4 --steps-per-epoch 2000 --seed 3 "
            "--cost-limit 10 --hidden 32,16 --clipped.passes 7 --no-clipped.decay "
            "--multiplier pid --pid.smoothing 0.5 --env-options limit=5 --threads none"
        )
        assert main(words.split()) == 0
        assert main(["train", "--config", str(file)]) == 0
        text = make_config({name: str(value) for name, value in {"seed": 3, "cost_limit": 10}.items()}, file)
        assert seen == [python, python]
        assert make_config({}, file) == text == python
        assert len({cfg.identity for cfg in (*seen, text, python)}) == 1

    def test_a_method_may_be_a_name_a_class_a_recipe_or_a_place(self):
        place = f"{CPO.__module__}:CPO"
        found = [make_config({"algo": algo, "max_kl": "0.5"}) for algo in ("cpo", CPO, CPO(), place)]
        assert all(cfg == found[0] for cfg in found)
        assert found[0].algo == CPO(max_kl=0.5)
        assert make_config({}).algo == SteinGate()
        assert make_config({"algo": CPO(max_kl=0.3), "damping": 0.2}).algo == CPO(max_kl=0.3, damping=0.2)
        with pytest.raises(InputError, match="algo is 3: give a name, module:Class, or a recipe"):
            make_config({"algo": 3})
        with pytest.raises(InputError, match="algo is 'cpo': give a recipe, or make the run with make_config"):
            RunConfig(algo="cpo")

    def test_options_win_over_the_file(self, tmp_path):
        (tmp_path / "run.toml").write_text('algo = "cpo"\nseed = 3\nmax_kl = 0.5\n')
        cfg = make_config({"seed": "5", "max-kl": 0.25}, tmp_path / "run.toml")
        assert (cfg.seed, cfg.algo.max_kl, cfg.algo.name) == (5, 0.25, "cpo")

    @pytest.mark.parametrize(("one", "other"), [(2, 2.0), ("2", 2.0), ("2.0", 2), (2, "2e0")])
    def test_two_is_two(self, one, other):
        cfg = [make_config({"cost_limit": value, "algo": "trpo", "damping": value}) for value in (one, other)]
        assert cfg[0].identity == cfg[1].identity
        whole = [make_config({"algo": "trpo", "cg_iters": value, "window": value}) for value in (one, other)]
        assert whole[0].identity == whole[1].identity
        assert isinstance(whole[1].window, int)

    def test_published_settings_of_the_task_are_filled_in(self):
        cfg = make_config({"algo": "ppo-saute", "env": "SafetyPointGoal1-v0"})
        assert cfg.algo.clipped.passes == 80
        assert not cfg.algo.normalize_obs


class TestRefusals:
    @pytest.mark.parametrize(
        ("given", "complaint"),
        [
            ({"algo": "ppo", "max_kl": 0.5},
             r"ppo has no option 'max_kl' \(did you mean clipped.max_kl\?\); steingate algos ppo lists"),
            ({"algo": "ppo", "preset": "confident"}, r"ppo has no option 'preset'"),
            ({"algo": "cpo", "clipped.passes": 3}, r"cpo has no option 'clipped.passes'"),
            ({"algo": "cpo", "clipped": {"passes": 3}}, r"cpo has no option 'clipped'"),
            ({"algo": "cpo", "totl_steps": 3}, r"no option 'totl_steps' \(did you mean total_steps\?\)"),
            ({"algo": "ppo", "clipped.pases": 3}, r"'clipped.pases' \(did you mean clipped.passes\?\)"),
            ({"algo": "trpo", "cost_lam": 0.5}, "trpo has no option 'cost_lam'"),
            ({"algo": "cpoo"}, r"algorithm 'cpoo' is not known \(did you mean cpo\?\)"),
            ({"clipped.passes": True, "algo": "ppo"}, "clipped.passes must be an integer, got True"),
            ({"seed": True}, "seed must be an integer, got True"),
            ({"cost_limit": False}, "cost_limit must be a number, got False"),
            ({"total_steps": 1000.5}, "total_steps must be an integer, got 1000.5"),
            ({"seed": -1}, "seed is -1: it must be a whole number from 0"),
            ({"seed": 2**63}, "it must be a whole number from 0 to"),
            ({"cost_limit": -1}, "cost_limit is -1.0: it must be zero or a finite number above it"),
            ({"cost_limit": "inf"}, "cost_limit is inf: it must be zero or a finite number above it"),
            ({"window": 0}, "window is 0: it must be greater than zero"),
            ({"checkpoint_every": 0}, "checkpoint_every is 0: it must be greater than zero"),
            ({"threads": 0}, "threads is 0: it must be greater than zero, or none"),
            ({"workers": 0}, "workers is 0: it must be greater than zero, or none"),
            ({"env": 3}, "env is 3: give a name, or a class or function that makes an environment"),
            ({"num_envs": 3, "steps_per_epoch": 100}, "is 100, which 3 environments cannot share"),
            ({"total_steps": 10, "steps_per_epoch": 16}, "is 10, less than one epoch of 16 steps"),
            ({"env_options": {"cost": print}}, "'cost' of env_options is .*text"),
            ({"env_options": {"cost": {1}}}, "'cost' of env_options is .*config.json cannot hold it"),
        ],
    )  # fmt: skip
    def test_one_sentence_says_what_and_what_else(self, given, complaint):
        with pytest.raises(InputError, match=complaint) as error:
            make_config(given)
        assert str(error.value).count("\n") == 0

    def test_a_setting_of_another_method_is_refused_on_the_command_line(self, capsys):
        assert main(["train", "--algo", "ppo", "--max-kl", "0.5", "--preset", "confident"]) == 2
        said = capsys.readouterr().err
        assert "ppo has no option --max-kl (did you mean --clipped.max-kl?)" in said
        assert said.count("\n") == 1

    def test_whole_numbers_may_be_written_with_a_point(self):
        assert make_config({"algo": "ppo", "clipped.passes": 10.0}).algo.clipped.passes == 10


class TestDerived:
    def test_epochs_and_horizon(self):
        cfg = make_config({"total_steps": 99, "steps_per_epoch": 20, "num_envs": 4})
        assert (cfg.epochs, cfg.horizon) == (4, 5)
        assert make_config({"total_steps": 20, "steps_per_epoch": 20, "num_envs": 4}).epochs == 1

    def test_the_recipe_is_told_about_the_run(self):
        cfg = make_config(
            {
                "total_steps": 80,
                "steps_per_epoch": 20,
                "num_envs": 4,
                "cost_limit": 7,
                "window": 9,
                "seed": 11,
            }
        )
        assert cfg.setup == Setup(limit=7.0, window=9, length=1000, epochs=4, seed=11)

    def test_the_length_of_an_episode_is_the_tasks_unless_given(self):
        given = {"env": "SafetyPointGoal1-v0", "env_options": {"max_episode_steps": 77}}
        assert make_config(given).episode_length == 77
        assert make_config({"env": "SafetyPointCircle1-v0"}).episode_length == 500
        assert make_config({"env": "steingate/SafetyPointCircle1-v0"}).episode_length == 500
        assert make_config({"env": "nobody:Knows"}).episode_length == 1000
        known = next((name for name, spec in gymnasium.registry.items() if spec.max_episode_steps == 200), None)
        assert make_config({"env": known}).episode_length == 200
        assert make_config({**given, "algo": "trpo-saute"}).recipe.length == 77
        assert make_config({**given, "algo": "trpo-saute", "variant": "published"}).recipe.length == 1000

    def test_the_folder_is_of_method_task_and_seed(self):
        cfg = make_config({"algo": "ppo-lag", "env": "tests.x:Walk", "seed": 4, "out": "there"})
        assert cfg.path.parts == ("there", "ppo-lag", "tests.x-Walk", "seed-4")


def other(hint, value):
    """Another value of a setting."""
    choices = [kind for kind in get_args(hint) if kind is not type(None)] or [hint]
    if get_origin(hint) is Literal:
        return next(choice for choice in get_args(hint) if choice != value)
    if hint is tuple or get_origin(hint) is tuple:
        return (5,)
    if get_origin(hint) is not None and "Mapping" in str(get_origin(hint)):
        return {"budget": 0.21}
    kind = choices[0]
    if get_origin(kind) is Literal:
        return next(choice for choice in get_args(kind) if choice != value)
    if kind is bool:
        return not value
    if value is None:
        return kind(0.5) if kind is float else 7
    if value == float("inf"):
        return 3.0
    return value + 1 if kind is int else 0.5 * value if value else 0.25


def changed(recipe, name):
    """The recipe with one setting changed; the law that a price needs comes with its settings."""
    head, _, last = name.rpartition(".")
    owner = getattr(recipe, head) if head else recipe
    value = other(field_types(type(owner))[last], getattr(owner, last))
    given = {name: 1.5 if name in ("pace.loosen", "pace.settled") else value}
    if name == "replay.buffer":
        given["replay.whole_epoch"] = False
    if head == "pid":
        given["multiplier"] = "pid"
    return with_options(recipe, given, "it")


class TestIdentity:
    @pytest.mark.parametrize("name", METHODS)
    def test_every_setting_of_every_method_is_part_of_it(self, name):
        recipe = make_config({"algo": name}).recipe
        own = make_config({"algo": recipe}).identity
        known = option_names(recipe)
        seen = {make_config({"algo": changed(recipe, setting)}).identity for setting in known}
        assert own not in seen
        assert len(seen) == len(known)

    def test_every_field_of_the_run_is_part_of_it_but_those_without_effect(self):
        cfg = make_config({"algo": "cpo", "threads": 2})
        for name, value in {
            "env": "other", "steps_per_epoch": 10_000, "num_envs": 4, "seed": 1, "cost_limit": 24.0,
            "window": 50, "carry_episodes": True, "env_options": {"x": 1}, "algo": CPO(max_kl=0.5),
        }.items():  # fmt: skip
            assert replace(cfg, **{name: value}).identity != cfg.identity, name
        for name, value in {
            "overlap": False, "threads": 3, "workers": 3, "checkpoint_every": 7, "wandb": "x", "out": "there",
            "certify": CertifyConfig(enabled=False),
        }.items():  # fmt: skip
            assert replace(cfg, **{name: value}).identity == cfg.identity, name
        without = {"overlap", "threads", "workers", "checkpoint_every", "wandb", "out", "certify"}
        assert without == set(WITHOUT_EFFECT)

    @pytest.mark.parametrize("name", METHODS)
    def test_the_number_of_steps_belongs_to_it_only_where_epochs_depend_on_it(self, name):
        cfg = make_config({"algo": name, "total_steps": 100_000})
        same = replace(cfg, total_steps=200_000).identity == cfg.identity
        assert same is not issubclass(METHODS[name], FirstOrder)
        if issubclass(METHODS[name], FirstOrder):
            free = make_config({"algo": name, "total_steps": 100_000, "clipped.decay": False})
            assert replace(free, total_steps=200_000).identity == free.identity

    def test_two_presets_two_methods_and_two_classes_of_one_name_differ(self):
        presets = ("paper", "released", "certified", "confident")
        assert len({make_config({"preset": preset}).identity for preset in presets}) == 4
        assert make_config({"algo": "trpo"}).identity != make_config({"algo": Outsider()}).identity

    def test_what_follows_from_the_variant_is_the_same_whether_given_or_not(self):
        for given in ({"length": 1000}, {}):
            cfg = make_config({"algo": "trpo-saute", "variant": "published", **given})
            assert cfg.identity == make_config({"algo": "trpo-saute", "variant": "published"}).identity
        assert (
            make_config({"algo": "evo", "replay.everywhere": False}).identity
            == make_config({"algo": "evo"}).identity
            != make_config({"algo": "evo", "replay.everywhere": True}).identity
        )


class TestNoSettingIsIdle:
    """Every setting of a method is read by something that runs, in one of its variants."""

    def recording(self, kind, seen, prefix=""):
        """A class like ``kind`` that writes down which fields anything but the record itself reads."""

        def __getattribute__(self, name):  # noqa: N807
            caller = sys._getframe(1)
            known = object.__getattribute__(self, "__dataclass_fields__")
            modules = ("dataclasses", "steingate.settings", __name__)
            if (
                name in known
                and caller.f_globals["__name__"] not in modules
                and not caller.f_code.co_name.startswith("__")
            ):
                seen.add(prefix + name)
            return object.__getattribute__(self, name)

        body = {"__getattribute__": __getattribute__, "__module__": kind.__module__, "__doc__": kind.__doc__}
        return type(kind.__name__, (kind,), body)

    def recorded(self, record, seen, prefix=""):
        kind = self.recording(type(record), seen, prefix)
        values = {}
        for item in fields(record):
            value = getattr(record, item.name)
            nested = is_dataclass(value)
            values[item.name] = self.recorded(value, seen, f"{prefix}{item.name}.") if nested else value
        made = object.__new__(kind)
        for name, value in values.items():
            object.__setattr__(made, name, value)
        return made

    @pytest.fixture
    def traced(self, monkeypatch):
        """Compile nothing: functions are traced, which reads their settings, and give zeros."""

        def jit(function):
            def zeros(*given):
                shapes = jax.eval_shape(function, *given)
                return jax.tree.map(lambda leaf: np.zeros(leaf.shape, leaf.dtype), shapes)

            return zeros

        caches = (compiled_step, compiled_descent, compiled_fit)
        for cache in caches:
            cache.cache_clear()
        monkeypatch.setattr(jax, "jit", jit)
        yield
        for cache in caches:
            cache.cache_clear()

    def idle(self, kind, monkeypatch):
        """Return the settings of a method that nothing read in two epochs, nor of its region and its fit."""
        seen, regions, fits = set(), set(), set()
        monkeypatch.setattr(recipe_module, "TrustRegion", self.recording(sizes.TrustRegion, regions))
        monkeypatch.setattr(recipe_module, "CriticFit", self.recording(sizes.CriticFit, fits))
        monkeypatch.setattr(batch_module, "_values", lambda reward, cost, obs: (np.zeros(len(obs)),) * 2)
        first_order = issubclass(kind, FirstOrder)
        runs = [{"variant": "corrected"}, {"variant": "published"}]
        if "multiplier" in option_names(kind()):
            runs.append({"multiplier": "pid"})
        if "length" in option_names(kind()):
            runs.append({"length": 30})
        if "pace.block" in option_names(kind()):  # blocks that tighten, that loosen, that are settled
            runs += [{"pace.block": 1, "cost_limit": 1e-3}, {"pace.block": 1, "budget": 0.99}]
            runs.append({"pace.block": 1, "budget": 0.99, "first_std": 0.1})
        for given in runs:
            plain = small(kind, **given, **({"clipped.passes": 2} if first_order else {}))
            for passes in {None, 1} if first_order else {1}:
                own = replace(plain.algo, critic_passes=passes)
                cfg = replace(plain, algo=self.recorded(own, seen))
                algo = build_algorithm(cfg)
                envs = Told() if algo.account is None else Augmented(Told(), algo.account)
                epochs(cfg, algo, envs, 2)
        seen |= {"near", "places"}  # read where environments are made: see test_assemble
        idle = {setting for setting in option_names(kind()) if setting not in seen}
        idle |= {item.name for item in fields(sizes.CriticFit)} - fits
        if issubclass(kind, SecondOrder):
            idle |= {item.name for item in fields(sizes.TrustRegion)} - regions
        return idle

    @pytest.mark.parametrize("name", METHODS)
    def test_all_are_read(self, name, traced, monkeypatch):
        kind = METHODS[name]
        known = {"variant"} if kind.about.corrected.startswith("nothing") else set()
        assert self.idle(kind, monkeypatch) <= known

    def test_one_that_is_not_would_be_seen(self, traced, monkeypatch):
        assert self.idle(Outsider, monkeypatch) == {"zeal"}


class TestStored:
    @pytest.mark.parametrize("name", METHODS)
    def test_what_is_written_is_read_back(self, name):
        cfg = make_config({"algo": name, "seed": 3, "out": "there", "hidden": "5", "env_options": {"x": [1]}})
        text = json.dumps(cfg.to_dict(), allow_nan=False)
        back = read_stored(json.loads(text), "config.json")
        assert back.algo == cfg.recipe
        assert back.identity == cfg.identity
        assert replace(back, algo=cfg.algo) == cfg
        assert json.loads(text)["algo"] == name

    def test_so_is_a_method_from_outside(self):
        cfg = make_config({"algo": Outsider(zeal=0.5), "cg_iters": 3})
        stored = cfg.to_dict()
        assert stored["algo"] == f"{__name__}:Outsider"
        back = read_stored(json.loads(json.dumps(stored)), "config.json")
        assert (back.algo.zeal, back.algo.cg_iters, type(back.algo).__name__) == (0.5, 3, "Outsider")
        assert back.identity == cfg.identity

    def test_what_is_damaged_is_refused(self):
        stored = make_config({"algo": "cpo"}).to_dict()
        with pytest.raises(
            InputError, match=r"x cannot be used: recipe is 3: a table of names and values is expected\."
        ):
            read_stored({**stored, "recipe": 3}, "x")
        with pytest.raises(InputError, match="x cannot be used: cpo has no option 'zeal'"):
            read_stored({**stored, "recipe": {"zeal": 3}}, "x")
        with pytest.raises(InputError, match=r"max_kl must be a number, got .much."):
            read_stored({**stored, "recipe": {"max_kl": "much"}}, "x")


def earlier(**changes: Any) -> dict[str, Any]:
    """The configuration of a run as earlier versions stored it: all settings side by side, resolved."""
    return {
        "env": "SafetyPointGoal1-v0", "algo": "steingate", "total_steps": 1_000_000,
        "steps_per_epoch": 20_000,
        "num_envs": 8, "seed": 2, "cost_limit": 20.0, "variant": "corrected", "preset": "released",
        "certificate": {}, "algo_options": {}, "max_kl": 0.02, "cg_iters": 12, "damping": 0.2,
        "search_steps": 20, "shrink": 0.7, "discount": 0.98, "cost_discount": 0.97, "lam": 0.94,
        "cost_lam": 0.93, "critic_lr": 0.002, "critic_passes": 9, "critic_batch": 120, "critic_decay": 0.002,
        "critic_grad_norm": 30.0, "hidden": [32, 32], "normalize_obs": True, "window": 90,
        "carry_episodes": False, "env_options": {}, "overlap": True, "threads": None, "checkpoint_every": 10,
        "wandb": None, "out": "runs", **changes,
    }  # fmt: skip


class TestEarlierVersions:
    def test_a_run_of_steingate(self):
        cfg = read_stored(earlier(preset="certified", certificate={"budget": 0.2}), "config.json")
        assert cfg.algo == SteinGate(
            preset="certified", certificate={"budget": 0.2}, max_kl=0.02, cg_iters=12, damping=0.2,
            shrink=0.7,
            discount=0.98, cost_discount=0.97, lam=0.94, cost_lam=0.93, critic_lr=0.002, critic_passes=9,
            critic_batch=120, critic_decay=0.002, critic_grad_norm=30.0, hidden=(32, 32),
        )  # fmt: skip
        assert (cfg.seed, cfg.window, cfg.cost_limit, cfg.total_steps) == (2, 90, 20.0, 1_000_000)

    def test_settings_that_the_method_never_looked_at_are_left_out(self):
        cfg = read_stored(earlier(algo="ppo", critic_passes=None, algo_options={"clipped.passes": 7}), "it")
        assert cfg.algo.clipped.passes == 7
        assert (cfg.algo.lam, cfg.algo.critic_passes) == (0.94, None)
        assert not hasattr(cfg.algo, "max_kl")

    def test_the_budgets_discount_had_another_name(self):
        options = {"length": 1000, "discount": 0.9999, "unsafe_reward": -0.2, "clipped.passes": 80}
        found = earlier(algo="ppo-saute", critic_passes=None, normalize_obs=False, algo_options=options)
        recipe = read_stored(found, "config.json").algo
        assert (recipe.budget_discount, recipe.discount, recipe.unsafe_reward) == (0.9999, 0.98, -0.2)
        assert (recipe.length, recipe.clipped.passes, recipe.normalize_obs) == (1000, 80, False)

    @pytest.mark.parametrize(
        ("name", "options"),
        [
            ("crpo", {"tolerance": 3.0}),
            ("evo", {"extreme.capacity": 30, "replay.copies": 2}),
            ("trpo-lag", {"multiplier": "pid", "pid.delay": 4}),
            ("steingate", {"recovery": "tail"}),
            ("cvar-cpo", {"tail": 0.2}),
        ],
    )
    def test_options_of_the_method_are_its_settings(self, name, options):
        recipe = read_stored(earlier(algo=name, algo_options=options), "config.json").algo
        assert recipe == with_options(recipe, options, name)
        plain = read_stored(earlier(algo=name), "config.json").algo
        assert recipe != plain

    @pytest.mark.parametrize("name", METHODS)
    def test_every_method_is_read(self, name):
        passes = None if issubclass(METHODS[name], FirstOrder) else 9
        cfg = read_stored(json.loads(json.dumps(earlier(algo=name, critic_passes=passes))), "config.json")
        assert cfg.algo.name == name
        assert cfg.algo.lam == 0.94
        assert isinstance(cfg.algo, Recipe)
        assert to_json(cfg.algo)["hidden"] == [32, 32]
