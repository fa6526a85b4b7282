"""The columns of the tables of merged ranks, declared once."""

from __future__ import annotations

from ncu_roofline.rendering.document import ALIKE, Column


def _over_ranks(name: str, unit: str, meaning: str, labels: tuple[str, str, str] = ("", "", "")) -> tuple[Column, ...]:
    return (
        Column(f"{name}_min", "float", unit, f"lowest {meaning} of a rank", labels[0], 7),
        Column(f"{name}_median", "float", unit, f"median over the ranks of {meaning}", labels[1]),
        Column(f"{name}_max", "float", unit, f"highest {meaning} of a rank", labels[2]),
    )


_RANK_WHERE = (
    Column("kernel", "str", "", "short readable name, unique among different kernels; all kernels of a rank by application"),
    Column("device", "str", "", "name of the GPU", "GPU", 6, omit=ALIKE),
)


RANK_KERNELS = (
    *_RANK_WHERE,
    Column("name", "str", "", "full demangled name"),
    Column("compute_capability", "str", "", "compute capability, as 9.0"),
    Column("ranks", "int", "", "ranks that ran it", priority=1),
    Column("missing", "int", "", "ranks that did not, on any GPU"),
    Column("missing_ranks", "str", "", "these ranks, separated by '; '"),
    Column("launches", "int", "", "launches of all ranks"),
    Column("launches_min", "int", "", "fewest launches of a rank that ran it", "launches", 5, "count", to="launches_max"),
    Column("launches_max", "int", "", "most launches of a rank"),
    Column("seconds", "float", "second", "run time, sum over the ranks"),
    Column("time_share", "float", "ratio", "share of the time of all kernels and ranks", "share", 4),
    *_over_ranks("seconds", "second", "run time", ("min", "median", "max")),
    Column("slowest", "str", "", "rank with the longest run time"),
    Column(
        "imbalance",
        "float",
        "ratio",
        "load imbalance: seconds_max / mean over the ranks that ran it; 1 is balanced",
        "max/mean",
        form="plain",
    ),
    Column("imbalance_median", "float", "ratio", "seconds_max / seconds_median", "max/median", 8, "plain"),
    Column("spread", "float", "ratio", "(seconds_max - seconds_min) / seconds_median", priority=3),
    Column("work", "float", "flop", "floating-point operations, sum over the ranks"),
    *_over_ranks("work", "flop", "floating-point operations"),
    Column("outliers", "int", "", "ranks whose time is an outlier (modified z-score above 3.5 and 5 % off the median)"),
    Column("slow_ranks", "str", "", "outliers that took longer, separated by '; '"),
    Column("fast_ranks", "str", "", "outliers that took shorter, separated by '; '"),
    Column("status", "str", "", "ok (has points), or why not, as in the frame of kernels of a roofline"),
    Column("notes", "str", "", "warnings, sentences separated by '; '"),
)


RANK_POINTS = (
    *_RANK_WHERE,
    Column("precision", "str", "", "precision id: fp64, fp32, fp16, ..., or mixed (sum over pipes)"),
    Column("level", "str", "", "memory level id: l1, shared, l2, dram, system", "at", 9),
    Column("ranks", "int", "", "ranks with this point"),
    Column("launches", "int", "", "launches of all ranks"),
    Column("work", "float", "flop", "operations, sum over the ranks (OP for integer types, see unit)"),
    Column("unit", "str", "", "flop or op: what work counts"),
    Column("traffic", "float", "byte", "bytes at this level, sum over the ranks"),
    Column("seconds", "float", "second", "run time, sum over the ranks"),
    Column("intensity", "float", "flop/byte", "work / traffic", "{unit}", 2),
    *_over_ranks("intensity", "flop/byte", "intensity"),
    Column("performance", "float", "flop/s", "work / seconds: the mean of one GPU"),
    *_over_ranks("performance", "flop/s", "performance"),
    Column("attainable", "float", "flop/s", "min(compute roof, intensity * bandwidth roof) of one GPU"),
    Column("fraction", "float", "ratio", "performance / attainable", "of roof"),
    Column(
        "fraction_min", "float", "ratio", "lowest fraction of the attainable of a rank", "over ranks", 10, to="fraction_max"
    ),
    Column("fraction_median", "float", "ratio", "median over the ranks of fraction of the attainable"),
    Column("fraction_max", "float", "ratio", "highest fraction of the attainable of a rank"),
    Column("roof_origin", "str", "", "origin of the binding roof of this level: theoretical or measured"),
    Column("binds", "str", "", "what binds this kernel and precision over all levels: a level id or a compute roof id"),
    Column("binding_fraction", "float", "ratio", "performance / lowest attainable over all levels"),
    Column("coverage", "float", "ratio", "share of the kernel's time that the row stands for"),
    Column("source", "str", "", "binding, derived, embedded or imported"),
    Column("notes", "str", "", "what a reader must know of this row, sentences separated by '; '"),
)


RANK_RANKS = (
    *_RANK_WHERE,
    Column("rank", "str", "", "rank, as its report's path, its process or --rank names it"),
    Column("reports", "str", "", "reports of this rank, separated by '; '"),
    Column("host", "str", "", "machine it ran on"),
    Column("pid", "str", "", "process ids, separated by blanks"),
    Column("gpu", "str", "", "PCI addresses of its GPUs, separated by blanks (reports don't hold the UUID)"),
    Column("launches", "int", "", "launches on this rank"),
    Column("seconds", "float", "second", "run time of all of them"),
    Column("seconds_ratio", "float", "ratio", "seconds / median over the ranks"),
    Column("score", "float", "ratio", "modified z-score of seconds (Iglewicz and Hoaglin, 1993)"),
    Column("outlier", "str", "", "slow, fast or ''"),
    Column("cause", "str", "", "of an outlier: uneven work, slow GPU, lower clock, unknown, in a sentence"),
    Column("work", "float", "flop", "floating-point operations"),
    Column("work_ratio", "float", "ratio", "work / median over the ranks"),
    Column("traffic_level", "str", "", "outermost memory level whose traffic is known of this kernel"),
    Column("traffic", "float", "byte", "bytes at that level"),
    Column("traffic_ratio", "float", "ratio", "traffic / median over the ranks"),
    Column("clock_profiled", "float", "hertz", "SM clock while profiled"),
    Column("clock_ratio", "float", "ratio", "clock_profiled / median over the ranks"),
)

TABLES = {"kernels": RANK_KERNELS, "ranks": RANK_RANKS, "points": RANK_POINTS}

# What people see of a kernel and of the point that stands for it, in this order.
SHOWN = (
    "kernel", "device", "ranks", "launches_min", "time_share", "seconds_min", "seconds_median", "seconds_max", "imbalance",
    "imbalance_median", "spread", "intensity", "level", "fraction", "fraction_min", "outliers",
)  # fmt: skip
