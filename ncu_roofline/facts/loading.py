"""From the TOML files in ``ncu_roofline/data`` to a `Spec`."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from importlib import resources
from typing import TYPE_CHECKING

from ncu_roofline.facts.description import ROOF_FACTORS, UNITS_PER, Architecture, Binding, BoardRule, Level, Precision, Spec
from ncu_roofline.facts.fields import LAST, Capability, Fields, bad

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

if TYPE_CHECKING:
    from importlib.abc import Traversable


@dataclass(frozen=True)
class Origin:
    """Which file each thing comes from, by its id."""

    architectures: dict[str, str]
    precisions: dict[str, str]
    levels: dict[str, str]

    @staticmethod
    def add(files: dict[str, str], name: str, fields: Fields) -> None:
        """Note where a thing comes from; `SpecError` if its id is taken."""
        if name in files:
            bad(fields.file, name, f"is described in {files[name]}, too")
        files[name] = fields.file


def check(spec: Spec, origin: Origin) -> None:
    """Raise `SpecError` for the first thing that does not hold."""
    known = {a.compute_capability for a in spec.architectures}
    for item, file in _items(spec, origin):
        for binding in item.bindings:
            _check_range(binding, known, file, item.id)
        _check_order(item.bindings, file, item.id)
    for precision in spec.precisions:
        _check_family(precision, spec, origin.precisions[precision.id])
    for architecture in spec.architectures:
        file = origin.architectures["{}.{}".format(*architecture.compute_capability)]
        _check_peaks(architecture, spec, file)
        _check_levels(architecture, spec, file)


def _items(spec: Spec, origin: Origin) -> Iterator[tuple[Precision | Level, str]]:
    for precision in spec.precisions:
        yield precision, origin.precisions[precision.id]
    for level in spec.levels:
        yield level, origin.levels[level.id]


def _check_range(binding: Binding, known: set[Capability], file: str, name: str) -> None:
    for value in (binding.since, binding.until):
        if value != LAST and value not in known:
            bad(file, f"{name}.bindings.capabilities", "there is no architecture {}.{}".format(*value))


def _check_order(bindings: tuple[Binding, ...], file: str, name: str) -> None:
    """A binding must be reachable: none before it may do with a part of its counters."""
    for index, later in enumerate(bindings):
        for earlier in bindings[:index]:
            overlap = earlier.since <= later.until and later.since <= earlier.until
            if overlap and set(earlier.counters.counters()) <= set(later.counters.counters()):
                reason = f"{later.counters.text()} can never be chosen, {earlier.counters.text()} comes before it"
                bad(file, f"{name}.bindings", reason)


def _check_family(precision: Precision, spec: Spec, file: str) -> None:
    ids = {p.id for p in spec.precisions}
    if precision.part_of and (precision.part_of not in ids or precision.part_of == precision.id):
        bad(file, f"{precision.id}.part_of", f"there is no other precision {precision.part_of!r}")
    if precision.disjoint and not precision.part_of:
        bad(file, f"{precision.id}.disjoint", "says nothing without part_of")
    for contained in (name for binding in precision.bindings for name in binding.includes):
        if contained not in ids:
            bad(file, f"{precision.id}.bindings.includes", f"there is no precision {contained!r}")


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
    for name in sorted(architecture.lacks):
        if any(b.source == "binding" for b in spec.bindings(ids[name], architecture.compute_capability)):
            bad(file, f"lacks.{name}", "yet a binding of that level covers this compute capability")
    clocks = {binding.clock for level in spec.levels for binding in level.bindings}
    for clock in architecture.costly - clocks:
        bad(file, f"costly.{clock}", "no binding runs at such a clock")


CLOCKS = ("sm", "l1tex", "lts", "dram", "")
SOURCES = ("binding", "derived", "embedded")


@lru_cache(maxsize=1)
def load_spec() -> Spec:
    """The specification that comes with the package, read once."""
    return read_spec(resources.files("ncu_roofline") / "data")


def read_spec(folder: Traversable) -> Spec:
    """Read and check the three folders of data files.

    `SpecError` names file and key of the first mistake.
    """
    origin = Origin({}, {}, {})
    precisions = [item for fields in _files(folder, "precisions") for item in _precisions(fields, origin)]
    levels = [_level(fields, origin) for fields in _files(folder, "levels")]
    factors = {roof: ROOF_FACTORS[name] for p in precisions for name, roof in zip(p.roofs, p.roof_ids(), strict=False)}
    architectures = [_architecture(fields, factors, origin) for fields in _files(folder, "architectures")]
    spec = Spec(
        architectures=tuple(sorted(architectures, key=lambda item: item.compute_capability)),
        precisions=tuple(sorted(precisions, key=lambda item: item.order)),
        levels=tuple(sorted(levels, key=lambda item: item.order)),
    )
    check(spec, origin)
    return spec


def _files(folder: Traversable, kind: str) -> Iterator[Fields]:
    paths = sorted((folder / kind).iterdir(), key=lambda path: path.name)
    for path in paths:
        if path.name.endswith(".toml"):
            yield read_fields(path, f"{kind}/{path.name}")


def read_fields(path: Traversable, name: str) -> Fields:
    """The tables of a file that is called ``name`` in errors."""
    try:
        return Fields(name, tomllib.loads(path.read_text(encoding="utf-8")))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        bad(name, "(whole file)", str(error))


def _precisions(file: Fields, origin: Origin) -> Iterator[Precision]:
    for fields in file.tables("precision"):
        roofs = fields.texts("roofs", required=False)
        for roof in roofs:
            if roof not in ROOF_FACTORS:
                fields.fail("roofs", f"{roof!r} is none of {', '.join(ROOF_FACTORS)}")
        opcodes = fields.flag("opcodes")
        precision = Precision(
            id=fields.text("id"),
            label=fields.text("label"),
            kind=fields.text("kind", allowed=("core", "tensor")),
            unit=fields.text("unit", allowed=("flop", "op")),
            order=fields.integer("order"),
            bindings=() if opcodes else _bindings(fields, "sm"),
            roofs=roofs,
            part_of=fields.text("part_of", ""),
            disjoint=fields.flag("disjoint"),
            on_request=fields.flag("on_request"),
            pipes=_pipes(fields.table("pipes")) if fields.has("pipes") else (),
            opcodes=opcodes,
        )
        fields.finish()
        origin.add(origin.precisions, precision.id, fields)
        yield precision
    file.finish()


def _pipes(table: Fields) -> tuple[tuple[Capability, Capability, str], ...]:
    return tuple((*one, name) for name in table.names() for one in table.ranges(name))


def _level(fields: Fields, origin: Origin) -> Level:
    clock = fields.text("clock", allowed=CLOCKS)
    level = Level(
        id=fields.text("id"),
        label=fields.text("label"),
        order=fields.integer("order"),
        bindings=_bindings(fields, clock),
        on_request=fields.flag("on_request"),
    )
    fields.finish()
    origin.add(origin.levels, level.id, fields)
    return level


def _bindings(owner: Fields, clock: str) -> tuple[Binding, ...]:
    return tuple(binding for fields in owner.tables("bindings") for binding in _binding(fields, clock))


def _binding(fields: Fields, clock: str) -> Iterator[Binding]:
    """One for each range of compute capabilities."""
    counters = fields.weights("counters", required=True)
    assert counters is not None
    binding = Binding(
        since=(0, 0),
        until=(0, 0),
        counters=counters,
        peak=fields.weights("peak", required=False),
        clock=fields.text("clock", clock, allowed=CLOCKS),
        source=fields.text("source", "binding", allowed=SOURCES),
        note=fields.text("note", ""),
        lower_bound=fields.flag("lower_bound"),
        includes=fields.texts("includes", required=False),
        collect=fields.flag("collect"),
    )
    if (binding.lower_bound or binding.source != "binding") and not binding.note:
        fields.fail("note", "must say what a derived count or a lower bound leaves out")
    if binding.peak and not binding.clock:
        fields.fail("clock", "is needed for a peak")
    ranges = fields.ranges("capabilities")
    fields.finish()
    return (replace(binding, since=since, until=until) for since, until in ranges)


def _architecture(fields: Fields, factors: dict[str, float], origin: Origin) -> Architecture:
    architecture = Architecture(
        compute_capability=fields.capability("compute_capability"),
        name=fields.text("name"),
        chips=fields.texts("chips"),
        products=fields.texts("products"),
        lacks=frozenset(fields.texts("lacks", required=False)),
        costly=frozenset(fields.texts("costly", required=False)),
        peaks=_peaks(fields, factors),
        bandwidth=_bandwidth(fields.table("bandwidth")) if fields.has("bandwidth") else {},
        boards=tuple(_board(rule, factors) for rule in fields.tables("boards", required=False)),
        notes=fields.texts("notes", required=False),
        slices={name: int(count) for name, count in fields.numbers("slices").items()} if fields.has("slices") else {},
        launching=fields.numbers("launching") if fields.has("launching") else {},
        caveat=fields.text("caveat", ""),
        tensor_passes=fields.integer("tensor_passes") if fields.has("tensor_passes") else 0,
    )
    fields.finish()
    origin.add(origin.architectures, "{}.{}".format(*architecture.compute_capability), fields)
    return architecture


def _peaks(fields: Fields, factors: dict[str, float]) -> dict[str, float]:
    """A peak stated for a precision with several roofs is that of its first; the others follow by their factors."""
    stated = fields.numbers("peaks") if fields.has("peaks") else {}
    peaks: dict[str, float] = {}
    for name, value in stated.items():
        family = {roof: factor for roof, factor in factors.items() if roof.rpartition(".")[0] == name}
        peaks.update({roof: factor * value for roof, factor in family.items()} if family else {name: value})
    return peaks


def _bandwidth(table: Fields) -> dict[str, tuple[float, str]]:
    found = {}
    for level in table.names():
        entry = table.table(level)
        found[level] = entry.number("bytes"), entry.text("per", allowed=tuple(UNITS_PER))
        entry.finish()
    return found


def _board(fields: Fields, factors: dict[str, float]) -> BoardRule:
    rule = BoardRule(
        names=fields.texts("names"),
        peaks=_peaks(fields, factors),
        absent=fields.texts("absent", required=False),
        note=fields.text("note"),
    )
    fields.finish()
    return rule
