"""The sections of the pack, and `render_sections`, which writes them down for a dialect."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from ncu_roofline.base.errors import UsageError
from ncu_roofline.chips import Precision, Spec, load_spec
from ncu_roofline.chips.fields import capability_text
from ncu_roofline.chips.ncu import BY_RELEASE
from ncu_roofline.chips.spec import INSTRUCTION_SECTION, LIGHT_TENSOR_SECTION, OVERVIEW_SECTION, PHASES_SECTION, TENSOR_SECTION
from ncu_roofline.formats.ceilings import Ceilings
from ncu_roofline.formats.sectionfile.section import made, metrics_of
from ncu_roofline.formats.sectionfile.text import section_text
from ncu_roofline.plugin.generate.charts import (
    ChartMaker,
    Measured,
    clock_share,
    collect_roofs,
    core_precisions,
    fused_share,
    intensities,
    measured,
    pass_group,
    performance,
    pipe_table,
    time_and_clock,
    timeline,
    traffic,
)
from ncu_roofline.plugin.generate.dialects import BASE, Dialect
from ncu_roofline.plugin.generate.files import GENERATED
from ncu_roofline.plugin.generate.lower import Lowering

# Beside the stock rooflines, which have 11 and 12; the next stock section has 15.
_ORDER = (11, 12)
SET, LIGHT_SET = "ncu_roofline", "ncu_roofline_light"
"""The sets of our sections: with all types of the tensor cores, and with one type in few passes.  None joins a set of Nsight
Compute's own, whose cost is not for us to change."""
_TRAFFIC = (
    "Traffic is everything that moves, loads, stores and atomics alike: global, local and texture memory at L1/TEX, what the "
    "SMs ask of L2 and of system memory, all of DRAM."
)
_DOTS = (
    "One dot per memory level, all at the height of the achieved performance; a dot on a roof of its own colour is bound by it."
)
_TYPES = (
    "Lines have the colour of their memory level, dots and lower roofs that of their type. The dots of a type are at the "
    "height of its performance, one per level, L1/TEX first and DRAM last."
)
_CLOCKS = f"Roofs are at the clocks of the profiled run: {BY_RELEASE}."


class Recipe(NamedTuple):
    """How a section is made: its names, its maker, the precision that the maker needs to know, and the sets it is in.

    A maker returns the description, the metrics of the header, and by field of a body item what the body shows.
    """

    identifier: str
    title: str
    make: Callable[[ChartMaker, str], dict[str, Any]]
    precision: str = ""
    sets: tuple[str, ...] = (SET, LIGHT_SET)


def render_sections(
    dialect: Dialect = BASE,
    ceilings: Ceilings | None = None,
    *,
    clock_consistent: bool = False,
    light_type: str = "",
    aside: tuple[str, ...] = (),
    spec: Spec | None = None,
) -> dict[str, str]:
    """The text of every section file by file name.

    With ``ceilings`` measured roofs stand beside the theoretical ones, as constants or, ``clock_consistent``, as the measured
    share of the theoretical peak.  ``light_type`` is the source type of the tensor section with few passes, "" for the one that
    every chip has; ``aside`` are levels to draw that stand aside otherwise (``system``).  Raises RooflineError for ceilings
    that can't be used so, an unknown type, and broken templates.
    """
    spec = spec or load_spec()
    light_type = light_type or spec.standard_type
    known = [p.id.removeprefix("tensor.") for p in spec.precisions if p.kind == "tensor" and not p.part_of]
    if light_type not in known:
        raise UsageError("Cannot count the tensor type", light_type, "it is unknown", f"Choose one of {', '.join(known)}.")
    drawn = measured(ceilings, clock_consistent)
    release = f"{dialect.release[0]}.{dialect.release[1]}"
    loads = f"Nsight Compute {release}{'' if dialect.exact else ' and later'}"
    header = [f"{GENERATED} from the specification in ncu_roofline/data for {loads}.", "Edit that, not this file."]
    if drawn.ceilings:
        header.append(f"{drawn.ceilings.status.capitalize()} roofs: {drawn.ceilings.provenance}.  Not for other GPUs.")
    header = ["".join(c if c.isprintable() else " " for c in line) for line in header]
    texts = {}
    for position, recipe in enumerate(recipes(spec, dialect, light_type)):
        section = _section(recipe, _ORDER[position > 0], spec, dialect, drawn, aside)
        head = "".join(f"# {line}\n" for line in header)
        texts[f"{recipe.identifier}.section"] = head + section_text(section, cc_names=dialect.has_cc_names)
    return texts


def _section(recipe: Recipe, order: int, spec: Spec, dialect: Dialect, drawn: Measured, aside: tuple[str, ...]) -> Any:
    """A section in which every name has one filter."""
    ambiguous = frozenset[str]()
    while True:
        lowering = Lowering(spec, dialect, ambiguous, dense=SET not in recipe.sets)
        parts = recipe.make(ChartMaker(lowering, drawn, aside), recipe.precision)
        items = [made("BodyItem", **{kind: one}) for kind in _BODY for one in parts.get(kind, ())]
        shown = [*parts["header"], *(metric for item in items for metric in metrics_of(item))]
        found = lowering.conflicts(shown) - ambiguous
        if not found:
            break
        ambiguous |= found
    definitions = lowering.definitions(shown)
    passes = len(items[0].Timeline.MetricGroups) if items else 0
    return made(
        "Section",
        Identifier=recipe.identifier,
        DisplayName=recipe.title,
        Description=parts["description"],
        Order=order,
        Sets=[made("Set", Identifier=name) for name in recipe.sets],
        Header=made("Header", Metrics=parts["header"]),
        Metrics=made("Metrics", Metrics=lowering.collected(shown)),
        MetricDefinitions=made("Definitions", MetricDefinitions=definitions) if definitions else None,
        Group=[made("Group", Name=pass_group(position)) for position in range(passes)],
        Body=[made("Body", DisplayName=recipe.title, Items=items)] if items else [],
    )


_BODY = ("Table", "RooflineChart", "Timeline")


def _core(maker: ChartMaker, of: str) -> dict[str, Any]:
    lowering = maker.lowering
    precision = lowering.spec.precision(of)
    label = precision.label
    tensor = next((other for other in lowering.spec.precisions if other.beside == precision.id), None)
    work = f"Work is {label} operations of CUDA cores by threads whose predicate is true, a fused multiply-add is two"
    packed = ", a packed half instruction twice that" if precision.packed else ""
    short = ", ".join(map(capability_text, lowering.choice.falls_short(precision)))
    left = (
        f" On {short} packed instructions are not counted; `ncu-roofline generate --ncu VERSION` counts them." if short else ""
    )
    matrix = "; matrix operations (DMMA) have dots and a roof of their own" if tensor else ""
    return {
        "RooflineChart": (maker.core(precision, tensor),),
        "description": f"{work}{packed}{matrix}.{left} {_TRAFFIC} {_DOTS} {_CLOCKS}",
        "header": (*time_and_clock(lowering), *performance(lowering, precision), *traffic(lowering)),
    }


def _tensor(maker: ChartMaker, _: str) -> dict[str, Any]:
    lowering = maker.lowering
    precisions = [p for p in lowering.spec.precisions if p.kind == "tensor"]
    sparse = "" if lowering.dialect.exact else " Sparse work counts as its dense equivalent, in the same dot."
    work = (
        f"Work is operations of the tensor cores per source type, a multiply-add is two (FLOP, or OP of integer types).{sparse}"
    )
    return {
        "RooflineChart": (maker.tensor(precisions),),
        "description": f"{work} {_TRAFFIC} {_TYPES} {_CLOCKS}",
        "header": _tensor_header(lowering, [p for p in precisions if not p.part_of or (p.disjoint and lowering.dialect.exact)]),
    }


def _tensor_header(lowering: Lowering, precisions: Iterable[Precision]) -> tuple[Any, ...]:
    rows = (row for precision in precisions for row in performance(lowering, precision))
    return (*time_and_clock(lowering), *rows, *traffic(lowering, patched=False))


def _light(maker: ChartMaker, of: str) -> dict[str, Any]:
    lowering = maker.lowering
    wanted = lowering.spec.precision(of)
    # Sparse work would cost one more pass.
    shown = [p for p in lowering.spec.precisions if p == wanted or (p.part_of == wanted.id and not p.disjoint)]
    work = f"How busy the tensor pipe is with each kind of instruction, and the roofline of {wanted.label} alone: few passes."
    return {
        "RooflineChart": (maker.tensor(shown, wanted.label),),
        "description": f"{work} Sparse products are not counted. {_TRAFFIC} {_CLOCKS}",
        "header": _tensor_header(lowering, [wanted]),
        "Table": (pipe_table(lowering),),
    }


def _instructions(maker: ChartMaker, _: str) -> dict[str, Any]:
    work = (
        "Work is executed warp instructions, traffic is transactions of 32 bytes. The walls are patterns of global loads: the "
        "dot of the global loads stands at the wall of theirs; the farther left, the more transactions one instruction needs."
    )
    return {
        "RooflineChart": (maker.instructions(),),
        "description": f"{work} {_TRAFFIC} {_CLOCKS}",
        "header": time_and_clock(maker.lowering),
    }


def _overview(maker: ChartMaker, _: str) -> dict[str, Any]:
    lowering = maker.lowering
    text = "Operations, share of fused ones, traffic per memory level, and the clock against the GPU's maximum, in numbers."
    precisions = core_precisions(lowering)
    header = [*time_and_clock(lowering), clock_share(lowering)]
    for precision in precisions:
        header += [*performance(lowering, precision), fused_share(lowering, precision)]
    tables = tuple(table for precision in precisions for table in intensities(lowering, precision))
    return {"description": f"{text} {_TRAFFIC}", "header": (*header, *traffic(lowering)), "Table": tables}


def _phases(maker: ChartMaker, _: str) -> dict[str, Any]:
    lowering = maker.lowering
    text = (
        "How busy pipes, L2 and DRAM are over the time of a launch, sampled in as few runs of it as counters allow (Turing and "
        "later); `ncu-roofline show --view phases` makes the roofline over time of it. Not proven on hardware: which counters "
        "fit into one run is what NVIDIA's library says. Operations of tensor cores are counted by the sections of these."
    )
    header = [*time_and_clock(lowering), *(row for one in core_precisions(lowering) for row in performance(lowering, one))]
    collect_roofs(lowering, core_precisions(lowering))
    return {"description": text, "header": (*header, *traffic(lowering)), "Timeline": (timeline(lowering),)}


def recipes(spec: Spec, dialect: Dialect, light_type: str) -> tuple[Recipe, ...]:
    """All sections of a dialect, in the order in which they stand."""
    core = (Recipe(p.section, f"Hierarchical Roofline, {p.label}", _core, p.id) for p in spec.precisions if p.section)
    few = "Hierarchical Roofline, Tensor Cores (few passes)"
    return (
        Recipe(OVERVIEW_SECTION, "Roofline Overview", _overview),
        *core,
        Recipe(TENSOR_SECTION, "Hierarchical Roofline, Tensor Cores", _tensor, sets=(SET,)),
        Recipe(LIGHT_TENSOR_SECTION, few, _light, f"tensor.{light_type}", (LIGHT_SET,)),
        Recipe(INSTRUCTION_SECTION, "Instruction Roofline", _instructions, sets=(SET,)),
        *([Recipe(PHASES_SECTION, "Roofline Phases", _phases, sets=())] if dialect.samples else []),
    )
