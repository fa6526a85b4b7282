"""What must hold between the data files; every violation names the file and the key."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ncu_roofline.spec.description import Architecture, Binding, Level, Precision, Spec
from ncu_roofline.spec.validation import LAST, Capability, Fields, bad


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
