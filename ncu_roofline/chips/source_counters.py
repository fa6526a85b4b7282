"""Metrics that tell of a launch's code: counts by address of an instruction, samples of warps, and what goes with them.

The rule generator puts the source of this file, without annotations, into the rules, where Python may be 3.5.
"""

from __future__ import annotations

SECTOR, WARP = 32, 32  # bytes, lanes
# Column of the frames -> metrics whose instances are keyed by address, the first that a report has, and what a count is worth.
# Until 2020.3 sectors were called by where they go, since then by what the addresses would need.
COUNTED = {
    "executed": (("inst_executed",), 1),
    "active": (("thread_inst_executed",), 1),
    "threads": (("thread_inst_executed_true",), 1),
    "requested": (("memory_l2_theoretical_sectors_global", "memory_l2_sectors_global"), SECTOR),
    "ideal": (("memory_l2_theoretical_sectors_global_ideal", "memory_l2_sectors_global_ideal"), SECTOR),
    "local": (("memory_l2_theoretical_sectors_local", "memory_l2_sectors_local"), SECTOR),
    "shared": (("memory_l1_wavefronts_shared",), 1),
    "shared_ideal": (("memory_l1_wavefronts_shared_ideal",), 1),
    "samples": (("smsp__pcsamp_sample_count",), 1),
}
# Of each address the first is part of the second times so many, in every report: a part that is more than the whole is none.
PARTS = (
    ("active", WARP, "executed"),
    ("threads", WARP, "executed"),
    ("threads", 1, "active"),
    ("ideal", 1, "requested"),
    ("shared_ideal", 1, "shared"),
    ("not_issued", 1, "samples"),
)
STALLED = "smsp__pcsamp_warps_issue_stalled_"
# Executions by opcode: the opcodes with their modifiers are what the instances belong to.
OPCODE_THREADS = "sass__thread_inst_executed_true_per_opcode_with_modifier_all"
OPCODE_WARPS = "sass__inst_executed_per_opcode_with_modifier_all"
# Of a whole launch: what caches served, in percent, up to which sums of several passes may be; how full DRAM and an SM with
# warps were, in percent, the first that is there; waves of blocks, and the blocks that an SM has room for.
HIT_RATES = (("L1", "l1tex__t_sector_hit_rate.pct"), ("L2", "lts__t_sector_hit_rate.pct"))
ALL_HIT = 101.0
BUSY = (
    ("dram", ("gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed", "dram__throughput.avg.pct_of_peak_sustained_elapsed")),
    ("warps", ("sm__warps_active.avg.pct_of_peak_sustained_active",)),
    ("warps_possible", ("sm__maximum_warps_per_active_cycle_pct",)),
)
LAUNCHED = (
    ("waves", "launch__waves_per_multiprocessor"),
    ("limit_registers", "launch__occupancy_limit_registers"),
    ("limit_shared", "launch__occupancy_limit_shared_mem"),
    ("limit_blocks", "launch__occupancy_limit_blocks"),
    ("limit_warps", "launch__occupancy_limit_warps"),
)
# What is said of lanes where only those whose predicate is true were counted, as by 2021.2 and before.
WORKING = "work (their predicate is true; which are active was not counted by instruction)"


def adds_up(instances: float, total: float) -> bool:
    """Whether the sum over a metric's instances is the metric's own value (NaN: unknown), as in every recorded report.  Counts
    that are floats may be rounded."""
    return not abs(instances - total) > 1e-6 * max(instances, total)
