"""Tables of TOML and JSON as records: what a class says of its fields is what a table may hold, and nothing else."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from types import UnionType
from typing import Annotated, Any, Literal, NamedTuple, Union, get_args, get_origin, get_type_hints


class MisfitError(ValueError):
    """``where`` (``gpus[0].names``, "" for the whole) a document is not what it must be, and why."""

    def __init__(self, where: str, reason: str) -> None:
        super().__init__(f"{where}: {reason}")
        self.where, self.reason = where, reason


class Stated(NamedTuple):
    """For `Annotated`: a file states a value as ``form``, and ``made`` makes of it what the annotation says, or ValueError."""

    form: Any
    made: Callable[[Any], Any]


_RECORD = object()
# What a value is called, and when it is such a value; the same of the items of a list.
_PLAIN: dict[object, tuple[str, Callable[[Any], bool]]] = {
    str: ("a string", lambda value: isinstance(value, str)),
    bool: ("true or false", lambda value: isinstance(value, bool)),
    int: ("a whole number from 0 on", lambda value: type(value) is int and value >= 0),
    float: ("a number", lambda value: type(value) in (int, float)),
}
_LISTS: dict[object, tuple[str, Callable[[Any], bool]]] = {
    str: ("strings", lambda value: isinstance(value, str)),
    int: ("whole numbers from 1 on", lambda value: type(value) is int and value > 0),
}


def decode(form: Any, value: Any) -> Any:
    """``value`` as ``form`` says: a type, `Literal`, list or table, or a frozen dataclass or named tuple by its fields.

    Numbers are positive and finite, lists name nothing twice.  `MisfitError` for the first mistake.
    """
    if form in _PLAIN:
        name, fits = _PLAIN[form]
        if not fits(value):
            raise MisfitError("", f"must be {name}, not {value!r}")
        if form is float and not 0 < value < math.inf:
            raise MisfitError("", f"must be positive and finite, not {value!r}")
        return float(value) if form is float else value
    origin, inner = _shape(form)
    if origin is Annotated:
        found = decode(inner[0], value)
        try:
            return inner[1](found)
        except ValueError as error:
            raise MisfitError("", str(error)) from None
    if origin is Literal:
        if decode(str, value) not in inner:
            raise MisfitError("", f"must be one of {', '.join(map(repr, inner))}, not {value!r}")
        return value
    if origin in (Union, UnionType):  # or None, where it is not stated
        return decode(inner[0], value)
    if origin in (tuple, frozenset):
        return origin(_items(inner[0], value))
    if not isinstance(value, dict):
        raise MisfitError("", f"must be a table, not {value!r}")
    if origin is _RECORD:
        forms, needed = inner
        for key in needed:
            if key not in value:
                raise MisfitError(key, "is missing")
        for key in value:
            if key not in forms:
                raise MisfitError(key, "is not a key of such a table")
        return form(**{key: _below(key, forms[key], one) for key, one in value.items()})
    return {_below(key, inner[0], key): _below(key, inner[1], one) for key, one in value.items()}


def _below(key: str, form: Any, value: Any) -> Any:
    """The value of a key of a table, or of an item of a list."""
    try:
        return decode(form, value)
    except MisfitError as error:
        dot = "." if error.where and not error.where.startswith("[") else ""
        raise MisfitError(f"{key}{dot}{error.where}", error.reason) from None


def _items(form: Any, value: Any) -> list[Any]:
    if form in _LISTS:
        name, fits = _LISTS[form]
        if not isinstance(value, list) or not all(map(fits, value)):
            raise MisfitError("", f"must be a list of {name}, not {value!r}")
        if form is str and len(set(value)) != len(value):
            raise MisfitError("", "names something twice")
        return value
    if not isinstance(value, list) or not value or not all(isinstance(item, dict) for item in value):
        raise MisfitError("", "must be an array of tables")
    return [_below(f"[{index}]", form, item) for index, item in enumerate(value)]


@cache
def _shape(form: Any) -> tuple[Any, Any]:
    """What kind of form it is, and what it is made of: of a record its fields, and which of them must be there."""
    origin = get_origin(form)
    if origin is Annotated:
        return origin, form.__metadata__[0]
    if origin is not None:
        return origin, get_args(form)
    forms = get_type_hints(form, include_extras=True)
    if hasattr(form, "_field_defaults"):
        return _RECORD, (forms, [name for name in forms if name not in form._field_defaults])
    from dataclasses import MISSING, fields

    needed = [one.name for one in fields(form) if one.default is MISSING and one.default_factory is MISSING]
    return _RECORD, (forms, needed)
