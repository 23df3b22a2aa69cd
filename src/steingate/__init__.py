"""Reinforcement learning that stays safe in the tail.

The names below load on first use, so that ``import steingate`` stays quick and the certificate needs
neither JAX nor MuJoCo.

>>> from steingate import Certificate
>>> Certificate.preset("released", limit=25.0).evaluate([0.0, 3.0, 8.0, 12.0]).safe
True
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from steingate.registration import register_with_gymnasium

if TYPE_CHECKING:
    from steingate.core.certificate import Certificate
    from steingate.core.density import Density
    from steingate.core.kernels import Kernel
    from steingate.core.reference import Beta, HybridReference, LogitNormal
    from steingate.core.result import Result
    from steingate.core.risk import Exceedance, Hinge, Power, Sigmoid
    from steingate.errors import InputError, MissingExtraError, RunError, SteingateError
    from steingate.monitor.certify import certify_policy
    from steingate.monitor.episodes import StepWatcher
    from steingate.monitor.monitor import Monitor
    from steingate.monitor.several import Monitors
    from steingate.policy import Policy
    from steingate.policy_file import export_policy
    from steingate.robot import RobotPolicy
    from steingate.training.api import Run, evaluate, load, make_vec, resume, rollout, train

__version__ = "0.2.0"

_HOMES = {
    "Beta": "steingate.core.reference",
    "Certificate": "steingate.core.certificate",
    "Density": "steingate.core.density",
    "Exceedance": "steingate.core.risk",
    "Hinge": "steingate.core.risk",
    "HybridReference": "steingate.core.reference",
    "InputError": "steingate.errors",
    "Kernel": "steingate.core.kernels",
    "LogitNormal": "steingate.core.reference",
    "MissingExtraError": "steingate.errors",
    "Monitor": "steingate.monitor.monitor",
    "Monitors": "steingate.monitor.several",
    "Policy": "steingate.policy",
    "Power": "steingate.core.risk",
    "Result": "steingate.core.result",
    "RobotPolicy": "steingate.robot",
    "Run": "steingate.training.api",
    "RunError": "steingate.errors",
    "Sigmoid": "steingate.core.risk",
    "SteingateError": "steingate.errors",
    "StepWatcher": "steingate.monitor.episodes",
    "certify_policy": "steingate.monitor.certify",
    "evaluate": "steingate.training.api",
    "export_policy": "steingate.policy_file",
    "load": "steingate.training.api",
    "make_vec": "steingate.training.api",
    "resume": "steingate.training.api",
    "rollout": "steingate.training.api",
    "train": "steingate.training.api",
}

__all__ = [
    "Beta",
    "Certificate",
    "Density",
    "Exceedance",
    "Hinge",
    "HybridReference",
    "InputError",
    "Kernel",
    "LogitNormal",
    "MissingExtraError",
    "Monitor",
    "Monitors",
    "Policy",
    "Power",
    "Result",
    "RobotPolicy",
    "Run",
    "RunError",
    "Sigmoid",
    "SteingateError",
    "StepWatcher",
    "certify_policy",
    "evaluate",
    "export_policy",
    "load",
    "make_vec",
    "resume",
    "rollout",
    "train",
]


def __getattr__(name: str) -> Any:
    """Import the home of a public name when it is first asked for."""
    if name not in _HOMES:
        raise AttributeError(f"module 'steingate' has no attribute {name!r}")
    from steingate.errors import needs

    with needs(f"steingate.{name}"):
        value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOMES])


register_with_gymnasium()
