"""Options of a Stein certificate as text, for the command line, TOML and JSON.

==========================  =====================================================
text                        value
==========================  =====================================================
``exceedance:0.5``          ``Exceedance(0.5)``; ``sigmoid:0.5,0.02`` likewise
``Beta(1, 10)``             the density; ``LogitNormal(-1, 0.5)`` likewise
``package.module:name``     the object of that name: a risk function or a density
``2``, ``true``, ``none``   the number 2, True, None
anything else               the text itself
==========================  =====================================================
"""

import re
from collections.abc import Callable
from dataclasses import astuple, fields
from typing import Any

import numpy as np

from steingate.certificates.reference import Beta, Interior, LogitNormal
from steingate.certificates.risk import Exceedance, Sigmoid
from steingate.errors import InputError, is_real, nearest
from steingate.settings import import_object

_KINDS: dict[str, Callable[..., Any]] = {
    "exceedance": Exceedance,
    "sigmoid": Sigmoid,
    "Beta": Beta,
    "LogitNormal": LogitNormal,
}
_WORDS = {"true": True, "false": False, "none": None}
_NUMBER = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?")
_OBJECT = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*:[^\W\d]\w*(\.[^\W\d]\w*)*")
_FORM = re.compile(r"(\w+)\s*(?:\((.*)\)|:(.*))")


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
    if _OBJECT.fullmatch(text):
        if not imports:
            raise InputError(f"{value!r} names Python code, which is not imported for stored data.")
        return import_object(text, "The risk function or density", _KINDS)
    form = _FORM.fullmatch(text)
    if form is None:
        return value
    example = "write Beta(2, 5), LogitNormal(-1, 0.5), sigmoid:0.5,0.02, exceedance:0.5 or module:name"
    if form[1] not in _KINDS:
        raise InputError(f"There is no risk function or density {value!r}{nearest(form[1], _KINDS)}; {example}.")
    kind, numbers = _KINDS[form[1]], [part.strip() for part in (form[2] or form[3] or "").split(",")]
    if not all(map(_NUMBER.fullmatch, numbers)) or len(numbers) != len(fields(kind)):  # type: ignore[arg-type]
        raise InputError(f"{value!r} cannot be read; {example}.")
    return kind(*map(float, numbers))


def to_text(value: Any) -> Any:
    """Return a value as JSON types: risk functions and densities as text, texts of them in their usual form.

    Functions are named by module and name. Other objects are refused.

    >>> to_text(Exceedance(0.5)), to_text("Beta(1.0,10)"), to_text(2.0)
    ('exceedance:0.5', 'Beta(1, 10)', 2.0)
    """
    if isinstance(value, str) and _OBJECT.fullmatch(value.strip()):
        return value.strip()
    value = from_text(value)
    if value is None or is_real(value) or isinstance(value, bool | str):
        return value
    for name, kind in _KINDS.items():
        if type(value) is kind:
            numbers = [_digits(number) for number in astuple(value)]
            return f"{name}({', '.join(numbers)})" if isinstance(value, Interior) else f"{name}:{','.join(numbers)}"
    text = f"{getattr(value, '__module__', '__main__')}:{getattr(value, '__qualname__', '')}"
    if _OBJECT.fullmatch(text) and not text.startswith("__main__:"):
        return text
    raise InputError(
        f"{value!r} has no name in a file: define it at the top of a module and write module:name instead."
    )


def _digits(number: Any) -> str:
    value = float(number)
    return str(int(value)) if value.is_integer() and abs(value) < 1e15 else repr(value)
