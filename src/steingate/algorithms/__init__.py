"""Algorithms: one file per method. ``base`` is the interface to the trainer, ``common`` has shared parts."""

from collections.abc import Mapping
from dataclasses import MISSING, fields
from typing import Any

from steingate.algorithms.allowance import Allowance, AllowancePPO
from steingate.algorithms.base import Algorithm
from steingate.algorithms.config import Variant
from steingate.algorithms.cpo import CPO
from steingate.algorithms.crpo import CRPO
from steingate.algorithms.cup import CUP
from steingate.algorithms.cvar_cpo import CVaRCPO
from steingate.algorithms.evo import EVO
from steingate.algorithms.focops import FOCOPS
from steingate.algorithms.lagrangian import RCPO, PPOLag, TRPOLag
from steingate.algorithms.p3o import P3O
from steingate.algorithms.pcpo import PCPO
from steingate.algorithms.ppo import PPO
from steingate.algorithms.saute import PPOSaute, PPOSimmer, TRPOSaute, TRPOSimmer
from steingate.algorithms.steingate import SteinGate, SteinGatePPO
from steingate.algorithms.trpo import TRPO
from steingate.errors import InputError, nearest
from steingate.settings import import_object, with_options

DEFAULT = "allowance"
ALGORITHMS: dict[str, type[Algorithm]] = {
    kind.info.name: kind
    for kind in (
        Allowance, AllowancePPO, SteinGate, SteinGatePPO, TRPOLag, PPOLag, CPO, PCPO, CRPO, CVaRCPO, RCPO, FOCOPS, CUP,
        P3O, EVO, TRPOSaute, PPOSaute, TRPOSimmer, PPOSimmer, TRPO, PPO,
    )
}  # fmt: skip
"""Built-in algorithms by name; the recommended one first."""


def find_algorithm(text: str) -> type[Algorithm]:
    """Return the class of a built-in algorithm by name, or the one that ``module:Class`` names."""
    if text in ALGORITHMS:
        return ALGORITHMS[text]
    if ":" not in text:
        hint = nearest(text, ALGORITHMS) or f": choose one of {', '.join(ALGORITHMS)}, or give module:Class"
        raise InputError(f"algorithm {text!r} is not known{hint}.")
    found = import_object(text, "The algorithm")
    if not (isinstance(found, type) and issubclass(found, Algorithm)):
        raise InputError(f"{text} is not an algorithm: derive it from steingate.algorithms.base.OnPolicyAlgorithm.")
    require_complete(found)
    return found


def require_complete(kind: type[Algorithm]) -> None:
    """Refuse a class that lacks a method, the decorator of dataclasses, or the default of a setting."""
    missing = sorted(getattr(kind, "__abstractmethods__", ()))
    if missing:
        raise InputError(f"Algorithm {kind.__name__} lacks {', '.join(missing)}: it needs init, decide and update.")
    if "__dataclass_fields__" not in vars(kind):
        raise InputError(
            f"Algorithm {kind.__name__} is not a dataclass: write @dataclass(frozen=True) above the class."
        )
    required = [f.name for f in fields(kind) if f.init and f.default is MISSING and f.default_factory is MISSING]  # type: ignore[arg-type]
    if required:
        raise InputError(f"Algorithm {kind.__name__} has no default for {', '.join(required)}: give every setting one.")


def make_algorithm(text: str, task: str = "", options: Mapping[str, Any] | None = None) -> Algorithm:
    """Return a built-in algorithm by name, or that of ``module:Class``, with options by name such as ``ppo.epochs``.

    They have priority over those that were published for the task. InputError names the nearest algorithm or option.
    """
    kind = find_algorithm(text)
    given = dict(options or {})
    variant: Variant = "published" if given.get("variant", kind.variant) == "published" else "corrected"
    published = kind.published_options(task.removeprefix("steingate/"), variant)
    return with_options(with_options(kind(), published, text), given, text)
