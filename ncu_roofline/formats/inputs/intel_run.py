"""One run of an application under Intel's tools: operations and L1 traffic from SDE, DRAM traffic and time from VTune.

The tools run it once each, so the parts are of different executions of the same work.  The method is NERSC's "Measuring
Arithmetic Intensity" (docs.nersc.gov).  Layouts are from public documentation and scripts, that of SDE also from a public mix
of version 9.24; its masked counts, and VTune's reports, are unproven on a file of ours.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from ncu_roofline.base.files import JOINED
from ncu_roofline.base.texts import listed
from ncu_roofline.formats.ceilings import UNNAMED_CPU
from ncu_roofline.formats.inputs.tables import ImportedPoint, JoinedTable


@dataclass(frozen=True)
class IntelPart:
    """What one file brings: operations by precision, ``fused`` of them, bytes by level, seconds (NaN without).

    ``tool`` is sde or vtune, ``columns`` are the counts used, ``reading`` says what was left out.
    """

    path: str
    tool: str
    name: str
    work: Mapping[str, float] = field(default_factory=dict)
    fused: Mapping[str, float] = field(default_factory=dict)
    traffic: Mapping[str, float] = field(default_factory=dict)
    seconds: float = math.nan
    columns: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    reading: tuple[str, ...] = ()


def table_of(parts: Sequence[IntelPart]) -> JoinedTable:
    """One point from the parts of a run: processes that SDE counted add up."""
    path = JOINED.join(part.path for part in parts)
    counted = [part for part in parts if part.tool == "sde"]
    work, fused, traffic = (_added([getattr(part, of) for part in counted]) for of in ("work", "fused", "traffic"))
    for part in parts:
        if part.tool != "sde":
            traffic |= part.traffic
    notes = [note for part in parts for note in part.notes]
    if len(counted) > 1:
        notes.append(f"the sum of {len(counted)} processes")
    point = ImportedPoint(
        name=next((part.name for part in counted), parts[0].name),
        device=UNNAMED_CPU,
        seconds=next((part.seconds for part in parts if not math.isnan(part.seconds)), math.nan),
        work=work,
        traffic=traffic,
        # Of instructions, from operations, of which a fused instruction does two.
        fma_share={one: (fused[one] / 2) / (done - fused[one] / 2) for one, done in work.items() if done},
        columns=", ".join(dict.fromkeys(column for part in parts for column in part.columns)),
        note="; ".join(notes),
    )
    reading = [f"{part.path}: {sentence}." for part in parts for sentence in part.reading]
    lacking = [f"{path}: {sentence}." for sentence in _lacking(point, bool(counted))]
    return JoinedTable(path, "intel", (point,), warnings=(*reading, *lacking), parts=tuple(parts))


def _added(several: Sequence[Mapping[str, float]]) -> dict[str, float]:
    shared = set.intersection(*map(set, several)) if several else set()
    return {key: sum(one[key] for one in several) for key in several[0] if key in shared} if several else {}


def _lacking(point: ImportedPoint, counted: bool) -> Iterable[str]:
    if not counted:
        yield "it holds no operations; give the mix of the same run by Intel SDE as well (`sde -iform 1 -omix FILE -- ./app`)"
    elif math.isnan(point.seconds):
        total = sum(point.work.values())
        known = [f"{total / moved:.3g} FLOP/B at {level}" for level, moved in point.traffic.items() if total and moved]
        about = f"it holds no time, so of its place in a roofline only the intensity is known ({listed(known)})"
        yield (
            f"{about if known else 'it holds no time'}; give the summary of the same run by VTune as well "
            "(`vtune -report summary -format=csv`), or write its numbers with seconds into a plain table"
        )


def joined(tables: Sequence[JoinedTable]) -> list[JoinedTable]:
    """Tables of several files, those of one run as one, at the place of the first of them.

    One report of VTune completes all mixes of SDE, which are processes of its run; as many reports as mixes go in pairs, in
    their order; else nobody knows what belongs together, and the tables come back as they are, with a warning.
    """
    tables = list({table.path: table for table in tables}.values())
    parts = [part for table in tables for part in table.parts]
    mixes = [part for part in parts if part.tool == "sde"]
    events = [part for part in parts if part.tool != "sde" and math.isnan(part.seconds)]
    times = [part for part in parts if part.tool != "sde" and not math.isnan(part.seconds)]
    kinds = [kind for kind in (events, times) if kind]
    runs = len(kinds[0]) if kinds else 0
    if not kinds or (len(kinds) == 1 and not mixes):
        return list(tables)
    if any(len(kind) != runs for kind in kinds) or (mixes and runs > 1 and len(mixes) != runs):
        count = f"{len(mixes)} mixes of SDE, {len(events)} reports of events and {len(times)} summaries of VTune"
        sentence = f"{count} are not joined, for it is not known which belong together: give those of one run alone."
        return [*tables[:-1], replace(tables[-1], warnings=(*tables[-1].warnings, sentence))]
    groups = [[*(mixes if runs == 1 else mixes[at : at + 1]), *(kind[at] for kind in kinds)] for at in range(runs)]
    return [table_of(group) for group in groups]
