"""JSON documents of anybody: texts made clean, what a schema says of them, and what they hold if they hold it."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable
from typing import Any

from ncu_roofline.base.texts import clean

# In a JSON file without backslashes and other characters no text needs cleaning.
_UNCLEAN = re.compile(r"[^\t\n\r -~]|\\")


_TYPES: dict[str, tuple[type, str]] = {
    "string": (str, "a text"),
    "boolean": (bool, "true or false"),
    "object": (dict, "an object"),
    "array": (list, "a list"),
}


def parse(text: str) -> Any:
    """A JSON document whose texts hold nothing that a terminal would obey.  ValueError, RecursionError for another text."""
    document = document_of(text)
    return cleaned(document) if _UNCLEAN.search(text) else document


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
    if isinstance(value, str):
        return clean(value, None)
    if isinstance(value, dict):
        return {key: cleaned(inner) for key, inner in value.items()}
    return [cleaned(inner) for inner in value] if isinstance(value, list) else value


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
        ends = schema.get("anyOf", [{}])[-1]
        least, most = ends.get("minimum", 1e-30), ends.get("maximum", 1e21)
        good = number(value) == 0 or least <= number(value) <= most
        return "" if good else f" must be a number, 0 or from {least:g} to {most:g}, not {short(value)}"
    of, name = _TYPES[kinds[0]]
    if not isinstance(value, of):
        return f" must be {name}, not {short(value)}"
    places: Iterable[tuple[str, dict[str, Any], object]] = ()
    if isinstance(value, dict):
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
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return math.nan
    try:
        number = float(value)
    except OverflowError:  # JSON has integers of any length
        return math.nan
    return number if math.isfinite(number) else math.nan


def known(value: object) -> float | None:
    """The same, None instead of NaN."""
    found = number(value)
    return None if math.isnan(found) else found


def short(value: object) -> str:
    """``value`` as a message names it."""
    text = repr(value)
    return text if len(text) <= 40 else f"{text[:37]}\N{HORIZONTAL ELLIPSIS}"
