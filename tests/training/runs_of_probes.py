"""Tiny runs on probe environments, and what of a run folder must repeat exactly."""

from dataclasses import fields
from pathlib import Path

from steingate.algorithms import find_algorithm
from steingate.settings import option_names
from steingate.storage.checkpoint import checkpoint_files, encode, read_checkpoint
from steingate.storage.tables import read_progress
from steingate.training.config import RunConfig, make_config

RUN = [item.name for item in fields(RunConfig)]
TINY = {
    "env": "tests.training.probes:Walk",
    "algo": "steingate",
    "total_steps": 480,
    "steps_per_epoch": 80,
    "num_envs": 4,
    "cost_limit": 4.0,
    "hidden": (8, 8),
    "vf_epochs": 2,
    "vf_batch_size": 32,
    "cg_iters": 4,
    "checkpoint_every": 2,
}


def tiny(out, **changes) -> RunConfig:
    """A run of six epochs of eighty steps; options that the algorithm does not have are left out."""
    known = option_names(find_algorithm(changes.get("algo", "steingate"))())
    small = {name: value for name, value in TINY.items() if name in known or name in RUN}
    return make_config({**small, "out": str(out), **changes})


def facts(run: Path) -> dict:
    """Everything a run computed: progress without times, episodes, the last checkpoint without the final tests."""
    progress = {name: column for name, column in read_progress(run).items() if not name.startswith("Time/")}
    epoch, last = checkpoint_files(run / "checkpoints")[-1]
    tree = read_checkpoint(last).tree
    tree["selection"] = tree["selection"][:6]  # an extended run has had more final tests
    return {
        "progress": progress,
        "episodes": (run / "episodes.csv").read_text(),
        "epoch": epoch,
        "checkpoint": encode(tree, epoch),
    }
