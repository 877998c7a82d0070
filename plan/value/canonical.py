"""JSON text in the one form of RFC 8785, so that equal data has equal bytes, and an equal hash.

One walk over plain or frozen data, since hashing is on the way of every event, check and lookup. A
test holds it to the `rfc8785` package byte by byte, whose own walk takes several times as long.

Source: RFC 8785, 3.2.2 and 3.2.3; for numbers ECMA-262, Number::toString.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from decimal import Decimal
from json.encoder import encode_basestring
from math import isfinite
from types import MappingProxyType
from typing import Any, NoReturn

from pydantic import BaseModel

_EXACT = 2**53 - 1
"""The largest whole number that every reader of JSON takes for itself."""


def canonical_text(value: object) -> str:
    """Return the text of plain or frozen JSON data, or of a model.

    Raises:
        ValueError: A whole number is beyond 2**53, a number is not finite, or something is no JSON.
    """
    write = _WRITERS.get(type(value)) or _writer_of(value)
    return write(value)


def _writer_of(value: object) -> Callable[[Any], str]:
    return next((write for kind, write in _WRITERS.items() if isinstance(value, kind)), _refuse)


def _list(items: Iterable[object]) -> str:
    return f"[{','.join([canonical_text(item) for item in items])}]"


def _object(items: Mapping[object, object]) -> str:
    named = {str(key): item for key, item in items.items()}
    names = sorted(named, key=None if "".join(named).isascii() else _utf_16)
    fields = [f"{encode_basestring(name)}:{canonical_text(named[name])}" for name in names]
    return f"{{{','.join(fields)}}}"


def _utf_16(name: str) -> bytes:
    return name.encode("utf-16-be")


def _whole(number: int) -> str:
    if not -_EXACT <= number <= _EXACT:
        raise ValueError(f"{number} is beyond the whole numbers that readers of JSON agree on")
    return int.__repr__(number)


def _number(number: float) -> str:
    if not isfinite(number):
        raise ValueError(f"{number} is no JSON number")
    digits, has_exponent, exponent = float.__repr__(number).partition("e")
    if not has_exponent:
        return "0" if number == 0 else digits.removesuffix(".0")
    power = int(exponent)
    if -7 < power < 21:  # noqa: PLR2004 - where JavaScript begins to write exponents
        return format(Decimal(f"{digits}e{power}"), "f")
    return f"{digits}e{power:+d}"


def _refuse(value: object) -> NoReturn:
    raise ValueError(f"{type(value).__name__} is no JSON")


_WRITERS: Mapping[type, Callable[[Any], str]] = {
    str: encode_basestring,
    bool: lambda value: "true" if value else "false",  # before int, which it is in Python
    type(None): lambda _: "null",
    int: _whole,
    float: _number,
    list: _list,
    tuple: _list,
    dict: _object,
    MappingProxyType: _object,
    Mapping: _object,
    BaseModel: lambda value: canonical_text(value.model_dump(mode="json")),
}
