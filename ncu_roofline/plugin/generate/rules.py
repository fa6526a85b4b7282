"""The rules for Nsight Compute, rendered from templates: short files and one helper beside them, the same for every release."""

from __future__ import annotations

import ast
import hashlib
import inspect
import re
import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from types import ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple

from ncu_roofline.base.files import HELPER
from ncu_roofline.chips import (
    Architecture,
    Level,
    Precision,
    Spec,
    arithmetic,
    circumstances,
    clocks,
    libraries,
    load_opcodes,
    load_spec,
    load_stalls,
    load_units,
    roofs,
    source_counters,
    stalls,
    thresholds,
    verdict,
)
from ncu_roofline.chips import units as hardware
from ncu_roofline.chips.formula import WeightedSum, twin
from ncu_roofline.chips.opcodes import load_opcode_kinds, load_opcode_units
from ncu_roofline.chips.precisions import INSTRUCTION_SECTION, TENSOR_SECTION
from ncu_roofline.chips.precisions import OVERVIEW_SECTION as _OVERVIEW
from ncu_roofline.chips.units import Gauge, Rate, Scale, Unit
from ncu_roofline.formats.ceilings import GPU, MEASURED, NOT_COMPARABLE, PUBLISHED, Ceiling, model_name
from ncu_roofline.formats.sass import instructions
from ncu_roofline.plugin.generate.files import GENERATED, WIDTH, defaults_of, fields_of, python, render
from ncu_roofline.plugin.generate.sections import render_sections

if TYPE_CHECKING:
    from ncu_roofline.formats.ceilings import Ceilings
    from ncu_roofline.plugin.generate.dialects import Dialect

# What rules read of the device, the compute capability first; every report has it.
_ATTRIBUTES = (
    *("compute_capability_major", "compute_capability_minor", "display_name", "multiprocessor_count", "fbp_count"),
    *("num_l2s_per_fbp", "max_gpu_frequency_khz", "clock_rate", "max_mem_frequency_khz", "global_memory_bus_width"),
)
# Metrics of releases and chips that came after those that can't list their metrics.
_LATER = ("sm__ops_path_", "syslts__", "derived__")
_METRIC = re.compile(r'Name: "([\w.]+)"(?: Filter \{(?: MinArch: (\d+))?(?: MaxArch: (\d+))? \})?')
VERDICT = "NcuRooflineVerdict"
_SENTENCES = (
    *("UNFUSED", "FP64_AMONG_FP32", "CONVERSIONS", "OF_DIVISIONS", "INDEXED"),
    *("UNFUSED_ADVICE", "FP64_ADVICE", "CONVERSION_ADVICE", "DIVISION_ADVICE", "INDEXING_ADVICE"),
)
_GAUGES = (
    *("occupancy", "occupancy_theoretical", "eligible_warps", "waves", "data_pipe"),
    *("writeback", "bank_reads", "bank_writes", "requests", "lanes"),
)

_Capability = tuple[int, int]
_Terms = tuple[tuple[str, float], ...]


class RuleTemplate(NamedTuple):
    """One rule: its names, the section it belongs to, and the precisions that a bound rule judges (``shown``).

    Its file is called by its identifier: rule folders share one import path, so that is as private.
    """

    identifier: str
    name: str
    description: str
    section: str
    template: str
    shown: tuple[str, ...] = ()

    @property
    def parents(self) -> list[str]:
        """Rules that Nsight Compute runs before, whose messages stand first therefore; until 2023.1 it goes by identifiers."""
        return [VERDICT] if self.section == _OVERVIEW and self.identifier != VERDICT else []


# The records of the helper's tables, which are named tuples there as well.
class _Way(NamedTuple):
    """A way of counting: chips that it is for (first and last compute capability), counters with weights.

    ``clock`` is the unit at whose clock ``peak`` is; ``fused`` what fused multiply-adds did, ``writes`` what was written;
    ``includes`` are ids of precisions that are counted in as well; ``lower``: it counts a part only.
    """

    ranges: tuple[tuple[_Capability, _Capability], ...]
    counters: _Terms
    clock: str
    peak: _Terms = ()
    fused: _Terms = ()
    note: str = ""
    includes: tuple[str, ...] = ()
    writes: _Terms = ()
    lower: bool = False


class _Precision(NamedTuple):
    """A precision: ``roof`` is the id of its highest roof; ways of counting it are best first.

    ``adds``: to the total; ``part_of`` which other it is; ``pipes`` that are not its own, by first and last compute capability;
    ``on_request``: it is mostly indices.
    """

    id: str
    label: str
    roof: str
    roof_label: str
    kind: str
    unit: str
    ways: tuple[_Way, ...]
    adds: bool
    part_of: str = ""
    pipes: tuple[tuple[_Capability, _Capability, str], ...] = ()
    on_request: bool = False


class _Level(NamedTuple):
    """A level of memory: whether it is one of the chain from the SMs to DRAM, ways of counting its bytes, best first, and the
    clock that it follows."""

    id: str
    label: str
    short: str
    chain: bool
    ways: tuple[_Way, ...]
    domain: str


class _Board(NamedTuple):
    """Boards that differ from others of their chip, by parts of their names: other peaks, and what they lack."""

    names: tuple[str, ...]
    peaks: Mapping[str, float]
    absent: tuple[str, ...]


class _Chip(NamedTuple):
    """A compute capability: peaks per SM and cycle by roof, bandwidths by level (bytes per cycle, per what).

    ``slices`` of L2 are by name of the GPU, seconds of ``launching`` by part of it.  ``complete``: it has the counters of all
    levels; only such a chip stands in for one that nobody knew yet.
    """

    peaks: Mapping[str, float] = {}
    bandwidths: Mapping[str, tuple[float, str]] = {}
    boards: tuple[_Board, ...] = ()
    slices: Mapping[str, int] = {}
    launching: tuple[tuple[str, float], ...] = ()
    complete: bool = False


class _Measured(NamedTuple):
    """A measured roof per second, the SM clock that it was measured at in Hz, or 0, and whether its own clock is known.

    ``per_cycle`` of the SM clock, or None where it doesn't follow that; ``share`` of theory by its own file, or None;
    ``by_writes``: bytes per second by the share of them that is written.
    """

    value: float
    clock: float
    clock_known: bool
    per_cycle: float | None
    share: float | None
    by_writes: tuple[tuple[float, float], ...] = ()


class _Ceilings(NamedTuple):
    """Roofs by id and the seconds that a launch costs, as measured on one model of GPU; ``origin`` says by whom."""

    chip: _Capability = (0, 0)
    model: str = ""
    provenance: str = ""
    values: Mapping[str, _Measured] = {}
    launching: float | None = None
    origin: str = MEASURED


class _Stall(NamedTuple):
    """Why warps wait: what completes "warps wait here ...", usual causes, and what helps (nothing: no need).

    Of these sentences, with the words that must be shown for each and those that must not be, see below.  ``caches``: hit rates
    say more; ``least``: share of the samples to be told, ``least_at_place``: of one place; ``unit``: ``waits`` where that
    is known which the instruction needs; ``limits``: ids or kinds of what makes warps wait so where it limits a kernel.
    """

    waits: str
    cause: tuple[tuple[object, ...], ...]
    advice: tuple[tuple[object, ...], ...]
    caches: bool
    least: float
    least_at_place: float
    unit: str
    limits: tuple[str, ...]


# Identifier without prefix, name, description, section, template.
_GENERAL_RULES = (
    ("Verdict", "Roofline Verdict", "What limits the kernel as a whole, and how much faster it could be", _OVERVIEW, "verdict"),
    ("Mixed", "Mixed Precision Roofline", "What binds a kernel that works in several precisions at once", _OVERVIEW, "mixed"),
    ("FmaMix", "FMA Mix", "Share of fused multiply-adds and the compute roof that it allows", _OVERVIEW, "fma_mix"),
    ("Locality", "Cache Locality", "Which cache level catches reuse and where it is lost", _OVERVIEW, "locality"),
    ("Tensor", "Tensor Core Use", "Work that tensor cores could do, or do with older instructions", TENSOR_SECTION, "tensor"),
    ("Clocks", "Roofline Clocks", "At which clocks kernel and roofs stand", _OVERVIEW, "clocks"),
    ("LaunchSize", "Launch Size", "Kernels too short, too small, or without floating-point work", _OVERVIEW, "launch_size"),
    (
        *("AccessPattern", "Access Pattern", "Sectors per request, bank conflicts and lanes without work"),
        *(INSTRUCTION_SECTION, "access_pattern"),
    ),
    (
        *("HotSpots", "Source Hot Spots", "Lines with most excess sectors, bank conflicts, inactive lanes and waiting warps"),
        *(INSTRUCTION_SECTION, "hot_spots"),
    ),
    (
        *("ArithmeticSpots", "Source Arithmetic"),
        "Lines with multiplications and additions apart, FP64 among FP32, and slow conversions",
        *(INSTRUCTION_SECTION, "arithmetic_spots"),
    ),
)


def rule_templates(spec: Spec) -> tuple[RuleTemplate, ...]:
    """All rules; those of the charts follow the spec."""
    tensor = tuple(p.id for p in spec.precisions if _adds(p) and p.kind == "tensor" and not p.beside)
    own = ((p, (p.id, *(other.id for other in spec.precisions if other.beside == p.id))) for p in spec.precisions if p.section)
    bound = [
        RuleTemplate(
            f"NcuRooflineBound{section.removeprefix('Hierarchical').removesuffix('RooflineChart')}",
            f"{label} Roofline Bound",
            f"What binds the {label} work of a kernel, level by level",
            section,
            "bound.py.j2",
            shown,
        )
        for section, label, shown in (*((p.section, p.label, shown) for p, shown in own), (TENSOR_SECTION, "Tensor", tensor))
    ]
    general = (
        RuleTemplate(f"NcuRoofline{rule}", name, description, section, f"{template}.py.j2")
        for rule, name, description, section, template in _GENERAL_RULES
    )
    return (*bound, *general)


def render_rules(dialect: Dialect | None = None, ceilings: Sequence[Ceilings] = ()) -> dict[str, str]:  # noqa: ARG001
    """File name -> text of every rule, and of the helper that they import.

    The files find out at run time what the release offers, so they are the same for every dialect.  ``ceilings``: measured
    roofs that they hold kernels against, used on the GPU models they were measured on.
    """
    spec = load_spec()
    rules = rule_templates(spec)
    facts = _facts(spec, rules, ceilings)
    helper = render("rules/shared.py.j2", **facts).rstrip("\n") + "\n"
    name = f"{HELPER}_{hashlib.sha256(helper.encode()).hexdigest()[:8]}"
    rendered = {f"{name}.py": helper}
    for rule in rules:
        body = render(f"rules/{rule.template}", rule=rule, **facts).strip()
        text = render("rules/_head.py.j2", rule=rule, shared=name, body=body, **facts)
        rendered[f"{rule.identifier}.py"] = text.rstrip("\n") + "\n"
    return rendered


def _facts(spec: Spec, rules: Sequence[RuleTemplate], ceilings: Sequence[Ceilings]) -> dict[str, object]:
    """What templates name: modules for their constants, and tables."""
    units, sections = load_units(), render_sections()
    gauges = {gauge.id: gauge for gauge in units.gauges}
    labels = {unit.id: unit.label for unit in units.units}
    counted = {column: metrics for column, (metrics, _) in source_counters.COUNTED.items()}
    precisions = {p.id: p for p in spec.precisions}
    return {
        "generated": GENERATED,
        "arithmetic": arithmetic,
        "clocks": clocks,
        "counters": source_counters,
        "hardware": hardware,
        "sass": instructions,
        "stalls": stalls,
        "thresholds": thresholds,
        "units": units,
        "records": _definitions(_Way, _Precision, _Level, _Board, _Chip, _Measured, _Ceilings, Unit, Rate, Gauge, Scale),
        "stall_records": _definitions(_Stall),
        "embedded": "\n\n\n".join(plain_source(one) for one in (verdict, roofs, libraries, twin, model_name)),
        "circumstances": plain_source(circumstances),
        "collected": {rule.section: _collected(sections[f"{rule.section}.section"]) for rule in rules},
        "device_attributes": tuple(f"device__attribute_{name}" for name in _ATTRIBUTES),
        "chips": {a.compute_capability: _chip(spec, a) for a in spec.architectures},
        "no_chip": _Chip(),
        "precisions": tuple(
            _as(
                _Precision,
                p,
                roof=p.roof_ids()[0],
                roof_label=p.roof_label(),
                ways=_ways(p),
                adds=_adds(p),
                pipes=tuple((*chips, name) for name, ranges in p.pipes.items() for chips in ranges),
            )
            for p in spec.precisions
        ),
        "levels": tuple(_as(_Level, level, ways=_ways(level)) for level in spec.levels),
        "ceilings": tuple(_measured(spec, ceiling) for ceiling in ceilings if ceiling.kind == GPU),
        "no_ceilings": _Ceilings(),
        "gauges": {name: gauges[name] for name in _GAUGES},
        "l1_bytes": tuple(_terms(one.counters) for one in spec.level(spec.chain[0]).bindings if not one.lower_bound),
        "replacements": {p.id: p.replacements for p in spec.precisions if p.replacements},
        # By type that has both instruction families: all of its work, the slow ones, the fast ones.
        "families": tuple(
            (total, f"{total}.mma", f"{total}.{fast}")
            for total in precisions
            for fast in ("wgmma", "tcgen05")
            if {f"{total}.mma", f"{total}.{fast}"} <= precisions.keys()
        ),
        # Metrics that count by instruction; pairs are of one release.
        "counted": {column: metrics[0] for column, metrics in counted.items()},
        "sectors": tuple(zip(counted["requested"], counted["ideal"], strict=True)),
        "wavefronts": tuple(zip(counted["shared"], counted["shared_ideal"], strict=True)),
        "local": tuple(zip(counted["local"], counted["requested"], strict=True)),
        "stall_rows": {
            name: _as(_Stall, one, cause=tuple(map(tuple, one.cause)), advice=tuple(map(tuple, one.advice)))
            for name, one in load_stalls().items()
        },
        "issuing": tuple(reason for reason, stall in load_stalls().items() if stall.issue),
        "opcode_units": tuple(
            (row.capabilities, tuple(sorted(row.names)), labels[row.unit]) for row in load_opcode_units().rows
        ),
        **_opcodes(spec),
    }


def _opcodes(spec: Spec) -> dict[str, object]:
    """What the rule on arithmetic knows of opcodes."""
    table, kinds = load_opcodes(), load_opcode_kinds()
    core = {one.id for one in spec.precisions if one.kind == "core" and one.unit == "flop"}

    def searched(pattern: str) -> str:
        """A pattern of names as a regular expression to search by: its cost is linear."""
        return f"{'' if pattern.startswith('*') else '^'}{pattern.strip('*')}{'' if pattern.endswith('*') else '$'}"

    return {
        "work": {
            name: (kind if (kind := kinds.of(name)) in ("fp64", "fp32") else "", int(row.weight))
            for row in table.rows
            if row.precision in core and row.does == "arithmetic"
            for name, _ in row.opcodes
        },
        "converting": tuple(
            ".".join((name, *words)) for row in table.rows if row.does == "conversion" for name, words in row.opcodes
        ),
        "double": (
            *(name for name, kind in kinds.names.items() if kind == "fp64"),
            *(".".join(pair) for pair, kind in kinds.modifiers.items() if kind == "fp64"),
        ),
        "moving": tuple(".".join(pair) for pair, kind in kinds.modifiers.items() if kind == "move"),
        "unknown": "|".join(map(searched, table.unknown_names)),
        "ends": tuple(instructions.FLOWS),
        "indirect": tuple(name for name, flow in instructions.FLOWS.items() if flow == "indirect"),
        "sentences": "\n".join(f"{name} = {getattr(arithmetic, name)!r}" for name in _SENTENCES),
    }


def _collected(section: str) -> dict[tuple[int, int], tuple[str, ...]]:
    """Metrics that a section's text names, by first and last architecture number."""
    found = [((int(low or 0), int(high or 999)), name) for name, low, high in _METRIC.findall(section) if "__" in name]
    rows = sorted({(chips, name) for chips, name in found if not name.startswith(_LATER)})
    return {chips: tuple(name for _, name in group) for chips, group in groupby(rows, key=lambda row: row[0])}


def plain_source(item: ModuleType | Callable[..., object]) -> str:
    """A module or function for the Pythons of all releases: its source without annotations, imports and the module's text."""
    text = inspect.getsource(item)
    tree = ast.parse(text)
    cuts = []
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and node.returns is not None:
            cuts.append((node.returns.lineno, node.returns.col_offset - len(" -> "), node.returns.end_col_offset or 0))
        elif isinstance(node, ast.arg) and node.annotation is not None:
            cuts.append((node.lineno, node.col_offset + len(node.arg), node.annotation.end_col_offset or 0))
    lines = text.splitlines()
    for number, start, end in sorted(cuts, reverse=True):
        lines[number - 1] = lines[number - 1][:start] + lines[number - 1][end:]
    is_head = [isinstance(node, (ast.Import, ast.ImportFrom, ast.Expr)) for node in tree.body]
    head = tree.body[: is_head.index(False)]
    return "\n".join(lines[head[-1].end_lineno or 0 if head else 0 :]).strip()


def _adds(precision: Precision) -> bool:
    """Whether it may count towards the total."""
    return not precision.part_of or precision.disjoint


def _as(record: Any, item: object, **own: object) -> Any:
    """A record with the fields of an item, but for its own."""
    return record(**{name: own[name] if name in own else getattr(item, name) for name in record._fields})


def _ways(item: Precision | Level) -> tuple[_Way, ...]:
    """The bindings in order; neighbours that differ in their chips only become one."""
    ways = []
    for _, group in groupby(item.bindings, lambda binding: replace(binding, capabilities=(), lacking=False)):
        one, *others = group
        ranges = tuple(chips for binding in (one, *others) for chips in binding.capabilities)
        terms = {name: _terms(getattr(one, name)) for name in ("counters", "peak", "fused", "writes")}
        ways.append(_as(_Way, one, ranges=ranges, lower=one.lower_bound, **terms))
    return tuple(ways)


def _terms(formula: WeightedSum | None) -> _Terms:
    terms = formula.terms if formula else ()
    return tuple((name, int(weight) if weight == int(weight) else weight) for name, weight in terms)


def _chip(spec: Spec, one: Architecture) -> _Chip:
    roofs = {precision.roof_ids()[0] for precision in spec.precisions}
    levels = {level.id for level in spec.levels}

    def peaks(table: Mapping[str, float]) -> dict[str, float]:
        return {name: value for name, value in table.items() if name in roofs}

    return _Chip(
        peaks(one.peaks),
        {name: (value.bytes, value.per) for name, value in one.bandwidth.items() if name in levels},
        tuple(_as(_Board, board, peaks=peaks(board.peaks)) for board in one.boards),
        dict(one.slices),
        tuple(one.launching.items()),
        not one.lacks,
    )


def _measured(spec: Spec, one: Ceilings) -> _Ceilings:
    found = [(precision.roof_ids()[0], one.compute(precision.roof_ids()[0])) for precision in spec.precisions]
    found += [(level.id, one.bandwidth(level.id)) for level in spec.levels]
    values = {name: _roof(ceiling, one.by_writes(name)) for name, ceiling in found if ceiling is not None}
    latency = one.launch_latency()
    launching = latency.value if latency else None
    origin = NOT_COMPARABLE if one.status == PUBLISHED else MEASURED
    return _Ceilings(one.compute_capability, model_name(one.device), one.provenance, values, launching, origin)


def _roof(one: Ceiling, by_writes: Sequence[tuple[float, Ceiling]]) -> _Measured:
    share = one.value / one.theory
    return _Measured(
        one.value,
        one.clock if one.clock > 0 else 0.0,
        one.clock_known,
        one.per_cycle if one.follows_sm_clock and one.per_cycle > 0 else None,
        share if share > 0 else None,
        tuple((writes, other.value) for writes, other in by_writes),
    )


def _definitions(*records: type) -> str:
    """Named tuples with the fields of these records, each below what its docstring says."""
    made = []
    for record in records:
        name = record.__name__.lstrip("_")
        words = (inspect.getdoc(record) or "").replace("``", "").split()
        comment = textwrap.fill(" ".join(words), WIDTH, initial_indent="# ", subsequent_indent="# ")
        made.append(f'{comment}\n{name} = namedtuple("{name}", "{" ".join(fields_of(record))}")')
        if defaults := tuple(defaults_of(record).values()):
            made.append(f"{name}.__new__.__defaults__ = {python(defaults)}")
    return "\n".join(made)
