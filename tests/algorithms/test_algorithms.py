"""The built-in algorithms as a collection: facts, options, errors, and how others are found."""

import subprocess
import sys
from dataclasses import dataclass, is_dataclass

import numpy as np
import pytest
from tests.algorithms.problems import episodes

from steingate.algorithms import ALGORITHMS, find_algorithm, make_algorithm
from steingate.algorithms.base import MethodInfo, RunContext, TrustRegionAlgorithm, TrustRegionConfig
from steingate.algorithms.cpo import MeanCostConstraint
from steingate.algorithms.modes import Mode, describe_update, effective_modes
from steingate.errors import InputError
from steingate.settings import group


def test_facts_of_the_methods():
    for name, kind in ALGORITHMS.items():
        assert is_dataclass(kind)
        assert kind().name == kind.info.name == name
        for text in (kind.info.summary, kind.info.paper, kind.info.published, kind.info.corrected):
            assert len(text) > 10
            assert not text.endswith(".")
        with pytest.raises(AttributeError):
            kind().variant = "published"
    assert len({kind.info.order for kind in ALGORITHMS.values()}) == len(ALGORITHMS)
    assert len({kind.info.color for kind in ALGORITHMS.values()} - {None}) == len(ALGORITHMS)


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("ppo", {"max_kl": 0.5}, r"max_kl.*did you mean ppo.max_kl\?"),
        ("cpo", {"max_lk": 0.5}, r"max_lk.*did you mean max_kl\?"),
        ("cpo", {"vf_epochs": None}, "vf_epochs is none: the policy update makes no passes"),
        ("cpo", {"gamma": 1.5}, "gamma must be at least 0 and at most 1, got 1.5"),
        ("cpo", {"advantage_clip": 0.0}, "advantage_clip must be positive"),
        ("cpo", {"hidden": ()}, "hidden is .*: give the sizes"),
        ("cpo", {"backtrack_coef": 1.0}, "backtrack_coef must be at least 0.001 and at most 0.999"),
        ("cpo", {"variant": "fixed"}, "variant"),
        ("crpo", {"tolerance": -1.0}, "tolerance must be at least 0"),
        ("trpo-lag", {"pid.delay": 0, "multiplier": "pid"}, "delay"),
        ("evo", {"extreme.percentile": 101.0}, "percentile"),
        ("allowance", {"risk": 0.0}, "risk must be positive"),
        ("allowance-ppo", {"episodes_per_update": 0}, "episodes_per_update"),
        ("allowance", {"schedule.init_fraction": 0.05}, "init_fraction"),
        ("allowance", {"schedule.shrink": 1.0}, "shrink"),
        ("allowance", {"schedule.alarm": 0.0}, "alarm"),
        ("steingate", {"preset": "violation", "certificate": {"budget": 0.2}}, "has no option 'budget'; it has risk"),
    ],
)
def test_impossible_options_are_refused_by_name(name, options, message):
    with pytest.raises(InputError, match=message):
        make_algorithm(name, options=options)


@dataclass(frozen=True)
class Mine(MeanCostConstraint, TrustRegionAlgorithm):
    """An algorithm as a user might write it."""

    info = MethodInfo("mine")
    trust_region: TrustRegionConfig = group(TrustRegionConfig, flat=True)


@dataclass(frozen=True)
class Nameless(Mine):
    info = MethodInfo("")


def test_other_algorithms_are_found_by_module_and_class():
    place = f"{__name__}:Mine"
    assert find_algorithm(place).__qualname__ == "Mine"
    mine = make_algorithm(place, options={"max_kl": "0.5"})
    assert mine.trust_region.max_kl == 0.5
    state = mine.init(RunContext(), {})
    assert mine.decide(RunContext(), state, episodes([5.0]))[1].objective.cost_slack == pytest.approx(0.02)
    assert Nameless().name == f"{__name__}:Nameless"


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("cpoo", r"algorithm 'cpoo' is not known \(did you mean cpo\?\)"),
        ("stein-gate", "did you mean steingate"),
        ("xyzzy", r"algorithm 'xyzzy' is not known: choose one of allowance, .*module"),
        (f"{__name__}:Mein", r"has no 'Mein' \(did you mean Mine\?\)"),
        ("math:pi", "is not an algorithm: derive it from"),
    ],
)
def test_unknown_names_are_refused_with_the_nearest(name, message):
    with pytest.raises(InputError, match=message):
        find_algorithm(name)


def test_settings_need_no_learner():
    code = "import sys, steingate.algorithms as a; a.make_algorithm('evo'); sys.exit('jax' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_balanced_updates_are_resolved_by_the_case_of_the_subproblem():
    modes, cases = np.array([1.0, 1, 1, 1, 1, 0, 2]), np.array([0.0, 1, 2, 3, 4, 3, 0])
    assert effective_modes(modes, cases).tolist() == [2, 1, 1, 0, 0, 0, 2]
    assert effective_modes([1.0]).tolist() == [1]
    assert effective_modes([1.0, 1.0], [np.nan, 0.0]).tolist() == [1, 2]
    assert int(effective_modes(1.0, 4)) == Mode.IMPROVE


@pytest.mark.parametrize(
    ("row", "text", "mode"),
    [
        ({"Gate/Mode": 0}, "maximize reward", Mode.IMPROVE),
        ({"Gate/Mode": 1, "Loss/Case": 0}, "minimize cost", Mode.RECOVER),
        ({"Gate/Mode": 0, "Gate/LagrangeMultiplier": 3.2}, "maximize reward - 3.2 cost", Mode.BALANCE),
        ({"Gate/Mode": 0, "Gate/CostBudget": 12.0}, "maximize reward, cost budget 12.00", Mode.IMPROVE),
        ({"Gate/Mode": 0, "Gate/BudgetFraction": 0.6}, "maximize reward, cost budget 60 % of the limit", Mode.IMPROVE),
        (
            {"Gate/Mode": 0, "Gate/BudgetFraction": 0.6, "Gate/BudgetViolationRate": 0.114},
            "maximize reward, cost budget 60 % of the limit (11.4 % violations since it changed)",
            Mode.IMPROVE,
        ),
    ],
)
def test_descriptions(row, text, mode):
    assert describe_update(row) == (text, mode)
