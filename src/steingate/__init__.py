"""Safe reinforcement learning with tail-risk certificates.

Public names are imported on first use, so that ``import steingate`` is fast and the certificates need neither
JAX nor MuJoCo.

>>> from steingate import certify
>>> certify([0.0, 3.0, 8.0, 12.0] * 8, limit=25.0).certified
True
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from steingate.registration import register_with_gymnasium

if TYPE_CHECKING:
    # isort: off
    from steingate.algorithms.allowance import Allowance as Allowance
    from steingate.algorithms.base import Algorithm as Algorithm, OnPolicyAlgorithm as OnPolicyAlgorithm
    from steingate.algorithms.cpo import CPO as CPO
    from steingate.algorithms.lagrangian import TRPOLag as TRPOLag
    from steingate.algorithms.steingate import SteinGate as SteinGate
    from steingate.algorithms.ppo import PPO as PPO
    from steingate.algorithms.trpo import TRPO as TRPO
    from steingate.certificates.stein import SteinCertificate as SteinCertificate, SteinResult as SteinResult
    from steingate.certificates.violation import ViolationResult as ViolationResult, certify as certify
    from steingate.envs.make import make_vec as make_vec
    from steingate.errors import (
        InputError as InputError,
        MissingExtraError as MissingExtraError,
        RunError as RunError,
        SteingateError as SteingateError,
    )
    from steingate.monitoring.compare import ComparisonMonitor as ComparisonMonitor
    from steingate.monitoring.episodes import StepWatcher as StepWatcher, certify_policy as certify_policy
    from steingate.monitoring.monitor import Monitor as Monitor
    from steingate.monitoring.monitors import Monitors as Monitors
    from steingate.policies.export import export_policy as export_policy
    from steingate.policies.load import load_policy as load_policy
    from steingate.policies.policy import Policy as Policy
    from steingate.training.api import Run as Run, resume as resume, train as train
    from steingate.training.config import RunConfig as RunConfig
    from steingate.training.evaluate import Evaluation as Evaluation, evaluate as evaluate
    # isort: on

__version__ = "0.3.0"

_MODULES = {  # module -> public names
    "algorithms.allowance": ("Allowance",),
    "algorithms.base": ("Algorithm", "OnPolicyAlgorithm"),
    "algorithms.cpo": ("CPO",),
    "algorithms.lagrangian": ("TRPOLag",),
    "algorithms.steingate": ("SteinGate",),
    "algorithms.ppo": ("PPO",),
    "algorithms.trpo": ("TRPO",),
    "certificates.stein": ("SteinCertificate", "SteinResult"),
    "certificates.violation": ("ViolationResult", "certify"),
    "envs.make": ("make_vec",),
    "errors": ("InputError", "MissingExtraError", "RunError", "SteingateError"),
    "monitoring.compare": ("ComparisonMonitor",),
    "monitoring.episodes": ("StepWatcher", "certify_policy"),
    "monitoring.monitor": ("Monitor",),
    "monitoring.monitors": ("Monitors",),
    "policies.export": ("export_policy",),
    "policies.load": ("load_policy",),
    "policies.policy": ("Policy",),
    "training.api": ("Run", "resume", "train"),
    "training.config": ("RunConfig",),
    "training.evaluate": ("Evaluation", "evaluate"),
}
_MODULE_OF = {name: module for module, names in _MODULES.items() for name in names}

__all__ = sorted(_MODULE_OF)


def __getattr__(name: str) -> Any:
    """Import a public name on first use."""
    if name not in _MODULE_OF:
        raise AttributeError(f"module 'steingate' has no attribute {name!r}")
    from steingate.errors import needs

    module = _MODULE_OF[name]
    with needs(f"steingate.{name}", "train" if module.startswith("training.") else None):
        value = getattr(import_module(f"steingate.{module}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_MODULE_OF})


register_with_gymnasium()
