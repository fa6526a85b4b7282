"""The columns of the three frames, declared once: name, dtype, unit and meaning."""

from __future__ import annotations

from ncu_roofline.rendering.frames import Column

_text, _integer, _number = Column.text, Column.integer, Column.number

WHERE = (
    _text("report", "report the row comes from: its path, or of commands its base name"),
    _integer("launch", "position of the result in its report, from 0; -1 for an aggregate"),
    _text("kernel", "short readable name, unique among different kernels of a Roofline"),
    _text("device", "name of the GPU"),
    _text("compute_capability", "compute capability, as 9.0"),
    _text("label", "what the step of a sweep is called; '' without --trajectory or --label", "step", most=(20, 20)),
    _integer("step", "position in a sweep, from 0: rows of one kernel with steps are joined; -1 outside of sweeps"),
)

_CLOCKS = (
    _number("clock_profiled", "hertz", "SM clock while profiled"),
    _number("clock_max", "hertz", "maximum SM clock of the GPU"),
    _number("clock_ratio", "ratio", "clock_profiled / clock_max"),
)
_LANES = "threads with a true predicate / (32 x warp instructions), where the row counts all warp instructions"
POINTS = (
    *WHERE,
    _text("precision", "precision id: fp64, fp32, fp16, tensor.fp16.wgmma, ..., or mixed (sum over pipes)", "{kind}"),
    _text("level", "memory level id: l1, shared, l2, dram, system"),
    _integer("launches", "launches in this row: 1, or the number aggregated"),
    _number("work", "flop", "operations executed (OP for integer types, see unit)"),
    _text("unit", "flop or op (inst: warp instructions): what work counts"),
    _number("traffic", "byte", "bytes moved at this level"),
    _number("seconds", "second", "run time"),
    _number("intensity", "flop/byte", "work / traffic", missing="", group=("intensity [{unit}]", "{unit}")),
    _number("performance", "flop/s", "work / seconds", priority=2),
    _number("bandwidth", "byte/s", "traffic / seconds"),
    _number("attainable", "flop/s", "min(compute roof, intensity * bandwidth roof of this level), measured roofs where given"),
    _number("fraction", "ratio", "performance / attainable"),
    _number("compute_roof", "flop/s", "compute roof of this precision, measured where given"),
    _number("bandwidth_roof", "byte/s", "bandwidth roof of this level, measured where given"),
    _number(
        "fma_share", "ratio", "alpha: fused multiply-adds among add, multiply and fused instructions", "FMA", 12, missing=""
    ),
    _number("mix_roof", "flop/s", "compute roof that this mix can reach: (1 + alpha) / 2 of compute_roof"),
    _number("lanes", "ratio", _LANES, priority=10, missing=""),
    _number("attainable_theoretical", "flop/s", "the same with theoretical roofs only"),
    _number("fraction_theoretical", "ratio", "performance / attainable_theoretical"),
    _text("roof_origin", "origin of the binding roof of this level: theoretical or measured"),
    _text(
        "binds",
        "what binds this kernel and precision over all levels: a level id or a compute roof id",
        label="bound by",
        most=(20, 20),
    ),
    _number("binding_fraction", "ratio", "performance / lowest attainable over all levels"),
    _number("locality", "ratio", "traffic here / traffic of the next level outwards: the reuse caught between the two"),
    _text("locality_to", "that next level's id"),
    *_CLOCKS,
    _number("coverage", "ratio", "share of the group's time that the row stands for: below 1 where launches lack metrics"),
    _text("source", "binding (our counters), derived (sectors x 32 and the like) or embedded (the report's own chart)"),
    _text("metrics", "ncu metrics that gave work and traffic"),
    _text("notes", "what a reader must know of this row, sentences separated by '; '"),
)

UNUSED = "unused"
"""Origin of a measured roof that launches are not held against: theory judges in its place."""

ROOFS = (
    _text("report", "report the roof belongs to"),
    _text("device", "name of the GPU"),
    _text("compute_capability", "compute capability, as 9.0"),
    _text("roof", "roof id: fp64.fma, fp64.nofma, tensor.fp16.wgmma, l1, l2, dram, wall, ..."),
    _text("kind", "compute (a horizontal line), bandwidth (a diagonal) or wall (a vertical line)"),
    _text("precision", "precision id of a compute roof, or of the only kind of instruction that a roof is for; else ''"),
    _text("level", "level id of a bandwidth roof, else ''"),
    _text("label", "label for people, without the value"),
    _number("value", "", "roof, in the unit of the column unit"),
    _text("unit", "flop/s, op/s or byte/s; inst/s, txn/s or inst/txn"),
    _number("value_min", "", "lowest over the launches (their clocks differ)"),
    _number("value_max", "", "highest over the launches"),
    _text("origin", "theoretical, measured, or unused: measured, but the theoretical roof is used instead, see notes"),
    _number("clock", "hertz", "clock the roof stands at; NaN where the origin does not say"),
    _text("clock_basis", "profiled, max or measured"),
    _text(
        "source",
        "binding, embedded, architecture (data sheet per SM and clock), ceilings (a measured file) or published (by others)",
    ),
    _text("metrics", "ncu metrics that gave the roof, or the ceilings file's provenance"),
    _text("notes", "what a reader must know of this roof"),
)

LEVELS_WITH_COLUMNS = ("l1", "shared", "l2", "dram", "system")
"""Levels whose bandwidth and share of the roof have columns of their own in the frame of kernels."""

_PROFILED = ("profiled launches", "profiled")
KERNELS = (
    *WHERE,
    _text("name", "full demangled name"),
    _text("kind", "kernel, range, graph or cmdlist"),
    _integer("launches", "launches in this row", priority=3, omit=1, short="count"),
    _integer("untimed", "how many of these have no run time"),
    _text("grid", "grid size, as 65535x1x1"),
    _text("block", "block size, as 128x1x1"),
    _text("nvtx", "innermost NVTX ranges around the launch, separated by '/'"),
    _text("ncu_version", "Nsight Compute that made the report"),
    _number("seconds", "second", "run time", "time", group=_PROFILED),
    _number(
        "time_share",
        "ratio",
        "share of the time of all profiled launches, those that a filter leaves out as well",
        "share",
        long="share of profiled launches",
        group=_PROFILED,
    ),
    _number("work", "flop", "floating-point operations over all precisions known; NaN where none is known"),
    _text(
        "status",
        "ok (has points), zero-flop, tensor-unknown, no-instructions, no-work-metrics, no-traffic-metrics, no-time, "
        "foreign (counters that may be another kernel's), unknown-chip or no-chart",
    ),
    *_CLOCKS,
    _text(
        "verdict",
        "memory: LEVEL, compute: ROOF (or hardware unit), latency, too short to judge, tensor work unknown or unknown; "
        "'' in other views",
        most=(20, 28),
    ),
    _text("limit", "id of the nearest known limit: a level, a compute roof or a hardware unit; '' if none", "at its limit", 14),
    _number("limit_fraction", "ratio", "how full that limit is"),
    _number(
        "headroom",
        "ratio",
        "by what the kernel could be faster at its present traffic and instructions: 1 / share of its fullest limit; of "
        "several launches together, judged_seconds / sum of what each could be at",
        form="factor",
    ),
    _integer(
        "headroom_or_less",
        "1 where it is that or less: what was not collected, or in part only, may be fuller; else 0",
    ),
    _number(
        "headroom_compute",
        "ratio",
        "by what it could be faster at the compute roofs of its work: seconds / (work / roof, of the busiest pipe)",
        "to compute",
        4,
        form="factor",
    ),
    _text("waste", "part of the fullest limit's use that counts prove to be waste; '' if none"),
    _number("headroom_without_waste", "ratio", "headroom without that, where it can be worked out"),
    _number("speedup", "ratio", "old name of headroom"),
    _number("recoverable", "second", "judged_seconds * (1 - 1 / headroom); NaN where unknown", "could save", 15),
    _number("judged_seconds", "second", "run time of the launches that headroom is of"),
    _number("short_seconds", "second", "run time of the launches that are too short to be judged"),
    _text("reason", "the verdict in a sentence"),
    _text("busiest_unit", "hardware unit with the largest share of its peak; '' where none was collected", "busiest", 6),
    _number("busiest_fraction", "ratio", "that share"),
    *(
        column
        for level in LEVELS_WITH_COLUMNS
        for column in (
            _number(f"bandwidth_{level}", "byte/s", f"bytes at level {level} / seconds, or percent of peak x peak", priority=7),
            _number(f"fraction_{level}", "ratio", f"share of the bandwidth roof of {level}, or of what it can do by hardware"),
        )
    ),
    _number("fraction_sm", "ratio", "share of its peak of the busiest unit inside the SMs"),
    _number("data_pipe", "ratio", "how full the data pipe of L1 and shared memory was, by hardware"),
    _number("issue_fraction", "ratio", "issue slots used"),
    _number("ipc", "", "warp instructions per cycle of an active SM"),
    _number("tensor_active", "ratio", "elapsed cycles in which the tensor pipe was active"),
    _number("sm_active", "ratio", "elapsed cycles in which SMs were active, the mean over them"),
    _number("occupancy", "ratio", "achieved occupancy: resident warps, of those that an SM can hold", priority=10),
    _number("occupancy_theoretical", "ratio", "theoretical occupancy: those that the launch configuration allows, likewise"),
    _number("waves", "", "waves: blocks of the grid / blocks that fit on the GPU at once", priority=11),
    _number("eligible_warps", "", "eligible warps: ready to issue, per scheduler and cycle"),
    _text("missing", "what the report lacks for this launch: precision and level ids, separated by spaces"),
    _text("notes", "warnings, sentences separated by '; '"),
)
