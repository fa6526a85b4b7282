"""How people spell memory levels, precisions and roofs, brought to our ids."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ncu_roofline.inputs.tables import ANY_PRECISION, ImportedRoof

_LEVELS = {
    **dict.fromkeys(("l1", "l1d", "l1tex"), "l1"),
    **dict.fromkeys(("shared", "smem", "lds", "scratchpad"), "shared"),
    **dict.fromkeys(("l2", "lts"), "l2"),
    **dict.fromkeys(("l3", "llc"), "l3"),
    **dict.fromkeys(("dram", "ddr", "ddr4", "ddr5", "hbm", "hbm2", "hbm2e", "hbm3", "hbm3e", "gddr", "gddr6", "vram"), "dram"),
    **dict.fromkeys(("mcdram",), "mcdram"),
    **dict.fromkeys(("system", "sysmem", "host", "pcie", "nvlink"), "system"),
}
_STACKED = {word for word in _LEVELS if word.startswith("hbm")}
_PLAIN = {word for word in _LEVELS if word.startswith(("ddr", "dram"))}
_PRECISIONS = {
    **dict.fromkeys(("fp64", "f64", "dp", "double", "float64"), "fp64"),
    **dict.fromkeys(("fp32", "f32", "sp", "single", "float", "float32"), "fp32"),
    **dict.fromkeys(("fp16", "f16", "hp", "half", "float16"), "fp16"),
    **dict.fromkeys(("bf16", "bfloat16"), "bf16"),
    **dict.fromkeys(("tf32", "fp8", "fp4", "int8", "int4"), ""),
}
PRECISIONS = tuple(_PRECISIONS)
CEILINGS = ("fma", "nofma", "no", "non", "div", "divide")
"""Words that name a ceiling."""
_TENSOR = ("tensor", "tensorcore", "tc", "tcu")
_THEORETICAL = ("theoretical", "theo", "theory", "nominal", "datasheet", "spec", "vendor")
_EMPTY = ("empirical", "measured", "peak", "max", "maximum", "bandwidth", "bw", "ert", "roof", "ceiling", "core", "cores")
_LOWER = ("nofma", "divide", "divide_nofma")
_NO_FMA = re.compile(r"\b(?:no|non|without|w/o|w/out)[\s_-]*fma\b")


def words_of(text: str) -> list[str]:
    """The words of a name, in lower case: "Theoretical No-FMA" is theoretical, nofma."""
    joined = _NO_FMA.sub("nofma", text.lower())
    return re.findall(r"[a-z0-9]+", joined)


def level_of(text: str) -> str:
    """The level id that a name stands for ("HBM", "L2 bandwidth"), "" if it names none that is known."""
    return next((_LEVELS[word] for word in words_of(text) if word in _LEVELS), "")


def levels_of(names: Sequence[str]) -> list[str]:
    """Level ids of several names of one machine; what is unknown keeps its own name.

    Stacked and plain memory on one machine are two levels, as on Knights Landing: mcdram and dram.
    """
    words = {word for name in names for word in words_of(name)}
    both = bool(words & _STACKED) and bool(words & _PLAIN)
    return [_level(name, both) for name in names]


def _level(name: str, both: bool) -> str:
    if both and _STACKED & set(words_of(name)):
        return "mcdram"
    return level_of(name) or "_".join(word for word in words_of(name) if word not in (*_EMPTY, *_THEORETICAL)) or "dram"


def precision_of(text: str) -> str:
    """The precision id that a name stands for ("DP", "Tensor FP16"), `ANY_PRECISION` if it says none."""
    words = words_of(text)
    if any(word in _TENSOR for word in words):
        kinds = [_PRECISIONS[word] or word for word in words if word in _PRECISIONS]
        families = [word for word in words if word.endswith("mma") and word not in ("fma", "nofma")]
        return ".".join(("tensor", *kinds[:1], *families[:1]))
    return next((_PRECISIONS[word] for word in words if _PRECISIONS.get(word)), ANY_PRECISION)


def is_theoretical(text: str) -> bool:
    """Whether a roof's name says that it is not measured."""
    return any(word in _THEORETICAL for word in words_of(text))


def ceiling_of(text: str) -> str:
    """Which ceiling a compute roof's name stands for: fma, nofma, divide, divide_nofma, or its own words; "" for a peak."""
    words = [word for word in words_of(text) if word not in (*_EMPTY, *_THEORETICAL, *_TENSOR) and word not in _PRECISIONS]
    if any(word.startswith("div") for word in words):
        return "divide_nofma" if "nofma" in words else "divide"
    if set(words) <= {"fma", "vector", "simd", "gflops", "flops", "s"}:
        return "fma" if "fma" in words else ""
    return "_".join(words)


@dataclass(frozen=True)
class Named:
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
    roofs = []
    for one, precision, kind in zip(named, precisions, kinds, strict=True):
        stated = any(p == precision and k == "fma" for p, k in zip(precisions, kinds, strict=True))
        highest = max(o.value for o, p, k in zip(named, precisions, kinds, strict=True) if p == precision)
        is_peak = kind == "fma" or (not stated and kind not in _LOWER and (not kind or one.value == highest))
        tensor = precision.startswith("tensor")
        name = (precision if tensor else f"{precision}.fma") if is_peak else f"{precision}.{kind or 'peak'}"
        roofs.append(ImportedRoof(name, "compute", one.name, one.value, measured=not is_theoretical(one.name)))
    return _distinct(roofs)


def _distinct(roofs: Iterable[ImportedRoof]) -> tuple[list[ImportedRoof], list[str]]:
    """One roof per id: a measured one goes before a theoretical one, then the higher one counts."""
    best: dict[str, ImportedRoof] = {}
    left_out = []
    for roof in sorted(roofs, key=lambda one: (not one.measured, -one.value)):
        first = best.setdefault(roof.id, roof)
        if first is not roof:
            left_out.append(f"the roof {roof.label} is left out, because {first.label} stands for {roof.id}")
    return list(best.values()), left_out
