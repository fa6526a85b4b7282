"""How people spell memory levels, precisions and roofs, brought to our ids."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import NamedTuple

from ncu_roofline.base.texts import listed
from ncu_roofline.chips import load_spec
from ncu_roofline.formats.inputs.tables import ANY_PRECISION, ImportedRoof

# Levels of other machines.
_FOREIGN = {"l3": "l3", "llc": "l3", "mcdram": "mcdram"}
CEILINGS = ("fma", "nofma", "no", "non", "div", "divide")
"""Words that name a ceiling."""
_TENSOR = ("tensor", "tensorcore", "tc", "tcu")
_THEORETICAL = ("theoretical", "theo", "theory", "nominal", "datasheet", "spec", "vendor")
_EMPTY = ("empirical", "measured", "peak", "max", "maximum", "bandwidth", "bw", "ert", "roof", "ceiling", "core", "cores")
_LOWER = ("nofma", "divide", "divide_nofma")
_NO_FMA = re.compile(r"\b(?:no|non|without|w/o|w/out)[\s_-]*fma\b")


@lru_cache(maxsize=1)
def _levels() -> dict[str, str]:
    return {**_FOREIGN, **{word: level.id for level in load_spec().levels for word in (level.id, *level.aliases)}}


@lru_cache(maxsize=1)
def precision_words() -> dict[str, str]:
    """Words for precisions, and the ids that they stand for, "" for types that only tensor cores have."""
    words = {}
    for one in load_spec().precisions:
        if one.kind == "tensor" and not one.part_of:
            words[one.id.partition(".")[2]] = ""
    for one in load_spec().precisions:
        if one.aliases:
            words.update(dict.fromkeys((one.id, *one.aliases), one.id))
    return words


def words_of(text: str) -> list[str]:
    """The words of a name, in lower case: "Theoretical No-FMA" is theoretical, nofma."""
    joined = _NO_FMA.sub("nofma", text.lower())
    return re.findall(r"[a-z0-9]+", joined)


def level_of(text: str) -> str:
    """The level id that a name stands for ("HBM", "L2 bandwidth"), "" if it names none that is known."""
    return next((_levels()[word] for word in words_of(text) if word in _levels()), "")


def levels_of(names: Sequence[str]) -> list[str]:
    """Level ids of several names of one machine; what is unknown keeps its own name.

    Stacked and plain memory on one machine are two levels, as on Knights Landing: mcdram and dram.
    """
    known = _levels()
    stacked = {word for word in known if word.startswith("hbm")}
    plain = {word for word in known if word.startswith(("ddr", "dram"))}
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
        families = [word for word in words if word.endswith("mma") and word not in ("fma", "nofma")]
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


class Named(NamedTuple):
    """A roof as a file gives it: its name and its value in SI units."""

    name: str
    value: float


def bandwidth_roofs(named: Sequence[Named], beside: Sequence[str] = ()) -> tuple[list[ImportedRoof], list[str]]:
    """Bandwidth roofs by level, and sentences on what was left out; ``beside`` names levels that the machine has as well."""
    levels = levels_of([*(one.name for one in named), *beside])[: len(named)]
    roofs = [
        ImportedRoof(level, "bandwidth", one.name, one.value, measured=not is_theoretical(one.name))
        for one, level in zip(named, levels, strict=True)
    ]
    return _distinct(roofs)


def compute_roofs(named: Sequence[Named]) -> tuple[list[ImportedRoof], list[str]]:
    """Compute roofs by precision and ceiling; the highest of a precision is its ``.fma`` (a tensor type's, the bare id)."""
    precisions = [precision_of(one.name) for one in named]
    kinds = [ceiling_of(one.name) for one in named]
    stated = {precision for precision, kind in zip(precisions, kinds, strict=True) if kind == "fma"}
    highest: dict[str, float] = {}
    for one, precision in zip(named, precisions, strict=True):
        highest[precision] = max(one.value, highest.get(precision, one.value))
    roofs = []
    for one, precision, kind in zip(named, precisions, kinds, strict=True):
        is_highest = not kind or one.value == highest[precision]
        is_peak = kind == "fma" or (precision not in stated and kind not in _LOWER and is_highest)
        tensor = precision.startswith("tensor")
        name = (precision if tensor else f"{precision}.fma") if is_peak else f"{precision}.{kind or 'peak'}"
        roofs.append(ImportedRoof(name, "compute", one.name, one.value, measured=not is_theoretical(one.name)))
    return _distinct(roofs)


def _distinct(roofs: Iterable[ImportedRoof]) -> tuple[list[ImportedRoof], list[str]]:
    """One roof per id: a measured one goes before a theoretical one, then the higher one counts."""
    best: dict[str, ImportedRoof] = {}
    others: dict[str, list[str]] = {}
    for roof in sorted(roofs, key=lambda one: (not one.measured, -one.value)):
        if best.setdefault(roof.id, roof) is not roof:
            others.setdefault(roof.id, []).append(roof.label)
    left_out = []
    for of, labels in others.items():
        which = f"the roof {listed(labels)} is" if len(labels) == 1 else f"the roofs {listed(labels)} are"
        left_out.append(f"{which} left out, because {best[of].label} stands for {of}")
    return list(best.values()), left_out
