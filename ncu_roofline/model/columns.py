"""The columns of the three frames, declared once: name, dtype, unit and meaning."""

from __future__ import annotations

from ncu_roofline.rendering.frames import Column

WHERE = (
    Column("report", "str", "", "report the row comes from: its path, or of commands its base name"),
    Column("launch", "int", "", "position of the result in its report, from 0; -1 for an aggregate"),
    Column("kernel", "str", "", "short readable name, unique among different kernels of a Roofline"),
    Column("device", "str", "", "name of the GPU"),
    Column("compute_capability", "str", "", "compute capability, as 9.0"),
    Column("label", "str", "", "what the step of a sweep is called; '' without --trajectory or --label", "step", most=(20, 20)),
    Column("step", "int", "", "position in a sweep, from 0: rows of one kernel with steps are joined; -1 outside of sweeps"),
)

POINTS = (
    *WHERE,
    Column(
        "precision", "str", "", "precision id: fp64, fp32, fp16, tensor.fp16.wgmma, ..., or mixed (sum over pipes)", "{kind}"
    ),
    Column("level", "str", "", "memory level id: l1, shared, l2, dram, system"),
    Column("launches", "int", "", "launches in this row: 1, or the number aggregated"),
    Column("work", "float", "flop", "operations executed (OP for integer types, see unit)"),
    Column("unit", "str", "", "flop or op (inst: warp instructions): what work counts"),
    Column("traffic", "float", "byte", "bytes moved at this level"),
    Column("seconds", "float", "second", "run time"),
    Column("intensity", "float", "flop/byte", "work / traffic", missing="", group=("intensity [{unit}]", "{unit}")),
    Column("performance", "float", "flop/s", "work / seconds", priority=2),
    Column("bandwidth", "float", "byte/s", "traffic / seconds"),
    Column(
        "attainable",
        "float",
        "flop/s",
        "min(compute roof, intensity * bandwidth roof of this level), measured roofs where given",
    ),
    Column("fraction", "float", "ratio", "performance / attainable"),
    Column("compute_roof", "float", "flop/s", "compute roof of this precision, measured where given"),
    Column("bandwidth_roof", "float", "byte/s", "bandwidth roof of this level, measured where given"),
    Column(
        *("fma_share", "float", "ratio", "alpha: fused multiply-adds among add, multiply and fused instructions"),
        *("FMA", 12),
        missing="",
    ),
    Column("mix_roof", "float", "flop/s", "compute roof that this mix can reach: (1 + alpha) / 2 of compute_roof"),
    Column(
        "lanes",
        "float",
        "ratio",
        "threads with a true predicate / (32 x warp instructions), where the row counts all warp instructions",
        priority=10,
        missing="",
    ),
    Column("attainable_theoretical", "float", "flop/s", "the same with theoretical roofs only"),
    Column("fraction_theoretical", "float", "ratio", "performance / attainable_theoretical"),
    Column("roof_origin", "str", "", "origin of the binding roof of this level: theoretical or measured"),
    Column(
        *("binds", "str", "", "what binds this kernel and precision over all levels: a level id or a compute roof id"),
        label="bound by",
        most=(20, 20),
    ),
    Column("binding_fraction", "float", "ratio", "performance / lowest attainable over all levels"),
    Column("locality", "float", "ratio", "traffic here / traffic of the next level outwards: the reuse caught between the two"),
    Column("locality_to", "str", "", "that next level's id"),
    Column("clock_profiled", "float", "hertz", "SM clock while profiled"),
    Column("clock_max", "float", "hertz", "maximum SM clock of the GPU"),
    Column("clock_ratio", "float", "ratio", "clock_profiled / clock_max"),
    Column(
        "coverage", "float", "ratio", "share of the group's time that the row stands for: below 1 where launches lack metrics"
    ),
    Column(
        "source", "str", "", "binding (our counters), derived (sectors x 32 and the like) or embedded (the report's own chart)"
    ),
    Column("metrics", "str", "", "ncu metrics that gave work and traffic"),
    Column("notes", "str", "", "what a reader must know of this row, sentences separated by '; '"),
)

UNUSED = "unused"
"""Origin of a measured roof that launches are not held against: theory judges in its place."""

ROOFS = (
    Column("report", "str", "", "report the roof belongs to"),
    Column("device", "str", "", "name of the GPU"),
    Column("compute_capability", "str", "", "compute capability, as 9.0"),
    Column("roof", "str", "", "roof id: fp64.fma, fp64.nofma, tensor.fp16.wgmma, l1, l2, dram, wall, ..."),
    Column("kind", "str", "", "compute (a horizontal line), bandwidth (a diagonal) or wall (a vertical line)"),
    Column(
        "precision", "str", "", "precision id of a compute roof, or of the only kind of instruction that a roof is for; else ''"
    ),
    Column("level", "str", "", "level id of a bandwidth roof, else ''"),
    Column("label", "str", "", "label for people, without the value"),
    Column("value", "float", "", "roof, in the unit of the column unit"),
    Column("unit", "str", "", "flop/s, op/s or byte/s; inst/s, txn/s or inst/txn"),
    Column("value_min", "float", "", "lowest over the launches (their clocks differ)"),
    Column("value_max", "float", "", "highest over the launches"),
    Column("origin", "str", "", "theoretical, measured, or unused: measured, but theory judges in its place, see notes"),
    Column("clock", "float", "hertz", "clock the roof stands at; NaN where the origin does not say"),
    Column("clock_basis", "str", "", "profiled, max or measured"),
    Column(
        "source",
        "str",
        "",
        "binding, embedded, architecture (data sheet per SM and clock), ceilings (a measured file) or published (by others)",
    ),
    Column("metrics", "str", "", "ncu metrics that gave the roof, or the ceilings file's provenance"),
    Column("notes", "str", "", "what a reader must know of this roof"),
)

LEVELS_WITH_COLUMNS = ("l1", "shared", "l2", "dram", "system")
"""Levels whose bandwidth and share of the roof have columns of their own in the frame of kernels."""

_PROFILED = ("profiled launches", "profiled")
KERNELS = (
    *WHERE,
    Column("name", "str", "", "full demangled name"),
    Column("kind", "str", "", "kernel, range, graph or cmdlist"),
    Column("launches", "int", "", "launches in this row", priority=3, omit=1, short="count"),
    Column("untimed", "int", "", "how many of these have no run time"),
    Column("grid", "str", "", "grid size, as 65535x1x1"),
    Column("block", "str", "", "block size, as 128x1x1"),
    Column("nvtx", "str", "", "innermost NVTX ranges around the launch, separated by '/'"),
    Column("ncu_version", "str", "", "Nsight Compute that made the report"),
    Column("seconds", "float", "second", "run time", "time", group=_PROFILED),
    Column(
        "time_share",
        "float",
        "ratio",
        "share of the time of all profiled launches, those that a filter leaves out as well",
        "share",
        long="share of profiled launches",
        group=_PROFILED,
    ),
    Column("work", "float", "flop", "floating-point operations over all precisions known; NaN where none is known"),
    Column(
        "status",
        "str",
        "",
        "ok (has points), zero-flop, tensor-unknown, no-instructions, no-work-metrics, no-traffic-metrics, no-time, "
        "foreign (counters that may be another kernel's), unknown-chip or no-chart",
    ),
    Column("clock_profiled", "float", "hertz", "SM clock while profiled"),
    Column("clock_max", "float", "hertz", "maximum SM clock of the GPU"),
    Column("clock_ratio", "float", "ratio", "clock_profiled / clock_max"),
    Column(
        "verdict",
        "str",
        "",
        "memory: LEVEL, compute: ROOF (or hardware unit), latency, too short to judge, tensor work unknown or unknown; "
        "'' in other views",
        most=(20, 28),  # the first is as long as "tensor work unknown"
    ),
    Column(
        "limit",
        "str",
        "",
        "id of the nearest known limit: a level, a compute roof or a hardware unit; '' if none",
        "at its limit",
        14,
    ),
    Column("limit_fraction", "float", "ratio", "how full that limit is"),
    Column(
        "headroom",
        "float",
        "ratio",
        "by what the kernel could be faster at its present traffic and instructions: 1 / share of its fullest limit; of "
        "several launches together, judged_seconds / sum of what each could be at",
    ),
    Column(
        "headroom_or_less",
        "int",
        "",
        "1 where it is that or less: what was not looked at, or in part, may be fuller than what was; else 0",
    ),
    Column(
        "headroom_compute",
        "float",
        "ratio",
        "by what it could be faster at the compute roofs of its work: seconds / (work / roof, of the busiest pipe)",
        "to compute",
        4,
    ),
    Column("waste", "str", "", "what of the fullest limit's use counts prove to be waste; '' if nothing"),
    Column("headroom_without_waste", "float", "ratio", "headroom without that, where it can be worked out"),
    Column("speedup", "float", "ratio", "old name of headroom"),
    Column("recoverable", "float", "second", "judged_seconds * (1 - 1 / headroom); NaN where unknown", "could save", 15),
    Column("judged_seconds", "float", "second", "run time of the launches that headroom is of"),
    Column("short_seconds", "float", "second", "run time of the launches that are too short to be judged"),
    Column("reason", "str", "", "the verdict in a sentence"),
    Column(
        "busiest_unit", "str", "", "hardware unit with the largest share of its peak; '' where none was collected", "busiest", 6
    ),
    Column("busiest_fraction", "float", "ratio", "that share"),
    *(
        column
        for level in LEVELS_WITH_COLUMNS
        for column in (
            Column(
                f"bandwidth_{level}",
                "float",
                "byte/s",
                f"bytes at level {level} / seconds, or percent of peak x peak",
                priority=7,
            ),
            Column(
                f"fraction_{level}",
                "float",
                "ratio",
                f"share of the bandwidth roof of {level}, or of what it can do by hardware",
            ),
        )
    ),
    Column("fraction_sm", "float", "ratio", "share of its peak of the busiest unit inside the SMs"),
    Column("data_pipe", "float", "ratio", "how full the data pipe of L1 and shared memory was, by hardware"),
    Column("issue_fraction", "float", "ratio", "issue slots used"),
    Column("ipc", "float", "", "warp instructions per cycle of an active SM"),
    Column("tensor_active", "float", "ratio", "elapsed cycles in which the tensor pipe was active"),
    Column("sm_active", "float", "ratio", "elapsed cycles in which SMs were active, the mean over them"),
    Column("occupancy", "float", "ratio", "warps active, of those that an SM can hold", priority=10),
    Column(
        "occupancy_theoretical", "float", "ratio", "warps that the launch configuration allows, of those that an SM can hold"
    ),
    Column("waves", "float", "", "blocks of the grid / blocks that fit on the GPU at once", priority=11),
    Column("eligible_warps", "float", "", "warps ready to issue, per scheduler and cycle"),
    Column("missing", "str", "", "what the report lacks for this launch: precision and level ids, separated by spaces"),
    Column("notes", "str", "", "warnings, sentences separated by '; '"),
)
