"""Options of a Stein certificate as text, for the command line, TOML and JSON.

==========================  =====================================================
text                        value
==========================  =====================================================
``exceedance:0.5``          ``Exceedance(0.5)``; ``hinge:0.3``, ``power:2``,
                            ``sigmoid:0.5,0.02``; a name alone has the defaults
``Beta(1, 10)``             the density; ``LogitNormal(-1, 0.5)`` likewise
``package.module:name``     the object of that name: a risk function or a density
``2``, ``true``, ``none``   the number 2, True, None
anything else               the text itself
==========================  =====================================================
"""

import re
from collections.abc import Callable
from dataclasses import astuple
from typing import Any

import numpy as np

from steingate.certificates.reference import Beta, LogitNormal
from steingate.certificates.risk import Exceedance, Hinge, Power, Sigmoid
from steingate.errors import InputError, is_real, nearest
from steingate.settings import import_object

_RISKS: dict[str, Callable[..., Any]] = {
    "exceedance": Exceedance,
    "hinge": Hinge,
    "power": Power,
    "sigmoid": Sigmoid,
}
_DENSITIES: dict[str, Callable[..., Any]] = {"Beta": Beta, "LogitNormal": LogitNormal}
_WORDS = {"true": True, "false": False, "none": None}
_NUMBER = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?")
_NAME = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*")
_CALL = re.compile(r"(\w+)\s*\((.*)\)")
_imported: dict[int, tuple[object, str]] = {}  # objects of ``module:name`` by id, with their text


def from_text(value: Any, imports: bool = True) -> Any:
    """Return what a text means; a value that is not text is returned as it is, NumPy scalars as Python's.

    ``package.module:name`` imports the module, which runs its code; with ``imports=False`` it is refused.

    >>> from_text("exceedance:0.5"), from_text("2.0"), from_text("matern52")
    (Exceedance(threshold=0.5), 2, 'matern52')
    """
    if not isinstance(value, str):
        return value.item() if isinstance(value, np.generic) else value
    text = value.strip()
    if _NUMBER.fullmatch(text):
        number = float(text)
        return int(number) if number.is_integer() else number
    if text in _WORDS:
        return _WORDS[text]
    if text in _RISKS:
        return _RISKS[text]()
    if call := _CALL.fullmatch(text):
        return _make(_DENSITIES, call[1], call[2], f"density {value!r}", "Beta(2, 5) or LogitNormal(-1, 0.5)")
    head, colon, tail = text.partition(":")
    if not colon:
        return value
    if head not in _RISKS and _NAME.fullmatch(head) and _NAME.fullmatch(tail):
        if not imports:
            raise InputError(f"{value!r} names Python code, which is not imported for stored data.")
        found = import_object(text, "The risk function or density", _RISKS)
        return _imported.setdefault(id(found), (found, text))[0]
    return _make(_RISKS, head, tail, f"risk function {value!r}", "exceedance:0.5 or module:function")


def to_text(value: Any) -> Any:
    """Return a value as JSON types: risk functions and densities as text, the rest as it is.

    Functions are named by module and name, other objects by the text they were imported with. The rest is refused.

    >>> to_text(Exceedance(0.5)), to_text(Beta(1.0, 10.0)), to_text(2.0)
    ('exceedance:0.5', 'Beta(1, 10)', 2.0)
    """
    value = value.item() if isinstance(value, np.generic) else value
    if value is None or is_real(value) or isinstance(value, bool | str):
        return value
    for name, kind in (_RISKS | _DENSITIES).items():
        if type(value) is kind:
            numbers = [_digits(number) for number in astuple(value)]
            return f"{name}({', '.join(numbers)})" if name in _DENSITIES else f"{name}:{','.join(numbers)}"
    if id(value) in _imported:
        return _imported[id(value)][1]
    module, name = getattr(value, "__module__", "__main__"), getattr(value, "__qualname__", "")
    if module != "__main__" and _NAME.fullmatch(name):
        return f"{module}:{name}"
    raise InputError(
        f"{value!r} has no name in a file: define it at the top of a module and write module:name instead."
    )


def _make(kinds: dict[str, Callable[..., Any]], name: str, inside: str, what: str, example: str) -> Any:
    numbers = [part.strip() for part in inside.split(",")]
    if name not in kinds:
        raise InputError(f"There is no {what}{nearest(name, kinds)}; write {example}.")
    try:
        if not all(map(_NUMBER.fullmatch, numbers)) or (kinds is _DENSITIES and len(numbers) != 2):
            raise TypeError
        return kinds[name](*map(float, numbers))
    except TypeError:
        raise InputError(f"The {what} cannot be read; write {example}.") from None


def _digits(number: Any) -> str:
    value = float(number)
    return str(int(value)) if value.is_integer() and abs(value) < 1e15 else repr(value)
