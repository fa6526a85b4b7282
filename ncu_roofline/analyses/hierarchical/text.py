"""The roofline in words: the answer in sentences, a table of kernels with their work in each precision, roofs and notes."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from ncu_roofline.analyses.hierarchical import captions
from ncu_roofline.analyses.hierarchical.answer import answers_of, counts_text
from ncu_roofline.analyses.hierarchical.chart import ZERO, Band, empirical_name
from ncu_roofline.analyses.hierarchical.style import level_order, level_style, precision_label, precision_order
from ncu_roofline.analyses.hierarchical.usage import (
    KEY,
    Key,
    Usage,
    answers,
    busiest_text,
    by_time,
    level_text,
    levels_of,
    limit_text,
    occupancy_text,
    reasons,
    tensor_caveat,
    times_text,
    unit_label,
    usages,
    waves_text,
)
from ncu_roofline.base.texts import clean
from ncu_roofline.base.units import format_value
from ncu_roofline.chips import load_spec
from ncu_roofline.chips.thresholds import COMPLETE
from ncu_roofline.chips.verdict import TOO_SHORT
from ncu_roofline.model.columns import KERNELS, POINTS, UNUSED
from ncu_roofline.model.opcodes import OPCODES
from ncu_roofline.model.ranking import at_stake, order
from ncu_roofline.model.work import MIXED
from ncu_roofline.rendering.by_gpu import each_gpu
from ncu_roofline.rendering.document import Column, Document, Note, Section, Table
from ncu_roofline.rendering.frames import Frames, column, records, rows, table
from ncu_roofline.rendering.table import DIM, GREEN, RED, YELLOW

TOP = 20
"""Kernels that a terminal shows unless all are asked for."""
_MOST_NOTES = 8
_STEPS = ((24, 7), (14, 1))  # the cheap columns go for readable names of kernels, the others only for the shortest ones
_ABOUT = ("kernel", "label", "launch", "launches", "seconds", "time_share")
_JUDGED = ("verdict", "headroom", "headroom_compute", "recoverable", "limit")
_FIRST = ("kernel", "label", "precision", "launch", "verdict", "headroom", "headroom_compute", "recoverable")
_OF_POINTS = (
    *("precision", "level", "intensity", "performance", "unit", "binding_fraction", "binds", "fma_share", "mix_roof", "lanes"),
    "compute_roof",
)
_ROOFS = tuple(Column(name, kind, "", "") for name, kind in (("roof", "str"), ("measured", "text"), ("theoretical", "text")))


def document(frames: Frames, *, title: str = "", notes: bool = True) -> Document:
    """The whole, a part per GPU where there are several; without ``notes`` only those that make a number doubtful."""
    about = [note(frames) for note in (tensor_caveat, captions.above_note, captions.clock_note, captions.roof_note)]
    about.append(captions.source_note(frames) if notes else captions.source_note(frames, [OPCODES]))
    of_kernels = captions.notes_of(frames, _MOST_NOTES) if notes else captions.doubts_of(frames)
    told = [*(Note(text) for text in about if text), *(Note(text, "kernel") for text in of_kernels)]
    return each_gpu(frames, title or captions.name_of(frames), lambda part, name: _of_gpu(part, name, notes), told)


def _of_gpu(frames: Frames, title: str, notes: bool) -> Document:
    """What is said of one GPU: sentences, its kernels, why some have no dots, other reasons for verdicts, and roofs."""
    sentences = [text for answer in answers_of(frames) for text in answer.sentences]
    found, kernels = list(usages(frames).values()), kernels_table(frames)
    absent = by_time(one for one in found if one.status != "ok")
    dots, told = bool(kernels.detail), answers(frames, absent)
    unknown = [] if dots or told else captions.explanation(frames).splitlines()[: None if notes else 1]
    lacking = [] if unknown and notes else why_absent(frames, absent, lacks=notes)  # the explanation says it
    lacking += [text for text in [captions.how_to_add(frames)] if text and notes and not dots and told]
    others = [f"{name}: {why}" for name, why in reasons(by_time(found)) if why not in " ".join(sentences)]
    verdicts = Section(others if notes else (), "Verdicts", late=True)
    blocks = (Section(unknown, hanging=False), kernels, Section(lacking, hanging=False), verdicts, roofs_table(frames))
    return Document(title, captions.subtitle(frames), sentences, blocks)


def why_absent(frames: Frames, absent: Sequence[Usage], *, lacks: bool = True) -> list[str]:
    """For each reason why kernels have no dots a sentence: how many, their share of the time, and what the report ``lacks``."""
    found = []
    for status in dict.fromkeys(kernel.status for kernel in absent):
        members = [kernel for kernel in absent if kernel.status == status]
        share = captions.of_the_time(member.share for member in members)
        missing = captions.lacking(member.missing for member in members) if lacks and status not in ZERO else []
        without = f"; lacks {', '.join(missing)}" if missing else ""
        found.append(f"{counts_text(members)} {captions.why(frames, status)}{share}{without}.")
    return found


def kernels_table(frames: Frames) -> Table:
    """What is said of a kernel whatever its work, that which could save most first, and its work in each precision.

    Where no kernel has dots it says how full the kernels kept the GPU.
    """
    works, found = works_of(frames), usages(frames)
    dots = [one for key, one in found.items() if key in works]
    kernels = _ordered([*dots, *by_time(one for key, one in found.items() if key not in works)])
    of = {id(one): works.get(key, []) for key, one in found.items()}
    parts = [of[id(one)] for one in kernels]
    detail = _work_table([row for members in parts for row in members], any(one.verdict for one in kernels)) if dots else None
    return replace(about_table(kernels, used=not dots), detail=detail, parts=list(map(len, parts)))


def about_table(kernels: Sequence[Usage], *, used: bool) -> Table:
    """What is said of kernels, where they have no dots how full they kept the GPU, too."""
    levels = levels_of(kernels)
    names = [(one.kernel, one.step, one.step_label) for one in kernels]
    hidden = set() if len(set(names)) < len(names) else {"launch"}
    hidden |= set() if any(one.verdict for one in kernels) else set(_JUDGED)
    shown = [name for name in (*_ABOUT, *_JUDGED) if name not in hidden]
    if used:
        shown += ["busiest_unit", *(f"bandwidth_{level}" for level in levels), "occupancy", "waves"]
    labels = {"device": "GPU", **{f"bandwidth_{level}": f"{unit_label(level)} GB/s, %" for level in levels}}
    declared = [replace(one, label=labels.get(one.name, one.label)) for one in KERNELS]
    cells = [_cells(one, levels) for one in kernels]
    return Table("kernels", declared, cells, shown, weight="time_share", first=_FIRST, steps=_STEPS)


def _cells(one: Usage, levels: Sequence[str]) -> dict[str, Any]:
    """A kernel as people read it."""
    unknown = "unknown" if one.verdict not in ("", TOO_SHORT) and one.seconds > 0 else ""
    saves = one.seconds > 0 and math.isfinite(one.recoverable)
    return {
        **vars(one),
        "label": one.step_label,
        "time_share": one.share,
        "headroom": one.headroom_text or unknown,
        "headroom_compute": times_text(one.headroom_compute),
        "recoverable": format_value(one.recoverable, "second", 3) if saves else "",
        "limit": limit_text(one),
        "busiest_unit": busiest_text(one),
        "occupancy": occupancy_text(one),
        "waves": waves_text(one),
        **{f"bandwidth_{level}": level_text(one, level, bare=True) for level in levels},
    }


def _ordered(kernels: Sequence[Usage]) -> list[Usage]:
    """By what could be saved, as `ranking`; steps of a sweep stay together, in their order."""
    groups: dict[object, list[Usage]] = {}
    for one in kernels:
        groups.setdefault(one.kernel if one.step >= 0 else id(one), []).append(one)
    members, stakes = list(groups.values()), []
    for steps in members:
        timed = [one for one in steps if one.seconds > 0]
        saved = sum(at_stake(one.seconds, one.recoverable) for one in timed)
        stakes.append((steps[0].device, sum(one.seconds for one in timed), saved))
    return [one for place in order(stakes) for one in sorted(members[place], key=lambda one: one.step)]


def works_of(frames: Frames) -> dict[Key, list[dict[str, Any]]]:
    """The work of each kernel that has dots: a row per precision, the sum over pipes first, with the intensity at each level.

    ``fraction`` is of the lowest roof over all levels; of a precision that is one of several, which share memory, of its own
    compute roof.  A precision and the part of it that is all of it are one row.
    """
    points, bound = table(frames, "points"), _bound_labels(frames)
    unknown = {f"intensity_{level}": math.nan for level in set(column(frames, "points", "level"))}
    found: dict[Key, dict[str, dict[str, Any]]] = {}
    for row in records({name: points[name] for name in (*KEY, *_OF_POINTS)}):
        kinds = found.setdefault((row["report"], row["launch"], row["kernel"], row["step"], row["device"]), {})
        if row["precision"] not in kinds:
            mix = row["performance"] / row["mix_roof"] if row["mix_roof"] else math.nan
            binds = bound.get(row["binds"], clean(row["binds"]))
            more = {"mix_fraction": mix, "binds": binds, "fraction": row["binding_fraction"]}
            kinds[row["precision"]] = {**row, **unknown, **more}
        kinds[row["precision"]][f"intensity_{row['level']}"] = row["intensity"]
    parents = {one.id: one.part_of for one in load_spec().precisions if not one.disjoint}
    for key, kinds in found.items():
        speeds = {name: row["performance"] for name, row in kinds.items()}
        of = {name: parent for name in kinds if (parent := parents.get(name)) in kinds}
        whole = {parent for name, parent in of.items() if speeds[name] >= (1 - COMPLETE) * speeds[parent]}
        for name in [*kinds] if MIXED in kinds else []:
            row = kinds[name]
            row["fraction"] = row["fraction"] if name == MIXED else row["performance"] / (row["compute_roof"] or math.nan)
            row["part"] = name != MIXED
        found[key] = {name: row for name, row in kinds.items() if name not in whole}

    def place(row: Mapping[str, Any]) -> tuple[object, ...]:
        return row["precision"] != MIXED, precision_order(row["precision"])

    return {key: sorted(kinds.values(), key=place) for key, kinds in found.items()}


def _work_table(works: Sequence[dict[str, Any]], judged: bool) -> Table:
    """Intensities and the share of the roof are what the table is for: they never go."""
    levels = level_order({name.removeprefix("intensity_") for row in works for name in row if name.startswith("intensity_")})
    declared = {one.name: one for one in POINTS}
    units = dict.fromkeys(row["unit"] for row in works)
    fused, intensity = declared["fma_share"], declared["intensity"]
    intensity = replace(intensity, unit="inst/txn") if set(units) == {"inst"} else intensity
    about = [
        replace(declared["precision"], priority=0 if len({row["precision"] for row in works}) > 1 else 8, words=str),
        *(replace(intensity, name=f"intensity_{one}", label=level_style(one).label) for one in levels),
        declared["performance"],
        replace(declared["fraction"], label="of roof", colour=_colour),
        fused,
        replace(fused, name="mix_fraction", label="of mix", long="of mix roof", priority=13),
        declared["lanes"],
        declared["binds"],
    ]
    rows = [{**row, "precision": f"{'  ' * row.get('part', False)}{precision_label(row['precision'])}"} for row in works]
    shown = [one.name for one in about if judged <= (one.name != "binds")]
    return Table("work", about, rows, shown, words={"kind": captions.kind_of_work(units)})


def _colour(row: Mapping[str, Any]) -> str:
    if not row["fraction"] >= 0:
        return DIM
    return GREEN if row["fraction"] >= 0.8 else YELLOW if row["fraction"] >= 0.4 else RED


def _bound_labels(frames: Frames) -> dict[str, str]:
    """Roof id -> label; levels go by their short label."""
    found = rows(frames, "roofs", "roof", "level", "label")
    return {roof: level_style(roof).label if roof == level else clean(label) for roof, level, label in found}


def roofs_table(frames: Frames) -> Table:
    """Compute roofs from high to low, then bandwidths, over all launches and reports; measured ones beside theoretical ones."""
    bands: dict[str, dict[str, Band]] = {}
    about: dict[str, tuple[str, str, str, str]] = {}
    columns = ("roof", "kind", "precision", "label", "unit", "origin", "value", "value_min", "value_max")
    for roof, kind, precision, label, unit, origin, *values in rows(frames, "roofs", *columns):
        if origin != UNUSED:
            by_origin = bands.setdefault(roof, {})
            by_origin[origin] = Band.of(*values).joined(by_origin.get(origin))
            wall_of = precision_label(precision) if kind == "wall" and precision else ""
            about[roof] = kind, wall_of, ", ".join(filter(None, (wall_of, clean(label) or roof))), unit
    kinds = ("compute", "bandwidth", "wall")

    def place(roof: str) -> tuple[object, ...]:
        kind, wall_of, *_ = about[roof]
        return kinds.index(kind) if kind in kinds else len(kinds), wall_of, -max(band.high for band in bands[roof].values())

    cells = []
    for roof in sorted(bands, key=place):
        *_, label, unit = about[roof]
        known = {origin: band.text(unit) for origin, band in bands[roof].items()}
        cells.append({"roof": label, "measured": "", "theoretical": "", **known})
    named = [replace(one, label=empirical_name(frames) if one.name == "measured" else "") for one in _ROOFS]
    return Table("roofs", named, cells, ("roof", "measured", "theoretical"), ruled=False)
