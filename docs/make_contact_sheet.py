"""Draws every native task once, side by side: ``python docs/make_contact_sheet.py [FILE]``.

A small batch of each task is run, navigation by the scripted policy, velocity by sine waves. The picture
shows the first simulation that costs (tasks of the Car, some of the velocity tasks) or one that does not (all
others).
"""

import sys
import textwrap
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont
from tests.parity.policies import Scripted

from steingate.tasks.catalog import TASKS, TaskSpec
from steingate.tasks.render import Renderer
from steingate.tasks.vector import SafetyVectorEnv

BATCH, SEED = 48, 20007
TILE, SHARPER, CAPTION, GAP = 300, 2, 76, 10
PAPER, INK, GREY, RED = (255, 255, 255), (32, 38, 48), (110, 118, 130), (215, 45, 35)
ROWS = (("Point", "Goal"), ("Car", "Goal"), ("Point", "Circle"), ("Car", "Circle"))
STEPS = {"goal": 60, "circle": 45, "velocity": 18}  # so long a picture waits
COSTLY = ("Ant", "Swimmer", "Hopper")  # velocity tasks shown while they cost


def ordered_tasks() -> list[TaskSpec]:
    """Return the tasks in the sheet's order: six Goal, six Circle, six velocity."""
    names = [f"Safety{agent}{kind}{level}-v0" for agent, kind in ROWS for level in (0, 1, 2)]
    return [TASKS[name] for name in names] + [task for task in TASKS.values() if task.family == "velocity"]


def picture(task: TaskSpec) -> tuple[NDArray[np.uint8], bool]:
    """Return one picture of a task and whether the step it shows costs."""
    env = SafetyVectorEnv(task.env_id, BATCH)
    seeds = range(SEED, SEED + BATCH)
    obs, info = env.reset(seed=list(seeds))
    moving = task.family == "velocity"
    policy = Waves(task) if moving else Scripted(task, seeds)
    costly = bool(task.cost_parts) and (task.agent == "car" or any(name in task.env_id for name in COSTLY))
    first = np.ones(BATCH, dtype=bool)  # still in the first episode
    for step in range(task.max_episode_steps):
        obs, _, terminated, truncated, info = env.step(policy(step, obs))
        first &= ~(terminated | truncated)
        fitting = first & ((info["cost"] > 0) == costly)
        if step >= STEPS[task.family] and fitting.any():
            break
    index = int(np.argmax(fitting))
    size = TILE * SHARPER
    with Renderer(env, width=size, height=size, camera="track" if moving else "fixed") as renderer:
        frame = renderer.frame(index)
    env.close()
    return frame, bool(info["cost"][index] > 0)


class Waves:
    """Open-loop actions: a sine per joint, with another speed and other phases in every simulation."""

    def __init__(self, task: TaskSpec) -> None:
        rng = np.random.default_rng(SEED)
        self._bound = task.action_bound
        self._speed = rng.uniform(0.05, 0.5, (BATCH, 1))
        self._phase = rng.uniform(0, 2 * np.pi, (BATCH, task.action_size))

    def __call__(self, step: int, obs: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the actions of one step."""
        return self._bound * np.sin(self._speed * step + self._phase)


def sheet() -> Image.Image:
    """Return the contact sheet."""
    tasks = ordered_tasks()
    columns = 6
    rows = len(tasks) // columns
    width = columns * (TILE + GAP) + GAP
    page = Image.new("RGB", (width, rows * (TILE + CAPTION + GAP) + GAP), PAPER)
    pen = ImageDraw.Draw(page)
    bold, small = ImageFont.load_default(15), ImageFont.load_default(12)
    for k, task in enumerate(tasks):
        x, y = GAP + k % columns * (TILE + GAP), GAP + k // columns * (TILE + CAPTION + GAP)
        frame, costs = picture(task)
        page.paste(Image.fromarray(frame).resize((TILE, TILE), Image.Resampling.LANCZOS), (x, y))
        pen.text((x, y + TILE + 5), task.env_id, INK, bold)
        lines = textwrap.wrap(f"costs: {task.cost_text}", 46)
        pen.multiline_text((x, y + TILE + 25), "\n".join(lines), GREY, small, spacing=3)
        if costs:
            pen.text((x, y + TILE + 25 + 16 * len(lines)), "this step costs 1", RED, small)
    return page


if __name__ == "__main__":
    here = Path(__file__).parent
    target = Path(sys.argv[1]) if len(sys.argv) > 1 else here / "figures" / "contact_sheet.png"
    target.parent.mkdir(parents=True, exist_ok=True)
    sheet().save(target, optimize=True)
    print(target)
