"""What files of other tools call things, and how people spell levels, precisions and roofs: `data/inputs.toml`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Annotated, NamedTuple

from ncu_roofline.base.records import Stated
from ncu_roofline.chips import load_spec
from ncu_roofline.chips.fields import Capability, capability, table
from ncu_roofline.formats.inputs.tables import ANY_PRECISION

_NO_FMA = re.compile(r"\b(?:no|non|without|w/o|w/out)[\s_-]*fma\b")


def _by_word(stated: Mapping[str, tuple[str, ...]]) -> dict[str, str]:
    return {word: meaning for meaning, words in stated.items() for word in words}


ByWord = Annotated[Mapping[str, str], Stated(Mapping[str, tuple[str, ...]], _by_word)]


class Traffic(NamedTuple):
    """One way to get the bytes of a level: the metrics it needs, those it adds where collected, and bytes for each count, which
    is known from a compute capability on."""

    level: str
    needed: tuple[str, ...]
    size: float
    since: Annotated[Capability, Stated(str, capability)] = (0, 0)
    added: tuple[str, ...] = ()


class Words(NamedTuple):
    """What stands in the file, whose comments say what it is."""

    signs: Mapping[str, str]
    columns: ByWord
    quantities: ByWord
    units: Mapping[str, tuple[str, ...]]
    times: ByWord
    supported: ByWord
    levels: ByWord
    roofs: Mapping[str, tuple[str, ...]]
    nersc: ByWord
    likwid: ByWord
    advisor_roofs: ByWord
    advisor_traffic: tuple[Traffic, ...]
    ncu: Mapping[str, tuple[str, ...]]
    ncu_labels: Mapping[str, Mapping[str, str]]
    nvprof_layouts: Mapping[str, tuple[str, ...]]
    nvprof_work: Mapping[str, str]
    nvprof_traffic: tuple[Traffic, ...]
    nvprof_descriptions: Mapping[str, str]
    nvprof_gpus: ByWord


load_words = table("inputs.toml", Words)


def traffic_of(counts: Mapping[str, float], ways: Iterable[Traffic]) -> tuple[dict[str, float], list[str]]:
    """Bytes by level, by the first way whose counts are all there, and the names of the counts used."""
    traffic: dict[str, float] = {}
    used: list[str] = []
    for way in ways:
        if way.level not in traffic and all(name in counts for name in way.needed):
            names = [*way.needed, *(name for name in way.added if name in counts)]
            traffic[way.level] = way.size * sum(counts[name] for name in names)
            used += names
    return traffic, used


@cache
def level_words() -> dict[str, str]:
    return {**load_words().levels, **{word: level.id for level in load_spec().levels for word in (level.id, *level.aliases)}}


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
    return next((level_words()[word] for word in words_of(text) if word in level_words()), "")


def precision_of(text: str) -> str:
    """The precision id that a name stands for ("DP", "Tensor FP16"), `ANY_PRECISION` if it says none."""
    words, known = words_of(text), precision_words()
    if any(word in load_words().roofs["tensor"] for word in words):
        kinds = [known[word] or word for word in words if word in known]
        families = [word for word in words if word.endswith("mma")]
        return ".".join(("tensor", *kinds[:1], *families[:1]))
    return next((known[word] for word in words if known.get(word)), ANY_PRECISION)


def is_theoretical(text: str) -> bool:
    """Whether a roof's name says that it is not measured."""
    return any(word in load_words().roofs["theoretical"] for word in words_of(text))


def ceiling_of(text: str) -> str:
    """Which ceiling a compute roof's name stands for: fma, nofma, divide, divide_nofma, or its own words; "" for a peak."""
    roofs = load_words().roofs
    said = (*roofs["empty"], *roofs["theoretical"], *roofs["tensor"], *precision_words())
    words = [word for word in words_of(text) if word not in said]
    if any(word.startswith("div") for word in words):
        return "divide_nofma" if "nofma" in words else "divide"
    if set(words) <= {"fma", "vector", "simd", "gflops", "flops", "s"}:
        return "fma" if "fma" in words else ""
    return "_".join(words)
