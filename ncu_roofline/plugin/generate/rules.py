"""The rules for Nsight Compute, rendered from templates: short files and one helper beside them, the same for every release.

The helper carries files of `chips` as they stand, without annotations, and what these know of chips as literals.
"""

from __future__ import annotations

import ast
import hashlib
import inspect
import re
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
_CARRIED = (verdict, formulas, model_name, findings)


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


# What rules read of a fact.
_READ: dict[type, str] = {
    facts.Binding: "counters capabilities peak clock source note includes lower_bound writes lacking",
    facts.Precision: (
        "id label kind unit roof roof_name bindings part_of adds pipes on_request counts_instructions replacements"
    ),
    facts.Level: "id label short order chain domain bindings",
    facts.BoardRule: "names peaks absent",
    facts.Architecture: "peaks bandwidth boards slices launching lacks left_out halves",
    tables.TensorActivity: "whole parts",
    tables.Stall: "waits cause advice caches issue unit limits least least_at_place",
    Ceiling: "value theory clock clock_known follows_sm_clock per_cycle",
}
for _form in (
    *(tables.Unit, tables.Rate, tables.Gauge, tables.Scale, tables.Slices, tables.Units),
    *(tables.Told, tables.LibraryFunction, tables.Findings, _Ceilings),
):
    _READ[_form] = " ".join(_form._fields)


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
    core = {p.id for p in spec.precisions if p.kind == "core" and p.unit == "flop"}
    return {
        "generated": GENERATED,
        "by_release": ncu.BY_RELEASE,
        "ops_path_since": ncu.OPS_PATH_SINCE,
        "constants": "\n".join(f"{name} = {python(value)}" for name, value in source_counters.STATED.items()),
        "carried": "\n\n\n".join(map(plain_source, _CARRIED)),
        "collected": {rule.section: _collected(sections[f"{rule.section}.section"]) for rule in rules},
        "chips": {one.compute_capability: one for one in spec.architectures},
        "no_chip": facts.Architecture((0, 0), "", (), ()),
        "precisions": spec.precisions,
        "levels": spec.levels,
        "units": units,
        "ceilings": tuple(_measured(spec, ceiling) for ceiling in ceilings if ceiling.kind == GPU),
        "no_ceilings": _Ceilings(),
        "stalls": tables.load_stalls(),
        "findings": tables.load_findings(),
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


def _measured(spec: facts.Spec, one: Ceilings) -> _Ceilings:
    found = {precision.roof: one.compute(precision.roof) for precision in spec.precisions}
    found |= {level.id: one.bandwidth(level.id) for level in spec.levels}
    values = {name: item for name, item in found.items() if item is not None}
    writes = {name: tuple((share, other.value) for share, other in one.by_writes(name)) for name in values}
    latency = one.launch_latency()
    origin = NOT_COMPARABLE if one.status == PUBLISHED else MEASURED
    roofs = (values, {name: found for name, found in writes.items() if found}, latency.value if latency else None)
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
    """Python source of facts, tuples, dicts, numbers and texts, the same everywhere: one line if it fits, else one an item."""
    if isinstance(value, WeightedSum):
        return f"terms({value.text()!r})"
    if type(value) in _READ:
        opening, closing, items = "Fact(", ")", [(f"{name}=", getattr(value, name)) for name in _READ[type(value)].split()]
    elif isinstance(value, Mapping):
        opening, closing, items = "{", "}", [(f"{key!r}: ", item) for key, item in value.items()]
    elif isinstance(value, (tuple, frozenset)):
        opening, closing, items = "(", ")", [("", item) for item in (sorted(value) if isinstance(value, frozenset) else value)]
    elif isinstance(value, float):
        return 'float("nan")' if value != value else repr(int(value) if value.is_integer() and value < 1e15 else value)
    else:
        return repr(value)
    texts = [f"{key}{python(item, indent + 1)}," for key, item in items]
    flat = " ".join(texts) if opening == "(" and len(texts) == 1 else " ".join(texts).removesuffix(",")
    if len(flat) + 4 * indent < 128 and "\n" not in flat:
        return f"{opening}{flat}{closing}"
    return "\n".join([opening, *("    " * (indent + 1) + text for text in texts), "    " * indent + closing])


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
