"""Weights & Biases: an optional copy of ``progress.csv``."""

import math
from pathlib import Path
from typing import Any

from steingate.errors import MissingExtraError


class WandbLog:
    """Sends each row to a Weights & Biases project; ``WANDB_MODE=offline`` keeps the data on this machine.

    A resumed run continues the same W&B run: its id is made of the folder's name and ``identity``.

    Parameters
    ----------
    project
        Name of the project.
    run
        The run folder.
    config
        Shown as the run's configuration.
    identity
        Hash of the settings that decide the results.
    """

    def __init__(self, project: str, run: Path, config: dict[str, Any], identity: str) -> None:
        try:
            import wandb
        except ImportError:
            raise MissingExtraError("Logging to Weights & Biases", "wandb") from None
        name = "-".join(run.parts[-3:])
        self._run = wandb.init(
            project=project,
            name=name,
            id=f"{name}-{identity[:8]}",
            resume="allow",
            dir=run,
            config=config,
            reinit="finish_previous",
        )

    def add(self, row: dict[str, Any]) -> None:
        """Send one epoch's finite numbers, over environment steps."""
        numbers = {
            name: value
            for name, value in row.items()
            if isinstance(value, int | float) and math.isfinite(value)
        }
        self._run.log(numbers, step=int(row["TotalEnvSteps"]))

    def close(self) -> None:
        """Send the remaining data and finish the run."""
        self._run.finish()
