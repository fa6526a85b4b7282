"""The rules for Nsight Compute, rendered from templates: one self-contained file each, the same for every release."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import TYPE_CHECKING

from ncu_roofline.facts import Binding, Level, Precision, Spec, load_spec, load_units, verdict
from ncu_roofline.facts.clocks import BY_RELEASE
from ncu_roofline.facts.description import INSTRUCTION_SECTION, ROOF_NAMES, TENSOR_SECTION
from ncu_roofline.facts.formula import WeightedSum
from ncu_roofline.facts.hardware import SHARES
from ncu_roofline.facts.thresholds import CLOCK_WARNING, MIXED_SHARE, ROOFLESS_SHARE, SHORT_LAUNCH
from ncu_roofline.facts.verdict import TENSOR_ACTIVE
from ncu_roofline.generate.environment import GENERATED, render
from ncu_roofline.generate.sections import render_sections

if TYPE_CHECKING:
    from ncu_roofline.ceilings import Ceilings
    from ncu_roofline.generate.dialects import Dialect

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
_METRIC = re.compile(r'Name: "([\w.]+__[\w.]+)"(?: Filter \{(?: MinArch: (\d+))?(?: MaxArch: (\d+))? \})?')
_SLOW, _FAST = "mma", ("wgmma", "tcgen05")
_GAUGES = ("occupancy", "occupancy_theoretical", "eligible_warps", "waves")


@dataclass(frozen=True)
class RuleTemplate:
    """One rule: its names, the section it belongs to, and which precisions and levels of the spec it needs.

    ``precisions`` is "" for none, "core" for CUDA cores, "sum" for all that add up to the total, "all" with parts and families;
    ``levels`` is "" for none, "chain" for L1, L2 and DRAM, "all".  ``shown`` are the precisions a bound rule judges.
    """

    identifier: str
    name: str
    description: str
    section: str
    template: str
    precisions: str = ""
    levels: str = ""
    shown: tuple[str, ...] = ()

    @property
    def file_name(self) -> str:
        """The name of its file; rule folders share one import path, so it is as private as the identifier."""
        return f"{self.identifier}.py"


_OVERVIEW = "RooflineOverview"
_GENERAL_RULES = (
    RuleTemplate(
        "NcuRooflineVerdict",
        "Roofline Verdict",
        "What limits the kernel as a whole, and how much faster it could be",
        _OVERVIEW,
        "verdict.py.j2",
        "all",
        "all",
    ),
    RuleTemplate(
        "NcuRooflineMixed",
        "Mixed Precision Roofline",
        "What binds a kernel that works in several precisions at once",
        _OVERVIEW,
        "mixed.py.j2",
        "all",
        "all",
    ),
    RuleTemplate(
        "NcuRooflineFmaMix",
        "FMA Mix",
        "Share of fused multiply-adds and the compute roof that it allows",
        _OVERVIEW,
        "fma_mix.py.j2",
        "core",
    ),
    RuleTemplate(
        "NcuRooflineLocality",
        "Cache Locality",
        "Which cache level catches reuse and where it is lost",
        _OVERVIEW,
        "locality.py.j2",
        levels="chain",
    ),
    RuleTemplate(
        "NcuRooflineTensor",
        "Tensor Core Use",
        "Work that tensor cores could do, or do with older instructions",
        TENSOR_SECTION,
        "tensor.py.j2",
        "all",
    ),
    RuleTemplate(
        "NcuRooflineClocks",
        "Roofline Clocks",
        "At which clocks kernel and roofs stand",
        _OVERVIEW,
        "clocks.py.j2",
        "core",
        "chain",
    ),
    RuleTemplate(
        "NcuRooflineLaunchSize",
        "Launch Size",
        "Kernels too short, too small, or without floating-point work",
        _OVERVIEW,
        "launch_size.py.j2",
        "sum",
        "all",
    ),
    RuleTemplate(
        "NcuRooflineAccessPattern",
        "Access Pattern",
        "Sectors per request, bank conflicts and lanes without work",
        INSTRUCTION_SECTION,
        "access_pattern.py.j2",
    ),
)


def rule_templates(spec: Spec) -> tuple[RuleTemplate, ...]:
    """All rules; those of the charts follow the spec."""
    tensor = tuple(p.id for p in _adding(spec) if p.kind == "tensor" and not p.beside)
    own = ((p, (p.id, *(other.id for other in spec.precisions if other.beside == p.id))) for p in spec.precisions if p.section)
    charts = (*((p.section, p.label, shown) for p, shown in own), (TENSOR_SECTION, "Tensor", tensor))
    bound = (
        RuleTemplate(
            f"NcuRooflineBound{section.removeprefix('Hierarchical').removesuffix('RooflineChart')}",
            f"{label} Roofline Bound",
            f"What binds the {label} work of a kernel, level by level, and what it would gain",
            section,
            "bound.py.j2",
            "all",
            "all",
            shown,
        )
        for section, label, shown in charts
    )
    return (*bound, *_GENERAL_RULES)


def render_rules(dialect: Dialect | None = None, ceilings: Sequence[Ceilings] = ()) -> dict[str, str]:  # noqa: ARG001
    """File name -> text of every rule.

    The files find out at run time what the release offers, so they are the same for every dialect.  ``ceilings``: measured
    roofs that they hold kernels against, used on the GPU models they were measured on.
    """
    spec = load_spec()
    sections = render_sections()
    rendered = {}
    for rule in rule_templates(spec):
        collected = _literal(_collected(sections[f"{rule.section}.section"]), 1)
        context = {"rule": rule, "generated": GENERATED, "collected": collected, **_constants(spec), **_tables(spec, rule)}
        if ceilings:
            context["ceilings"] = _ceilings(spec, ceilings)
        text = render(f"rules/{rule.template}", **context)
        rendered[rule.file_name] = text.rstrip("\n") + "\n"
    return rendered


def _collected(section: str) -> tuple[tuple[str, int, int], ...]:
    """(metric, first and last architecture number) of what a section's text names."""
    found = [(name, int(low or 0), int(high or 999)) for name, low, high in _METRIC.findall(section)]
    return tuple(sorted({row for row in found if not row[0].startswith(_LATER)}))


def _constants(spec: Spec) -> dict[str, object]:
    return {
        "mixed_share": repr(MIXED_SHARE),
        "stand_ins": _literal(tuple(a.compute_capability for a in spec.architectures if not a.lacks), 0),
        "launching": _literal(
            tuple((a.compute_capability, name, cost) for a in spec.architectures for name, cost in a.launching.items()), 0
        ),
        "roofless_share": repr(ROOFLESS_SHARE),
        "clock_warning": repr(CLOCK_WARNING),
        "clocks_by_release": BY_RELEASE,
        "tensor_active": repr(TENSOR_ACTIVE),
        "replacements": _literal({p.id: p.replacements for p in spec.precisions if p.replacements}, 1),
        "device_attributes": _literal(_DEVICE_ATTRIBUTES, 1, 2),
        "families": _literal(_families(spec), 1),
        "short_launch": repr(SHORT_LAUNCH),
        "slice_counters": _literal(load_units().slices, 1),
        "slice_forms": _literal(load_units().slice_forms, 0),
        **_verdict_tables(spec),
    }


def _verdict_tables(spec: Spec) -> dict[str, object]:
    """What the verdict looks at besides roofs, and the function itself."""
    units = load_units()
    gauges = {gauge.id: (gauge.scale, gauge.metrics) for gauge in units.gauges}
    rows = tuple((unit.kind, unit.level, unit.id, unit.label, unit.group, unit.metrics) for unit in units.units)
    tensor = tuple(units.tensor.spellings(names) for names in (units.tensor.whole, units.tensor.parts))
    names = {roof: ROOF_NAMES[roof] for p in spec.precisions for roof in p.roofs[:1]}
    return {
        "units": _literal(rows, 1),
        "shares": _literal(SHARES, 0),
        "rates": _literal(tuple((rate.level, rate.ranges, rate.metric) for rate in units.rates), 1),
        "gauges": _literal({name: gauges[name] for name in _GAUGES}, 1),
        "tensor_activity": _literal(tensor, 2),
        "roof_name": names["fma"],
        "verdict_function": embedded_source(),
    }


def embedded_source() -> str:
    """The verdict function for the Pythons of all releases: its source without annotations, imports and the module's text."""
    text = inspect.getsource(verdict)
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
    last = tree.body[is_head.index(False) - 1]
    return "\n".join(lines[last.end_lineno or 0 :]).strip()


def _families(spec: Spec) -> tuple[tuple[str, str, str], ...]:
    """(total, slow, fast) precision ids wherever a type has both instruction families."""
    known = {p.id for p in spec.precisions}
    return tuple(
        (total.id, f"{total.id}.{_SLOW}", f"{total.id}.{fast}")
        for total in spec.precisions
        for fast in _FAST
        if {f"{total.id}.{_SLOW}", f"{total.id}.{fast}"} <= known
    )


def _adding(spec: Spec) -> list[Precision]:
    """Precisions that may count towards the total."""
    return [p for p in spec.precisions if not p.part_of or p.disjoint]


def _tables(spec: Spec, rule: RuleTemplate) -> dict[str, object]:
    chosen: dict[str, list[Precision]] = {
        "": [],
        "core": [p for p in spec.precisions if p.kind == "core"],
        "sum": _adding(spec),
        "all": list(spec.precisions),
    }
    precisions = chosen[rule.precisions]
    levels = [level for level in spec.levels if rule.levels == "all" or (rule.levels == "chain" and level.chain)]
    roofs = {roof for p in precisions for roof in p.roof_ids()[:1]}
    return {
        "precisions": _literal(tuple(_precision(p) for p in precisions)),
        "levels": _literal(tuple((level.id, level.label, _ways(level)) for level in levels)),
        "architectures": _literal(_architectures(spec, roofs, {level.id for level in levels})),
    }


def _precision(precision: Precision) -> tuple[object, ...]:
    adds = not precision.part_of or precision.disjoint
    ways = _ways(precision)
    return (
        precision.id,
        precision.label,
        precision.unit,
        bool(precision.roofs),
        adds,
        ways,
        precision.part_of,
        precision.pipes,
    )


def _ways(item: Precision | Level) -> tuple[object, ...]:
    """The bindings in order; neighbours that differ in their chips only become one."""
    groups = groupby(item.bindings, lambda binding: replace(binding, since=(0, 0), until=(0, 0)))
    return tuple(_way(list(group)) for _, group in groups)


def _way(bindings: Sequence[Binding]) -> tuple[object, ...]:
    one = bindings[0]
    peak = _terms(one.peak) if one.peak else None
    ranges = tuple((binding.since, binding.until) for binding in bindings)
    return (ranges, _terms(one.counters), peak, one.clock, one.note, one.includes)


def _terms(formula: WeightedSum) -> tuple[tuple[str, float], ...]:
    return tuple((name, int(weight) if weight == int(weight) else weight) for name, weight in formula.terms)


def _architectures(spec: Spec, roofs: set[str], levels: set[str]) -> dict[object, object]:
    def only(table: Iterable[tuple[str, object]], wanted: set[str]) -> dict[str, object]:
        return {name: value for name, value in table if name in wanted}

    return {
        a.compute_capability: (
            only(a.peaks.items(), roofs),
            only(a.bandwidth.items(), levels),
            tuple((b.names, only(b.peaks.items(), roofs), b.absent) for b in a.boards),
            dict(a.slices),
        )
        for a in spec.architectures
    }


def _ceilings(spec: Spec, ceilings: Sequence[Ceilings]) -> str:
    rows = []
    for one in ceilings:
        values: dict[str, tuple[float, float]] = {}
        found = [(roof, one.compute(roof)) for p in spec.precisions for roof in p.roof_ids()[:1]]
        found += [(level.id, one.bandwidth(level.id)) for level in spec.levels]
        for name, ceiling in found:
            if ceiling is not None:
                values[name] = (ceiling.value, ceiling.clock if ceiling.clock > 0 else 0)
        latency = one.launch_latency()
        rows.append((one.compute_capability, _model(one.device), one.provenance, values, latency.value if latency else None))
    return _literal(tuple(rows))


def _model(device: str) -> str:
    """The name under which ceilings and rules know a model of GPU."""
    return " ".join(device.replace("NVIDIA", "").replace("Tesla", "").split()).lower()


def _literal(value: object, levels: int = 3, indent: int = 0) -> str:
    """Python source of nested tuples and dicts, the same in every Python; down to ``levels`` one item a line."""
    opening, closing, items = _items(value)
    if not opening:
        return repr(value)
    texts = [key + _literal(item, levels - 1, indent + 1) for key, item in items]
    if levels <= 0 or not texts:
        tail = "," if opening == "(" and len(texts) == 1 else ""
        return f"{opening}{', '.join(texts)}{tail}{closing}"
    lines = "".join(f"{'    ' * (indent + 1)}{text},\n" for text in texts)
    return f"{opening}\n{lines}{'    ' * indent}{closing}"


def _items(value: object) -> tuple[str, str, list[tuple[str, object]]]:
    if isinstance(value, dict):
        return "{", "}", [(f"{key!r}: ", item) for key, item in value.items()]
    if isinstance(value, (tuple, list)):
        return "(", ")", [("", item) for item in value]
    return "", "", []
