"""The columns of the frames of the view of phases, declared once."""

from __future__ import annotations

from ncu_roofline.model.columns import ROOFS
from ncu_roofline.rendering.frames import Column

_text, _integer, _number = Column.text, Column.integer, Column.number

WHERE = (
    _text("report", "report the row comes from: its path, or of commands its base name"),
    _integer("launch", "position of the result in its report, from 0"),
    _text("kernel", "short readable name, unique among different kernels"),
    _text("device", "name of the GPU"),
    _text("label", "what the step of a sweep is called; '' outside of sweeps"),
    _integer("step", "position in a sweep, from 0; -1 outside of sweeps"),
)
_SLICE = (
    _integer("slice", "position of the slice of time, from 0"),
    _number("begin", "second", "when the slice begins, from the launch's beginning"),
    _number("end", "second", "when it ends"),
)

POINTS = (
    *WHERE,
    *_SLICE,
    _text("precision", "precision id"),
    _text("level", "memory level id"),
    _number("work", "flop", "operations of the launch, shared out by the activity of the pipe that does them"),
    _text("unit", "flop or op: what work counts"),
    _number("traffic", "byte", "bytes of the launch, shared out by the utilisation of the level"),
    _number("intensity", "flop/byte", "work / traffic; NaN where nothing moved"),
    _number("performance", "flop/s", "work / (end - begin)"),
    _number("attainable", "flop/s", "min(compute roof, intensity * bandwidth roof)"),
    _number("fraction", "ratio", "performance / attainable"),
    _number("compute_roof", "flop/s", "compute roof of this precision, measured where given"),
    _number("bandwidth_roof", "byte/s", "bandwidth roof of this level, measured where given"),
    _text("source", "where the launch's work and traffic come from, as in the ordinary roofline"),
    _text("metrics", "ncu metrics that gave them, and those that were sampled"),
    _text("notes", "what a reader must know of this row"),
)
BANDS = (
    *WHERE,
    *_SLICE,
    _text("band", "sm, tensor, fma, fp64, fp16, alu, l1, l2 or dram"),
    _text("name", "what the band is called"),
    _number("utilisation", "ratio", "mean share of its peak; NaN where less than half of the slice was sampled"),
    _text("metrics", "sampled metrics that gave it"),
)
SAMPLED = (
    *WHERE,
    _number("seconds", "second", "run time"),
    _text("status", "ok (has slices), no-samples, no-time, too-few-samples or no-run"),
    _text("dots", "why there are no points: the status, incomplete, no-traffic, no-work or gaps; '' where there are"),
    _integer("slices", "slices of its time"),
    _integer("samples", "samples during the launch, of the pass group with fewest"),
    _integer("groups", "pass groups, each sampled in a run of its own"),
    _number("sampled_share", "ratio", "share of the time that was sampled, from the beginning on"),
    _integer("blocks", "thread blocks of the grid; -1 where unknown"),
    _integer("blocks_started", "thread blocks whose start was sampled; -1 where that was not"),
    _number("stretch", "ratio", "run time / the shortest run of a pass group: by what it was stretched"),
    _number("shrink", "ratio", "run time / the longest run of a pass group"),
    _number("scale", "ratio", "counted bytes of DRAM / bytes that its sampled percent and its peak would give"),
    _integer("dropped", "samples that ncu dropped"),
    _integer("merged", "samples that ncu merged"),
    _text("aligned", "how the runs were found, best first"),
    _text("notes", "what a reader must know of this launch, sentences separated by '; '"),
)

TABLES = {"points": POINTS, "bands": BANDS, "sampled": SAMPLED, "roofs": ROOFS}
