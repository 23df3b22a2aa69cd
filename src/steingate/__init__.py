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
    from steingate.certificates.certificate import Certificate
    from steingate.certificates.density import Density
    from steingate.certificates.kernels import Kernel
    from steingate.certificates.reference import Beta, HybridReference, LogitNormal
    from steingate.certificates.result import Result
    from steingate.certificates.risk import Exceedance, Hinge, Power, Sigmoid
    from steingate.errors import InputError, MissingExtraError, RunError, SteingateError
    from steingate.monitoring.certify import certify_policy
    from steingate.monitoring.episodes import StepWatcher
    from steingate.monitoring.monitor import Monitor
    from steingate.monitoring.several import Monitors
    from steingate.policies.export import export_policy
    from steingate.policies.numpy_policy import RobotPolicy
    from steingate.policies.policy import Policy
    from steingate.training.api import Run, evaluate, load, make_vec, resume, train

__version__ = "0.2.0"

_HOMES = {
    "Beta": "steingate.certificates.reference",
    "Certificate": "steingate.certificates.certificate",
    "Density": "steingate.certificates.density",
    "Exceedance": "steingate.certificates.risk",
    "Hinge": "steingate.certificates.risk",
    "HybridReference": "steingate.certificates.reference",
    "InputError": "steingate.errors",
    "Kernel": "steingate.certificates.kernels",
    "LogitNormal": "steingate.certificates.reference",
    "MissingExtraError": "steingate.errors",
    "Monitor": "steingate.monitoring.monitor",
    "Monitors": "steingate.monitoring.several",
    "Policy": "steingate.policies.policy",
    "Power": "steingate.certificates.risk",
    "Result": "steingate.certificates.result",
    "RobotPolicy": "steingate.policies.numpy_policy",
    "Run": "steingate.training.api",
    "RunError": "steingate.errors",
    "Sigmoid": "steingate.certificates.risk",
    "SteingateError": "steingate.errors",
    "StepWatcher": "steingate.monitoring.episodes",
    "certify_policy": "steingate.monitoring.certify",
    "evaluate": "steingate.training.api",
    "export_policy": "steingate.policies.export",
    "load": "steingate.training.api",
    "make_vec": "steingate.training.api",
    "resume": "steingate.training.api",
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
