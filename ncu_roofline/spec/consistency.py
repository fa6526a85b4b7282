"""What must hold between the data files; every violation names the file and the key."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ncu_roofline.spec.description import Architecture, Binding, Level, Precision, Spec
from ncu_roofline.spec.validation import Fields, bad


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
        file = origin.architectures["{}.{}".format(*architecture.compute_capability)]
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
        stated += [("ceilings", one) for one in item.ceilings] if isinstance(item, Level) else []
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
