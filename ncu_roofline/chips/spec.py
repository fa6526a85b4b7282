"""All that is known of chips, precisions and levels, and of GPUs as they are sold."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from ncu_roofline.chips.architectures import Architecture, Gpu
from ncu_roofline.chips.fields import DATA, LAST, Capability, read
from ncu_roofline.chips.precisions import ROOF_FACTORS, TENSOR_SECTION, Binding, Level, Precision

Ranges = tuple[tuple[Capability, Capability], ...]
Lacks = Mapping[Capability, frozenset[str]]
"""What levels each chip has no counters of; all chips that there are, in order."""
_UNKNOWN = "compute capability {}.{} is not known to this version and was read with the counters of {}.{}: unproven"

Item = TypeVar("Item", Precision, Level)


@dataclass(frozen=True)
class Spec:
    """Everything known: architectures by capability, precisions and levels in display order."""

    architectures: tuple[Architecture, ...]
    precisions: tuple[Precision, ...]
    levels: tuple[Level, ...]

    @property
    def chain(self) -> tuple[str, ...]:
        """Ids of the levels of which each serves what the one before it could not: L1, L2, DRAM."""
        return tuple(level.id for level in self.levels if level.chain)

    @property
    def memory(self) -> str:
        """Id of the memory behind all caches, where nobody names a level: DRAM."""
        return self.chain[-1]

    @property
    def core(self) -> tuple[str, ...]:
        """Ids of the precisions of the CUDA cores that every report should tell, those with a chart: FP64, FP32, FP16."""
        return tuple(p.id for p in self.precisions if p.section)

    @property
    def plain(self) -> tuple[str, ...]:
        """Ids of those of them with one number in a register: FP64, FP32."""
        return tuple(p.id for p in self.precisions if p.section and not p.packed)

    @property
    def on_request(self) -> frozenset[str]:
        """Ids of precisions that never stand for a kernel that does other work, unless they are asked for."""
        return frozenset(p.id for p in self.precisions if p.on_request)

    @property
    def sections(self) -> Mapping[str, str]:
        """Identifiers of the charts of our sections, by precision id; "tensor" for all types of the tensor cores."""
        return {**{p.id: p.section for p in self.precisions if p.section}, "tensor": TENSOR_SECTION}

    @property
    def standard_tensor(self) -> Precision:
        """The tensor type that stands for all where one has to be chosen."""
        return next(p for p in self.precisions if p.standard)

    @property
    def standard_type(self) -> str:
        """Its source type: "fp16"."""
        return self.standard_tensor.id.partition(".")[2]

    def level_of_ceiling(self, ceiling: str) -> str:
        """The level that a bandwidth ceiling (``smem.read``) is of, "" if it is of none."""
        head = ceiling.partition(".")[0]
        found = (level.id for level in self.levels if any(one.partition(".")[0] == head for one in level.ceilings))
        return next(found, "")

    def architecture(self, compute_capability: Capability) -> Architecture | None:
        """The architecture of a compute capability, None if unknown."""
        found = (a for a in self.architectures if a.compute_capability == compute_capability)
        return next(found, None)

    def stand_in(self, compute_capability: Capability) -> Architecture | None:
        """What a chip is read as that nobody knows yet: the nearest older one with all counters, None if none is older.

        It has the counters of that chip and none of its peaks: a roof then is one that the report's own counters state.
        Systems on a chip stand for no other, as they lack counters that their neighbours have.
        """
        older = [a for a in self.architectures if a.compute_capability < compute_capability and not a.lacks]
        if not older:
            return None
        nearest = max(older, key=lambda a: a.compute_capability)
        caveat = _UNKNOWN.format(*compute_capability, *nearest.compute_capability)
        return replace(nearest, peaks={}, bandwidth={}, boards=(), notes=(), slices={}, launching={}, caveat=caveat)

    def read_as(self, compute_capability: Capability) -> Architecture | None:
        """The architecture whose bindings read a chip: its own, else that which stands in for it."""
        return self.architecture(compute_capability) or self.stand_in(compute_capability)

    def precision(self, precision_id: str) -> Precision:
        """The precision of an id; KeyError if there is none."""
        return self._find(self.precisions, precision_id)

    def level(self, level_id: str) -> Level:
        """The level of an id; KeyError if there is none."""
        return self._find(self.levels, level_id)

    @staticmethod
    def bindings(item: Precision | Level, compute_capability: Capability) -> tuple[Binding, ...]:
        """The bindings that apply to a compute capability, best first."""
        return tuple(binding for binding in item.bindings if binding.applies(compute_capability))

    def summands(self, used: Mapping[str, Binding]) -> tuple[str, ...]:
        """Of the precisions counted (id -> binding used), those whose work may be added without counting any twice."""
        included = {contained for binding in used.values() for contained in binding.includes}
        free = (p.id for p in self.precisions if not p.part_of or p.disjoint)
        return tuple(name for name in free if name in used and name not in included)

    def collect(
        self, compute_capability: Capability, precisions: Iterable[str], levels: Iterable[str], *, lacking: bool = False
    ) -> tuple[str, ...]:
        """The shortest list for ``ncu --metrics`` that gives complete rooflines of these precisions and levels.

        Unknown ids raise KeyError; what the chip does not have is left out.  With ``lacking`` levels without counters of
        their own are estimated from others, which costs replay passes.
        """
        items: list[Precision | Level] = [*map(self.precision, precisions), *map(self.level, levels)]
        architecture = self.architecture(compute_capability)
        lacks, costly = (architecture.lacks, architecture.costly) if architecture else (frozenset(), frozenset())
        wanted = [item for item in items if lacking or item.id not in lacks]
        chosen = [binding for item in wanted if (binding := self._to_collect(item, compute_capability))]
        clocks = [clock for clock in dict.fromkeys(("sm", *(b.clock for b in chosen))) if clock and clock not in costly]
        names = ["gpu__time_duration.sum", *(f"{clock}__cycles_elapsed.avg.per_second" for clock in clocks)]
        names += [f"{counter}.sum" for b in chosen for counter in b.counters.counters()]
        names += [f"{counter}.sum.peak_sustained" for b in chosen if b.peak for counter in b.peak.counters()]
        return tuple(dict.fromkeys(names))

    def _to_collect(self, item: Precision | Level, compute_capability: Capability) -> Binding | None:
        bindings = self.bindings(item, compute_capability)
        marked = (binding for binding in bindings if binding.collect)
        return next(marked, bindings[0] if bindings else None)

    @staticmethod
    def _find(items: Iterable[Item], wanted: str) -> Item:
        for item in items:
            if item.id == wanted:
                return item
        raise KeyError(wanted)


class _Precisions(NamedTuple):
    precision: tuple[Precision, ...]


@lru_cache(maxsize=1)
def load_spec() -> Spec:
    """The specification that comes with the package, read once."""
    return read_spec(DATA)


def read_spec(folder: Path) -> Spec:
    """Read the three folders of data files.

    `SpecError` names file and key of the first mistake; whether the files agree with each other is for the tests.
    """
    architectures = [read(path, name, Architecture) for path, name in _files(folder, "architectures")]
    architectures.sort(key=lambda one: one.compute_capability)
    lacks = {one.compute_capability: one.lacks for one in architectures}
    stated = [one for path, name in _files(folder, "precisions") for one in read(path, name, _Precisions).precision]
    precisions = [_precision(one, lacks) for one in stated]
    levels = [_level(read(path, name, Level, _with_clocks), lacks) for path, name in _files(folder, "levels")]
    return Spec(
        architectures=tuple(_with_all_peaks(one, precisions) for one in architectures),
        precisions=tuple(sorted(precisions, key=lambda one: one.order)),
        levels=tuple(sorted(levels, key=lambda one: one.order)),
    )


def _files(folder: Path, kind: str) -> list[tuple[Path, str]]:
    return [(path, f"{kind}/{path.name}") for path in sorted((folder / kind).glob("*.toml"))]


def _precision(stated: Precision, lacks: Lacks) -> Precision:
    pipes = {name: _of_chips(ranges, lacks) for name, ranges in stated.pipes.items()}
    return replace(stated, bindings=_bindings(stated.bindings, lacks), pipes=pipes)


def _with_clocks(level: dict[str, Any]) -> None:
    """Bindings of a level that state no clock have that of the level."""
    bindings = level.get("bindings")
    for binding in bindings if isinstance(bindings, list) else ():
        if isinstance(binding, dict):
            binding.setdefault("clock", level.get("clock", ""))


def _level(stated: Level, lacks: Lacks) -> Level:
    """For the chips that there are; ceilings that are in no table of those that write only read."""
    shares = dict(stated.writes)
    writes = sorted(((name, shares.get(name, 0.0)) for name in stated.ceilings if shares), key=lambda pair: pair[1])
    bindings = _bindings(stated.bindings, lacks, stated.id)
    return replace(stated, short=stated.short or stated.label, bindings=bindings, writes=tuple(writes))


def _bindings(stated: Sequence[Binding], lacks: Lacks, level: str = "") -> tuple[Binding, ...]:
    """Each for the chips that there are, but for those that lack counters of the level, or for these alone."""
    return tuple(replace(one, capabilities=_of_chips(one.capabilities, lacks, level, lacking=one.lacking)) for one in stated)


def _of_chips(stated: Ranges, lacks: Lacks, level: str = "", *, lacking: bool = False) -> Ranges:
    """Ranges from a chip that there is to one that there is, without those that lack ``level``.

    With ``lacking`` those that do instead.  An open end stays open.
    """
    found: list[tuple[Capability, Capability]] = []
    for since, until in stated:
        before = False
        for chip, without in lacks.items():
            inside = since <= chip <= until and (level in without) == lacking
            if inside:
                found[-1:] = [(found[-1][0], chip)] if before else [*found[-1:], (chip, chip)]
            before = inside
        if until == LAST and before:
            found[-1] = found[-1][0], LAST
    return tuple(found)


def _with_all_peaks(one: Architecture, precisions: Sequence[Precision]) -> Architecture:
    """A peak stated for a precision with several roofs is that of its first; the others follow by their factors."""
    roofs = {
        precision.id: dict(zip(precision.roof_ids(), precision.roofs, strict=True))
        for precision in precisions
        if precision.roofs
    }

    def every(stated: Mapping[str, float]) -> dict[str, float]:
        found: dict[str, float] = {}
        for name, value in stated.items():
            found |= (
                {roof: ROOF_FACTORS[factor] * value for roof, factor in roofs[name].items()} if name in roofs else {name: value}
            )
        return found

    return replace(
        one,
        peaks=every(one.peaks),
        boards=tuple(board._replace(peaks=every(board.peaks)) for board in one.boards),
        targets=one.targets or ("{}{}".format(*one.compute_capability),),
        gpus=tuple(replace(gpu, compute_capability=one.compute_capability) for gpu in one.gpus),
    )


# GPUs as they are sold, by name, and links to the host


def gpus() -> tuple[Gpu, ...]:
    """GPUs as they are sold, of all architectures."""
    return tuple(gpu for architecture in load_spec().architectures for gpu in architecture.gpus)


def named(word: str) -> tuple[Gpu, ...]:
    """GPUs whose id contains ``word``, whatever its case."""
    return tuple(gpu for gpu in gpus() if word.lower() in gpu.id.lower())


def find_gpu(name: str, sm_count: int | None = None) -> Gpu | None:
    """The GPU whose name the driver reports as ``name``; None if it is in no table or has another number of SMs."""
    found = [gpu for gpu in gpus() if any(_is_named(name, part) for part in gpu.names)]
    return next((gpu for gpu in found if sm_count is None or gpu.sm_count == sm_count), None)


def _is_named(name: str, part: str) -> bool:
    words, wanted = name.split(), part.split()
    places = range(len(words) - len(wanted) + 1)
    return any(
        words[i : i + len(wanted) - 1] == wanted[:-1]
        and (words[i + len(wanted) - 1] == wanted[-1] or words[i + len(wanted) - 1].startswith(wanted[-1] + "-"))
        for i in places
    )


class _Link(NamedTuple):
    generation: int
    rate: float
    code: float


class _Links(NamedTuple):
    link: tuple[_Link, ...]


@cache
def link_rates() -> Mapping[int, float]:
    """Bytes per second and lane of each PCI Express generation, one way."""
    links = read(DATA / "gpus" / "rates.toml", "gpus/rates.toml", _Links).link
    return {link.generation: link.rate * link.code / 8 for link in links}
