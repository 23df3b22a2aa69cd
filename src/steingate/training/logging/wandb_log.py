"""Weights & Biases as an optional logger: a copy of ``progress.csv``, beside the run folder's own files."""

import math
from pathlib import Path
from typing import Any

from steingate.errors import MissingExtraError


class WandbLog:
    """Sends each row's numbers to a project; ``WANDB_MODE=offline`` keeps them on this machine.

    A resumed run goes on in the same W&B run: its id is the folder's name with the identity of the
    configuration, so that runs which differ in any setting never share one.

    Parameters
    ----------
    project
        Name of the project.
    run
        The run folder.
    config
        What to show as the run's configuration.
    identity
        Of the configuration.
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
        """Send what is left and end."""
        self._run.finish()
