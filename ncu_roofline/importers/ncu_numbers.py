"""Metric values as Nsight Compute prints them: with or without separators of thousands, in the style of the user's locale."""

from __future__ import annotations

import re
from collections.abc import Iterable

from ncu_roofline.report import Value

# A value may be followed by those of its instances: "12 (4; 8)".
_INSTANCES = re.compile(r"^(\S+) \(.*\)$", re.DOTALL)
_NUMBER = re.compile(r"[+-]?\d[\d.,'\s]*(?:[eE][+-]?\d+)?")  # \s has the narrow and the fixed blank of some locales
_NOT_A_NUMBER = re.compile(r"[+-]?(?:nan|1\.#(?:ind|qnan|snan))\b.*", re.IGNORECASE)
_INFINITE = re.compile(r"([+-]?)(?:inf(?:inity)?|1\.#inf\d*)", re.IGNORECASE)
_MISSING = ("", "n/a", "no data", "-")
_MARK = "(!)"  # what ncu of 2019 and 2020 put before values that were not measured


def decimal_mark(texts: Iterable[str]) -> str:
    """The decimal point or comma, if one of the values shows it beyond doubt, else "".

    "9,00" and "1.234,5" have a decimal comma, "0.25" and "1,234.5" a decimal point, "1,234" may be either.
    """
    for text in texts:
        value = _plain(text)
        marks = re.findall(r"[.,]", value) if _NUMBER.fullmatch(value) else []
        if len(set(marks)) == 2 and marks.count(marks[-1]) == 1:
            return str(marks[-1])
        if len(marks) == 1:
            before, _, after = value.partition(marks[0])
            if not re.fullmatch(r"\d{3}", after) or before.lstrip("+-0") == "" or len(before.lstrip("+-")) > 3:
                return str(marks[0])
    return ""


def value_of(text: str, mark: str) -> Value | None:
    """A printed value with decimal mark ``mark``: a float, the text itself where it is no number, None where there is none."""
    if mark == ".":
        try:
            return _finite_or_none(float(text))
        except ValueError:
            pass
    value = _plain(text)
    if value.lower() in _MISSING or value.startswith(_MARK) or _NOT_A_NUMBER.fullmatch(value):
        return None
    if found := _INFINITE.fullmatch(value):
        return float(f"{found.group(1)}inf")
    if not _NUMBER.fullmatch(value):
        return text.rstrip("\0")
    grouping = "," if mark == "." else "."
    bare = re.sub(rf"[\s'{grouping}]", "", value).replace(mark, ".")
    try:
        return float(bare)
    except ValueError:
        return text


def _plain(text: str) -> str:
    value = text.strip()
    found = _INSTANCES.match(value) if value.endswith(")") else None
    return found.group(1) if found else value


def _finite_or_none(number: float) -> float | None:
    return None if number != number else number


def digits(text: str) -> int | None:
    """Significant digits of a number with decimals; None for whole numbers, which are exact."""
    mantissa = re.match(r"[+-]?[\d.,]*", _plain(text))
    body = mantissa.group() if mantissa else ""
    return len(re.sub(r"\D", "", body).lstrip("0")) if re.search(r"[.,]", body) else None
