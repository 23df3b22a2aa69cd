"""``steingate envs`` and ``algos``: one line each, true sizes, nothing compiled."""

import re
import subprocess
import sys
from pathlib import Path

from steingate.algorithms import ALGORITHMS
from steingate.cli import main
from steingate.tasks.catalog import TASKS
from steingate.training.config import RunConfig

# Sizes of the original tasks, written down independently of the catalog.
SIZES = {
    "SafetyPointGoal0-v0": (28, 2, 1000),
    "SafetyPointGoal1-v0": (60, 2, 1000),
    "SafetyPointGoal2-v0": (60, 2, 1000),
    "SafetyCarGoal0-v0": (40, 2, 1000),
    "SafetyCarGoal1-v0": (72, 2, 1000),
    "SafetyCarGoal2-v0": (72, 2, 1000),
    "SafetyPointCircle0-v0": (28, 2, 500),
    "SafetyPointCircle1-v0": (28, 2, 500),
    "SafetyPointCircle2-v0": (28, 2, 500),
    "SafetyCarCircle0-v0": (40, 2, 500),
    "SafetyCarCircle1-v0": (40, 2, 500),
    "SafetyCarCircle2-v0": (40, 2, 500),
    "SafetyAntVelocity-v1": (27, 8, 1000),
    "SafetyHalfCheetahVelocity-v1": (17, 6, 1000),
    "SafetyHopperVelocity-v1": (11, 3, 1000),
    "SafetyHumanoidVelocity-v1": (376, 17, 1000),
    "SafetySwimmerVelocity-v1": (8, 2, 1000),
    "SafetyWalker2dVelocity-v1": (17, 6, 1000),
}


def test_every_task_is_listed_with_its_sizes(capsys):
    assert main(["envs"]) == 0
    rows = [line.split(maxsplit=4) for line in capsys.readouterr().out.splitlines()[1:]]
    assert {row[0]: tuple(map(int, row[1:4])) for row in rows} == SIZES
    assert all(len(row) == 5 for row in rows)


def test_listing_loads_no_simulator():
    code = (
        "import sys\n"
        "from steingate.cli import main\n"
        "main(['envs'])\n"
        "heavy = {'mujoco', 'numba', 'jax', 'scipy'} & set(sys.modules)\n"
        "sys.exit(f'loaded {heavy}' if heavy else 0)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_the_page_shows_the_same_table():
    page = Path(__file__).parents[2] / "docs" / "environments.md"
    rows = []
    for line in page.read_text(encoding="utf-8").splitlines():
        if line.startswith("| Safety"):
            cells = [cell.strip().replace("\\|", "|") for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
            rows.append((cells[0], *map(int, cells[1:4]), cells[4]))
    assert rows == [
        (t.env_id, t.observation_size, t.action_size, t.max_episode_steps, t.cost_text) for t in TASKS.values()
    ]


def test_algos_lists_all_or_describes_some(capsys):
    assert main(["algos"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == list(ALGORITHMS)
    assert (
        [line.split()[0] for line in lines if "[recommended" in line]
        == [lines[0].split()[0]]
        == [RunConfig().algo.name]
    )
    assert main(["algos", "cup", "focops"]) == 0
    out = capsys.readouterr().out
    assert all(ALGORITHMS[name].info.summary in out for name in ("cup", "focops"))
    assert out.count("published: ") == out.count("options: ") == 2
    assert "evo" not in out
    assert main(["algos", "focop"]) == 2
    assert "did you mean focops?" in capsys.readouterr().err
