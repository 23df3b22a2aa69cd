"""The public functions, used as their documentation does, on a tiny run."""

import numpy as np
import pytest
from tests.training.probes import Walk
from tests.training.runs_of_probes import TINY

import steingate
from steingate.errors import InputError


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    settings = {**TINY, "env": "tests.training.probes:Walk", "certify.budget": 0.5}
    return steingate.train(**{"out": tmp_path_factory.mktemp("runs"), "quiet": True, **settings})


def test_a_run_prints_its_folder_and_its_certification(run):
    assert str(run).splitlines() == [str(run.path), run.certification["sentence"]]
    assert run.certified  # half of the episodes may be over


def test_a_run_is_plotted(run, tmp_path):
    figure = run.plot(tmp_path / "run.png")
    assert (tmp_path / "run.png").read_bytes().startswith(b"\x89PNG")
    assert len(figure.axes) >= 3


def test_evaluate_takes_a_run_or_its_folder(run):
    one, other = steingate.evaluate(run, 6), steingate.evaluate(str(run.path), 6, policy="certified")
    np.testing.assert_array_equal(one.episodes.cost, other.episodes.cost)
    assert one.which == "certified"
    assert steingate.evaluate(run, 6, limit=0.001).violations > one.violations
    with pytest.raises(InputError, match="episodes must be at least 1, got 0"):
        steingate.evaluate(run, 0)


def test_certify_policy_agrees_with_the_run(run):
    policy = steingate.load_policy(run)
    assert steingate.certify_policy(policy, Walk, limit=4.0, budget=0.6, seed=7).certified


def test_make_vec_makes_what_training_uses(run):
    envs = steingate.make_vec("tests.training.probes:Walk", 3)
    obs, _ = envs.reset(seed=0)
    action = steingate.load_policy(run)(obs)
    assert action.shape == (3, 2)
    assert envs.step(action)[4]["cost"].shape == (3,)
    envs.close()


def test_arguments_take_precedence_over_the_file(tmp_path):
    file = tmp_path / "run.toml"
    file.write_text("seed = 3\ntotal_steps = 160\n[certify]\nenabled = false\n")
    small = {name: value for name, value in TINY.items() if name not in ("total_steps", "env")}
    found = steingate.train("tests.training.probes:Walk", config=file, seed=4, out=tmp_path, quiet=True, **small)
    assert found.path.name == "seed-4"
    assert found.certification is None
    assert not found.certified
    assert str(found) == str(found.path)
    with pytest.warns(UserWarning, match="Certification is disabled"):
        steingate.load_policy(found)
