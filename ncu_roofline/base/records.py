"""Documents (TOML, JSON) as what they must be: exactly what a record says, or what a JSON schema says of them."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable
from functools import cache
from types import UnionType
from typing import Annotated, Any, Literal, NamedTuple, Union, get_args, get_origin, get_type_hints

from ncu_roofline.base.texts import clean


class MisfitError(ValueError):
    """Where (``gpus[0].names: ``) a document is not what it must be, and why; ``where`` has keys and indices, last first."""

    def __init__(self, where: Any, reason: str) -> None:
        path = ""
        while where:
            where, key = where
            path = f"[{key}]{path}" if isinstance(key, int) else f".{key}{path}"
        super().__init__(f"{path[1:]}: {reason}")


class Stated(NamedTuple):
    """For `Annotated`: a file states a value as ``form``, and ``made`` makes of it what the annotation says, or ValueError."""

    form: Any
    made: Callable[[Any], Any]


# What a value must be, and whether it is that; what a list of them must be, and whether each of its items is that.
_PLAIN: dict[object, tuple[str, Callable[[Any], bool]]] = {
    str: ("a string", lambda value: isinstance(value, str)),
    bool: ("true or false", lambda value: isinstance(value, bool)),
    int: ("a whole number from 0 on", lambda value: type(value) is int and value >= 0),
    float: ("positive and finite", lambda value: type(value) in (int, float) and 0 < value < math.inf),
}
_LISTS: dict[object, tuple[str, Callable[[Any], bool]]] = {
    str: ("a list of strings", _PLAIN[str][1]),
    int: ("a list of whole numbers from 1 on", lambda value: type(value) is int and value > 0),
}
_TABLES = ("an array of tables", lambda value: isinstance(value, dict))


def decode(form: Any, value: Any, where: Any = ()) -> Any:
    """``value`` as ``form`` says: a type, `Literal`, list or table, or a frozen dataclass or named tuple by its fields.

    Numbers are positive and finite, lists name nothing twice.  `MisfitError` for the first mistake.
    """
    if form is Any:
        return value
    if form in _PLAIN:
        name, fits = _PLAIN[form]
        if not fits(value):
            raise MisfitError(where, f"must be {name}, not {value!r}")
        return float(value) if form is float else value
    origin, inner = _shape(form)
    if origin is Annotated:
        try:
            return inner.made(decode(inner.form, value, where))
        except MisfitError:
            raise
        except ValueError as error:
            raise MisfitError(where, str(error)) from None
    if origin is Literal:
        if value not in inner:
            raise MisfitError(where, f"must be one of {', '.join(map(repr, inner))}, not {value!r}")
        return value
    if origin in (Union, UnionType):  # or None, where it is not stated
        return decode(inner[0], value, where)
    if origin in (tuple, frozenset):
        name, fits = _LISTS.get(inner[0], _TABLES)
        if not isinstance(value, list) or not (value or inner[0] in _LISTS) or not all(map(fits, value)):
            raise MisfitError(where, f"must be {name}, not {value!r}")
        if inner[0] is str and len(set(value)) != len(value):
            raise MisfitError(where, "names something twice")
        if inner[0] in _LISTS:
            return origin(value)
        return origin([decode(inner[0], item, (where, index)) for index, item in enumerate(value)])
    if not isinstance(value, dict):
        raise MisfitError(where, f"must be a table, not {value!r}")
    if origin is not None:
        keys, items = inner
        return {decode(keys, key, (where, key)): decode(items, item, (where, key)) for key, item in value.items()}
    forms, needed = inner
    for key in needed:
        if key not in value:
            raise MisfitError((where, key), "is missing")
    for key in value:
        if key not in forms:
            raise MisfitError((where, key), "is not a key of such a table")
    return form(**{key: decode(forms[key], item, (where, key)) for key, item in value.items()})


@cache
def _shape(form: Any) -> tuple[Any, Any]:
    """What kind of form it is, and what it is made of: of a record (None) its fields, and which of them must be there."""
    origin = get_origin(form)
    if origin is not None:
        return origin, form.__metadata__[0] if origin is Annotated else get_args(form)
    forms = get_type_hints(form, include_extras=True)
    if hasattr(form, "_field_defaults"):
        return None, (forms, [name for name in forms if name not in form._field_defaults])
    from dataclasses import MISSING, fields

    return None, (forms, [one.name for one in fields(form) if one.default is one.default_factory is MISSING])


def parse(text: str) -> Any:
    """A JSON document whose texts hold nothing that a terminal would obey.  ValueError, RecursionError for another text."""
    document = document_of(text)
    # Without backslashes and other characters no text needs cleaning.
    return cleaned(document) if re.search(r"[^\t\n\r -~]|\\", text) else document


def document_of(text: str) -> Any:
    """A JSON document as it is.  ValueError, RecursionError for another text."""
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        raise
    except ValueError as error:  # Python reads whole numbers up to a length
        raise ValueError("a number in it has too many digits") from error


def cleaned(value: Any) -> Any:
    """A document, all of its texts clean."""
    if isinstance(value, dict):
        return {key: cleaned(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [cleaned(inner) for inner in value]
    return clean(value, None) if isinstance(value, str) else value


_KINDS: dict[str, tuple[type, str]] = {
    "string": (str, "a text"),
    "boolean": (bool, "true or false"),
    "object": (dict, "an object"),
    "array": (list, "a list"),
}


def misfit(schema: dict[str, Any], value: object, shared: dict[str, Any]) -> str:
    """Where and how a value is not what a JSON schema says, as ".clock.sm_mhz_mean must be ..."; "" where it is.

    ``shared`` are its "$defs".  Null is a missing field.  A number is 0 or lies within the last of "anyOf".
    """
    schema = shared[schema["$ref"].rpartition("/")[2]] if "$ref" in schema else schema
    if "type" not in schema:
        words = schema.get("enum") or [schema["const"]]
        return "" if value in words else f" must be {' or '.join(words)}, not {short(value)}"
    kinds = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
    if value is None and "null" in kinds:
        return ""
    if kinds[0] in ("number", "integer"):
        ends, zero = schema.get("anyOf", [schema])[-1], "exclusiveMinimum" not in schema
        least, most = ends.get("minimum", 1e-30), ends.get("maximum", 1e21)
        good = (zero and number(value) == 0) or least <= number(value) <= most
        return "" if good else f" must be a number{', 0 or' * zero} from {least:g} to {most:g}, not {short(value)}"
    of, name = _KINDS[kinds[0]]
    if not isinstance(value, of):
        return f" must be {name}, not {short(value)}"
    places: Iterable[tuple[str, dict[str, Any], object]] = ()
    if isinstance(value, dict):
        if absent := [key for key in schema.get("required", ()) if key not in value]:
            return f" must have {absent[0]!r}, not {short(value)}"
        inner = schema.get("properties", {}).items()
        places = ((f".{key}", form, value[key]) for key, form in inner if value.get(key) is not None)
    elif isinstance(value, list):
        places = ((f"[{position}]", schema["items"], item) for position, item in enumerate(value))
    return next((f"{where}{wrong}" for where, form, item in places if (wrong := misfit(form, item, shared))), "")


def inside(document: Any, *keys: str) -> Any:
    """What stands under these keys in a document that may hold anything; None where there is no such thing."""
    for key in keys:
        document = document.get(key) if isinstance(document, dict) else None
    return document


def number(value: object) -> float:
    """``value`` of a document that may hold anything, if it is a finite number, else NaN."""
    return math.nan if (found := known(value)) is None else found


def known(value: object) -> float | None:
    """The same, None instead of NaN."""
    try:
        found = float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else math.nan
    except OverflowError:  # JSON has integers of any length
        return None
    return found if math.isfinite(found) else None


def short(value: object) -> str:
    """``value`` as a message names it."""
    text = repr(value)
    return text if len(text) <= 40 else f"{text[:37]}\N{HORIZONTAL ELLIPSIS}"
