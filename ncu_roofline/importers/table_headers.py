"""Headers of plain tables: which quantity a column holds, of which level or precision, and in which unit."""

from __future__ import annotations

import re
from dataclasses import dataclass

from ncu_roofline.importers.spelling import CEILINGS, PRECISIONS, ceiling_of, is_theoretical, level_of, precision_of
from ncu_roofline.importers.tables import ANY_PRECISION

PARAMETERS = ("nw", "stride", "step", "parameter", "size", "n")
"""Columns whose numbers say nothing without their name: a label becomes ``nw=6``."""
_TEXTS = {
    **dict.fromkeys(("platform", "machine", "system_name"), "platform"),
    **dict.fromkeys(("device", "gpu", "chip", "hardware", "architecture"), "device"),
    **dict.fromkeys(("application", "app", "code", "benchmark", "program"), "application"),
    **dict.fromkeys(("kernel", "kernel_name", "function", "loop", "region", "name"), "kernel"),
    **dict.fromkeys(("label", "variant", "case", *PARAMETERS), "label"),
    **dict.fromkeys(("level", "memory_level"), "level"),
    **dict.fromkeys(("precision", "data_type"), "precision"),
    **dict.fromkeys(("supported", "runs", "status"), "supported"),
    **dict.fromkeys(("launches", "calls", "invocations"), "launches"),
    **dict.fromkeys(("fma_share", "alpha"), "fma_share"),
    **dict.fromkeys(("note", "notes", "comment", "source"), "note"),
}
_PREFIX = {"": 1.0, "k": 1e3, "m": 1e6, "g": 1e9, "t": 1e12, "p": 1e15}
_BINARY = {"ki": 2.0**10, "mi": 2.0**20, "gi": 2.0**30, "ti": 2.0**40}
_TIME = {
    **dict.fromkeys(("s", "sec", "secs", "second", "seconds"), 1.0),
    **dict.fromkeys(("ms", "msec", "millisecond", "milliseconds"), 1e-3),
    **dict.fromkeys(("us", "usec", "microsecond", "microseconds"), 1e-6),
    **dict.fromkeys(("ns", "nsec", "nanosecond", "nanoseconds"), 1e-9),
}
_FLOP = re.compile(r"([kmgtp]?)flops?")
_FLOP_RATE = re.compile(r"([kmgtp]?)flops?(?:/s(?:ec|econd)?|ps)")
_BYTES = re.compile(r"([kmgtp]?|[kmgt]i)(?:b|bytes?)")
_BYTE_RATE = re.compile(r"([kmgtp]?|[kmgt]i)(?:b|bytes?)(?:/s(?:ec|econd)?|s|ps)")
_QUANTITIES = {
    **dict.fromkeys(("work",), "work"),
    **dict.fromkeys(("performance", "perf"), "performance"),
    **dict.fromkeys(("time", "runtime", "duration", "walltime", "elapsed"), "seconds"),
    **dict.fromkeys(("traffic", "moved"), "traffic"),
    **dict.fromkeys(("ai", "intensity", "oi"), "intensity"),
    **dict.fromkeys(("attainable",), "attainable"),
    **dict.fromkeys(("peak", "ceiling", "roof"), "peak"),
    **dict.fromkeys(("bandwidth", "bw"), "bandwidth"),
}
_FILLERS = ("arithmetic", "operational", "executed", "canonical", "total", "run", "memory", "of", "measured", "empirical")
_RATIO = re.compile(r"\bflops?\s*/\s*b(?:yte)?s?\b")
_OF_LEVEL = ("traffic", "intensity", "bandwidth")
_OF_PRECISION = ("work", "performance", "peak", "canonical", "fma_share")


@dataclass(frozen=True)
class Header:
    """What a column holds: a quantity, in how many SI units one of its numbers is, and of what.

    ``of`` is a level id for traffic, intensity and bandwidth; ``precision`` and ``ceiling`` go with work and peaks.
    """

    text: str
    quantity: str
    scale: float = 1.0
    of: str = ""
    precision: str = ANY_PRECISION
    ceiling: str = ""
    theoretical: bool = False


class AmbiguousHeaderError(ValueError):
    """A column whose unit could mean two things; the text is a sentence part."""


def header(text: str) -> Header | None:
    """What the column called ``text`` holds, None if nothing known.  Raises AmbiguousHeaderError."""
    words = _words(text)
    plain = "_".join(words)
    if plain in _TEXTS:
        return Header(text, _TEXTS[plain])
    if "%" in text or not all(_known(word) for word in words):
        return None
    unit = _unit(words)
    named = next((_QUANTITIES[word] for word in words if word in _QUANTITIES), "")
    quantity = _quantity(text, words, named or ("intensity" if _RATIO.search(text.lower()) else ""), unit)
    if not quantity:
        return None
    return Header(
        text,
        quantity,
        unit[1] if unit else 1.0,
        of=level_of(" ".join(words)) if quantity in _OF_LEVEL else "",
        precision=precision_of(" ".join(words)) if quantity in _OF_PRECISION else ANY_PRECISION,
        ceiling=_ceiling(words) if quantity == "peak" else "",
        theoretical=is_theoretical(text),
    )


def _words(text: str) -> list[str]:
    """Words in lower case; a rate stays one word: "Perf. [GFLOP/s]" and "perf_gflop_per_s" are perf, gflop/s."""
    lower = re.sub(r"([a-z])\s*(?:_per_|\s+per\s+|/)\s*s(?:ec|econd)?\b", r"\1/s", text.strip().lower())
    lower = _RATIO.sub("", lower.replace("\N{MICRO SIGN}", "u").replace("\N{GREEK SMALL LETTER MU}", "u"))
    return re.findall(r"[a-z0-9]+(?:/s\b)?", lower)


def _known(word: str) -> bool:
    """Whether a word of a header is one of ours; a column with another one means something else, however it begins."""
    vocabulary = (*_QUANTITIES, *_TIME, *_FILLERS, *CEILINGS, *PRECISIONS)
    return word in vocabulary or is_theoretical(word) or bool(level_of(word)) or _unit([word]) is not None


def _unit(words: list[str]) -> tuple[str, float] | None:
    """The kind of a column's unit (flop, flops, byte, byte/s, second) and its size in SI units."""
    for word in reversed(words):
        if word in _TIME:
            return "second", _TIME[word]
        for kind, pattern in (("flops", _FLOP_RATE), ("flop", _FLOP), ("byte", _BYTES), ("byte/s", _BYTE_RATE)):
            found = pattern.fullmatch(word)
            if found:
                return kind, {**_PREFIX, **_BINARY}[found[1]]
    return None


def _quantity(text: str, words: list[str], named: str, unit: tuple[str, float] | None) -> str:
    kind = unit[0] if unit else ""
    if "canonical" in words and kind in ("flop", ""):
        return "canonical"
    if not named:
        if kind == "flop" and unit and unit[1] > 1 and any(word.endswith("flops") for word in words):
            raise AmbiguousHeaderError(f"the column {text!r} may be work or a rate")
        return {"flop": "work", "flops": "performance", "byte": "traffic", "second": "seconds", "byte/s": "bandwidth"}.get(
            kind, ""
        )
    fitting = {
        "work": ("flop", ""),
        "performance": ("flops", "flop", ""),
        "attainable": ("flops", "flop", ""),
        "peak": ("flops", "flop", ""),
        "seconds": ("second", ""),
        "traffic": ("byte", ""),
        "intensity": ("",),
        "bandwidth": ("byte/s", "byte", ""),
    }
    return named if kind in fitting[named] else ""


def _ceiling(words: list[str]) -> str:
    rest = [word for word in words if word not in _QUANTITIES and not _FLOP.fullmatch(word) and not _FLOP_RATE.fullmatch(word)]
    return ceiling_of(" ".join(rest)) or "fma"
