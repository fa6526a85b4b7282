"""The rules for Nsight Compute, rendered from templates: short files and one helper beside them, the same for every release."""

from __future__ import annotations

import ast
import hashlib
import inspect
import math
import re
import symtable
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from itertools import groupby
from types import ModuleType
from typing import TYPE_CHECKING, NamedTuple

from ncu_roofline.base.files import HELPER
from ncu_roofline.chips import (
    Architecture,
    Binding,
    Level,
    Precision,
    Spec,
    circumstances,
    libraries,
    load_spec,
    load_stalls,
    load_units,
    roofs,
    stalls,
    verdict,
)
from ncu_roofline.chips.clocks import BY_RELEASE, SM_DOMAIN
from ncu_roofline.chips.formula import WeightedSum, twin
from ncu_roofline.chips.opcodes import load_opcode_units
from ncu_roofline.chips.precisions import INSTRUCTION_SECTION, TENSOR_SECTION
from ncu_roofline.chips.precisions import OVERVIEW_SECTION as _OVERVIEW
from ncu_roofline.chips.source_counters import COUNTED, SECTOR, STALLED, WARP, WORKING
from ncu_roofline.chips.stalls import ALL_HIT, ASYNCHRONOUS, BUSY, HIT_RATES, Stall
from ncu_roofline.chips.thresholds import (
    CLOCK_WARNING,
    COMPLETE,
    FINDING_SHARE,
    FULL_LANES,
    GROUP_LESS,
    LANES_WORKING,
    LEAST_CLOCK,
    MIXED_SHARE,
    MOST,
    ROOFLESS_SHARE,
    SAMPLES_MIN,
    SHORT_LAUNCH,
    TELLING,
    UNIT_SHARE,
)
from ncu_roofline.chips.units import ACTIVE, ELAPSED, IN_SM, SHARES, SHARES_ACTIVE, Gauge, Rate, Scale, Unit
from ncu_roofline.formats.ceilings import GPU, MEASURED, NOT_COMPARABLE, PUBLISHED, Ceiling, model_name
from ncu_roofline.plugin.generate.arithmetic import SENTENCES, arithmetic_facts
from ncu_roofline.plugin.generate.environment import GENERATED, render
from ncu_roofline.plugin.generate.sections import render_sections

if TYPE_CHECKING:
    from ncu_roofline.formats.ceilings import Ceilings
    from ncu_roofline.plugin.generate.dialects import Dialect

# Attributes that rules read, the compute capability first; every report has them.
_DEVICE_ATTRIBUTES = tuple(
    f"device__attribute_{name}"
    for name in (
        "compute_capability_major",
        "compute_capability_minor",
        "display_name",
        "multiprocessor_count",
        "fbp_count",
        "num_l2s_per_fbp",
        "max_gpu_frequency_khz",
        "clock_rate",
        "max_mem_frequency_khz",
        "global_memory_bus_width",
    )
)
# Metrics of releases and chips that came after those that can't list their metrics.
_LATER = ("sm__ops_path_", "syslts__", "derived__")
_METRIC = re.compile(r'Name: "([\w.]+)"(?: Filter \{(?: MinArch: (\d+))?(?: MaxArch: (\d+))? \})?')
VERDICT = "NcuRooflineVerdict"
_SLOW, _FAST = "mma", ("wgmma", "tcgen05")
_GAUGES = (
    "occupancy",
    "occupancy_theoretical",
    "eligible_warps",
    "waves",
    "data_pipe",
    "writeback",
    "bank_reads",
    "bank_writes",
    "lanes",
)
_WIDTH = 128
_STANDARD = {"math": "import math", "re": "import re", "namedtuple": "from collections import namedtuple"}

_Capability = tuple[int, int]
_Terms = tuple[tuple[str, float], ...]


@dataclass(frozen=True)
class RuleTemplate:
    """One rule: its names, the section it belongs to, and the precisions that a bound rule judges (``shown``)."""

    identifier: str
    name: str
    description: str
    section: str
    template: str
    shown: tuple[str, ...] = ()

    @property
    def file_name(self) -> str:
        """The name of its file; rule folders share one import path, so it is as private as the identifier."""
        return f"{self.identifier}.py"

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
        "AccessPattern",
        "Access Pattern",
        "Sectors per request, bank conflicts and lanes without work",
        INSTRUCTION_SECTION,
        "access_pattern",
    ),
    (
        "HotSpots",
        "Source Hot Spots",
        "Lines with most excess sectors, bank conflicts, inactive lanes and waiting warps",
        INSTRUCTION_SECTION,
        "hot_spots",
    ),
    (
        "ArithmeticSpots",
        "Source Arithmetic",
        "Lines with multiplications and additions apart, FP64 among FP32, and slow conversions",
        INSTRUCTION_SECTION,
        "arithmetic_spots",
    ),
)


def rule_templates(spec: Spec) -> tuple[RuleTemplate, ...]:
    """All rules; those of the charts follow the spec."""
    tensor = tuple(p.id for p in spec.precisions if _adds(p) and p.kind == "tensor" and not p.beside)
    own = ((p, (p.id, *(other.id for other in spec.precisions if other.beside == p.id))) for p in spec.precisions if p.section)
    charts = (*((p.section, p.label, shown) for p, shown in own), (TENSOR_SECTION, "Tensor", tensor))
    bound = (
        RuleTemplate(
            f"NcuRooflineBound{section.removeprefix('Hierarchical').removesuffix('RooflineChart')}",
            f"{label} Roofline Bound",
            f"What binds the {label} work of a kernel, level by level",
            section,
            "bound.py.j2",
            shown,
        )
        for section, label, shown in charts
    )
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
    constants = {"generated": GENERATED, **_constants(spec)}
    helper = _ended(render("rules/shared.py.j2", **{**constants, **_shared(spec, rules, ceilings)}))
    name = f"{HELPER}_{hashlib.sha256(helper.encode()).hexdigest()[:8]}"
    exported = _defined(helper)
    constants["shared"] = name
    rendered = {f"{name}.py": helper}
    for rule in rules:
        body = render(f"rules/{rule.template}", rule=rule, **constants).strip()
        used = _free(body)
        imports = [text for word, text in _STANDARD.items() if word in used]
        imports.append(_import(name, sorted((used | {"look"}) & exported)))
        parts = {"imports": "\n".join(imports), "body": body}
        rendered[rule.file_name] = _ended(render("rules/_head.py.j2", rule=rule, **parts, **constants))
    return rendered


def _ended(text: str) -> str:
    return text.rstrip("\n") + "\n"


def _import(module: str, names: Sequence[str]) -> str:
    lines = textwrap.fill(", ".join(names), _WIDTH - 1, initial_indent="    ", subsequent_indent="    ")
    return f"\nfrom {module} import (\n{lines},\n)"


def _defined(text: str) -> set[str]:
    """The names that a module's text gives to others."""
    module = symtable.symtable(text, "", "exec")
    return {symbol.get_name() for symbol in module.get_symbols() if symbol.is_assigned()}


def _free(text: str) -> set[str]:
    """The names that a module's text takes from elsewhere."""

    def used(table: symtable.SymbolTable) -> Iterator[str]:
        yield from (symbol.get_name() for symbol in table.get_symbols() if symbol.is_global() and symbol.is_referenced())
        for child in table.get_children():
            yield from used(child)

    return set(used(symtable.symtable(text, "", "exec"))) - _defined(text)


def _collected(section: str) -> dict[tuple[int, int], tuple[str, ...]]:
    """Metrics that a section's text names, by first and last architecture number."""
    found = [((int(low or 0), int(high or 999)), name) for name, low, high in _METRIC.findall(section) if "__" in name]
    rows = sorted({(chips, name) for chips, name in found if not name.startswith(_LATER)})
    return {chips: tuple(name for _, name in group) for chips, group in groupby(rows, key=lambda row: row[0])}


def _constants(spec: Spec) -> dict[str, object]:
    """What single rules look at."""
    units = load_units()
    gauges = {gauge.id: gauge for gauge in units.gauges}
    return {
        "roofless_share": repr(ROOFLESS_SHARE),
        "clock_warning": repr(CLOCK_WARNING),
        "group_less": repr(GROUP_LESS),
        "clocks_by_release": BY_RELEASE,
        "replacements": source({p.id: p.replacements for p in spec.precisions if p.replacements}),
        "families": source(_families(spec)),
        "units": source(units.units),
        "rates": source(units.rates),
        "gauges": source({name: gauges[name] for name in _GAUGES}),
        "l1_bytes": source(tuple(_terms(one.counters) for one in spec.level(spec.chain[0]).bindings if not one.lower_bound)),
        "counts": source(units.counts),
        "stall_records": _definitions(_Stall),
        "stalls": source({name: _stall(stall) for name, stall in load_stalls().items()}),
        "opcode_units": source(_opcode_units()),
        "asynchronous": repr(ASYNCHRONOUS),
        "busy": source(BUSY),
        "counted": source(stalls.COUNTED),
        "circumstances": plain_source(circumstances),
        "working": repr(WORKING),
        "full_lanes": repr(FULL_LANES),
        "hit_rates": source(HIT_RATES),
        "all_hit": repr(ALL_HIT),
        **_by_address(),
        **{name: source(value) for name, value in arithmetic_facts(spec).items()},
        "sentences": SENTENCES,
        "lanes_working": repr(LANES_WORKING),
        "unit_share": repr(UNIT_SHARE),
        "samples_min": repr(SAMPLES_MIN),
    }


def _by_address() -> dict[str, str]:
    """The metrics that count by instruction; pairs are of one release."""
    names = {column: metrics for column, (metrics, _) in COUNTED.items()}
    pairs = {"sectors": ("requested", "ideal"), "wavefronts": ("shared", "shared_ideal"), "local": ("local", "requested")}
    return {
        **{word: source(tuple(zip(names[one], names[other], strict=True))) for word, (one, other) in pairs.items()},
        **{column: source(names[column][0]) for column in ("executed", "active", "threads", "samples")},
        "stalled": source(STALLED),
        "warp": repr(WARP),
        "sector": repr(SECTOR),
        "finding_share": repr(FINDING_SHARE),
    }


def _opcode_units() -> tuple[tuple[object, ...], ...]:
    """Ranges of compute capability, names of opcodes, and what their unit is called."""
    labels = {unit.id: unit.label for unit in load_units().units}
    return tuple((row.capabilities, tuple(sorted(row.names)), labels[row.unit]) for row in load_opcode_units().rows)


def _stall(stall: Stall) -> _Stall:
    cause, advice = (tuple(map(tuple, sentences)) for sentences in (stall.cause, stall.advice))
    return _Stall(stall.waits, cause, advice, stall.caches, stall.least, stall.least_at_place, stall.unit, stall.limits)


def _shared(spec: Spec, rules: Sequence[RuleTemplate], ceilings: Sequence[Ceilings]) -> dict[str, object]:
    """What all rules look at."""
    sections = render_sections()
    tensor = load_units().tensor
    return {
        "records": _definitions(_Way, _Precision, _Level, _Board, _Chip, _Measured, _Ceilings, Unit, Rate, Gauge, Scale),
        "collected": source({rule.section: _collected(sections[f"{rule.section}.section"]) for rule in rules}),
        "device_attributes": source(_DEVICE_ATTRIBUTES),
        "chips": source({a.compute_capability: _chip(spec, a) for a in spec.architectures}),
        "no_chip": source(_Chip()),
        "precisions": source(tuple(_precision(p) for p in spec.precisions)),
        "levels": source(tuple(_Level(one.id, one.label, one.short, one.chain, _ways(one), one.domain) for one in spec.levels)),
        "ceilings": source(tuple(_measured(spec, ceiling) for ceiling in ceilings if ceiling.kind == GPU)),
        "no_ceilings": source(_Ceilings()),
        "short_launch": repr(SHORT_LAUNCH),
        "telling": repr(TELLING),
        "least_clock": repr(LEAST_CLOCK),
        "slice_counters": source(load_units().slices.counters),
        "slice_forms": source(load_units().slices.forms),
        "mixed_share": repr(MIXED_SHARE),
        "complete": repr(COMPLETE),
        "most": repr(MOST),
        "sm_domain": source(SM_DOMAIN),
        "shares": source(SHARES),
        "shares_active": source(SHARES_ACTIVE),
        "in_sm": source(IN_SM),
        "active_cycles": repr(ACTIVE),
        "elapsed_cycles": source(ELAPSED),
        "scales": source(load_units().scales),
        "tensor_whole": source(tensor.whole),
        "tensor_parts": source(tensor.parts),
        **_by_address(),
        "embedded": "\n\n\n".join(plain_source(one) for one in (verdict, roofs, libraries, twin, model_name)),
    }


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


def _families(spec: Spec) -> tuple[tuple[str, str, str], ...]:
    """(total, slow, fast) precision ids wherever a type has both instruction families."""
    known = {p.id for p in spec.precisions}
    return tuple(
        (total.id, f"{total.id}.{_SLOW}", f"{total.id}.{fast}")
        for total in spec.precisions
        for fast in _FAST
        if {f"{total.id}.{_SLOW}", f"{total.id}.{fast}"} <= known
    )


def _adds(precision: Precision) -> bool:
    """Whether it may count towards the total."""
    return not precision.part_of or precision.disjoint


def _precision(one: Precision) -> _Precision:
    roof = one.roof_ids()[0]
    return _Precision(
        one.id,
        one.label,
        roof,
        one.roof_label(),
        one.kind,
        one.unit,
        _ways(one),
        _adds(one),
        one.part_of,
        tuple((*chips, name) for name, ranges in one.pipes.items() for chips in ranges),
        one.on_request,
    )


def _ways(item: Precision | Level) -> tuple[_Way, ...]:
    """The bindings in order; neighbours that differ in their chips only become one."""
    groups = groupby(item.bindings, lambda binding: replace(binding, capabilities=(), lacking=False))
    return tuple(_way(binding, list(group)) for binding, group in groups)


def _way(one: Binding, bindings: Sequence[Binding]) -> _Way:
    ranges = tuple(one_range for binding in bindings for one_range in binding.capabilities)
    peak, fused, writes = _terms(one.peak), _terms(one.fused), _terms(one.writes)
    return _Way(ranges, _terms(one.counters), one.clock, peak, fused, one.note, one.includes, writes, one.lower_bound)


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
        tuple(_Board(board.names, peaks(board.peaks), board.absent) for board in one.boards),
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
        comment = textwrap.fill(" ".join(words), _WIDTH, initial_indent="# ", subsequent_indent="# ")
        made.append(f'{comment}\n{name} = namedtuple("{name}", "{" ".join(_fields(record))}")')
        if defaults := tuple(_defaults(record).values()):
            made.append(f"{name}.__new__.__defaults__ = {source(defaults)}")
    return "\n".join(made)


def _fields(record: object) -> tuple[str, ...]:
    """The fields of a record (its class or a value of it), () for anything else."""
    return tuple(field.name for field in fields(record)) if is_dataclass(record) else tuple(getattr(record, "_fields", ()))


def _defaults(record: object) -> Mapping[str, object]:
    """The values that fields of a record have unless said otherwise."""
    return getattr(record, "_field_defaults", {})


def source(value: object, indent: int = 0, before: int = 24, width: float = _WIDTH) -> str:
    """Python source of nested tuples, dicts and records, the same in every Python: on one line if it fits, else an item a line.

    ``before`` is how much stands before it on its line; items of one line fill lines, but for records.
    """
    opening, closing, items = _items(value)
    if not opening:
        return repr(value)
    flat = ", ".join(key + source(item, width=math.inf) for key, item in items)
    tail = "," if opening == "(" and len(items) == 1 else ""
    if 4 * indent + before + len(opening + flat + tail + closing) < width:
        return opening + flat + tail + closing
    texts = [key + source(item, indent + 1, len(key), width) for key, item in items]
    room = width - 4 * indent - 4
    lines = [""]
    for text, (_, item) in zip(texts, items, strict=True):
        fits = not _fields(item) and "\n" not in lines[-1] + text and len(f"{lines[-1]} {text},") <= room
        lines[-1:] = [f"{lines[-1]} {text},".lstrip()] if fits else [lines[-1], f"{text},"]
    inner = "".join(f"{'    ' * (indent + 1)}{line}\n" for line in lines if line)
    return f"{opening}\n{inner}{'    ' * indent}{closing}"


def _items(value: object) -> tuple[str, str, list[tuple[str, object]]]:
    """Brackets around the items of a value, and the items with what stands before each."""
    if names := _fields(value):
        said = [(name, getattr(value, name)) for name in names]
        usual = _defaults(value)
        items = [(f"{name}=", item) for name, item in said if name not in usual or item != usual[name]]
        return f"{type(value).__name__.lstrip('_')}(", ")", items
    if isinstance(value, Mapping):
        return "{", "}", [(f"{key!r}: ", item) for key, item in value.items()]
    if isinstance(value, (tuple, list)):
        return "(", ")", [("", item) for item in value]
    return "", "", []
