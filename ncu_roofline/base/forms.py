"""JSON documents of anybody: texts made clean, the types that their fields must have, and what they hold if they hold it."""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass
from typing import Any

from ncu_roofline.base.texts import clean

# In a JSON file without backslashes and other characters no text needs cleaning.
_UNCLEAN = re.compile(r"[^\t\n\r -~]|\\")


@dataclass(frozen=True)
class Number:
    """A number, 0 or from ``least`` to ``most``."""

    least: float = 1e-30
    most: float = 1e21


Form = type | Number | list["Form"] | dict[str, "Form"]
"""What a value must be: of a type, a number, a list of one form, an object by its keys."""

_WORDS: dict[object, str] = {str: "a text", bool: "true or false"}


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


def misfit(form: Form, value: object) -> str:
    """Where and how a value is not of a form, as ".clock.sm_mhz_mean must be ..."; "" where it is.  Null is a missing field."""
    if isinstance(form, dict):
        if not isinstance(value, dict):
            return f" must be an object, not {short(value)}"
        places = ((f".{key}", inner, value[key]) for key, inner in form.items() if value.get(key) is not None)
    elif isinstance(form, list):
        if not isinstance(value, list):
            return f" must be a list, not {short(value)}"
        places = ((f"[{position}]", form[0], inner) for position, inner in enumerate(value))
    elif isinstance(form, Number):
        good = value is None or number(value) == 0 or form.least <= number(value) <= form.most
        return "" if good else f" must be a number, 0 or from {form.least:g} to {form.most:g}, not {short(value)}"
    else:
        return "" if isinstance(value, form) else f" must be {_WORDS[form]}, not {short(value)}"
    return next((f"{where}{wrong}" for where, inner, one in places if (wrong := misfit(inner, one))), "")


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
