"""The columns of the frames of each model, declared once: name, dtype, unit and meaning, as `ncu_roofline.model.columns`."""

from __future__ import annotations

from ncu_roofline.model.columns import Column

_TIME_WHERE = (
    Column("report", "str", "", "report the row comes from, as named on the command line; '' for a kernel of several reports"),
    Column("launch", "int", "", "position of the result in its report, from 0; -1 for an aggregate"),
    Column("kernel", "str", "", "short readable name, unique among different kernels"),
    Column("device", "str", "", "name of the GPU"),
    Column("label", "str", "", "what the step of a sweep is called; '' outside of sweeps"),
    Column("step", "int", "", "position in a sweep, from 0; -1 outside of sweeps"),
)
_TIME_RESULT = (
    Column("latency", "float", "second", "launch latency: what one launch costs at least; NaN where nobody measured it"),
    Column("overhead_seconds", "float", "second", "invocations * latency"),
    Column("overhead_bound", "str", "", "yes if compute and bandwidth time are both below the overhead, no, or '' if unknown"),
    Column(
        "roofline_seconds", "float", "second", "run time at the roofline: max(work / compute roof, traffic / bandwidth roof)"
    ),
    Column("inefficiency", "float", "ratio", "seconds / roofline_seconds: 1 at the roofline"),
    Column("notes", "str", "", "what a reader must know of this row, sentences separated by '; '"),
)

TIME_POINTS = (
    *_TIME_WHERE,
    Column(
        "precision", "str", "", "precision id with the most work, or mixed: the sum over pipes under the busiest one's roof"
    ),
    Column("level", "str", "", "memory level id that traffic and bandwidth belong to"),
    Column("invocations", "int", "", "launches in this row"),
    Column("seconds", "float", "second", "run time of all invocations"),
    Column("time_share", "float", "ratio", "share of the time of all rows, absent ones too"),
    Column("work", "float", "flop", "computational complexity: operations of all invocations (OP for integer types, see unit)"),
    Column("unit", "str", "", "flop or op: what work counts"),
    Column("traffic", "float", "byte", "bandwidth complexity: bytes of all invocations at this level"),
    Column("intensity", "float", "flop/byte", "work / traffic"),
    Column("compute_roof", "float", "flop/s", "compute roof of this precision, measured where given"),
    Column("bandwidth_roof", "float", "byte/s", "bandwidth roof of this level, measured where given"),
    Column("balance", "float", "flop/byte", "machine balance: compute_roof / bandwidth_roof"),
    Column(
        "bound", "str", "", "compute (intensity >= balance), memory, overhead (overhead_bound), or '' where a roof is unknown"
    ),
    Column(
        "compute_seconds",
        "float",
        "second",
        "compute time: seconds if intensity >= balance, else seconds * intensity / balance",
    ),
    Column(
        "bandwidth_seconds",
        "float",
        "second",
        "bandwidth time: seconds if intensity < balance, else seconds * balance / intensity",
    ),
    Column("source", "str", "", "source of work and traffic as in the frame of points: binding, derived, embedded or imported"),
    Column("metrics", "str", "", "ncu metrics that gave work and traffic"),
    *_TIME_RESULT,
)

TIME_MACHINES = (
    Column("device", "str", "", "name of the GPU"),
    Column("compute_capability", "str", "", "compute capability, as 9.0"),
    Column(
        "precision",
        "str",
        "",
        "precision id that the peak belongs to; mixed: a roof per kernel, at which its busiest pipe is full",
    ),
    Column("level", "str", "", "memory level id that the bandwidth belongs to"),
    Column("peak", "float", "flop/s", "compute roof: median over the rows"),
    Column("peak_min", "float", "flop/s", "lowest over the rows (clocks differ, and for mixed the kernels)"),
    Column("peak_max", "float", "flop/s", "highest over the rows"),
    Column("peak_origin", "str", "", "theoretical or measured; '' where unknown"),
    Column("bandwidth", "float", "byte/s", "bandwidth roof: median over the rows"),
    Column("bandwidth_origin", "str", "", "theoretical or measured; '' where unknown"),
    Column("balance", "float", "flop/byte", "machine balance: peak / bandwidth"),
    Column("latency", "float", "second", "launch latency; NaN where nobody measured it"),
    Column("latency_origin", "str", "", "where the latency comes from: given, or the measured ceiling and its file"),
    Column("overhead_work", "float", "flop", "latency * peak: the work that hides the latency of one launch"),
    Column("overhead_traffic", "float", "byte", "latency * bandwidth: the traffic that hides the latency of one launch"),
)

TIME_ABSENT = (
    *_TIME_WHERE,
    Column(
        "status",
        "str",
        "",
        "why the row has no symbol: zero-flop, no-level, no-precision, no-totals, or a status of the frame of kernels",
    ),
    Column("level", "str", "", "memory level id that traffic belongs to"),
    Column("invocations", "int", "", "launches in this row"),
    Column("seconds", "float", "second", "run time of all invocations; without work, all of it is bandwidth time"),
    Column("time_share", "float", "ratio", "share of the time of all rows"),
    Column("traffic", "float", "byte", "bytes of all invocations at this level; NaN where unknown"),
    *_TIME_RESULT,
)

_RANK_WHERE = (
    Column("kernel", "str", "", "short readable name, unique among different kernels; all kernels of a rank by application"),
    Column("device", "str", "", "name of the GPU"),
)


def _over_ranks(name: str, unit: str, meaning: str) -> tuple[Column, Column, Column]:
    return (
        Column(f"{name}_min", "float", unit, f"lowest {meaning} of a rank"),
        Column(f"{name}_median", "float", unit, f"median over the ranks of {meaning}"),
        Column(f"{name}_max", "float", unit, f"highest {meaning} of a rank"),
    )


RANK_KERNELS = (
    *_RANK_WHERE,
    Column("name", "str", "", "full demangled name"),
    Column("compute_capability", "str", "", "compute capability, as 9.0"),
    Column("ranks", "int", "", "ranks that ran it"),
    Column("missing", "int", "", "ranks that did not, on any GPU"),
    Column("missing_ranks", "str", "", "these ranks, separated by '; '"),
    Column("launches", "int", "", "launches of all ranks"),
    Column("launches_min", "int", "", "fewest launches of a rank that ran it"),
    Column("launches_max", "int", "", "most launches of a rank"),
    Column("seconds", "float", "second", "run time, sum over the ranks"),
    Column("time_share", "float", "ratio", "share of the time of all kernels and ranks"),
    *_over_ranks("seconds", "second", "run time"),
    Column("slowest", "str", "", "rank with the longest run time"),
    Column("imbalance", "float", "ratio", "load imbalance: seconds_max / mean over the ranks that ran it; 1 is balanced"),
    Column("imbalance_median", "float", "ratio", "seconds_max / seconds_median"),
    Column("spread", "float", "ratio", "(seconds_max - seconds_min) / seconds_median"),
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
    Column("level", "str", "", "memory level id: l1, shared, l2, dram, system"),
    Column("ranks", "int", "", "ranks with this point"),
    Column("launches", "int", "", "launches of all ranks"),
    Column("work", "float", "flop", "operations, sum over the ranks (OP for integer types, see unit)"),
    Column("unit", "str", "", "flop or op: what work counts"),
    Column("traffic", "float", "byte", "bytes at this level, sum over the ranks"),
    Column("seconds", "float", "second", "run time, sum over the ranks"),
    Column("intensity", "float", "flop/byte", "work / traffic"),
    *_over_ranks("intensity", "flop/byte", "intensity"),
    Column("performance", "float", "flop/s", "work / seconds: the mean of one GPU"),
    *_over_ranks("performance", "flop/s", "performance"),
    Column("attainable", "float", "flop/s", "min(compute roof, intensity * bandwidth roof) of one GPU"),
    Column("fraction", "float", "ratio", "performance / attainable"),
    *_over_ranks("fraction", "ratio", "fraction of the attainable"),
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

_COMPARISON_WHERE = (
    Column("step", "int", "", "position of the new report among those compared; the baseline is 0"),
    Column("against", "str", "", "what it is compared with: baseline (the first report) or previous (the step before)"),
    Column("baseline", "str", "", "the report it is compared with"),
    Column("report", "str", "", "the new report"),
)

COMPARISON_KERNELS = (
    *_COMPARISON_WHERE,
    Column("kernel", "str", "", "short readable name, unique among different kernels of the comparison"),
    Column("name", "str", "", "full demangled name"),
    Column("grid_before", "str", "", "grid size, as 65535x1x1; '' where launches differ"),
    Column("grid", "str", "", "the same of the new report"),
    Column("block_before", "str", "", "block size, as 128x1x1; '' where launches differ"),
    Column("block", "str", "", "the same of the new report"),
    Column("occurrence", "int", "", "which of the launches of this kernel, from 0, if matched in order; -1: all of them"),
    Column(
        "matched",
        "str",
        "",
        "how: configuration (name, grid, block), device (the same on another GPU), name (the configuration changed), "
        "parameters (the function's parameters changed), numbers (numbers in the name changed), or ''",
    ),
    Column(
        "outcome", "str", "", "faster, slower, same (within noise), closer or further (of the roof), added, removed, unknown"
    ),
    Column("verdict_before", "str", "", "what limits it: verdict in the frame of kernels; where launches differ, of most time"),
    Column("verdict", "str", "", "the same of the new report"),
    Column("limit_before", "str", "", "its nearest limit: limit in the frame of kernels, of launches with that verdict"),
    Column("limit", "str", "", "the same of the new report"),
    Column("device_before", "str", "", "name of the GPU"),
    Column("device", "str", "", "the same of the new report"),
    Column("launches_before", "int", "", "launches in this row"),
    Column("launches", "int", "", "the same of the new report"),
    Column("seconds_before", "float", "second", "run time of a launch: the median"),
    Column("seconds", "float", "second", "the same of the new report, as measured"),
    Column(
        "seconds_normalised",
        "float",
        "second",
        "the same at the baseline's SM clock: seconds * clock / clock_before if limit (else binds) is compute, L1, shared "
        "memory or L2, else seconds; NaN where clocks or what limits are unknown, or the GPUs differ",
    ),
    Column("time_basis", "str", "", "which of the two the comparison uses: raw or normalised"),
    Column("time_change", "float", "ratio", "new time of a launch on that basis / seconds_before - 1"),
    Column("total_seconds_before", "float", "second", "run time of all launches"),
    Column("total_seconds", "float", "second", "the same of the new report, as measured"),
    Column("total_seconds_normalised", "float", "second", "the same at the baseline's SM clock, as seconds_normalised"),
    Column(
        "seconds_saved",
        "float",
        "second",
        "total_seconds_before - total new time on that basis; where the numbers of launches differ, launches_before * "
        "(seconds_before - new time of a launch on that basis); of added and removed kernels, all",
    ),
    Column("spread_before", "float", "ratio", "1.4826 * median absolute deviation of the launches' times / their median"),
    Column("spread", "float", "ratio", "the same of the new report; NaN below two launches"),
    Column(
        "noise",
        "float",
        "ratio",
        "larger of the tolerance and sqrt(spread_before^2 + spread^2), less change is none; where shares of the roof are "
        "compared, the spreads of both measured roofs are added in squares",
    ),
    Column("time_share", "float", "ratio", "share of the new report's total time (of a removed kernel, of the baseline's)"),
    Column("clock_before", "float", "hertz", "SM clock while profiled, mean over time"),
    Column("clock", "float", "hertz", "the same of the new report"),
    Column("cycles_before", "float", "", "SM cycles: seconds_before * clock_before"),
    Column("cycles", "float", "", "SM cycles: seconds * clock"),
    Column("work_before", "float", "flop", "floating-point operations of a launch over all precisions known: the mean"),
    Column("work", "float", "flop", "the same of the new report"),
    Column("total_work_before", "float", "flop", "the same of all launches"),
    Column("total_work", "float", "flop", "the same of all launches of the new report"),
    Column("precision_before", "str", "", "precision id with the most work (mixed is the sum over pipes): fraction is its"),
    Column("precision", "str", "", "the same of the new report"),
    Column("performance_before", "float", "flop/s", "of that precision, over all launches"),
    Column("performance", "float", "flop/s", "the same of the new report"),
    Column("fraction_before", "float", "ratio", "performance / lowest attainable over all levels"),
    Column("fraction", "float", "ratio", "the same of the new report"),
    Column("binds_before", "str", "", "what binds: a level id or a compute roof id"),
    Column("binds", "str", "", "the same of the new report"),
    Column("notes", "str", "", "what a reader must know of this row, sentences separated by '; '"),
)

COMPARISON_LEVELS = (
    *_COMPARISON_WHERE,
    Column(
        "row",
        "int",
        "",
        "row in the frame of kernels; -1: the application, sums over the kernels that both reports have, for as many launches "
        "as the baseline has",
    ),
    Column("kernel", "str", "", "short readable name"),
    Column("precision", "str", "", "precision id; '' in rows of traffic alone"),
    Column("level", "str", "", "memory level id; '' in rows of work alone"),
    Column(
        "work_before",
        "float",
        "flop",
        "operations of a launch (OP for integer types), the mean; rows with precision; zero is a measured zero",
    ),
    Column("work", "float", "flop", "the same of the new report"),
    Column("traffic_before", "float", "byte", "bytes of a launch at this level, the mean; rows with level"),
    Column("traffic", "float", "byte", "the same of the new report"),
    Column("total_work_before", "float", "flop", "operations of all launches"),
    Column("total_work", "float", "flop", "the same of the new report"),
    Column("total_traffic_before", "float", "byte", "bytes of all launches"),
    Column("total_traffic", "float", "byte", "the same of the new report"),
    Column("bandwidth_before", "float", "byte/s", "traffic / run time"),
    Column("bandwidth", "float", "byte/s", "the same of the new report"),
    Column("intensity_before", "float", "flop/byte", "work / traffic of the launches that have both"),
    Column("intensity", "float", "flop/byte", "the same of the new report"),
    Column("performance_before", "float", "flop/s", "work / run time"),
    Column("performance", "float", "flop/s", "the same of the new report"),
    Column(
        "fraction_before",
        "float",
        "ratio",
        "performance / min(compute roof, intensity * bandwidth roof of this level); without level, of the lowest over levels",
    ),
    Column("fraction", "float", "ratio", "the same of the new report"),
)

COMPARISON_THRESHOLDS = (
    Column("row", "int", "", "row in the frame of kernels"),
    *_COMPARISON_WHERE,
    Column("kernel", "str", "", "short readable name"),
    Column("configuration", "str", "", "grid and block size"),
    Column("seconds", "float", "second", "run time of a launch of the new report, as measured"),
    Column("threshold", "str", "", "the expression"),
    Column("result", "str", "", "passed, tripped, or not evaluated: a number is missing"),
    Column("reason", "str", "", "the numbers of the expression, or which are missing"),
)

COMPARISON_SUMMARY = (
    *_COMPARISON_WHERE,
    Column("device_before", "str", "", "names of the GPUs"),
    Column("device", "str", "", "the same of the new report"),
    Column("launches_before", "int", "", "launches of the application"),
    Column("launches", "int", "", "the same of the new report"),
    Column(
        "seconds_before",
        "float",
        "second",
        "run time of the kernels that both reports have, with times: all launches; where the new report has another number of "
        "them, their median * launches of the baseline",
    ),
    Column(
        "seconds",
        "float",
        "second",
        "the same in the new report, as measured, also for as many launches as the baseline has",
    ),
    Column("seconds_normalised", "float", "second", "the same at the baseline's SM clock, kernels without that as measured"),
    Column("time_basis", "str", "", "which of the two the comparison uses: raw or normalised (for some kernel)"),
    Column("time_change", "float", "ratio", "new time on each kernel's basis / seconds_before - 1; NaN between GPU models"),
    Column("speedup", "float", "ratio", "seconds_before / new time on each kernel's basis; NaN between GPU models"),
    Column("seconds_saved", "float", "second", "seconds_before - new time on each kernel's basis; NaN between GPU models"),
    Column("noise", "float", "ratio", "larger of the tolerance and the kernels' noise in seconds, added in squares, / total"),
    Column("outcome", "str", "", "faster, slower, same (within noise), unknown or nothing in common"),
    Column("total_seconds_before", "float", "second", "run time of all launches of all kernels that have one"),
    Column("total_seconds", "float", "second", "the same of the new report, as measured"),
    Column("seconds_removed", "float", "second", "run time of the kernels that only the baseline has; NaN without any"),
    Column("seconds_added", "float", "second", "run time of the kernels that only the new report has; NaN without any"),
    Column("work_before", "float", "flop", "floating-point operations of these kernels, over all precisions known"),
    Column("work", "float", "flop", "the same of the new report, for as many launches as the baseline has"),
    Column("matched", "int", "", "kernels (rows) that both reports have"),
    Column("added", "int", "", "kernels that only the new report has"),
    Column("removed", "int", "", "kernels that only the baseline has"),
    Column("relaunched", "int", "", "kernels that both reports have, with another number of launches"),
    Column("notes", "str", "", "what a reader must know, sentences separated by '; '"),
)

FMA_MIX = (
    *_TIME_WHERE,
    Column("precision", "str", "", "precision id: fp64, fp32, fp16"),
    Column("alpha", "float", "ratio", "fused multiply-adds among add, multiply and fused instructions"),
    Column("beta", "float", "ratio", "(1 + alpha) / 2: share of the FMA peak that this mix can reach"),
    Column("compute_roof", "float", "flop/s", "FMA peak of this precision, measured where given"),
    Column("ceiling", "float", "flop/s", "beta * compute_roof"),
    Column("performance", "float", "flop/s", "work / seconds"),
    Column("fraction", "float", "ratio", "performance / ceiling"),
)

PORTABILITY_PLATFORMS = (
    Column("application", "str", "", "application, '' where no input names one"),
    Column("variant", "str", "", "label or parameter of the run, with --by kernel also the kernel; '' if there is one"),
    Column("platform", "str", "", "platform: as the user, the table, or else the GPU is called"),
    Column("device", "str", "", "name of the GPU or machine"),
    Column("source", "str", "", "file the row comes from"),
    Column("status", "str", "", "yes, no (not supported), not run (left out), or missing (no input has it)"),
    Column("precision", "str", "", "precision id of the work; fp where the file does not say"),
    Column("flops", "str", "", "executed or canonical: which operations count"),
    Column("work", "float", "flop", "these operations"),
    Column("seconds", "float", "second", "run time"),
    Column("performance", "float", "flop/s", "P: work / seconds"),
    Column("level", "str", "", "memory level id of intensity and bandwidth"),
    Column("intensity", "float", "flop/byte", "I: work / bytes of this level"),
    Column("ceiling", "str", "", "which compute ceiling: fma, nofma, divide, divide_nofma or mix"),
    Column("compute_roof", "float", "flop/s", "F: that ceiling"),
    Column("compute_origin", "str", "", "measured, theoretical, or stated (the table gives what is attainable)"),
    Column("bandwidth_roof", "float", "byte/s", "B: bandwidth ceiling of the level"),
    Column("bandwidth_origin", "str", "", "measured, theoretical or stated"),
    Column("attainable", "float", "flop/s", "min(F, B * I)"),
    Column("bound", "str", "", "compute, the level id, or stated"),
    Column("efficiency", "float", "ratio", "e: performance / attainable; 0 where not supported, NaN where not run"),
    Column("portability", "float", "ratio", "PP of this application and variant"),
    Column("notes", "str", "", "what a reader must know of this row, sentences separated by '; '"),
)

PORTABILITY_SUMMARY = (
    Column("application", "str", "", "application, '' where no input names one"),
    Column("variant", "str", "", "label or parameter of the runs"),
    Column("portability", "float", "ratio", "PP: harmonic mean of the efficiencies, 0 unless all platforms are supported"),
    Column("platforms", "int", "", "|H|: platforms that count"),
    Column("names", "str", "", "these platforms, separated by ', '"),
    Column("lowest", "str", "", "platform with the lowest efficiency"),
    Column("unsupported", "str", "", "platforms that make it 0"),
    Column("not_run", "str", "", "platforms left out because nobody ran it there"),
)
