"""One application on one platform, as performance portability needs it: from rooflines and from rows of plain tables."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from ncu_roofline.base.errors import RooflineError
from ncu_roofline.chips import load_spec
from ncu_roofline.chips.roofs import INSTEAD, why_not
from ncu_roofline.formats.ceilings import MEASURED, PUBLISHED, Ceiling, Ceilings
from ncu_roofline.formats.inputs import ANY_PRECISION
from ncu_roofline.formats.inputs.plain_table import PlainRow, PlainTable, plain_rows
from ncu_roofline.model import Roofline
from ncu_roofline.model.columns import UNUSED
from ncu_roofline.model.displayed import as_percent

if TYPE_CHECKING:
    import pandas as pd

MIXED = "mixed"
_WHAT = "Cannot compare"


@dataclass(frozen=True)
class PlatformRoof:
    """A roof in SI units, and whether it is measured, published, theoretical or stated (by a table, as what is attainable)."""

    value: float
    origin: str


def frame_roofs(roofs: pd.DataFrame, precision: str, peak: float) -> dict[str, PlatformRoof]:
    """Compute roofs by ceiling; the peak is that of the points, a mean over their launches."""
    mine = roofs[roofs["precision"] == precision]
    result = {}
    for name in dict.fromkeys(mine["roof"]):
        kind = str(name).removeprefix(precision).lstrip(".") or "fma"
        rows = mine[mine["roof"] == name]
        measured = rows[rows["origin"] == "measured"]
        row = (measured if len(measured) else rows).iloc[0]
        result[kind] = PlatformRoof(float(row["value"]), _origin(measured))
    if not math.isnan(peak):
        pipes = roofs[(roofs["kind"] == "compute") & (roofs["origin"] == "measured")]
        unclear = PlatformRoof(peak, _origin(pipes))  # of several
        result["fma"] = replace(result.get("fma", unclear), value=peak)
    return result


def origin_of(roofs: pd.DataFrame, roof: str) -> str:
    """Whether a roof of the frame is measured, published or theoretical."""
    return _origin(roofs[(roofs["roof"] == roof) & (roofs["origin"] == "measured")])


def _origin(measured: pd.DataFrame) -> str:
    """What the roofs of ceilings files are, theoretical where there are none."""
    if not len(measured):
        return "theoretical"
    return PUBLISHED if (measured["source"] == PUBLISHED).any() else MEASURED


def table_roofs(
    row: PlainRow, ceilings: Ceilings | None, precision: str
) -> tuple[dict[str, PlatformRoof], dict[str, PlatformRoof]]:
    """The roofs of the row; measured ones of a ceilings file go before them."""
    compute, bandwidth = {}, {}
    for roof in row.roofs:
        found = PlatformRoof(roof.value, "measured" if roof.measured else "theoretical")
        if roof.kind == "bandwidth":
            bandwidth[roof.id] = found
        else:
            kind = roof.id.removeprefix(precision).removeprefix(ANY_PRECISION).lstrip(".") or "fma"
            compute[kind] = found
    if ceilings:
        for kind in ("fma", "nofma", "divide", "divide_nofma"):
            if (ceiling := _measured(ceilings, precision, kind)) and not ceiling.impossible:
                compute[kind] = PlatformRoof(ceiling.value, ceilings.status)
        for level in dict.fromkeys((*row.traffic, *row.intensity)):
            if (best := ceilings.bandwidth(level)) and not best.impossible:
                bandwidth[level] = PlatformRoof(best.value, ceilings.status)
    return compute, bandwidth


def _measured(ceilings: Ceilings, precision: str, kind: str) -> Ceiling | None:
    """The measured ceiling of a kind; where one side names no precision, it fits the only one of the other."""
    names = [
        precision if precision.startswith("tensor") and kind == "fma" else f"{precision}.{kind}",
        f"{ANY_PRECISION}.{kind}",
    ]
    if precision == ANY_PRECISION:
        stated = [name for name in ceilings.by_id if name.partition(".")[2] == kind]
        names += stated if len(stated) == 1 else []
    return next((found for name in names if (found := ceilings.compute(name))), None)


@dataclass(frozen=True)
class PlatformRun:
    """Executed operations of one precision per second, intensity by level, roofs by ceiling (fma, nofma, ...) and by level.

    ``work`` (operations), ``canonical`` (operations on paper) and ``seconds`` are NaN where unknown, and so is a stated
    ``attainable`` (operations per second).  ``supported`` is yes, no, not run, missing or unread.
    """

    platform: str
    application: str
    variant: str
    source: str
    device: str = ""
    precision: str = ANY_PRECISION
    supported: str = "yes"
    performance: float = math.nan
    work: float = math.nan
    canonical: float = math.nan
    seconds: float = math.nan
    attainable: float = math.nan
    fma_share: float = math.nan
    intensity: Mapping[str, float] = field(default_factory=dict)
    compute: Mapping[str, PlatformRoof] = field(default_factory=dict)
    bandwidth: Mapping[str, PlatformRoof] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    coverage: float = 1.0
    """Share of the time of its launches that the numbers stand for; the others lack metrics."""

    @property
    def unit(self) -> str:
        """What its work counts: op for integers, else flop."""
        return next((one.unit for one in load_spec().precisions if one.id == self.precision), "flop")

    @property
    def left_out(self) -> str:
        """Which part of its launches is left out, "" if none is."""
        if not self.coverage < 1 - 1e-9:
            return ""
        return f"{self.about}: launches with {as_percent(1 - self.coverage)} of the time are left out, as they lack metrics"

    @property
    def about(self) -> str:
        """Which run it is, for messages."""
        return " ".join(filter(None, (self.platform, self.variant)))


def runs_of_roofline(result: Roofline, precision: str = "", by: str = "application") -> list[PlatformRun]:
    """A run per launch, kernel or application of a Roofline; ``precision`` "" takes the one with the most work.

    The variant is the label of its points and, unless ``by`` is application, the kernel.  Platforms are called as their GPUs.
    """
    points = result.points
    keys = ["report", "launch", "kernel", "device", "label"]
    runs = []
    for (report, _, kernel, device, label), rows in points.groupby(keys, sort=False):
        amounts = rows.drop_duplicates("precision").set_index("precision")["performance"].to_dict()
        chosen, notes = chosen_precision(amounts, precision)
        rows = rows[rows["precision"] == chosen]
        if not len(rows):
            continue
        first = rows.iloc[0]
        roofs = result.roofs[result.roofs["device"] == device]
        unused = roofs[(roofs["origin"] == UNUSED) & roofs["precision"].isin(["", chosen])]
        roofs = roofs[roofs["origin"] != UNUSED]
        told = zip(unused["label"], unused["notes"], strict=True)
        run = PlatformRun(
            platform=str(device),
            application="",
            variant=" ".join(filter(None, (str(label), "" if by == "application" else str(kernel)))),
            source=str(report),
            device=str(device),
            precision=chosen,
            performance=float(first["performance"]),
            work=float(first["work"]),
            seconds=float(first["seconds"]),
            fma_share=float(first["fma_share"]),
            intensity={str(row["level"]): float(row["intensity"]) for _, row in rows.iterrows()},
            compute=frame_roofs(roofs, chosen, float(first["compute_roof"])),
            bandwidth={
                str(row["level"]): PlatformRoof(float(row["bandwidth_roof"]), origin_of(roofs, str(row["level"])))
                for _, row in rows.iterrows()
                if not math.isnan(row["bandwidth_roof"])
            },
            coverage=float(first["coverage"]),
            notes=(*notes, *(f"{label}: {note}" for label, text in told for note in text.split("; ") if INSTEAD in note)),
        )
        runs.append(run)
    return runs


def chosen_precision(amounts: Mapping[str, float], wanted: str) -> tuple[str, tuple[str, ...]]:
    """The precision asked for, or that of the most work, and a note where other work is left out.

    Work whose file names no precision passes for any.  "" where there is none.
    """
    if wanted:
        fitting = [name for name in amounts if name == wanted or name.startswith(f"{wanted}.")]
        fitting = fitting or [name for name in amounts if name == ANY_PRECISION]
        return (max(fitting, key=lambda name: amounts[name]), ()) if fitting else ("", ())
    usual = {name: amount for name, amount in amounts.items() if name not in load_spec().on_request} or amounts
    plain = {name: amount for name, amount in usual.items() if name != MIXED} or dict(usual)
    best = max(plain, key=lambda name: plain[name], default="")
    others = ", ".join(name for name in plain if name != best) if MIXED in amounts else ""
    return best, ((f"work in {others} is left out; --precision mixed adds it up",) if others else ())


def runs_of_table(
    table: PlainTable, find: Callable[[PlainRow], Ceilings | None], precision: str = "", by: str = "application"
) -> list[PlatformRun]:
    """A run per row; ``find`` gives the measured ceilings of a row's platform.  Raises RooflineError."""
    runs = []
    for row in table.rows:
        variant = " ".join(filter(None, (row.label, "" if by == "application" else row.kernel)))
        run = PlatformRun(row.platform, row.application, variant, table.path, row.device, supported=row.supported)
        runs.append(_numbers(run, row, find(row), precision) if row.supported == "yes" else run)
    return runs


def runs_of_frame(frame: pd.DataFrame, precision: str = "", by: str = "application") -> list[PlatformRun]:
    """A run per row of a DataFrame with the columns of a plain table (see `ncu_roofline.formats.inputs.plain_table`)."""
    rows = [
        (f"row {number}", {str(name): None if cell != cell else cell for name, cell in row.items()})
        for number, row in enumerate(frame.to_dict("records"), start=1)
    ]
    return runs_of_table(plain_rows("DataFrame", [str(name) for name in frame.columns], rows), lambda _: None, precision, by)


def _numbers(run: PlatformRun, row: PlainRow, ceilings: Ceilings | None, wanted: str) -> PlatformRun:
    """The run with the numbers of its row."""
    rates = {name: work / row.seconds for name, work in row.work.items() if row.seconds > 0} or dict(row.performance)
    chosen, _ = chosen_precision(rates, wanted)
    if not chosen:
        reason = f"{run.about} has no performance{f' in {wanted}' if wanted else ''}"
        raise RooflineError(
            _WHAT, run.source, reason, "Add columns such as flops and seconds, or write `no` into a column supported."
        )
    others = [name for name in rates if name != chosen]
    work, seconds = row.work.get(chosen, math.nan), row.seconds
    if math.isnan(work):
        work = rates[chosen] * seconds
    elif math.isnan(seconds):
        seconds = work / rates[chosen]
    intensity = {level: work / traffic for level, traffic in row.traffic.items() if not math.isnan(work)}
    compute, bandwidth = table_roofs(row, ceilings, chosen)
    unused = [one for one in ceilings.by_id.values() if one.impossible] if ceilings else []
    return replace(
        run,
        precision=chosen,
        performance=rates[chosen],
        work=work,
        seconds=seconds,
        canonical=row.canonical,
        attainable=row.attainable,
        fma_share=row.fma_share,
        intensity={**row.intensity, **intensity},
        compute=compute,
        bandwidth=bandwidth,
        notes=(
            *([f"work in {', '.join(others)} is left out"] if others else []),
            *(f"{one.id}: {why_not(one.value / one.theory, clock_known=True)}" for one in unused),
            *([row.note] if row.note else []),
        ),
    )


def merged(runs: Sequence[PlatformRun]) -> PlatformRun:
    """Several kernels of one application on one platform as one: work, traffic and time are added up.

    Raises RooflineError where a kernel gives only rates, which can't be added.
    """
    if len(runs) == 1:
        return runs[0]
    first = runs[0]
    if any(math.isnan(run.work) or math.isnan(run.seconds) or run.supported != "yes" for run in runs):
        reason = f"{len(runs)} rows are of {first.about}, and without work and time of each they can't be added up"
        raise RooflineError(
            _WHAT, first.source, reason, "Add columns with work and seconds, label the rows, or use --by kernel."
        )
    if len({run.precision for run in runs}) > 1:
        reason = f"the rows of {first.about} are of several precisions"
        raise RooflineError(_WHAT, first.source, reason, "Choose one with --precision.")
    work, seconds = sum(run.work for run in runs), sum(run.seconds for run in runs)
    levels = [level for level in first.intensity if all(level in run.intensity for run in runs)]
    return replace(
        first,
        performance=work / seconds,
        work=work,
        seconds=seconds,
        canonical=sum(run.canonical for run in runs),
        attainable=work / sum(run.work / run.attainable for run in runs),
        fma_share=math.nan,
        intensity={level: work / sum(run.work / run.intensity[level] for run in runs) for level in levels},
        compute=_common([run.compute for run in runs]),
        bandwidth=_common([run.bandwidth for run in runs]),
        notes=tuple(dict.fromkeys(note for run in runs for note in run.notes)),
    )


def _common(roofs: Sequence[Mapping[str, PlatformRoof]]) -> dict[str, PlatformRoof]:
    """The roofs that all have, with the value of the first: they are of one platform."""
    return {name: roof for name, roof in roofs[0].items() if all(name in one for one in roofs)}
