"""From the TOML files in ``ncu_roofline/data`` to a `Spec`, and what must hold between them."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from importlib import resources
from typing import TYPE_CHECKING

from ncu_roofline.chips.description import (
    ROOF_FACTORS,
    UNITS_PER,
    Architecture,
    Binding,
    BoardRule,
    Gpu,
    Level,
    Precision,
    Spec,
)
from ncu_roofline.chips.fields import ANY_MINOR, LAST, Capability, Fields, Release, bad, capability_text, parse_capability
from ncu_roofline.chips.palette import TENSOR, WALL, Color

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

if TYPE_CHECKING:
    from importlib.abc import Traversable

CLOCKS = ("sm", "l1tex", "lts", "dram", "")
SOURCES = ("binding", "derived", "embedded")
DOMAINS = ("sm", "l2", "memory", "link")
FAMILIES = ("mma", "wgmma", "tcgen05")
_COLOR = re.compile(r"#[0-9A-F]{6}")
Ranges = tuple[tuple[Capability, Capability], ...]


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
    for item, file in _items(spec, origin):
        _check_order(item.bindings, file, item.id)
    _check_words(spec, origin)
    for precision in spec.precisions:
        _check_family(precision, spec, origin.precisions[precision.id])
    for architecture in spec.architectures:
        file = origin.architectures[capability_text(architecture.compute_capability)]
        _check_peaks(architecture, spec, file)
        _check_levels(architecture, spec, file)


def _items(spec: Spec, origin: Origin) -> Iterator[tuple[Precision | Level, str]]:
    for precision in spec.precisions:
        yield precision, origin.precisions[precision.id]
    for level in spec.levels:
        yield level, origin.levels[level.id]


def _check_order(bindings: tuple[Binding, ...], file: str, name: str) -> None:
    """A binding must be reachable: none before it may do with a part of its counters."""
    for index, later in enumerate(bindings):
        for earlier in bindings[:index]:
            overlap = earlier.since <= later.until and later.since <= earlier.until
            if overlap and set(earlier.counters.counters()) <= set(later.counters.counters()):
                reason = f"{later.counters.text()} can never be chosen, {earlier.counters.text()} comes before it"
                bad(file, f"{name}.bindings", reason)


def _check_words(spec: Spec, origin: Origin) -> None:
    """A word or a ceiling stands for one thing, an order for one place."""
    taken: dict[tuple[str, str], str] = {}
    for item, file in _items(spec, origin):
        kind = type(item).__name__
        stated = [(f"{kind}.order", str(item.order)), *((f"{kind}.aliases", word) for word in (item.id, *item.aliases))]
        stated += [("ceilings", ceiling) for ceiling in item.ceilings] if isinstance(item, Level) else []
        for key, value in stated:
            if taken.setdefault((key, value), item.id) != item.id:
                bad(file, f"{item.id}.{key.rpartition('.')[2]}", f"{value} is {taken[key, value]}'s, too")


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


@dataclass(frozen=True)
class Chips:
    """The compute capabilities that have a file, in order, each with the levels that it lacks."""

    lacks: dict[Capability, frozenset[str]]

    @classmethod
    def of(cls, files: list[Fields]) -> Chips:
        """Of all architectures."""
        found = {file.capability("compute_capability"): frozenset(file.texts("lacks", required=False)) for file in files}
        return cls(dict(sorted(found.items())))

    def ranges(self, fields: Fields, key: str, level: str = "", *, lacking: bool = False) -> Ranges:
        """Stated ranges, from a chip that there is to one that there is, without those that lack ``level``.

        With ``lacking`` those that do instead.  An open end stays open.
        """
        stated = fields.ranges(key)
        for major, minor in (end for pair in stated for end in pair if end != LAST):
            if not any(chip == (major, minor) or (minor == ANY_MINOR and chip[0] == major) for chip in self.lacks):
                fields.fail(key, f"there is no architecture {major}.{'x' if minor == ANY_MINOR else minor}")
        found: list[tuple[Capability, Capability]] = []
        for since, until in stated:
            before = False
            for chip, lacks in self.lacks.items():
                inside = since <= chip <= until and (level in lacks) == lacking
                if inside:
                    found[-1:] = [(found[-1][0], chip)] if before else [*found[-1:], (chip, chip)]
                before = inside
            if until == LAST and before:
                found[-1] = found[-1][0], LAST
        if not found:
            fields.fail(key, "are of no chip that there is")
        return tuple(found)


@lru_cache(maxsize=1)
def load_spec() -> Spec:
    """The specification that comes with the package, read once."""
    return read_spec(resources.files("ncu_roofline") / "data")


def read_spec(folder: Traversable) -> Spec:
    """Read and check the three folders of data files.

    `SpecError` names file and key of the first mistake.
    """
    origin = Origin({}, {}, {})
    chips = Chips.of(list(_files(folder, "architectures")))
    precisions = [item for fields in _files(folder, "precisions") for item in _precisions(fields, chips, origin)]
    levels = [_level(fields, chips, origin) for fields in _files(folder, "levels")]
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


def _precisions(file: Fields, chips: Chips, origin: Origin) -> Iterator[Precision]:
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
            bindings=() if opcodes else _bindings(fields, chips, "sm"),
            roofs=roofs,
            part_of=fields.text("part_of", ""),
            disjoint=fields.flag("disjoint"),
            on_request=fields.flag("on_request"),
            pipes=_pipes(fields.table("pipes"), chips) if fields.has("pipes") else (),
            opcodes=opcodes,
            section=fields.text("section", ""),
            beside=fields.text("beside", ""),
            replacements=fields.texts("replacements", required=False),
            standard=fields.flag("standard"),
            color=_color(fields.table("color")) if fields.has("color") else TENSOR,
            aliases=fields.texts("aliases", required=False),
        )
        fields.finish()
        origin.add(origin.precisions, precision.id, fields)
        yield precision
    file.finish()


def _pipes(table: Fields, chips: Chips) -> tuple[tuple[Capability, Capability, str], ...]:
    return tuple((*one, name) for name in table.names() for one in chips.ranges(table, name))


def _level(fields: Fields, chips: Chips, origin: Origin) -> Level:
    clock = fields.text("clock", allowed=CLOCKS)
    level = Level(
        id=fields.text("id"),
        label=fields.text("label"),
        short=fields.text("short", fields.text("label")),
        color=_color(fields.table("color")) if fields.has("color") else WALL,
        order=fields.integer("order"),
        bindings=_bindings(fields, chips, clock, fields.text("id")),
        on_request=fields.flag("on_request"),
        chain=fields.flag("chain"),
        domain=fields.text("domain", "sm", allowed=DOMAINS),
        ceilings=fields.texts("ceilings", required=False),
        writes=_writes(fields),
        aliases=fields.texts("aliases", required=False),
    )
    fields.finish()
    origin.add(origin.levels, level.id, fields)
    return level


def _writes(fields: Fields) -> tuple[tuple[str, float], ...]:
    """Shares of writes of a level's ceilings: those that the table does not name only read."""
    stated = fields.numbers("writes")
    pairs = ((name, stated.get(name, 0.0)) for name in fields.texts("ceilings", required=False) if stated)
    return tuple(sorted(pairs, key=lambda pair: pair[1]))


def _color(fields: Fields) -> Color:
    color = Color(fields.text("light"), fields.text("dark"))
    fields.finish()
    for key, value in color._asdict().items():
        if not _COLOR.fullmatch(value):
            fields.fail(key, f"must be like #0072B2, not {value!r}")
    return color


def _bindings(owner: Fields, chips: Chips, clock: str, level: str = "") -> tuple[Binding, ...]:
    return tuple(binding for fields in owner.tables("bindings") for binding in _binding(fields, chips, clock, level))


def _binding(fields: Fields, chips: Chips, clock: str, level: str) -> Iterator[Binding]:
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
        writes=fields.weights("writes", required=False),
    )
    if (binding.lower_bound or binding.source != "binding") and not binding.note:
        fields.fail("note", "must say what a derived count or a lower bound leaves out")
    if binding.peak and not binding.clock:
        fields.fail("clock", "is needed for a peak")
    lacking = bool(level) and fields.flag("lacking")
    if lacking and binding.source == "binding":
        fields.fail("source", "must be another on chips that lack counters of the level's own")
    ranges = chips.ranges(fields, "capabilities", level, lacking=lacking)
    fields.finish()
    return (replace(binding, since=since, until=until) for since, until in ranges)


def _architecture(fields: Fields, factors: dict[str, float], origin: Origin) -> Architecture:
    capability = fields.capability("compute_capability")
    architecture = Architecture(
        compute_capability=capability,
        name=fields.text("name"),
        chips=fields.texts("chips"),
        products=fields.texts("products"),
        lacks=frozenset(fields.texts("lacks", required=False)),
        costly=frozenset(fields.texts("costly", required=False)),
        peaks=_peaks(fields, factors),
        bandwidth=_bandwidth(fields.table("bandwidth")) if fields.has("bandwidth") else {},
        boards=tuple(_board(rule, factors) for rule in fields.tables("boards", required=False)),
        notes=fields.texts("notes", required=False),
        slices={name: int(count) for name, count in fields.numbers("slices").items()},
        launching=fields.numbers("launching"),
        caveat=fields.text("caveat", ""),
        tensor_passes=fields.integer("tensor_passes") if fields.has("tensor_passes") else 0,
        numbers=_numbers(fields.table("releases")) if fields.has("releases") else (),
        left_out=frozenset(fields.texts("left_out", required=False)),
        tensor=fields.text("tensor", "mma", allowed=FAMILIES),
        targets=fields.texts("targets", required=False) or ("{}{}".format(*capability),),
        cuda_until=fields.integer("cuda_until") if fields.has("cuda_until") else 0,
        rates=_rates(fields.table("rates")) if fields.has("rates") else {},
        coherent=fields.texts("coherent", required=False),
        gpus=tuple(_gpu(table, capability) for table in fields.tables("gpus", required=False)),
    )
    fields.finish()
    origin.add(origin.architectures, capability_text(capability), fields)
    return architecture


def _numbers(table: Fields) -> tuple[tuple[int, Release, Release], ...]:
    """By which numbers the section files of Nsight Compute know a chip: ``"9.0" = "2022.3-"`` is 90 from that release on."""
    found = []
    for name in table.names():
        capability = parse_capability(name)
        if capability is None:
            table.fail(name, "is no compute capability like 9.0")
        found.append((10 * capability[0] + capability[1], *table.releases(name)))
    return tuple(found)


def _peaks(fields: Fields, factors: dict[str, float]) -> dict[str, float]:
    """A peak stated for a precision with several roofs is that of its first; the others follow by their factors."""
    stated = fields.numbers("peaks")
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


def _rates(table: Fields) -> dict[str, tuple[float, bool]]:
    found = {}
    for name in table.names():
        entry = table.table(name)
        found[name] = entry.number("per_sm"), entry.flag("uncertain")
        entry.finish()
    return found


def _gpu(fields: Fields, capability: Capability) -> Gpu:
    gpu = Gpu(
        id=fields.text("id"),
        names=fields.texts("names"),
        compute_capability=capability,
        sm_count=fields.integer("sm_count"),
        core_clock=fields.number("core_mhz") * 1e6,
        tensor_clock=fields.number("tensor_mhz") * 1e6,
        memory_clock=fields.number("memory_mhz") * 1e6,
        bus_bits=fields.integer("bus_bits"),
        dram=fields.number("dram_gbs") * 1e9,
        l2_slices=fields.integer("l2_slices") if fields.has("l2_slices") else 0,
        source=fields.text("source"),
    )
    fields.finish()
    return gpu


def _board(fields: Fields, factors: dict[str, float]) -> BoardRule:
    rule = BoardRule(
        names=fields.texts("names"),
        peaks=_peaks(fields, factors),
        absent=fields.texts("absent", required=False),
        note=fields.text("note"),
    )
    fields.finish()
    return rule
