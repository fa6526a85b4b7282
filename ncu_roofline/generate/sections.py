"""The sections of the pack, and `render_sections`, which writes them down for a dialect."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ncu_roofline.ceilings import Ceilings
from ncu_roofline.generate.charts import ChartMaker
from ncu_roofline.generate.dialects import BASE, Dialect
from ncu_roofline.generate.document import Document, Metric
from ncu_roofline.generate.environment import GENERATED, render
from ncu_roofline.generate.lower import Lowering
from ncu_roofline.generate.measured import Measured, measured
from ncu_roofline.generate.overview import overview_tables, pipe_table
from ncu_roofline.spec import Precision, Spec, load_spec

SETS = ("ncu_roofline", "roofline")
_TRAFFIC = (
    "Traffic is everything that moves, loads, stores and atomics alike: global, local and texture memory at L1/TEX, what the SMs "
    "ask of L2, all of DRAM and system memory."
)
_DOTS = "One dot per memory level, all at the height of the achieved performance; a dot on a roof of its own colour is bound by it."
_CLOCKS = "Roofs are at the clocks of the profiled run, which ncu locks to base clock unless told otherwise."


@dataclass(frozen=True)
class Options:
    """What to generate for: a dialect, measured ceilings, and the type that the light tensor section counts."""

    dialect: Dialect = BASE
    measured: Measured = Measured()
    light_type: str = "fp16"


@dataclass(frozen=True)
class Recipe:
    """How a section is made."""

    identifier: str
    title: str
    make: Callable[[Recipe, int, Spec, Options], Document]
    precision: str = ""


def render_sections(
    dialect: Dialect = BASE,
    ceilings: Ceilings | None = None,
    *,
    clock_consistent: bool = False,
    light_type: str = "fp16",
    spec: Spec | None = None,
) -> dict[str, str]:
    """The text of every section file by file name.

    With ``ceilings`` measured roofs stand beside the theoretical ones, as constants or, ``clock_consistent``, as the measured
    share of the theoretical peak.  Raises RooflineError for ceilings that can't be used so and for broken templates.
    """
    options = Options(dialect, measured(ceilings, clock_consistent), light_type)
    files = {}
    for position, recipe in enumerate(RECIPES):
        document = recipe.make(recipe, position, spec or load_spec(), options)
        files[document.file] = render("sections/section.j2", section=document, dialect=dialect, sets=SETS, header=_header(options))
    return files


def _header(options: Options) -> tuple[str, ...]:
    """What stands at the top of each file."""
    dialect, ceilings = options.dialect, options.measured.ceilings
    loads = f"Nsight Compute {dialect.release[0]}.{dialect.release[1]}{' and later' if not dialect.exact else ''}"
    lines = [f"{GENERATED} from the specification in ncu_roofline/data for {loads}.", "Edit that, not this file."]
    if ceilings:
        lines.append(f"Measured roofs: {ceilings.provenance}.  Not for other GPUs.")
    return tuple("".join(c if c.isprintable() else " " for c in line) for line in lines)


def _document(recipe: Recipe, order: int, lowering: Lowering, description: str, **parts: object) -> Document:
    header = _header_metrics(lowering)
    return Document(
        identifier=recipe.identifier,
        title=recipe.title,
        order=20 + order,
        description=description,
        header=header,
        metrics=lowering.collected(),
        definitions=lowering.definitions(),
        **parts,  # type: ignore[arg-type]
    )


def _header_metrics(lowering: Lowering) -> tuple[Metric, ...]:
    rows = (("Duration", "gpu__time_duration.sum"), ("SM Frequency", "sm__cycles_elapsed.avg.per_second"))
    return tuple(lowering.metric({name: lowering.chips}, label) for label, name in rows)


def _core(recipe: Recipe, order: int, spec: Spec, options: Options) -> Document:
    lowering = Lowering(spec, options.dialect)
    precision = spec.precision(recipe.precision)
    tensor = next((p for p in spec.precisions if p.id == f"tensor.{precision.id}"), None)
    # Only DMMA shares its type with a CUDA-core chart at no cost: its counter takes no replay pass on any chip.
    chart = ChartMaker(lowering, options.measured).core(precision, tensor if recipe.precision == "fp64" else None)
    work = f"Work is {precision.label} operations of CUDA cores by threads whose predicate is true, a fused multiply-add is two"
    packed = ", a packed half instruction twice that" if precision.id == "fp16" else ""
    dmma = "; matrix operations (DMMA) have dots and a roof of their own" if recipe.precision == "fp64" else ""
    return _document(
        recipe, order, lowering, f"{work}{packed}{dmma}. {_TRAFFIC} {_DOTS} {_CLOCKS}", body=recipe.title, charts=(chart,)
    )


def _tensor(recipe: Recipe, order: int, spec: Spec, options: Options) -> Document:
    lowering = Lowering(spec, options.dialect)
    chart = ChartMaker(lowering, options.measured).tensor([p for p in spec.precisions if p.kind == "tensor"])
    sparse = "" if options.dialect.exact else " Sparse work counts as its dense equivalent, in the same dot."
    work = f"Work is operations of the tensor cores per source type, a multiply-add is two (FLOP, or OP of integer types).{sparse}"
    return _document(recipe, order, lowering, f"{work} {_TRAFFIC} {_DOTS} {_CLOCKS}", body=recipe.title, charts=(chart,))


def _light(recipe: Recipe, order: int, spec: Spec, options: Options) -> Document:
    lowering = Lowering(spec, options.dialect)
    wanted = f"tensor.{options.light_type}"
    # Sparse work would cost one more pass.
    shown = [p for p in spec.precisions if p.id == wanted or (p.part_of == wanted and not p.disjoint)]
    chart = ChartMaker(lowering, options.measured).tensor(shown)
    label = spec.precision(wanted).label
    work = f"How busy the tensor pipe is with each kind of instruction, and the roofline of {label} alone: few replay passes."
    return _document(
        recipe,
        order,
        lowering,
        f"{work} {_TRAFFIC} {_CLOCKS}",
        body=recipe.title,
        charts=(chart,),
        tables=(pipe_table(lowering),),
    )


def _instructions(recipe: Recipe, order: int, spec: Spec, options: Options) -> Document:
    lowering = Lowering(spec, options.dialect)
    chart = ChartMaker(lowering, Measured()).instructions()
    work = (
        "Work is executed warp instructions, traffic is transactions of 32 bytes. The walls are global loads by access pattern: "
        "the dot of the global loads stands on the wall of theirs, farther left is more transactions per instruction."
    )
    return _document(recipe, order, lowering, f"{work} {_TRAFFIC} {_CLOCKS}", body=recipe.title, charts=(chart,))


def _overview(recipe: Recipe, order: int, spec: Spec, options: Options) -> Document:
    lowering = Lowering(spec, options.dialect)
    tables = overview_tables(lowering)
    text = "Operations and fused share per precision, traffic per memory level, and the clock, in numbers."
    return _document(recipe, order, lowering, f"{text} {_TRAFFIC}", body=recipe.title, tables=tables)


RECIPES = (
    Recipe("RooflineOverview", "Roofline Overview", _overview),
    Recipe("HierarchicalDoubleRooflineChart", "Hierarchical Roofline, FP64", _core, "fp64"),
    Recipe("HierarchicalSingleRooflineChart", "Hierarchical Roofline, FP32", _core, "fp32"),
    Recipe("HierarchicalHalfRooflineChart", "Hierarchical Roofline, FP16", _core, "fp16"),
    Recipe("HierarchicalTensorRooflineChart", "Hierarchical Roofline, Tensor Cores", _tensor),
    Recipe("HierarchicalTensorLightRooflineChart", "Hierarchical Roofline, Tensor Cores (few passes)", _light),
    Recipe("InstructionRooflineChart", "Instruction Roofline", _instructions),
)
