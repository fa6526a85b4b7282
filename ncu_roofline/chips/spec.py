"""All that is known of chips, precisions and levels, and what must hold between their files."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from ncu_roofline.base.records import MisfitError, decode
from ncu_roofline.chips.architectures import Architecture
from ncu_roofline.chips.fields import ANY_MINOR, DATA, LAST, Capability, bad, capability_text, in_file, read, toml
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
    """Read and check the three folders of data files.

    `SpecError` names file and key of the first mistake.
    """
    origin: dict[str, str] = {}
    architectures: list[Architecture] = []
    precisions: list[Precision] = []
    levels: list[Level] = []
    for path, name in _files(folder, "architectures"):
        architectures.append(read(path, name, Architecture))
        _note(origin, capability_text(architectures[-1].compute_capability), name)
    architectures.sort(key=lambda one: one.compute_capability)
    lacks = {one.compute_capability: one.lacks for one in architectures}
    for path, name in _files(folder, "precisions"):
        with in_file(name):
            for index, one in enumerate(decode(_Precisions, toml(path, name)).precision):
                precisions.append(_precision(one, f"precision[{index}]", lacks))
                _note(origin, one.id, name)
    for path, name in _files(folder, "levels"):
        with in_file(name):
            levels.append(_level(toml(path, name), lacks))
            _note(origin, levels[-1].id, name)
    spec = Spec(
        architectures=tuple(_with_all_peaks(one, precisions) for one in architectures),
        precisions=tuple(sorted(precisions, key=lambda one: one.order)),
        levels=tuple(sorted(levels, key=lambda one: one.order)),
    )
    _check(spec, origin)
    return spec


def _files(folder: Path, kind: str) -> list[tuple[Path, str]]:
    return [(path, f"{kind}/{path.name}") for path in sorted((folder / kind).glob("*.toml"))]


def _note(origin: dict[str, str], name: str, file: str) -> None:
    """Which file a thing comes from; `SpecError` if its id is taken."""
    if name in origin:
        bad(file, name, f"is described in {origin[name]}, too")
    origin[name] = file


def _precision(stated: Precision, where: str, lacks: Lacks) -> Precision:
    if stated.opcodes == bool(stated.bindings):
        raise MisfitError(f"{where}.bindings", "is not a key of such a table" if stated.opcodes else "is missing")
    pipes = {name: _of_chips(ranges, f"{where}.pipes.{name}", lacks) for name, ranges in stated.pipes.items()}
    return replace(stated, bindings=_bindings(stated.bindings, f"{where}.bindings", lacks), pipes=pipes)


def _level(table: dict[str, Any], lacks: Lacks) -> Level:
    if "clock" not in table:
        raise MisfitError("clock", "is missing")
    bindings = table.get("bindings")
    for one in bindings if isinstance(bindings, list) else ():
        if isinstance(one, dict):
            one.setdefault("clock", table["clock"])
    stated: Level = decode(Level, table)
    writes = dict(stated.writes)
    shares = [
        (name, writes.get(name, 0.0)) for name in stated.ceilings if writes
    ]  # those that the table does not name only read
    return replace(
        stated,
        short=stated.short or stated.label,
        bindings=_bindings(stated.bindings, "bindings", lacks, stated.id),
        writes=tuple(sorted(shares, key=lambda pair: pair[1])),
    )


def _bindings(stated: Sequence[Binding], where: str, lacks: Lacks, level: str = "") -> tuple[Binding, ...]:
    """Each for the chips that there are, but for those that lack counters of the level, or for these alone."""
    found = []
    for index, one in enumerate(stated):
        place = f"{where}[{index}]"
        if (one.lower_bound or one.source != "binding") and not one.note:
            raise MisfitError(f"{place}.note", "must say what a derived count or a lower bound leaves out")
        if one.peak and not one.clock:
            raise MisfitError(f"{place}.clock", "is needed for a peak")
        if one.lacking and not level:
            raise MisfitError(f"{place}.lacking", "is not a key of such a table")
        if one.lacking and one.source == "binding":
            raise MisfitError(f"{place}.source", "must be another on chips that lack counters of the level's own")
        ranges = _of_chips(one.capabilities, f"{place}.capabilities", lacks, level, lacking=one.lacking)
        found.append(replace(one, capabilities=ranges))
    return tuple(found)


def _of_chips(stated: Ranges, where: str, lacks: Lacks, level: str = "", *, lacking: bool = False) -> Ranges:
    """Ranges from a chip that there is to one that there is, without those that lack ``level``.

    With ``lacking`` those that do instead.  An open end stays open.
    """
    for major, minor in (end for pair in stated for end in pair if end != LAST):
        if (major, minor) not in lacks and (minor != ANY_MINOR or major not in {chip[0] for chip in lacks}):
            raise MisfitError(where, f"there is no architecture {major}.{'x' if minor == ANY_MINOR else minor}")
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
    if not found:
        raise MisfitError(where, "are of no chip that there is")
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


def _check(spec: Spec, origin: Mapping[str, str]) -> None:
    """Raise `SpecError` for the first thing that does not hold."""
    for item in _items(spec):
        _check_order(item.bindings, origin[item.id], item.id)
    _check_words(spec, origin)
    for precision in spec.precisions:
        _check_family(precision, spec, origin[precision.id])
    for architecture in spec.architectures:
        file = origin[capability_text(architecture.compute_capability)]
        _check_peaks(architecture, spec, file)
        _check_levels(architecture, spec, file)


def _items(spec: Spec) -> tuple[Precision | Level, ...]:
    return (*spec.precisions, *spec.levels)


def _check_order(bindings: Sequence[Binding], file: str, name: str) -> None:
    """A binding must be reachable: none before it may do with a part of its counters."""
    for index, later in enumerate(bindings):
        for earlier in bindings[:index]:
            if set(earlier.counters.counters()) <= set(later.counters.counters()) and any(
                since <= end and start <= until for since, until in earlier.capabilities for start, end in later.capabilities
            ):
                reason = f"{later.counters.text()} can never be chosen, {earlier.counters.text()} comes before it"
                bad(file, f"{name}.bindings", reason)


def _check_words(spec: Spec, origin: Mapping[str, str]) -> None:
    """A word or a ceiling stands for one thing, an order for one place."""
    taken: dict[tuple[str, str], str] = {}
    for item in _items(spec):
        kind = type(item).__name__
        stated = [(f"{kind}.order", str(item.order)), *((f"{kind}.aliases", word) for word in (item.id, *item.aliases))]
        stated += [("ceilings", ceiling) for ceiling in item.ceilings] if isinstance(item, Level) else []
        for key, value in stated:
            if taken.setdefault((key, value), item.id) != item.id:
                bad(origin[item.id], f"{item.id}.{key.rpartition('.')[2]}", f"{value} is {taken[key, value]}'s, too")


def _check_family(precision: Precision, spec: Spec, file: str) -> None:
    ids = {p.id for p in spec.precisions}
    if precision.part_of and (precision.part_of not in ids or precision.part_of == precision.id):
        bad(file, f"{precision.id}.part_of", f"there is no other precision {precision.part_of!r}")
    if precision.disjoint and not precision.part_of:
        bad(file, f"{precision.id}.disjoint", "says nothing without part_of")
    included = tuple(name for binding in precision.bindings for name in binding.includes)
    beside = (precision.beside,) if precision.beside else ()
    stated = (("bindings.includes", included), ("beside", beside), ("replacements", precision.replacements))
    for key, name in ((key, name) for key, names in stated for name in names):
        if name not in ids:
            bad(file, f"{precision.id}.{key}", f"there is no precision {name!r}")
    standard = next((p.id for p in spec.precisions if p.standard), "")
    if precision.standard and (precision.kind != "tensor" or precision.id != standard):
        bad(file, f"{precision.id}.standard", "is for one precision of the tensor cores")


def _check_peaks(architecture: Architecture, spec: Spec, file: str) -> None:
    owner = {roof: p for p in spec.precisions for roof in p.roof_ids()}
    ids = {p.id for p in spec.precisions}
    stated = [("peaks", roof) for roof in architecture.peaks]
    for index, rule in enumerate(architecture.boards):
        stated += [(f"boards[{index}]", roof) for roof in (*rule.peaks, *rule.absent)]
    for key, roof in stated:
        if roof not in owner:
            parent = roof.rpartition(".")[0]
            reason = f"precision {parent!r} has no such roof" if parent in ids else "there is no such precision"
            bad(file, f"{key}.{roof}", reason)
        if not owner[roof].opcodes and not spec.bindings(owner[roof], architecture.compute_capability):
            bad(file, f"{key}.{roof}", "no counter is bound for this precision on this compute capability")


def _check_levels(architecture: Architecture, spec: Spec, file: str) -> None:
    ids = {level.id: level for level in spec.levels}
    for key, names in (("lacks", architecture.lacks), ("bandwidth", architecture.bandwidth)):
        for name in names:
            if name not in ids:
                bad(file, f"{key}.{name}", "there is no such level")
    for name in sorted(architecture.left_out - ids.keys() - {p.id for p in spec.precisions}):
        bad(file, f"left_out.{name}", "there is no such level or precision")
    clocks = {binding.clock for level in spec.levels for binding in level.bindings}
    for clock in architecture.costly - clocks:
        bad(file, f"costly.{clock}", "no binding runs at such a clock")
