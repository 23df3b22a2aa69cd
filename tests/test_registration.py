import subprocess
import sys

import pytest

import steingate

START = "from steingate.registration import register_with_gymnasium as register; "
MADE = "env = gymnasium.make('steingate/SafetyPointGoal1-v0'); env.reset(seed=0)"


@pytest.mark.parametrize(
    "code",
    [
        "import gymnasium; " + START + "register(); " + MADE,
        START + "register(); import gymnasium; " + MADE,
        START + "register(); register(); from gymnasium import spaces; import gymnasium; " + MADE,
        START + "register(); import steingate.envs, gymnasium; " + MADE,
        START + "register(); import gymnasium.vector; import gymnasium; " + MADE,
    ],
)
def test_tasks_are_known_whichever_is_imported_first(code):
    subprocess.run([sys.executable, "-W", "error", "-c", code], check=True, timeout=120)


def test_nothing_heavy_is_imported_before_it_is_needed():
    code = START + "register(); import sys; assert not {'gymnasium', 'numpy', 'mujoco'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def test_a_missing_gymnasium_stays_missing():
    """Without site packages Python's own error comes through."""
    code = START.replace("steingate.registration", "registration") + (
        "register()\n"
        "try:\n"
        "    import gymnasium\n"
        "except ModuleNotFoundError as error:\n"
        "    assert error.name == 'gymnasium'\n"
        "else:\n"
        "    raise SystemExit('found')"
    )
    environment = {"PYTHONPATH": steingate.__path__[0]}
    subprocess.run([sys.executable, "-S", "-c", code], check=True, timeout=60, env=environment)
