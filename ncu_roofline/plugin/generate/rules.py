"""The rules for Nsight Compute, rendered from templates: short files and one helper beside them, the same for every release."""

from __future__ import annotations

import ast
import hashlib
import inspect
import re
from collections import namedtuple
from collections.abc import Callable, Mapping, Sequence
from itertools import groupby
from types import ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple

from ncu_roofline.base.files import HELPER
from ncu_roofline.chips import (
    Architecture,
    Binding,
    Level,
    Precision,
    Spec,
    clocks,
    formulas,
    libraries,
    load_spec,
    load_units,
    roofs,
    source_counters,
    thresholds,
    verdict,
)
from ncu_roofline.chips.architectures import Bandwidth, BoardRule
from ncu_roofline.chips.fields import covers
from ncu_roofline.chips.formula import summed, twin
from ncu_roofline.chips.precisions import INSTRUCTION_SECTION, TENSOR_SECTION
from ncu_roofline.chips.precisions import OVERVIEW_SECTION as _OVERVIEW
from ncu_roofline.chips.units import Gauge, Rate, Scale, Slices, TensorActivity, Unit, Units
from ncu_roofline.formats.ceilings import GPU, MEASURED, NOT_COMPARABLE, PUBLISHED, Ceiling, model_name
from ncu_roofline.plugin.generate.by_instruction import by_instruction
from ncu_roofline.plugin.generate.files import GENERATED, defaults_of, fields_of, python, render
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
# What rules carry as it stands here.
_EMBEDDED = (verdict, roofs, libraries, covers, summed, twin, model_name, formulas)
VERDICT = "NcuRooflineVerdict"


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


# What rules read of the facts of `chips`: the fields that every record has, and those that are left out where they are so.
_WAY = {"peak": None, "clock": "sm", "source": "binding", "note": "", "includes": (), "lower_bound": False, "fused": None}
_PRECISION = {"part_of": "", "pipes": {}, "on_request": False, "counts_instructions": False}
_CHIP: dict[str, object] = {"peaks": {}, "bandwidth": {}, "boards": (), "slices": {}, "launching": {}, "lacks": ()}
_FIELDS: dict[type, tuple[str, Mapping[str, object]]] = {
    Binding: ("counters capabilities", {**_WAY, "writes": None}),
    Precision: ("id label roof roof_name kind unit adds bindings", _PRECISION),
    Level: ("id label short order chain domain bindings", {}),
    BoardRule: ("names", {"peaks": {}, "absent": ()}),
    Architecture: ("", {**_CHIP, "halves": False}),
    TensorActivity: ("whole parts", {}),
    Ceiling: ("value theory clock clock_known follows_sm_clock per_cycle", {}),
}
_RECORDS: dict[type, Any] = {
    item: namedtuple(item.__name__, [*names.split(), *usual], defaults=usual.values())
    for item, (names, usual) in _FIELDS.items()
}


_SAME = (Bandwidth, Unit, Rate, Gauge, Scale, Slices, Units)  # which they have as they are


class _Ceilings(NamedTuple):
    """Roofs by id and the seconds that a launch costs, as measured on one model of GPU; ``origin`` says by whom.

    ``by_writes``: bytes per second by the share of them that is written, of roofs that were measured so.
    """

    chip: tuple[int, int] = (0, 0)
    model: str = ""
    provenance: str = ""
    values: Mapping[str, Any] = {}
    by_writes: Mapping[str, tuple[tuple[float, float], ...]] = {}
    launching: float | None = None
    origin: str = MEASURED


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
    tensor = tuple(p.id for p in spec.precisions if p.adds and p.kind == "tensor" and not p.beside)
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
    precisions = {p.id: p for p in spec.precisions}
    return {
        "generated": GENERATED,
        "clocks": clocks,
        "counters": source_counters,
        "thresholds": thresholds,
        "records": _definitions(*_RECORDS.values(), *_SAME, _Ceilings),
        "constants": _constants(formulas, "MIXED_SHARE"),
        "embedded": "\n\n\n".join(plain_source(item) for item in _EMBEDDED),
        "by_instruction": by_instruction(plain_source),
        "collected": {rule.section: _collected(sections[f"{rule.section}.section"]) for rule in rules},
        "device_attributes": tuple(f"device__attribute_{name}" for name in _ATTRIBUTES),
        "chips": {one.compute_capability: _carried(one) for one in spec.architectures},
        "no_chip": _RECORDS[Architecture](),
        "precisions": _carried(spec.precisions),
        "levels": _carried(spec.levels),
        "units": _carried(units),
        "ceilings": tuple(_measured(spec, ceiling) for ceiling in ceilings if ceiling.kind == GPU),
        "no_ceilings": _Ceilings(),
        "l1_bytes": tuple(_carried(one.counters) for one in spec.level(spec.chain[0]).bindings if not one.lower_bound),
        "replacements": {p.id: p.replacements for p in spec.precisions if p.replacements},
        # By type that has both instruction families: all of its work, the slow ones, the fast ones.
        "families": tuple(
            (total, f"{total}.mma", f"{total}.{fast}")
            for total in precisions
            for fast in ("wgmma", "tcgen05")
            if {f"{total}.mma", f"{total}.{fast}"} <= precisions.keys()
        ),
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
        if isinstance(node, ast.AnnAssign):
            cuts.append((node.target.lineno, node.target.end_col_offset or 0, node.annotation.end_col_offset or 0))
        elif isinstance(node, ast.FunctionDef) and node.returns is not None:
            cuts.append((node.returns.lineno, node.returns.col_offset - len(" -> "), node.returns.end_col_offset or 0))
        elif isinstance(node, ast.arg) and node.annotation is not None:
            cuts.append((node.lineno, node.col_offset + len(node.arg), node.annotation.end_col_offset or 0))
    lines = text.splitlines()
    for number, start, end in sorted(cuts, reverse=True):
        lines[number - 1] = lines[number - 1][:start] + lines[number - 1][end:]
    is_head = [isinstance(node, (ast.Import, ast.ImportFrom, ast.Expr)) for node in tree.body]
    head = tree.body[: is_head.index(False)]
    return "\n".join(lines[head[-1].end_lineno or 0 if head else 0 :]).strip()


def _carried(value: Any) -> Any:
    """A fact as the rules have it: records with the fields that they read, numbers as people write them."""
    if type(value) in _RECORDS:
        record = _RECORDS[type(value)]
        return record(*(_carried(getattr(value, name)) for name in record._fields))
    if isinstance(value, Mapping):
        return {name: _carried(item) for name, item in value.items()}
    if isinstance(value, tuple) and fields_of(value):
        return type(value)(*map(_carried, value))
    if isinstance(value, (tuple, list, frozenset)):
        return tuple(map(_carried, sorted(value) if isinstance(value, frozenset) else value))
    return int(value) if isinstance(value, float) and value.is_integer() and value < 1e15 else value


def _measured(spec: Spec, one: Ceilings) -> _Ceilings:
    """What was measured of the roofs that rules know."""
    found = {precision.roof: one.compute(precision.roof) for precision in spec.precisions}
    found |= {level.id: one.bandwidth(level.id) for level in spec.levels}
    values = {name: item for name, item in found.items() if item is not None}
    writes = {name: tuple((share, other.value) for share, other in one.by_writes(name)) for name in values}
    latency = one.launch_latency()
    origin = NOT_COMPARABLE if one.status == PUBLISHED else MEASURED
    facts = (_carried(values), {name: roofs for name, roofs in writes.items() if roofs}, latency.value if latency else None)
    return _Ceilings(one.compute_capability, model_name(one.device), one.provenance, *facts, origin)


def _constants(module: ModuleType, *more: str) -> str:
    """Assignments of the constants that a module's text takes from files that rules don't carry, and of ``more`` thresholds."""
    found = {name: getattr(thresholds, name) for name in more}
    for node in ast.walk(ast.parse(inspect.getsource(module))):
        for alias in node.names if isinstance(node, ast.ImportFrom) else ():
            value = getattr(module, alias.name, None)
            if alias.name.isupper() and not hasattr(verdict, alias.name) and not hasattr(roofs, alias.name):
                found[alias.name] = value
    return "\n".join(f"{name} = {python(value)}" for name, value in sorted(found.items()))


def _definitions(*records: type) -> str:
    """Named tuples with the fields of these records, each below what its docstring says."""
    made = []
    for record in records:
        name = record.__name__.lstrip("_")
        about = next((item.__doc__ for item in _FIELDS if item.__name__ == name), inspect.getdoc(record)) or ""
        comment = "# " + about.split("\n\n")[0].replace("``", "") + "\n" if name not in about else ""
        made.append(f'{comment}{name} = namedtuple("{name}", "{" ".join(fields_of(record))}")')
        if defaults := tuple(defaults_of(record).values()):
            made.append(f"{name}.__new__.__defaults__ = {python(defaults)}")
    return "\n".join(made)
