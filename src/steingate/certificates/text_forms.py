"""Risks, densities and numbers as text: what a command line, a TOML file or JSON can hold, and back.

==========================  ================================================
text                        value
==========================  ================================================
``exceedance:0.5``          ``Exceedance(0.5)``; ``hinge:0.3``, ``power:2`` and
                            ``sigmoid:0.5,0.02`` likewise, ``sigmoid`` alone
                            with the defaults
``Beta(1, 10)``             the density; ``LogitNormal(-1, 0.5)`` likewise
``package.module:name``     the object of that name: a risk function, or a density
``2``, ``2.0``, ``2e0``     the number 2
``true``, ``false``         the truth value
anything else               the text itself
==========================  ================================================
"""

import re
from collections.abc import Callable
from dataclasses import astuple
from typing import Any

import numpy as np

from steingate.certificates.checks import is_real
from steingate.certificates.reference import Beta, LogitNormal
from steingate.certificates.risk import Exceedance, Hinge, Power, Sigmoid
from steingate.errors import InputError, nearest
from steingate.settings import import_object

_RISKS: dict[str, Callable[..., Any]] = {
    "exceedance": Exceedance,
    "hinge": Hinge,
    "power": Power,
    "sigmoid": Sigmoid,
}
_DENSITIES: dict[str, Callable[..., Any]] = {"Beta": Beta, "LogitNormal": LogitNormal}
_TRUTH = {"true": True, "false": False}
_NUMBER = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?")
_NAME = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*")
_CALL = re.compile(r"(\w+)\s*\((.*)\)")
_loaded: dict[int, tuple[object, str]] = {}  # what ``module:name`` texts gave, kept so that ids stay theirs


def from_text(text: str, imports: bool = True) -> Any:
    """Return what a text means: a risk function, a density, a number, a truth value, or the text itself.

    ``to_text`` is the inverse. A text that looks like a risk or a density but is none is refused, with the
    nearest name. ``package.module:name`` imports the module, so it runs the module's code.

    >>> from_text("exceedance:0.5")
    Exceedance(threshold=0.5)
    >>> from_text("2.0") == from_text("2"), from_text("matern52")
    (True, 'matern52')
    """
    bare = text.strip()
    if _NUMBER.fullmatch(bare):
        number = float(bare)
        return int(number) if number.is_integer() else number
    if bare in _TRUTH:
        return _TRUTH[bare]
    if bare in _RISKS:
        return _RISKS[bare]()
    if call := _CALL.fullmatch(bare):
        return _density(call[1], call[2], text)
    head, colon, tail = bare.partition(":")
    if not colon:
        return text
    if head in _RISKS:
        return _made(_RISKS[head], tail, f"risk is {text!r}; write numbers, as in exceedance:0.5")
    if _NAME.fullmatch(head) and _NAME.fullmatch(tail):
        if not imports:
            raise InputError(f"{text!r} names a function of Python code, which stored data must not import.")
        return _imported(bare)
    raise InputError(
        f"There is no risk {head!r}{nearest(head, _RISKS)}; "
        f"choose {', '.join(_RISKS)}, or name a function as module:function."
    )


def to_text(value: Any) -> str:
    """Return the text that ``from_text`` turns into this value.

    A function is named by where it is defined; any other object of one's own by the ``module:name`` that it
    was loaded from. What has no such name is refused.

    >>> to_text(Exceedance(0.5)), to_text(Beta(1.0, 10.0)), to_text(2.0)
    ('exceedance:0.5', 'Beta(1, 10)', '2')
    """
    if isinstance(value, str):
        return value
    if isinstance(value, bool | np.bool_):
        return "true" if value else "false"
    if is_real(value):
        return _digits(value)
    for name, kind in (_RISKS | _DENSITIES).items():
        if type(value) is kind:
            numbers = [_digits(number) for number in astuple(value)]
            return f"{name}({', '.join(numbers)})" if name in _DENSITIES else f"{name}:{','.join(numbers)}"
    if id(value) in _loaded:
        return _loaded[id(value)][1]
    module, name = getattr(value, "__module__", None), getattr(value, "__qualname__", "")
    if isinstance(module, str) and module != "__main__" and _NAME.fullmatch(name):
        text = f"{module}:{name}"
        try:
            if _imported(text) is value:
                return text
        except InputError:
            pass
    raise InputError(
        f"{value!r} has no name in a file: define it at the top of a module and write module:name instead."
    )


def to_plain(value: Any) -> Any:
    """Return what JSON holds: numbers, truth values, text and None as they are, the rest as text."""
    if isinstance(value, np.generic):
        value = value.item()
    return value if value is None or isinstance(value, bool | int | float | str) else to_text(value)


def from_plain(value: Any, imports: bool = True) -> Any:
    """Return the meaning of a text, and every other value as it is."""
    return from_text(value, imports) if isinstance(value, str) else value


def _digits(number: Any) -> str:
    value = float(number)
    return str(int(value)) if value.is_integer() and abs(value) < 1e15 else repr(value)


def _density(name: str, inside: str, text: str) -> Any:
    if name not in _DENSITIES:
        raise InputError(
            f"reference is {text!r}; there is no density {name!r}{nearest(name, _DENSITIES)}: "
            f"write Beta(a, b) or LogitNormal(mu, sigma), or name an object as module:object."
        )
    hint = f"reference is {text!r}; write {name} with two numbers, as in Beta(2, 5)"
    return _made(_DENSITIES[name], inside, hint, count=2)


def _made(kind: Callable[..., Any], inside: str, hint: str, count: int | None = None) -> Any:
    parts = [part.strip() for part in inside.split(",")]
    most = 2 if kind in (Sigmoid, Beta, LogitNormal) else 1
    fits = len(parts) == count if count is not None else len(parts) <= most
    if not fits or not all(_NUMBER.fullmatch(part) for part in parts):
        raise InputError(f"{hint}.")
    return kind(*(float(part) for part in parts))


def _imported(text: str) -> Any:
    value = import_object(text, "The risk or density", _RISKS)
    if callable(value) or hasattr(value, "logit_score"):
        _loaded.setdefault(id(value), (value, text))
    return value
