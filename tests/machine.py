"""Whether this machine rounds as the one did that made the recordings and the kept runs."""

import importlib.metadata
import json
from pathlib import Path

RECORDED = json.loads((Path(__file__).parent / "data" / "training" / "five_epochs.json").read_text())


def same_machine() -> bool:
    """Return whether processor and JAX are those of the recordings; elsewhere XLA may round differently."""
    try:
        text = Path("/proc/cpuinfo").read_text()
    except OSError:
        return False
    return RECORDED["cpu"] in text and importlib.metadata.version("jaxlib") == RECORDED["jax"]
