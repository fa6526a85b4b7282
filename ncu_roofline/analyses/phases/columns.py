"""The columns of the frames of the view of phases, declared once."""

from __future__ import annotations

from ncu_roofline.model.columns import ROOFS
from ncu_roofline.rendering.frames import Column

WHERE = (
    Column("report", "str", "", "report the row comes from: its path, or of commands its base name"),
    Column("launch", "int", "", "position of the result in its report, from 0"),
    Column("kernel", "str", "", "short readable name, unique among different kernels"),
    Column("device", "str", "", "name of the GPU"),
    Column("label", "str", "", "what the step of a sweep is called; '' outside of sweeps"),
    Column("step", "int", "", "position in a sweep, from 0; -1 outside of sweeps"),
)
_SLICE = (
    Column("slice", "int", "", "position of the slice of time, from 0"),
    Column("begin", "float", "second", "when the slice begins, from the launch's beginning"),
    Column("end", "float", "second", "when it ends"),
)

POINTS = (
    *WHERE,
    *_SLICE,
    Column("precision", "str", "", "precision id"),
    Column("level", "str", "", "memory level id"),
    Column("work", "float", "flop", "operations of the launch, shared out by the activity of the pipe that does them"),
    Column("unit", "str", "", "flop or op: what work counts"),
    Column("traffic", "float", "byte", "bytes of the launch, shared out by the utilisation of the level"),
    Column("intensity", "float", "flop/byte", "work / traffic; NaN where nothing moved"),
    Column("performance", "float", "flop/s", "work / (end - begin)"),
    Column("attainable", "float", "flop/s", "min(compute roof, intensity * bandwidth roof)"),
    Column("fraction", "float", "ratio", "performance / attainable"),
    Column("compute_roof", "float", "flop/s", "compute roof of this precision, measured where given"),
    Column("bandwidth_roof", "float", "byte/s", "bandwidth roof of this level, measured where given"),
    Column("source", "str", "", "where the launch's work and traffic come from, as in the ordinary roofline"),
    Column("metrics", "str", "", "ncu metrics that gave them, and those that were sampled"),
    Column("notes", "str", "", "what a reader must know of this row"),
)
BANDS = (
    *WHERE,
    *_SLICE,
    Column("band", "str", "", "sm, tensor, fma, fp64, fp16, alu, l1, l2 or dram"),
    Column("name", "str", "", "what the band is called"),
    Column("utilisation", "float", "ratio", "mean share of its peak; NaN where less than half of the slice was sampled"),
    Column("metrics", "str", "", "sampled metrics that gave it"),
)
SAMPLED = (
    *WHERE,
    Column("seconds", "float", "second", "run time"),
    Column("status", "str", "", "ok (has slices), no-samples, no-time, too-few-samples or no-run"),
    Column(
        "dots", "str", "", "why there are no points: the status, incomplete, no-traffic, no-work or gaps; '' where there are"
    ),
    Column("slices", "int", "", "slices of its time"),
    Column("samples", "int", "", "samples during the launch, of the pass group with fewest"),
    Column("groups", "int", "", "pass groups, each sampled in a run of its own"),
    Column("sampled_share", "float", "ratio", "share of the time that was sampled, from the beginning on"),
    Column("blocks", "int", "", "thread blocks of the grid; -1 where unknown"),
    Column("blocks_started", "int", "", "thread blocks whose start was sampled; -1 where that was not"),
    Column("stretch", "float", "ratio", "run time / the shortest run of a pass group: by what it was stretched"),
    Column("shrink", "float", "ratio", "run time / the longest run of a pass group"),
    Column("scale", "float", "ratio", "counted bytes of DRAM / bytes that its sampled percent and its peak would give"),
    Column("dropped", "int", "", "samples that ncu dropped"),
    Column("merged", "int", "", "samples that ncu merged"),
    Column("aligned", "str", "", "how the runs were found, best first"),
    Column("notes", "str", "", "what a reader must know of this launch, sentences separated by '; '"),
)

TABLES = {"points": POINTS, "bands": BANDS, "sampled": SAMPLED, "roofs": ROOFS}
