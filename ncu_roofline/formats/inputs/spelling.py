"""How people spell memory levels, precisions and roofs, brought to our ids."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache

from ncu_roofline.chips import load_spec
from ncu_roofline.formats.inputs.tables import ANY_PRECISION

CEILINGS = ("fma", "nofma", "no", "non", "div", "divide")
"""Words that name a ceiling."""
_FOREIGN = {"l3": "l3", "llc": "l3", "mcdram": "mcdram"}  # levels of other machines
_TENSOR = ("tensor", "tensorcore", "tc", "tcu")
_THEORETICAL = ("theoretical", "theo", "theory", "nominal", "datasheet", "spec", "vendor")
_EMPTY = ("empirical", "measured", "peak", "max", "maximum", "bandwidth", "bw", "ert", "roof", "ceiling", "core", "cores")
_NO_FMA = re.compile(r"\b(?:no|non|without|w/o|w/out)[\s_-]*fma\b")


@cache
def _levels() -> dict[str, str]:
    return {**_FOREIGN, **{word: level.id for level in load_spec().levels for word in (level.id, *level.aliases)}}


@cache
def precision_words() -> dict[str, str]:
    """Words for precisions, and the ids that they stand for, "" for types that only tensor cores have."""
    precisions = load_spec().precisions
    words = {one.id.partition(".")[2]: "" for one in precisions if one.kind == "tensor" and not one.part_of}
    return words | {word: one.id for one in precisions if one.aliases for word in (one.id, *one.aliases)}


def words_of(text: str) -> list[str]:
    """The words of a name, in lower case: "Theoretical No-FMA" is theoretical, nofma."""
    return re.findall(r"[a-z0-9]+", _NO_FMA.sub("nofma", text.lower()))


def level_of(text: str) -> str:
    """The level id that a name stands for ("HBM", "L2 bandwidth"), "" if it names none that is known."""
    return next((_levels()[word] for word in words_of(text) if word in _levels()), "")


def levels_of(names: Sequence[str]) -> list[str]:
    """Level ids of several names of one machine; what is unknown keeps its own name.

    Stacked and plain memory on one machine are two levels, as on Knights Landing: mcdram and dram.
    """
    stacked = {word for word in _levels() if word.startswith("hbm")}
    plain = {word for word in _levels() if word.startswith(("ddr", "dram"))}
    words = [words_of(name) for name in names]
    both = any(stacked & set(one) for one in words) and any(plain & set(one) for one in words)
    result = []
    for name, one in zip(names, words, strict=True):
        own = "_".join(word for word in one if word not in (*_EMPTY, *_THEORETICAL))
        result.append("mcdram" if both and stacked & set(one) else level_of(name) or own or load_spec().memory)
    return result


def precision_of(text: str) -> str:
    """The precision id that a name stands for ("DP", "Tensor FP16"), `ANY_PRECISION` if it says none."""
    words, known = words_of(text), precision_words()
    if any(word in _TENSOR for word in words):
        kinds = [known[word] or word for word in words if word in known]
        families = [word for word in words if word.endswith("mma")]
        return ".".join(("tensor", *kinds[:1], *families[:1]))
    return next((known[word] for word in words if known.get(word)), ANY_PRECISION)


def is_theoretical(text: str) -> bool:
    """Whether a roof's name says that it is not measured."""
    return any(word in _THEORETICAL for word in words_of(text))


def ceiling_of(text: str) -> str:
    """Which ceiling a compute roof's name stands for: fma, nofma, divide, divide_nofma, or its own words; "" for a peak."""
    said = (*_EMPTY, *_THEORETICAL, *_TENSOR, *precision_words())
    words = [word for word in words_of(text) if word not in said]
    if any(word.startswith("div") for word in words):
        return "divide_nofma" if "nofma" in words else "divide"
    if set(words) <= {"fma", "vector", "simd", "gflops", "flops", "s"}:
        return "fma" if "fma" in words else ""
    return "_".join(words)
