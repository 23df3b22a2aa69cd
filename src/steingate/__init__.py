"""Safe reinforcement learning with tail-risk certificates.

Public names are imported on first use, so that ``import steingate`` is fast and the certificates need neither
JAX nor MuJoCo.

>>> from steingate import Certificate
>>> Certificate.preset("released", limit=25.0).evaluate([0.0, 3.0, 8.0, 12.0]).safe
True
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from steingate.registration import register_with_gymnasium

if TYPE_CHECKING:
    from steingate.algorithms.allowance import Allowance as Allowance
    from steingate.algorithms.common.base import Algorithm as Algorithm
    from steingate.algorithms.cpo import CPO as CPO
    from steingate.algorithms.lagrangian import TRPOLag as TRPOLag
    from steingate.algorithms.steingate import SteinGate as SteinGate
    from steingate.algorithms.unconstrained import PPO as PPO
    from steingate.algorithms.unconstrained import TRPO as TRPO
    from steingate.certificates.certificate import Certificate as Certificate
    from steingate.certificates.density import Density as Density
    from steingate.certificates.kernels import Kernel as Kernel
    from steingate.certificates.reference import Beta as Beta
    from steingate.certificates.reference import HybridReference as HybridReference
    from steingate.certificates.reference import LogitNormal as LogitNormal
    from steingate.certificates.result import Result as Result
    from steingate.certificates.risk import Exceedance as Exceedance
    from steingate.certificates.risk import Hinge as Hinge
    from steingate.certificates.risk import Power as Power
    from steingate.certificates.risk import Sigmoid as Sigmoid
    from steingate.certificates.stein import SteinCertificate as SteinCertificate
    from steingate.certificates.stein import SteinResult as SteinResult
    from steingate.certificates.violation import ViolationResult as ViolationResult
    from steingate.certificates.violation import certify as certify
    from steingate.envs.make import make_vec as make_vec
    from steingate.errors import InputError as InputError
    from steingate.errors import MissingExtraError as MissingExtraError
    from steingate.errors import RunError as RunError
    from steingate.errors import SteingateError as SteingateError
    from steingate.monitoring.episodes import certify_policy as certify_policy
    from steingate.monitoring.episodes import StepWatcher as StepWatcher
    from steingate.monitoring.monitor import Monitor as Monitor
    from steingate.monitoring.monitors import Monitors as Monitors
    from steingate.policies.export import export_policy as export_policy
    from steingate.policies.numpy_policy import RobotPolicy as RobotPolicy
    from steingate.policies.policy import Policy as Policy
    from steingate.policies.policy import load as load
    from steingate.training.api import Run as Run
    from steingate.training.api import resume as resume
    from steingate.training.api import train as train
    from steingate.training.config import RunConfig as RunConfig
    from steingate.training.evaluate import Evaluation as Evaluation
    from steingate.training.evaluate import evaluate as evaluate

__version__ = "0.3.0"

_PUBLIC = {  # module -> public names
    "steingate.algorithms.allowance": ("Allowance",),
    "steingate.algorithms.common.base": ("Algorithm",),
    "steingate.algorithms.cpo": ("CPO",),
    "steingate.algorithms.lagrangian": ("TRPOLag",),
    "steingate.algorithms.steingate": ("SteinGate",),
    "steingate.algorithms.unconstrained": ("PPO", "TRPO"),
    "steingate.certificates.certificate": ("Certificate",),
    "steingate.certificates.density": ("Density",),
    "steingate.certificates.kernels": ("Kernel",),
    "steingate.certificates.reference": ("Beta", "HybridReference", "LogitNormal"),
    "steingate.certificates.result": ("Result",),
    "steingate.certificates.risk": ("Exceedance", "Hinge", "Power", "Sigmoid"),
    "steingate.certificates.stein": ("SteinCertificate", "SteinResult"),
    "steingate.certificates.violation": ("ViolationResult", "certify"),
    "steingate.envs.make": ("make_vec",),
    "steingate.errors": ("InputError", "MissingExtraError", "RunError", "SteingateError"),
    "steingate.monitoring.episodes": ("StepWatcher", "certify_policy"),
    "steingate.monitoring.monitor": ("Monitor",),
    "steingate.monitoring.monitors": ("Monitors",),
    "steingate.policies.export": ("export_policy",),
    "steingate.policies.numpy_policy": ("RobotPolicy",),
    "steingate.policies.policy": ("Policy", "load"),
    "steingate.training.api": ("Run", "resume", "train"),
    "steingate.training.config": ("RunConfig",),
    "steingate.training.evaluate": ("Evaluation", "evaluate"),
}
_MODULE_OF = {name: module for module, names in _PUBLIC.items() for name in names}

__all__ = sorted(_MODULE_OF)


def __getattr__(name: str) -> Any:
    """Import a public name on first use."""
    if name not in _MODULE_OF:
        raise AttributeError(f"module 'steingate' has no attribute {name!r}")
    from steingate.errors import needs

    extra = "train" if ".training." in _MODULE_OF[name] else None
    with needs(f"steingate.{name}", extra):
        value = getattr(import_module(_MODULE_OF[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_MODULE_OF})


register_with_gymnasium()
