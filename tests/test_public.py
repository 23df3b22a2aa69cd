"""The public names, and what importing the package loads."""

import doctest
import importlib
import subprocess
import sys
from pathlib import Path

import pytest

import steingate


@pytest.mark.parametrize("name", steingate.__all__)
def test_every_public_name_loads(name):
    assert getattr(steingate, name).__name__ == name
    assert name in dir(steingate)


SOURCE = Path(steingate.__file__).parent
EXAMPLES = [path for path in sorted(SOURCE.rglob("*.py")) if ">>> " in path.read_text(encoding="utf-8")]


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_examples_of_the_documentation(path):
    name = ".".join(path.relative_to(SOURCE.parent).with_suffix("").parts).removesuffix(".__init__")
    assert doctest.testmod(importlib.import_module(name)).failed == 0


def test_unknown_names_are_attribute_errors():
    with pytest.raises(AttributeError, match="Certifcate"):
        _ = steingate.Certifcate


def test_the_certificate_loads_no_simulator_and_no_learner():
    code = (
        "import sys, steingate; from steingate import SteinCertificate;"
        "from steingate import Monitor, certify; certify([1.0], limit=25.0); Monitor(25.0);"
        "SteinCertificate.released(limit=25.0).evaluate([1.0, 2.0]);"
        "print([m for m in ('jax', 'mujoco', 'gymnasium', 'numba', 'matplotlib') if m in sys.modules])"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"


def test_importing_the_package_alone_loads_next_to_nothing():
    code = "import sys, steingate; print('numpy' in sys.modules)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "False"
