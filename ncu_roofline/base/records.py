"""Tables of TOML and JSON as records: what a class says of its fields is what a table may hold, and nothing else."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
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


# What a value is called, and when it is such a value.
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


def decode(form: Any, value: object, where: str = "") -> Any:
    """``value`` as ``form`` says: a type, `Literal`, list or table, or a frozen dataclass or named tuple by its fields.

    Numbers are positive and finite, lists name nothing twice.  `MisfitError` for the first mistake.
    """
    origin, inner = get_origin(form), get_args(form)
    if form in _PLAIN:
        return _plain(form, value, where)
    if origin is Annotated:
        stated = form.__metadata__[0]
        read = decode(stated.form, value, where)
        try:
            return stated.made(read)
        except ValueError as error:
            raise MisfitError(where, str(error)) from None
    if origin is Literal:
        if _plain(str, value, where) not in inner:
            raise MisfitError(where, f"must be one of {', '.join(map(repr, inner))}, not {value!r}")
        return value
    if origin in (Union, UnionType):  # or None, where it is not stated
        return decode(inner[0], value, where)
    if origin in (tuple, frozenset):
        return origin(_items(inner[0], value, where))
    table = value if isinstance(value, dict) else None
    if table is None:
        raise MisfitError(where, f"must be a table, not {value!r}")
    if origin in (Mapping, dict):
        places = ((below(where, key), key, one) for key, one in table.items())
        return {decode(inner[0], key, place): decode(inner[1], one, place) for place, key, one in places}
    return _record(form, table, where)


def below(where: str, key: str) -> str:
    """The path of a key of a table."""
    return f"{where}.{key}" if where else key


def _plain(form: object, value: Any, where: str) -> Any:
    name, fits = _PLAIN[form]
    if not fits(value):
        raise MisfitError(where, f"must be {name}, not {value!r}")
    if form is not float:
        return value
    if not 0 < value < math.inf:
        raise MisfitError(where, f"must be positive and finite, not {value!r}")
    return float(value)


def _items(form: Any, value: object, where: str) -> list[Any]:
    if form in _LISTS:
        name, fits = _LISTS[form]
        if not isinstance(value, list) or not all(map(fits, value)):
            raise MisfitError(where, f"must be a list of {name}, not {value!r}")
        if form is str and len(set(value)) != len(value):
            raise MisfitError(where, "names something twice")
        return value
    if not isinstance(value, list) or not value or not all(isinstance(item, dict) for item in value):
        raise MisfitError(where, "must be an array of tables")
    return [decode(form, item, f"{where}[{index}]") for index, item in enumerate(value)]


@cache
def _fields(form: Any) -> tuple[dict[str, Any], tuple[str, ...]]:
    """The forms of a record's fields, and which of these have to be there."""
    forms = get_type_hints(form, include_extras=True)
    if hasattr(form, "_field_defaults"):
        return forms, tuple(name for name in form._fields if name not in form._field_defaults)
    from dataclasses import MISSING, fields

    stated = [one for one in fields(form) if one.init]
    needed = tuple(one.name for one in stated if one.default is MISSING and one.default_factory is MISSING)
    return {one.name: forms[one.name] for one in stated}, needed


def _record(form: Any, table: dict[str, object], where: str) -> Any:
    forms, needed = _fields(form)
    for key in needed:
        if key not in table:
            raise MisfitError(below(where, key), "is missing")
    for key in table:
        if key not in forms:
            raise MisfitError(below(where, key), "is not a key of such a table")
    return form(**{key: decode(forms[key], value, below(where, key)) for key, value in table.items()})
