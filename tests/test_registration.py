"""``gymnasium.make("steingate/...")`` works after both packages are imported, in either order."""

import subprocess
import sys

import pytest

import steingate

MAKE = "; env = gymnasium.make('steingate/SafetyPointGoal1-v0'); env.reset(seed=0)"
HOOK = "import registration; registration.register_with_gymnasium(); "


def run(code, *options, **environment):
    subprocess.run([sys.executable, *options, "-c", code], check=True, timeout=120, **environment)


@pytest.mark.parametrize(
    "code",
    ["import gymnasium, steingate", "import steingate, gymnasium", "import steingate, steingate.envs, gymnasium"],
)
def test_import_order(code):
    run(code + MAKE, "-W", "error")


def test_missing_gymnasium_raises_the_usual_error():
    code = HOOK + (
        "\ntry:\n    import gymnasium"
        "\nexcept ModuleNotFoundError as error:\n    assert error.name == 'gymnasium'"
        "\nelse:\n    raise SystemExit('gymnasium was found')"
    )
    run(code, "-S", env={"PYTHONPATH": steingate.__path__[0]})
