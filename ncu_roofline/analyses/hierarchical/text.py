"""The roofline in words: sentences, a table of kernels with their work in each precision, roofs, notes; NERSC's data file."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from ncu_roofline.analyses.hierarchical import captions, kernels, style
from ncu_roofline.base.errors import RooflineError
from ncu_roofline.base.groups import grouped
from ncu_roofline.base.texts import clean
from ncu_roofline.base.units import format_value, percent
from ncu_roofline.chips import load_spec, load_units
from ncu_roofline.chips.verdict import TOO_SHORT, as_percent, as_times
from ncu_roofline.model.columns import KERNELS, POINTS
from ncu_roofline.model.selection import at_stake, order
from ncu_roofline.model.work import MIXED, OPCODES
from ncu_roofline.rendering.document import Column, Document, Note, Section, Table
from ncu_roofline.rendering.frames import Frames, each_gpu, rows, view_of
from ncu_roofline.rendering.table import DIM, GREEN, RED, YELLOW

TOP = 20  # kernels that a terminal shows unless all are asked for
_MOST_NOTES = 8
_STEPS = ((24, 7), (14, 1))  # the cheap columns go for readable names of kernels, the others only for the shortest ones
_ABOUT = ("kernel", "label", "launch", "launches", "seconds", "time_share")
_JUDGED = ("verdict", "headroom", "headroom_compute", "recoverable", "limit")
_FIRST = ("kernel", "label", "precision", "launch", *_JUDGED[:4])
_POINT = (
    *("level", "intensity", "performance", "unit", "binding_fraction", "binds", "fma_share", "mix_roof", "lanes"),
    "compute_roof",
)
_KINDS = ("compute", "bandwidth", "wall")
_LEVEL_NAMES = {"l1": "L1", "shared": "Shared", "l2": "L2", "l3": "L3", "dram": "HBM", "system": "System"}
_ROOF_NAMES = {"fma": "FMA", "nofma": "No-FMA", "divide": "Div FMA", "divide_nofma": "Div No-FMA"}
_QUOTES = dict.fromkeys(map(ord, "'\"`\N{ACUTE ACCENT}\N{LEFT SINGLE QUOTATION MARK}\N{RIGHT SINGLE QUOTATION MARK}"), "_")


def document(frames: Frames, *, title: str = "", notes: bool = True) -> Document:
    """The whole, a part per GPU where there are several; without ``notes`` only those that make a number doubtful."""

    def of_gpu(frames: Frames, title: str) -> Document:
        sentences = [text for answer in kernels.answers_of(frames) for text in answer.sentences]
        found, table = kernels.by_time(kernels.kernels_of(frames).values()), kernels_table(frames)
        absent = [one for one in found if one.status != "ok"]
        dots, told = bool(table.detail), kernels.tells(frames, absent)
        unknown = [] if dots or told else captions.explanation(frames).splitlines()[: None if notes else 1]
        lacking = [] if unknown and notes else captions.why_absent(frames, absent, lacks=notes)  # the explanation says it
        lacking += captions.how_to_add(frames) if notes and not dots and told else []
        others = [f"{name}: {why}" for name, why in kernels.reasons(found) if why not in " ".join(sentences)] if notes else ()
        verdicts, absences = Section(others, "Verdicts", late=True), Section(lacking, hanging=False)
        blocks = (Section(unknown, hanging=False), table, absences, verdicts, roofs_table(frames))
        return Document(title, captions.subtitle(frames), sentences, blocks)

    about = [*captions.main_notes(frames), captions.roof_note(frames)]
    about.append(captions.source_note(frames) if notes else captions.source_note(frames, [OPCODES]))
    of_kernels = captions.notes_of(frames, _MOST_NOTES) if notes else captions.notes_of(frames, doubts=True)
    all_notes = [*(Note(text) for text in about if text), *(Note(text, "kernel") for text in of_kernels)]
    return each_gpu(frames, title or captions.name_of(frames), of_gpu, all_notes)


def kernels_table(frames: Frames) -> Table:
    """What is said of a kernel whatever its work, that which could save most first, and its work in each precision.

    Where no kernel has dots it says how full the kernels kept the GPU.
    """
    works, found = works_of(frames), kernels.kernels_of(frames)
    dots = [one for key, one in found.items() if key in works]
    every = (*dots, *kernels.by_time(one for key, one in found.items() if key not in works))
    # Steps of a sweep stay together, in their order.
    members, stakes = list(grouped((one.kernel if one.step >= 0 else id(one), one) for one in every).values()), []
    for steps in members:
        timed = [one for one in steps if one.seconds > 0]
        saved = sum(at_stake(one.seconds, one.recoverable) for one in timed)
        stakes.append((steps[0].device, sum(one.seconds for one in timed), saved))
    ordered = [one for place in order(stakes) for one in sorted(members[place], key=lambda one: one.step)]
    of = {id(one): works.get(key, []) for key, one in found.items()}
    parts = [of[id(one)] for one in ordered]
    detail = _work_table([row for rows in parts for row in rows], any(one.verdict for one in ordered)) if dots else None
    return replace(about_table(ordered, used=not dots), detail=detail, parts=list(map(len, parts)))


def about_table(given: Sequence[kernels.Kernel], *, used: bool) -> Table:
    """What is said of kernels, where they have no dots how full they kept the GPU, too."""
    levels, spec = kernels.levels_of(given), load_spec()
    alone = len({(one.kernel, one.step, one.label) for one in given}) == len(given)
    shown = [name for name in _ABOUT if name != "launch" or not alone]
    shown += _JUDGED if any(one.verdict for one in given) else ()
    shown += ["busiest_unit", *(f"bandwidth_{level}" for level in levels), "occupancy", "waves"] if used else ()
    labels = {
        "device": "GPU",
        "nvtx": "in",
        **{f"bandwidth_{level}": f"{kernels.unit_label(level)} GB/s, %" for level in levels},
    }
    declared = [replace(one, label=labels[one.name]) if one.name in labels else one for one in KERNELS]
    if used and not any(one.seconds > 0 for one in given):  # without a time the answer is what was counted
        amount, counted = next(one for one in POINTS if one.name == "work"), {name for one in given for name in one.works}
        called = [p for p in spec.precisions if p.id in counted and any(one.works[p.id] > 0 for one in given)]
        declared += [replace(amount, name=f"work_{p.id}", unit=p.unit, label=p.label, group=("work", "")) for p in called]
        shown += [*(f"work_{p.id}" for p in called), "nvtx"]
    limits = {unit.id: unit.label for unit in load_units().units}
    limits |= {roof: one.roof_label(roof) for one in spec.precisions for roof in one.roof_ids()}
    limits |= {level.id: level.short for level in spec.levels}
    cells = [_cells(one, levels, limits) for one in given]
    return Table("kernels", declared, cells, shown, weight="time_share", first=_FIRST, steps=_STEPS)


def _cells(one: kernels.Kernel, levels: Sequence[str], limits: Mapping[str, str]) -> dict[str, Any]:
    share = as_percent(one.limit_fraction) if math.isfinite(one.limit_fraction) else ""
    limit = f"{limits.get(one.limit, one.limit)} {share}".rstrip() if one.limit else ""
    if ": " in one.verdict:  # which says what the limit is: 663 GB/s, 74 %
        rate = format_value(one.bandwidths[one.limit], "byte/s", 3) if one.limit in one.bandwidths else ""
        limit = ", ".join(filter(None, (rate, share)))
    saves = one.seconds > 0 and math.isfinite(one.recoverable)
    busiest = percent(one.busiest_fraction) if math.isfinite(one.busiest_fraction) else ""
    achieved = f"{100 * one.occupancy:.0f} " if math.isfinite(one.occupancy) else ""
    possible = f"of {100 * one.occupancy_theoretical:.0f} " if math.isfinite(one.occupancy_theoretical) else ""
    waves = f"{one.waves:.0f}" if one.waves >= 100 else f"{one.waves:.3g}"
    found = {
        **vars(one),
        "headroom": one.headroom_text or ("unknown" if one.verdict not in ("", TOO_SHORT) and one.seconds > 0 else ""),
        "headroom_compute": as_times(one.headroom_compute) if math.isfinite(one.headroom_compute) else "",
        "recoverable": format_value(one.recoverable, "second", 3) if saves else "",
        "limit": limit,
        "busiest_unit": f"{one.busiest_unit} {busiest}".rstrip() if one.busiest_unit else "",
        "occupancy": f"{achieved}{possible}%" if achieved or possible else "",
        "waves": waves if math.isfinite(one.waves) else "",
    }
    found["nvtx"] = one.nvtx.rpartition("/")[2]
    found |= {f"work_{name}": work for name, work in one.works.items()}
    for level in levels:  # GB/s and share of its peak, as far as known: 512 43.1 %
        rate, part = one.bandwidths.get(level, math.nan), one.fractions.get(level, math.nan)
        number = f"{rate / 1e9:.0f}" if rate >= 1e12 else f"{rate / 1e9:.3g}"
        found[f"bandwidth_{level}"] = " ".join([number] * math.isfinite(rate) + [percent(part)] * math.isfinite(part))
    return found


def works_of(frames: Frames) -> dict[kernels.Key, list[dict[str, Any]]]:
    """The work of each kernel that has dots: a row per precision, the sum over pipes first, with the intensity at each level.

    ``fraction`` is of the lowest roof over all levels; of a precision that is one of several, which share memory, of its own
    compute roof.
    """
    labels = rows(frames, "roofs", "roof", "level", "label")
    bound = {roof: style.level_style(roof).label if roof == level else clean(label) for roof, level, label in labels}
    works = kernels.works_of(frames, _POINT)
    levels = {f"intensity_{row['level']}": math.nan for of in works.values() for points in of for row in points}
    found: dict[kernels.Key, list[dict[str, Any]]] = {}
    for key, of in works.items():
        found[key] = []
        for points in of:
            row = points[0]
            part = row["precision"] != MIXED == of[0][0]["precision"]
            share = row["performance"] / (row["compute_roof"] or math.nan) if part else row["binding_fraction"]
            mix = row["performance"] / row["mix_roof"] if row["mix_roof"] else math.nan
            more = {"fraction": share, "mix_fraction": mix, "binds": bound.get(row["binds"], clean(row["binds"])), "part": part}
            found[key].append(row | levels | more | {f"intensity_{at['level']}": at["intensity"] for at in points})
    return found


def _work_table(works: Sequence[dict[str, Any]], judged: bool) -> Table:
    """Intensities and the share of the roof are what the table is for: they never go."""

    def colour(row: Mapping[str, Any]) -> str:
        share = row["fraction"]
        return GREEN if share >= 0.8 else YELLOW if share >= 0.4 else RED if share >= 0 else DIM

    levels = style.level_order(name[10:] for row in works for name in row if name.startswith("intensity_"))
    declared = {one.name: one for one in POINTS}
    counts_instructions = {row["unit"] for row in works} == {"inst"}
    fused, intensity = declared["fma_share"], declared["intensity"]
    intensity = replace(intensity, unit="inst/txn") if counts_instructions else intensity
    about = [
        replace(declared["precision"], priority=0 if len({row["precision"] for row in works}) > 1 else 8, words=str),
        *(replace(intensity, name=f"intensity_{one}", label=style.level_style(one).label) for one in levels),
        declared["performance"],
        replace(declared["fraction"], label="of roof", colour=colour),
        fused,
        replace(fused, name="mix_fraction", label="of mix", long="of mix roof", priority=13),
        declared["lanes"],
        *([] if judged else [declared["binds"]]),
    ]
    cells = [{**row, "precision": f"{'  ' * row['part']}{style.precision_label(row['precision'])}"} for row in works]
    words = {"kind": "instructions" if counts_instructions else "precision"}
    return Table("work", about, cells, [one.name for one in about], words=words)


def roofs_table(frames: Frames) -> Table:
    """Compute roofs from high to low, then bandwidths, over all launches and reports; measured ones beside theoretical ones."""
    found = []
    for roof in style.joined_roofs(row for of_gpu in style.roof_rows(frames).values() for row in of_gpu):
        wall = style.precision_label(roof.precision) if roof.kind == "wall" and roof.precision else ""
        place = _KINDS.index(roof.kind), wall, -max(band.high for band in roof.bands.values())
        values = {"measured": "", "theoretical": ""} | {origin: band.text(roof.unit) for origin, band in roof.bands.items()}
        found.append((place, {"roof": ", ".join(filter(None, (wall, roof.label or roof.id))), **values}))
    cells = [row for _, row in sorted(found, key=lambda pair: pair[0])]
    labels = {"roof": "", "measured": captions.empirical_name(frames), "theoretical": ""}
    declared = [Column(name, "str" if name == "roof" else "text", "", "", label) for name, label in labels.items()]
    return Table("roofs", declared, cells, list(labels), ruled=False)


# NERSC's data file


def render_nersc(roofline: Frames) -> bytes:
    """A data file of NERSC's plot_roofline_hierarchical.py, which our importers read: a name and values per line, every digit.

    Roofs and points of the precision with the most work, named in a comment; measured roofs where given.  Raises RooflineError
    for points of several GPUs, which the format can't tell apart, and for other views.
    """
    points = kernels.points_of(roofline, ("level", "intensity", "performance", "work", "label"))
    devices = list(dict.fromkeys(device for *_, device in points))
    for good, reason, next_step in (
        (view_of(roofline) == "roofline", "it holds rooflines only", "Leave out --view, or choose another format."),
        (points, "no kernel has a point", "`ncu-roofline explain` says what the report lacks."),
        (len(devices) < 2, f"it holds the points of one GPU, not of {len(devices)}", "Give the reports of one GPU."),
    ):
        if not good:
            raise RooflineError("Cannot render", "nersc", reason, next_step)
    totals: dict[str, float] = {}
    for kinds in points.values():
        for name, (row, *_) in kinds.items():
            amount = row["performance"] if math.isnan(row["work"]) else row["work"]  # files of rates have no work
            totals[name] = totals.get(name, 0.0) + (0.0 if math.isnan(amount) else amount)
    totals = {name: total for name, total in totals.items() if name != MIXED} or totals
    precision = max(totals, key=totals.__getitem__)
    others = ", ".join(style.precision_label(one) for one in totals if one != precision)
    rows_of = [{row["level"]: row for row in reversed(kinds[precision])} for kinds in points.values() if precision in kinds]
    levels = style.level_order(level for at in rows_of for level in at)
    # The format's readers take DRAM to be HBM; where a machine has both, each gets its own name.
    names = {level: _LEVEL_NAMES.get(level, level.upper()) for level in levels}
    if "mcdram" in names:
        names.update(mcdram="HBM", dram="DDR")
    # Its readers look for their keywords anywhere in a line: comments stand apart and use none of them.
    note = f"{style.precision_label(precision)} only{f'; with less work and left out: {others}' if others else ''}"
    lines = [f"# {clean(devices[0]) or 'unnamed machine'}, {note}", "# in GB/s, GFLOP/s and FLOP/byte"]

    def add(name: str, values: Iterable[float]) -> None:
        lines.append(f"{name} {' '.join(repr(float(value)) for value in values)}")

    def quoted(name: str, texts: Iterable[str]) -> None:  # in straight quotes, of which the format can't write one
        quotes = " ".join(f"'{clean(text, None).translate(_QUOTES)}'" for text in texts)
        lines.append(f"{name} {quotes}")

    # Bandwidths and compute roofs, each kind in two lines.
    given = [row for of_gpu in style.roof_rows(roofline).values() for row in of_gpu]
    family = "" if precision == "fp" else style.precision_label(precision)
    memory, compute = [(name, [row for row in given if row[2] == level]) for level, name in names.items()], []
    for roof in dict.fromkeys(row[0] for row in given if row[3] == precision):
        kind = roof.removeprefix(precision).lstrip(".")
        name = " ".join(filter(None, (family, _ROOF_NAMES.get(kind, kind))))
        compute.append((name, [row for row in given if row[0] == roof]))
    for kind, pairs in (("mem", memory), ("comp", compute)):
        best = [(name, *min(rows, key=lambda row: row[6] != "measured")[6:8]) for name, rows in pairs if rows]
        if best:
            add(f"{kind}roofs", (value / 1e9 for _, _, value in best))
            called = (name if origin == "measured" else f"Theoretical {name}" for name, origin, _ in best)
            quoted(f"{kind}_roof_names", called)
    lines.append("")
    for level, name in names.items():
        add(f"AI_{name}", (at[level]["intensity"] if level in at else math.nan for at in rows_of))
    first = [next(iter(reversed(at.values()))) for at in rows_of]
    add("FLOPS", (row["performance"] / 1e9 for row in first))
    quoted("labels", (row["label"] or row["kernel"] for row in first))
    return "\n".join(lines).encode("utf-8", "replace") + b"\n"
