"""Whether this machine rounds as the one on which the recordings and the stored runs were made."""

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
    same_cpu = any(name in text for name in RECORDED["cpu"])
    return same_cpu and importlib.metadata.version("jaxlib") == RECORDED["jax"]
