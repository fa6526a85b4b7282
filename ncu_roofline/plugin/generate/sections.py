"""The sections of the pack, and `render_sections`, which writes them down for a dialect."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace

from ncu_roofline.base.errors import UsageError
from ncu_roofline.chips import Precision, Spec, load_spec
from ncu_roofline.chips.clocks import BY_RELEASE
from ncu_roofline.chips.fields import capability_text
from ncu_roofline.chips.precisions import (
    INSTRUCTION_SECTION,
    LIGHT_TENSOR_SECTION,
    OVERVIEW_SECTION,
    PHASES_SECTION,
    TENSOR_SECTION,
)
from ncu_roofline.formats.ceilings import Ceilings
from ncu_roofline.formats.sectionfile.section import Section, SectionChart, SectionMetric, SectionTable, SectionTimeline
from ncu_roofline.plugin.generate.charts import ChartMaker
from ncu_roofline.plugin.generate.dialects import BASE, Dialect
from ncu_roofline.plugin.generate.environment import GENERATED, render
from ncu_roofline.plugin.generate.lower import Lowering
from ncu_roofline.plugin.generate.measured import Measured, measured
from ncu_roofline.plugin.generate.overview import (
    clock_share,
    core_precisions,
    fused_share,
    intensities,
    performance,
    pipe_table,
    time_and_clock,
    traffic,
)
from ncu_roofline.plugin.generate.phases import collect_roofs, timeline

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


@dataclass(frozen=True)
class Options:
    """What to generate for: a dialect, measured ceilings, the type that the light tensor section counts, and which levels of
    those that are drawn on request only."""

    dialect: Dialect = BASE
    measured: Measured = field(default_factory=Measured)
    light_type: str = ""
    aside: tuple[str, ...] = ()


@dataclass(frozen=True)
class Recipe:
    """How a section is made: its names, its maker, the precision that the maker needs to know, and the sets it is in."""

    identifier: str
    title: str
    make: Callable[[Recipe, Lowering, Options], Parts]
    precision: str = ""
    sets: tuple[str, ...] = (SET, LIGHT_SET)

    @property
    def light(self) -> bool:
        """Whether it is to cost few passes above all."""
        return SET not in self.sets


@dataclass(frozen=True)
class Parts:
    """What makers return: a description, a header, and what the body shows."""

    description: str
    header: tuple[SectionMetric, ...]
    charts: tuple[SectionChart, ...] = ()
    tables: tuple[SectionTable, ...] = ()
    timelines: tuple[SectionTimeline, ...] = ()


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
    _check_light_type(light_type, spec)
    options = Options(dialect, measured(ceilings, clock_consistent), light_type, aside)
    made = [_section(recipe, _ORDER[position > 0], spec, options) for position, recipe in enumerate(recipes(spec, dialect))]
    shared = {"dialect": dialect, "header": _header(options)}
    return {f"{one.identifier}.section": render("sections/section.j2", section=one, **shared) for one in made}


def _check_light_type(light_type: str, spec: Spec) -> None:
    known = [p.id.removeprefix("tensor.") for p in spec.precisions if p.kind == "tensor" and not p.part_of]
    if light_type not in known:
        raise UsageError("Cannot count the tensor type", light_type, "it is unknown", f"Choose one of {', '.join(known)}.")


def _header(options: Options) -> tuple[str, ...]:
    """What stands at the top of each file."""
    dialect, ceilings = options.dialect, options.measured.ceilings
    release = f"{dialect.release[0]}.{dialect.release[1]}"
    loads = f"Nsight Compute {release}{'' if dialect.exact else ' and later'}"
    lines = [f"{GENERATED} from the specification in ncu_roofline/data for {loads}.", "Edit that, not this file."]
    if ceilings:
        lines.append(f"{ceilings.status.capitalize()} roofs: {ceilings.provenance}.  Not for other GPUs.")
    return tuple("".join(c if c.isprintable() else " " for c in line) for line in lines)


def _section(recipe: Recipe, order: int, spec: Spec, options: Options) -> Section:
    """A section in which every name has one filter."""
    ambiguous = frozenset[str]()
    while True:
        lowering = Lowering(spec, options.dialect, ambiguous, dense=recipe.light)
        parts = recipe.make(recipe, lowering, options)
        section = Section(
            recipe.identifier,
            recipe.title,
            order,
            parts.description,
            sets=recipe.sets,
            header=parts.header,
            tables=tuple(replace(table, body=recipe.title) for table in parts.tables),
            charts=tuple(replace(chart, body=recipe.title) for chart in parts.charts),
            timelines=tuple(replace(timeline, body=recipe.title) for timeline in parts.timelines),
        )
        shown = list(section.shown())
        found = lowering.conflicts(shown) - ambiguous
        if not found:
            return replace(section, metrics=lowering.collected(shown), definitions=lowering.definitions(shown))
        ambiguous |= found


def _core(recipe: Recipe, lowering: Lowering, options: Options) -> Parts:
    precision = lowering.spec.precision(recipe.precision)
    label = precision.label
    tensor = next((other for other in lowering.spec.precisions if other.beside == precision.id), None)
    work = f"Work is {label} operations of CUDA cores by threads whose predicate is true, a fused multiply-add is two"
    packed = ", a packed half instruction twice that" if precision.packed else ""
    short = ", ".join(map(capability_text, lowering.choice.falls_short(precision)))
    left = (
        f" On {short} packed instructions are not counted; `ncu-roofline generate --ncu VERSION` counts them." if short else ""
    )
    matrix = "; matrix operations (DMMA) have dots and a roof of their own" if tensor else ""
    chart = ChartMaker(lowering, options.measured, options.aside).core(precision, tensor)
    header = (*time_and_clock(lowering), *performance(lowering, precision), *traffic(lowering))
    return Parts(f"{work}{packed}{matrix}.{left} {_TRAFFIC} {_DOTS} {_CLOCKS}", header, (chart,))


def _tensor(recipe: Recipe, lowering: Lowering, options: Options) -> Parts:  # noqa: ARG001
    precisions = [p for p in lowering.spec.precisions if p.kind == "tensor"]
    sparse = "" if lowering.dialect.exact else " Sparse work counts as its dense equivalent, in the same dot."
    work = (
        f"Work is operations of the tensor cores per source type, a multiply-add is two (FLOP, or OP of integer types).{sparse}"
    )
    chart = ChartMaker(lowering, options.measured, options.aside).tensor(precisions)
    counted = [p for p in precisions if not p.part_of or (p.disjoint and lowering.dialect.exact)]
    return Parts(f"{work} {_TRAFFIC} {_TYPES} {_CLOCKS}", _tensor_header(lowering, counted), (chart,))


def _tensor_header(lowering: Lowering, precisions: Iterable[Precision]) -> tuple[SectionMetric, ...]:
    rows = (row for precision in precisions for row in performance(lowering, precision))
    return (*time_and_clock(lowering), *rows, *traffic(lowering, patched=False))


def _light(recipe: Recipe, lowering: Lowering, options: Options) -> Parts:  # noqa: ARG001
    wanted = lowering.spec.precision(f"tensor.{options.light_type}")
    # Sparse work would cost one more pass.
    shown = [p for p in lowering.spec.precisions if p == wanted or (p.part_of == wanted.id and not p.disjoint)]
    work = f"How busy the tensor pipe is with each kind of instruction, and the roofline of {wanted.label} alone: few passes."
    work += " Sparse products are not counted."
    chart = ChartMaker(lowering, options.measured, options.aside).tensor(shown, wanted.label)
    return Parts(f"{work} {_TRAFFIC} {_CLOCKS}", _tensor_header(lowering, [wanted]), (chart,), (pipe_table(lowering),))


def _instructions(recipe: Recipe, lowering: Lowering, options: Options) -> Parts:  # noqa: ARG001
    work = (
        "Work is executed warp instructions, traffic is transactions of 32 bytes. The walls are patterns of global loads: the "
        "dot of the global loads stands at the wall of theirs; the farther left, the more transactions one instruction needs."
    )
    chart = ChartMaker(lowering, Measured(), options.aside).instructions()
    return Parts(f"{work} {_TRAFFIC} {_CLOCKS}", time_and_clock(lowering), (chart,))


def _overview(recipe: Recipe, lowering: Lowering, options: Options) -> Parts:  # noqa: ARG001
    text = "Operations, share of fused ones, traffic per memory level, and the clock against the GPU's maximum, in numbers."
    precisions = core_precisions(lowering)
    header = [*time_and_clock(lowering), clock_share(lowering)]
    for precision in precisions:
        header += [*performance(lowering, precision), fused_share(lowering, precision)]
    tables = tuple(table for precision in precisions for table in intensities(lowering, precision))
    return Parts(f"{text} {_TRAFFIC}", (*header, *traffic(lowering)), tables=tables)


def _phases(recipe: Recipe, lowering: Lowering, options: Options) -> Parts:  # noqa: ARG001
    text = (
        "How busy pipes, L2 and DRAM are over the time of a launch, sampled in as few runs of it as counters allow (Turing and "
        "later); `ncu-roofline show --view phases` makes the roofline over time of it. Not proven on hardware: which counters "
        "fit into one run is what NVIDIA's library says. Operations of tensor cores are counted by the sections of these."
    )
    header = [*time_and_clock(lowering), *(row for one in core_precisions(lowering) for row in performance(lowering, one))]
    collect_roofs(lowering, core_precisions(lowering))
    return Parts(text, (*header, *traffic(lowering)), timelines=(timeline(lowering),))


def recipes(spec: Spec, dialect: Dialect) -> tuple[Recipe, ...]:
    """All sections of a dialect, in the order in which they stand."""
    core = (Recipe(p.section, f"Hierarchical Roofline, {p.label}", _core, p.id) for p in spec.precisions if p.section)
    return (
        Recipe(OVERVIEW_SECTION, "Roofline Overview", _overview),
        *core,
        Recipe(TENSOR_SECTION, "Hierarchical Roofline, Tensor Cores", _tensor, sets=(SET,)),
        Recipe(LIGHT_TENSOR_SECTION, "Hierarchical Roofline, Tensor Cores (few passes)", _light, sets=(LIGHT_SET,)),
        Recipe(INSTRUCTION_SECTION, "Instruction Roofline", _instructions, sets=(SET,)),
        *([Recipe(PHASES_SECTION, "Roofline Phases", _phases, sets=())] if dialect.samples else []),
    )
