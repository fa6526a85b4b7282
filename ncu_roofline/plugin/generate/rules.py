"""The rules for Nsight Compute, rendered from templates: short files and one helper beside them, the same for every release.

The helper carries files of `chips` as they stand, without annotations, and what these know of chips as literals.
"""

from __future__ import annotations

import ast
import dataclasses
import hashlib
import inspect
import re
from collections import namedtuple
from collections.abc import Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from ncu_roofline.base.errors import RooflineError, explained
from ncu_roofline.base.files import HELPER, read_file, write_atomically
from ncu_roofline.chips import findings, formulas, ncu, opcodes, source_counters, tables, verdict
from ncu_roofline.chips import spec as facts
from ncu_roofline.chips.fields import WeightedSum
from ncu_roofline.formats.ceilings import GPU, MEASURED, NOT_COMPARABLE, PUBLISHED, Ceiling, model_name
from ncu_roofline.plugin.generate.sections import GENERATED, render_sections

if TYPE_CHECKING:
    from ncu_roofline.formats.ceilings import Ceilings
    from ncu_roofline.plugin.generate.lowering import Dialect

TEMPLATES = Path(__file__).resolve().parent / "templates"
# What rules carry as it stands here.
_CARRIED = (verdict, formulas, model_name, source_counters, findings)
# What rules read of the facts of `chips`, and what they have as it is.
_WHOLE = (
    *(facts.Bandwidth, tables.Unit, tables.Rate, tables.Gauge, tables.Scale, tables.Slices, tables.Units),
    *(tables.Told, tables.LibraryFunction, tables.Findings),
)
_READ: dict[type, str] = {
    facts.Binding: "counters capabilities peak clock source note includes lower_bound writes",
    facts.Precision: "id label roof roof_name kind unit adds bindings part_of pipes on_request counts_instructions",
    facts.Level: "id label short order chain domain bindings",
    facts.BoardRule: "names peaks absent",
    facts.Architecture: "peaks bandwidth boards slices launching lacks left_out halves",
    tables.TensorActivity: "whole parts",
    tables.Stall: "waits cause advice caches issue unit limits least least_at_place",
    Ceiling: "value theory clock clock_known follows_sm_clock per_cycle",
    **{form: " ".join(form._fields) for form in _WHOLE},
}


def _record(form: type, names: Sequence[str]) -> Any:
    """A named tuple of some fields of a record, those that it has defaults for behind the others."""
    usual = {"counts_instructions": False, "halves": False, **getattr(form, "_field_defaults", {})}
    for item in dataclasses.fields(form) if dataclasses.is_dataclass(form) else ():
        usual.setdefault(item.name, item.default_factory() if callable(item.default_factory) else item.default)
    given = {name: _carried(usual[name]) for name in names if usual.get(name, dataclasses.MISSING) is not dataclasses.MISSING}
    return namedtuple(form.__name__, [*(name for name in names if name not in given), *given], defaults=given.values())


def _carried(value: Any) -> Any:
    """A fact as the rules have it: records with the fields that they read, numbers as people write them."""
    if type(value) in _READ:
        record = _RECORDS[type(value)]
        return record(*(_carried(getattr(value, name)) for name in record._fields))
    if isinstance(value, Mapping):
        return {name: _carried(item) for name, item in value.items()}
    if isinstance(value, (tuple, list, frozenset)) and not isinstance(value, WeightedSum):
        return tuple(map(_carried, sorted(value) if isinstance(value, frozenset) else value))
    return int(value) if isinstance(value, float) and value.is_integer() and value < 1e15 else value


_RECORDS = {form: _record(form, names.split()) for form, names in _READ.items()}


class _Ceilings(NamedTuple):
    """Roofs by id and the seconds that a launch costs, as measured on one model of GPU; ``origin`` says by whom.
    ``by_writes``: bytes per second by the share of them that is written, of roofs that were measured so."""

    chip: tuple[int, int] = (0, 0)
    model: str = ""
    provenance: str = ""
    values: Mapping[str, Any] = {}
    by_writes: Mapping[str, tuple[tuple[float, float], ...]] = {}
    launching: float | None = None
    origin: str = MEASURED


class RuleTemplate(NamedTuple):
    """One rule: its names, the section it belongs to, and the precisions that a bound rule judges (``shown``).  Its file is
    called by its identifier: rule folders share one import path, so that is as private."""

    identifier: str
    name: str
    description: str
    section: str
    template: str
    shown: tuple[str, ...] = ()


def rule_templates(spec: facts.Spec) -> tuple[RuleTemplate, ...]:
    """All rules; those of the charts follow the spec, others are what their templates begin with."""
    beside = {p.beside: p.id for p in spec.precisions if p.beside}
    charts = [(p.section, p.label, (p.id, beside[p.id]) if p.id in beside else (p.id,)) for p in spec.precisions if p.section]
    tensor = tuple(p.id for p in spec.precisions if p.adds and p.kind == "tensor" and not p.beside)
    bound = [
        RuleTemplate(
            f"NcuRooflineBound{section.removeprefix('Hierarchical').removesuffix('RooflineChart')}",
            f"{label} Roofline Bound",
            f"What binds the {label} work of a kernel, level by level",
            *(section, "bound", shown),
        )
        for section, label, shown in (*charts, (facts.TENSOR_SECTION, "Tensor", tensor))
    ]
    general = []
    for path in sorted((TEMPLATES / "rules").glob("[!_]*.py.j2")):
        words = re.match(r"\{# (.+?): (.+)\. Section (\w+)\. #\}", path.read_text(encoding="utf-8", errors="replace"))
        if words:
            stem = path.name.partition(".")[0]
            general.append(RuleTemplate(f"NcuRoofline{stem.title().replace('_', '')}", words[1], words[2], words[3], stem))
    return (*bound, *general)


def render_rules(dialect: Dialect | None = None, ceilings: Sequence[Ceilings] = ()) -> dict[str, str]:  # noqa: ARG001
    """File name -> text of every rule, and of the helper that they import.  The files find out at run time what the release
    offers, so they are the same for every dialect.  ``ceilings``: measured roofs that they hold kernels against, used on the
    GPU models they were measured on."""
    spec = facts.load_spec()
    rules = rule_templates(spec)
    context = _context(spec, rules, ceilings)
    helper = render("rules/shared.py.j2", **context).rstrip("\n") + "\n"
    name = f"{HELPER}_{hashlib.sha256(helper.encode()).hexdigest()[:8]}"
    rendered = {f"{name}.py": helper}
    for rule in rules:
        body = render(f"rules/{rule.template}.py.j2", rule=rule, **context).strip()
        text = render("rules/_head.py.j2", rule=rule, overview=facts.OVERVIEW_SECTION, shared=name, body=body, **context)
        rendered[f"{rule.identifier}.py"] = text.rstrip("\n") + "\n"
    return rendered


def _context(spec: facts.Spec, rules: Sequence[RuleTemplate], ceilings: Sequence[Ceilings]) -> dict[str, object]:
    units, sections, kinds, table = tables.load_units(), render_sections(), opcodes.load_opcode_kinds(), opcodes.load_opcodes()
    labels, opcode_units = {unit.id: unit.label for unit in units.units}, opcodes.load_opcode_units().rows
    tensor = [p for p in spec.precisions if p.kind == "tensor"]
    core = {p.id for p in spec.precisions if p.kind == "core" and p.unit == "flop"}
    return {
        "generated": GENERATED,
        "by_release": ncu.BY_RELEASE,
        "ops_path_since": ncu.OPS_PATH_SINCE,
        "records": "\n".join(map(_definition, (*_RECORDS.values(), _Ceilings))),
        "carried": "\n\n\n".join(map(plain_source, _CARRIED)),
        "collected": {rule.section: _collected(sections[f"{rule.section}.section"]) for rule in rules},
        "chips": {one.compute_capability: _carried(one) for one in spec.architectures},
        "precisions": _carried(spec.precisions),
        "levels": _carried(spec.levels),
        "units": _carried(units),
        "ceilings": tuple(_measured(spec, ceiling) for ceiling in ceilings if ceiling.kind == GPU),
        "l1_bytes": tuple(one.counters for one in spec.level(spec.chain[0]).bindings if not one.lower_bound),
        "replacements": {p.id: p.replacements for p in spec.precisions if p.replacements},
        # By type that has both instruction families: all of its work, the slow ones, the fast ones.
        "families": tuple(
            (p.part_of, p.id, f"{p.part_of}.{fast}")
            for p in tensor
            for fast in ("wgmma", "tcgen05")
            if p.id == f"{p.part_of}.mma" and f"{p.part_of}.{fast}" in [one.id for one in tensor]
        ),
        "stalls": _carried(tables.load_stalls()),
        "findings": _carried(tables.load_findings()),
        "opcode_units": tuple((one.capabilities, tuple(sorted(one.names)), labels[one.unit]) for one in opcode_units),
        "kinds": kinds,
        "work": {
            name: (kind if (kind := kinds.of(name)) in ("fp64", "fp32") else "", int(row.weight))
            for row in table.rows
            if row.precision in core and row.does == "arithmetic"
            for name, _ in row.opcodes
        },
        # Patterns of names as an expression to search by: its cost is linear.
        "unknown": "|".join(re.sub(r"\*$", "", re.sub(r"^(?!\*)", "^", name)).lstrip("*") for name in table.unknown_names),
    }


def _collected(section: str) -> dict[tuple[int, int], tuple[str, ...]]:
    """Metrics that a section's text names, by first and last architecture number; not of what old releases don't know."""
    metric = r'Name: "([\w.]+)"(?: Filter \{(?: MinArch: (\d+))?(?: MaxArch: (\d+))? \})?'
    found = [((int(low or 0), int(high or 999)), name) for name, low, high in re.findall(metric, section) if "__" in name]
    later = ("sm__ops_path_", "syslts__", "derived__")  # releases and chips that came after those that can't list their metrics
    rows = sorted({(chips, name) for chips, name in found if not name.startswith(later)})
    return {chips: tuple(name for _, name in group) for chips, group in groupby(rows, key=lambda row: row[0])}


def plain_source(item: Any) -> str:
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


def _definition(record: Any) -> str:
    """The definition of a named tuple, below what the docstring of its record says first."""
    name = record.__name__.lstrip("_")
    about = next((inspect.getdoc(form) or "" for form in (*_READ, _Ceilings) if form.__name__ == record.__name__), "")
    text = f'{name} = namedtuple("{name}", "{" ".join(record._fields)}")'
    if record._field_defaults:
        text += f"\n{name}.__new__.__defaults__ = {python(tuple(record._field_defaults.values()))}"
    first = re.split(r"(?<=\.)\s", about)[0].replace("``", "").replace("\n", " ")
    return f"# {first}\n{text}"


def _measured(spec: facts.Spec, one: Ceilings) -> _Ceilings:
    found = {precision.roof: one.compute(precision.roof) for precision in spec.precisions}
    found |= {level.id: one.bandwidth(level.id) for level in spec.levels}
    values = {name: item for name, item in found.items() if item is not None}
    writes = {name: tuple((share, other.value) for share, other in one.by_writes(name)) for name in values}
    latency = one.launch_latency()
    origin = NOT_COMPARABLE if one.status == PUBLISHED else MEASURED
    roofs = (_carried(values), {name: found for name, found in writes.items() if found}, latency.value if latency else None)
    return _Ceilings(one.compute_capability, model_name(one.device), one.provenance, *roofs, origin)


def render(template: str, **context: Any) -> str:
    """A template (path below ``templates/``) with values: an undefined name is an error, nothing is HTML."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined, TemplateError

    made = Environment(loader=FileSystemLoader(TEMPLATES), undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    made.keep_trailing_newline = True
    made.filters["python"] = python
    try:
        return made.get_template(template).render(**context)
    except (TemplateError, OSError, UnicodeDecodeError) as error:
        reason = f"{type(error).__name__}: {error}"
        raise RooflineError("Cannot use the template", TEMPLATES / template, reason, "Install ncu-roofline again.") from error


def python(value: Any, indent: int = 0) -> str:
    """Python source of nested tuples, dicts and named tuples, the same everywhere: one line if it fits, else one an item."""
    if isinstance(value, WeightedSum):
        return f"terms({value.text()!r})"
    if isinstance(value, Mapping):
        ends, items = "{}", [(f"{key!r}: ", item) for key, item in value.items()]
    elif hasattr(value, "_fields"):
        usual, said = value._field_defaults, value._asdict().items()
        ends, items = "()", [(f"{name}=", item) for name, item in said if name not in usual or item != usual[name]]
    elif isinstance(value, tuple):
        ends, items = "()", [("", item) for item in value]
    else:
        return repr(value) if value == value else 'float("nan")'
    texts = [f"{key}{python(item, indent + 1)}," for key, item in items]
    name = type(value).__name__.lstrip("_") if hasattr(value, "_fields") else ""
    flat = " ".join(texts) if type(value) is tuple and len(texts) == 1 else " ".join(texts).removesuffix(",")
    if len(flat) + 4 * indent < 128 and "\n" not in flat:
        return f"{name}{ends[0]}{flat}{ends[1]}"
    return "\n".join([name + ends[0], *("    " * (indent + 1) + text for text in texts), "    " * indent + ends[1]])


def differences(folder: Path, texts: Mapping[str, str]) -> list[str]:
    """What is not as it would be generated: "path: reason" for each file that differs, is missing, or is left over."""
    present = _present(folder)
    wrong = {name: "differs from what is generated" if name in present else "is missing" for name in texts}
    found = [f"{folder / name}: {wrong[name]}" for name, text in texts.items() if present.get(name) != text.encode()]
    left = (name for name, content in present.items() if name not in texts and _is_generated(content))
    return found + [f"{folder / name}: is generated no more; delete it" for name in left]


def write_files(folder: Path, texts: Mapping[str, str], *, force: bool) -> list[Path]:
    """Write the files whose content changes, and take away the helper of rules that were there before; returns all paths.
    Raises RooflineError, before anything is written, if a file of that name was not generated (unless ``force``), or if the
    folder can't be made or read."""
    with explained("Cannot write to", folder, "Choose another folder with --out."):
        folder.mkdir(parents=True, exist_ok=True)
    present = _present(folder)
    for name in texts:
        if name in present and not _is_generated(present[name]) and not force:
            reason = "the file exists and was not generated"
            raise RooflineError("Cannot write", folder / name, reason, "Choose another folder or add --force to overwrite it.")
    for name, text in texts.items():
        if present.get(name) != text.encode():
            write_atomically(folder / name, [text.encode()], overwrite=True)
    others = {name: content for name, content in present.items() if name.endswith(".py") and name not in texts}
    helpers = [name for name, content in others.items() if name.startswith(HELPER) and _is_generated(content)]
    for name in helpers:
        users = (content for other, content in others.items() if other not in helpers)
        if not any(name.removesuffix(".py").encode() in content for content in users):
            with explained("Cannot remove", folder / name, "Remove it by hand; no rule here imports it."):
                (folder / name).unlink(missing_ok=True)
    return [folder / name for name in texts]


def _present(folder: Path) -> dict[str, bytes]:
    """The sections and rules of a folder, if it is there."""
    with explained("Cannot read", folder, "Choose another folder with --out."):
        paths = [path for path in folder.iterdir() if path.suffix in (".section", ".py")] if folder.is_dir() else []
        return {path.name: read_file(path, 100_000_000) for path in sorted(paths) if path.is_file()}


def _is_generated(content: bytes) -> bool:
    return any(GENERATED.encode() in line for line in content.splitlines()[:3])
