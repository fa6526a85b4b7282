"""`roofline()`: reports in, tidy frames out; and what a prompt shows of a result: how much there is, and the first rows."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from os import PathLike
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from ncu_roofline.base.errors import RooflineError
from ncu_roofline.base.texts import plural
from ncu_roofline.chips import load_instructions, load_spec
from ncu_roofline.formats.ceilings import Ceilings
from ncu_roofline.formats.inputs import as_inputs, joined, open_ceilings, open_input
from ncu_roofline.formats.inputs.tables import MetricTable, PointTable
from ncu_roofline.formats.report import Report
from ncu_roofline.model import columns
from ncu_roofline.model.kernels import Everything, Verdicts, everything_of, kernels_table
from ncu_roofline.model.measurements import Measurements, TextArray
from ncu_roofline.model.points import Roofs, points_table, with_reasons
from ncu_roofline.model.selection import Grouping, Selection, as_trajectory, group
from ncu_roofline.model.work import MIXED
from ncu_roofline.rendering.document import Column

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SOURCES = ("auto", "embedded")
_DTYPES = {"str": object, "int": np.int64, "float": np.float64}
Table = dict[str, np.ndarray[Any, Any]]
Columns = Mapping[str, np.ndarray[Any, Any]]
Input = Report | MetricTable | PointTable
Source = Input | str | PathLike[str]
CeilingsFile = Ceilings | str | PathLike[str]


def as_percent(value: float) -> str:
    """A ratio in percent; "n/a" where it is unknown."""
    return f"{100 * value:.3g} %" if math.isfinite(value) else "n/a"


def seen(declared: Sequence[Column], *names: str, **labels: str) -> tuple[Column, ...]:
    """What of some columns is shown at a glance, in this order, some under other ``labels``."""
    columns = {column.name: replace(column, group=(), omit=None) for column in declared}
    return (*map(columns.__getitem__, names), *(replace(columns[name], label=label) for name, label in labels.items()))


_INNER = {  # attributes that are not for users
    *("asked", "called", "counted", "counts", "everything", "glance", "joined", "nouns", "of_run", "report_names", "shown_by"),
    *("sources", "spots", "strips", "table", "texts", "traffic", "without_folders", "work"),
}


_ALIASES = {"arithmetic_intensity": "intensity", "flops": "work"}  # of columns of DataFrames; files have each once


def _alone() -> Any:
    raise TypeError("this result cannot be drawn: make it with a function of ncu_roofline itself, as ncu_roofline.roofline()")


class Displayed:
    """A result whose representation is a glance at it, and which a notebook shows as a chart and a table.

    ``counted`` names the fields that hold tables and what one row of each is; ``glance`` the columns of the first of them that
    are shown.  ``shown_by`` gives the module that does so, from when a result was made through the package (`from ncu_roofline
    import roofline`); without it there is the representation of any object.
    """

    counted: ClassVar[Mapping[str, str]] = {}
    glance: ClassVar[tuple[Column, ...]] = ()
    shown_by: ClassVar[Callable[[], Any]] = staticmethod(_alone)

    def figure(self, **options: Any) -> Figure:
        """The result as a matplotlib figure of its own; options are those of pictures in `render`: preset, width, title, bare.

        Raises ValueError for an option's wrong value, TypeError for a result or an option that no picture has.
        """
        figure: Figure = Displayed.shown_by().figure_of(self, **options)
        return figure

    def plot(self, ax: Axes | None = None, *, theme: str = "light") -> Axes:
        """Its first chart on ``ax``, with roofs, dots, labels and a legend where there is room; returns the axes.

        Without ``ax``, those of a new figure of pyplot.
        """
        if ax is None:
            from matplotlib import pyplot

            ax = pyplot.subplots()[1]
        Displayed.shown_by().figure_of(self, theme=theme, onto=ax)
        return ax

    def __dir__(self) -> list[str]:
        """What is for users: frames, pictures and what identifies them."""
        names = (name for name in super().__dir__() if name.startswith("__") or not name.startswith("_"))
        return [name for name in names if name not in _INNER and not name.endswith(("_columns", "_rows"))]

    def _repr_html_(self) -> str | None:
        return None if Displayed.shown_by is _alone else Displayed.shown_by().as_html(self)

    def __repr__(self) -> str:
        return object.__repr__(self) if Displayed.shown_by is _alone else Displayed.shown_by().as_text(self)

    def counts(self) -> list[str]:
        """How many rows its tables have, in words."""
        return [plural(len(next(iter(getattr(self, name).values()), ())), row) for name, row in self.counted.items()]


def frame_of(columns: str, about: str) -> cached_property[pd.DataFrame]:
    """A property of a result: the table that its field ``columns`` holds, as a DataFrame of the same types."""

    def frame(self: Any) -> pd.DataFrame:
        import pandas as pd

        # Text stays object: pandas 3 would convert every column to its own text type, which costs more than all the rest.
        table: Mapping[str, Any] = getattr(self, columns)
        series = {name: pd.Series(values, dtype=values.dtype, copy=False) for name, values in table.items()}
        series |= {other: series[name] for other, name in _ALIASES.items() if name in series and other not in series}
        made: pd.DataFrame = pd.DataFrame(series)
        return made

    frame.__doc__ = about
    return cached_property(frame)


@dataclass(frozen=True, repr=False)
class Roofline(Displayed):
    """Points, roofs and kernels as tables of equally long columns; `points`, `roofs`, `kernels` are the same as DataFrames.

    Columns, their units and their meaning: `data/columns/roofline.toml`.
    """

    view: ClassVar[str] = "roofline"
    counted: ClassVar[Mapping[str, str]] = {"kernel_columns": "kernel", "point_columns": "point", "roof_columns": "roof"}
    glance: ClassVar[tuple[Column, ...]] = seen(
        columns.KERNELS, "kernel", "launches", "seconds", "time_share", "verdict", "headroom", "headroom_compute"
    )
    # How its launches look by kernel, of one that has them; no field, as what `replace` makes of it has other rows.
    _regroup: ClassVar[partial[Roofline] | None] = None
    point_columns: Table
    roof_columns: Table
    kernel_columns: Columns
    # Bytes by level id, a number per row of the kernels (NaN where unknown): kernels without work have no points.
    traffic: Table = field(default_factory=dict)
    # Operations by precision id, likewise: points leave zeros out.
    work: Table = field(default_factory=dict)
    # Precisions asked for, as in Selection; () for all.
    asked: tuple[str, ...] = ()
    # GPU and report of its launches, each pair once: a row of a kernel may be of several reports.
    sources: tuple[tuple[str, str], ...] = ()
    # What there is on each GPU where a selection leaves launches out, else ().
    everything: tuple[Everything, ...] = ()
    # By GPU and kernel the place in its code that matters most, of the kernels that a command looked into.
    spots: Mapping[tuple[str, str], str] = field(default_factory=dict)
    # By report, GPU and kernel what a page draws of a launch over its time, of what a command looked into.
    strips: Mapping[tuple[str, str, str], Mapping[str, Any]] = field(default_factory=dict)

    @cached_property
    def by_kernel(self) -> Roofline:
        """The same launches with a row per kernel, as the command line shows them; itself where that is not known."""
        return self if self._regroup is None else self._regroup()

    def __getstate__(self) -> dict[str, Any]:
        made = {"by_kernel": self.by_kernel} if self._regroup is not None else {}
        return {**self.__dict__, **made, "_regroup": None}

    def counts(self) -> list[str]:
        kernels, launches = len(set(self.kernel_columns["kernel"].tolist())), int(self.kernel_columns["launches"].sum())
        counts = [plural(kernels, "kernel"), *([plural(launches, "launch")] if launches > kernels else [])]
        return [*counts, *super().counts()[1:]]

    points = frame_of("point_columns", "One row per launch (or group), precision and level.")
    roofs = frame_of("roof_columns", "One row per roof and origin.")
    kernels = frame_of("kernel_columns", "One row per launch (or group), also for those without any point.")


def roofline(
    report: Source | Measurements | Sequence[Source],
    ceilings: CeilingsFile | Sequence[CeilingsFile] | None = None,
    *,
    clock: str = "profiled",
    by: str = "launch",
    source: str = "auto",
    select: Selection | None = None,
    trajectory: bool | str = False,
) -> Roofline:
    """The hierarchical roofline of one or several reports.

    ``ceilings``: measured ceilings (files or what `read_ceilings` returns), used for GPUs of the model they were measured on.
    ``clock``: "profiled" puts the theoretical roofs at the clock the kernels ran at, "max" at the GPU's maximum clock.
    ``by``: one row per "launch", per "kernel" (launches summed, time-weighted) or per "application".
    ``source``: "auto" counts with our own bindings, then with derivations and the report's own charts; "embedded" gives the
    charts inside the report exactly as Nsight Compute draws them.
    ``trajectory``: True, or what `as_trajectory` takes as label: the reports (or NVTX ranges, or labelled points) are the steps
    of a sweep, and the launches of each step are summed by kernel (or application).
    Units are SI: work in FLOP, traffic in byte, times in seconds, shares as ratios; one row per launch (or group), precision
    and memory level in `points`, per roof and origin in `roofs`, per launch (or group) in `kernels`.
    Raises RooflineError for files that can't be read and for ceilings that fit no GPU of the reports, ValueError for options
    that don't go together, TypeError for what is no report.

    >>> found = roofline("gpp-v100.ncu-rep", "gpp-v100-ceilings.json")
    >>> found.kernels[["kernel", "verdict"]].iloc[5].tolist()
    ['sigma_gpp_gpu<6>', 'compute: FP64 FMA']
    """
    embedded = source == "embedded"
    if source not in SOURCES:
        raise ValueError(f"source must be one of {', '.join(SOURCES)}, not {source!r}")
    if embedded and (by != "launch" or clock != "profiled" or ceilings or trajectory):
        raise ValueError("the report's own charts are per launch, at the profiled clock, without measured ceilings and sweeps")
    measurements = report if isinstance(report, Measurements) else measurements_of(report, charts=embedded)
    if trajectory:
        measurements = as_trajectory(measurements, trajectory if isinstance(trajectory, str) else "")
        by = "kernel" if by == "launch" else by
    selection = select or Selection()
    files = ceilings_of(ceilings)
    check_ceilings(files, measurements.gpus)
    selected = selection.launches(measurements)
    everything = everything_of(measurements, selected)
    if embedded:
        return _embedded(selected, selection, everything)
    return of_launches(selected, files, clock, by, selection, everything)


def roofline_of(
    given: Roofline | Source | Sequence[Source], ceilings: Sequence[CeilingsFile] = (), *, by: str = "launch"
) -> Roofline:
    """A Roofline as it is, else that of the reports given, with these options of `roofline`.

    Raises what that does, and TypeError for anything else.
    """
    return given if isinstance(given, Roofline) else roofline(given, ceilings, by=by)


def measurements_of(
    report: Source | Sequence[Source],
    *,
    charts: bool = False,
    instructions: bool = False,
    samples: bool = False,
    label: str = "",
) -> Measurements:
    """All launches of the reports, one after the other.

    With ``charts``, the reports' own charts as well; with ``instructions``, what the instruction roofline counts; with
    ``samples``, what was sampled over the time of each launch.
    ``label`` is what the reports are called in the frames, if not by their path.
    """
    from ncu_roofline.model.extract import imported, measure, with_samples

    @np.errstate(all="ignore")  # counters of odd reports may be any number: what overflows is missing, without a warning
    def measured(given: Input, name: str) -> Measurements:
        name = name.encode("utf-8", "replace").decode()  # a path need not be text
        if isinstance(given, PointTable):
            return imported(given, name)
        m = measure(given, name, load_spec(), load_instructions() if instructions else None)
        if not isinstance(given, Report):
            return m
        if samples:
            m = with_samples(given, m)
        gaps = ~(m.known(m.work) & m.known(m.traffic)) & np.isfinite(m.seconds)
        if charts or gaps.any():
            from ncu_roofline.model.embedded import filled_from_charts, with_charts

            m = filled_from_charts(given, with_charts(given, m) if charts else m, np.flatnonzero(gaps))
        return m

    parts: list[Measurements | PointTable] = []
    for one in as_inputs(report):
        is_path = isinstance(one, (str, PathLike))
        with closing_input(one) if isinstance(one, (str, PathLike)) else nullcontext(one) as opened:
            name = label or str(one if is_path else opened.path)
            parts.append(opened if isinstance(opened, PointTable) else measured(opened, name))
    # Tables of other tools may complete each other.
    complete = [measured(part, label or part.path) if isinstance(part, PointTable) else part for part in joined(parts)]
    return Measurements.joined(complete)


@contextmanager
def closing_input(path: str | PathLike[str]) -> Iterator[Input]:
    """Whatever `open_input` finds in a file, closed at the end.  Raises RooflineError."""
    opened = open_input(path)
    with opened if isinstance(opened, Report) else nullcontext():
        yield opened


def ceilings_of(ceilings: CeilingsFile | Sequence[CeilingsFile] | None) -> list[Ceilings]:
    """One, several or no ceilings, given as files or as what was read from them, as a list.  Raises RooflineError."""
    several = [ceilings] if isinstance(ceilings, (Ceilings, str, PathLike)) else ceilings or ()
    return [one if isinstance(one, Ceilings) else open_ceilings(one) for one in several]


def check_ceilings(files: Sequence[Ceilings], devices: Iterable[tuple[str, tuple[int, int]]]) -> None:
    """Raise RooflineError for ceilings of a GPU that is none of ``devices`` (name and compute capability), if there are any."""
    known = dict.fromkeys(devices)
    for file in files:
        if known and not any(file.applies_to(*key) for key in known):
            names = ", ".join(str(device) for device, _ in known)
            reason = f"they were measured on {file.device or 'an unnamed GPU'}, and the reports are from {names}"
            raise RooflineError("Cannot use ceilings", file.path, reason, "Give ceilings measured on the GPU of the reports.")


def _points(m: Measurements, grouping: Grouping, roofs: Roofs, select: Selection, bounds: Callable[[], TextArray]) -> Table:
    tables = points_table(m, grouping, load_spec(), roofs.compute(), roofs.bandwidth(), select, bounds)
    return ordered(tables, columns.POINTS)


@np.errstate(all="ignore")
def points_of(m: Measurements, ceilings: Sequence[Ceilings], clock: str, by: str, select: Selection) -> Table:
    """The points alone of all launches: verdicts on thousands of them take their time."""
    roofs, grouping = Roofs(m, ceilings, clock), group(m, by)
    return _points(m, grouping, roofs, select, lambda: Verdicts(m, grouping, load_spec(), roofs).bounds())


@np.errstate(all="ignore")
def of_launches(
    m: Measurements, ceilings: Sequence[Ceilings], clock: str, by: str, select: Selection, everything: tuple[Everything, ...]
) -> Roofline:
    """The Roofline of these launches, all of them; ``everything`` is what shares are of, where there are more."""
    spec, roofs, grouping = load_spec(), Roofs(m, ceilings, clock), group(m, by)
    levels = tuple(level.id for level in m.levels(spec) if select.wants("", level.id))
    verdicts = Verdicts(m, grouping, spec, roofs)
    points = _points(m, grouping, roofs, select, verdicts.bounds)
    parents = {p.id: p.part_of for p in spec.precisions if p.part_of}
    defaults = {name for name in spec.plain if select.wants(name)}  # without any work, what the GPU could do
    core = {level for level in spec.chain if select.wants("", level)}  # of every chart

    def of_points(device: str, name: str) -> set[str]:
        return set(points[name][points["device"] == device].tolist())

    def precisions(device: str) -> set[str]:
        """Those with points on this GPU, and those that they are a view of."""
        found = of_points(device, "precision") - {MIXED} or defaults
        return found | {parents[name] for name in found if name in parents}

    found = Roofline(
        points,
        of_rows(roofs.rows(spec, precisions, lambda device: core | of_points(device, "level")), columns.ROOFS),
        of_columns(kernels_table(m, grouping, spec, levels, verdicts, everything), columns.KERNELS),
        {level: grouping.sum_known(np.where(m.rates, np.nan, one.values)) for level, one in m.traffic.items()},
        {precision: grouping.sum_known(np.where(m.rates, np.nan, one.values)) for precision, one in m.work.items()},
        select.precisions,
        sources=gpu_reports(m),
        everything=everything,
    )
    if by == "launch":
        object.__setattr__(found, "_regroup", partial(of_launches, m, ceilings, clock, "kernel", select, everything))
    return found


def gpu_reports(m: Measurements) -> tuple[tuple[str, str], ...]:
    return tuple(dict.fromkeys(zip(m.device.tolist(), m.report.tolist(), strict=True)))


@np.errstate(all="ignore")
def _embedded(m: Measurements, select: Selection, everything: tuple[Everything, ...]) -> Roofline:
    from ncu_roofline.model.embedded import charts_left_out, embedded_points, embedded_roofs

    spec, grouping = load_spec(), group(m, "launch")
    points = of_rows(embedded_points(m, grouping, select), columns.POINTS)
    points["notes"] = with_reasons(points)
    verdicts = Verdicts(m, grouping, spec, Roofs(m, (), "profiled"))
    kernels = kernels_table(m, grouping, spec, tuple(level.id for level in spec.levels), verdicts, everything)
    shown = set(zip(points["report"], points["launch"], strict=True))
    for i, key in enumerate(zip(kernels["report"], kernels["launch"], strict=True)):
        kernels["notes"][i] = "; ".join(filter(None, (kernels["notes"][i], charts_left_out(m, i))))
        if key in shown or kernels["status"][i] == "ok":
            kernels["status"][i] = "ok" if key in shown else "no-chart"
    return Roofline(
        points,
        of_rows(embedded_roofs(m, select), columns.ROOFS),
        of_columns(kernels, columns.KERNELS),
        sources=gpu_reports(m),
        everything=everything,
    )


def ordered(tables: list[dict[str, Any]], declared: tuple[Column, ...]) -> Table:
    """The tables behind each other, ordered by row, each row's precisions and levels in the spec's order."""
    if not tables:
        return of_rows([], declared)
    order = np.argsort(np.concatenate([table["_row"] for table in tables]), kind="stable")
    merged = {one.name: np.concatenate([table[one.name] for table in tables])[order] for one in declared}
    return of_columns(merged, declared)


def of_rows(rows: Sequence[dict[str, Any]], declared: tuple[Column, ...]) -> Table:
    return of_columns({column.name: [row[column.name] for row in rows] for column in declared}, declared)


def of_columns(values: dict[str, Any], declared: tuple[Column, ...]) -> Table:
    return {column.name: np.asarray(values[column.name], dtype=_DTYPES[column.dtype]) for column in declared}
