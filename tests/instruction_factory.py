"""Counters of warp instructions for made reports: what NVIDIA's tool records of them, by release."""

from __future__ import annotations

from tests.factory import Metrics

# How releases call loads of global memory and shared loads and stores, and their transactions.
NEW = {
    "global_ld": ("smsp__sass_inst_executed_op_global_ld.sum", "smsp__sass_l1tex_t_sectors_pipe_lsu_mem_global_op_ld.sum"),
    "shared_ld": (
        "smsp__sass_inst_executed_op_shared_ld.sum",
        "smsp__sass_l1tex_data_pipe_lsu_wavefronts_mem_shared_op_ld.sum",
    ),
    "shared_st": (
        "smsp__sass_inst_executed_op_shared_st.sum",
        "smsp__sass_l1tex_data_pipe_lsu_wavefronts_mem_shared_op_st.sum",
    ),
}
# Releases 2020.3 to 2022.1: hardware's transactions, instructions as numbers of the tool itself.
OLD = {
    "global_ld": ("sass__inst_executed_global_loads", "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum"),
    "shared_ld": ("sass__inst_executed_shared_loads", "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum"),
    "shared_st": ("sass__inst_executed_shared_stores", "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_st.sum"),
}
# Release 2020.3 on Ampere counts the wavefronts of shared stores by instruction patching.
OLDEST = {**OLD, "shared_st": (OLD["shared_st"][0], NEW["shared_st"][1])}
RELEASES = {"new": NEW, "old": OLD, "oldest": OLDEST}


def executed(instructions: int, lanes: float = 32.0) -> Metrics:
    """All warp instructions, and the threads of one with a true predicate."""
    return {
        "smsp__inst_executed.sum": instructions,
        "smsp__thread_inst_executed_pred_on_per_inst_executed.ratio": lanes,
    }


def accesses(release: str = "new", **counts: tuple[int, int]) -> Metrics:
    """(instructions, transactions) of global_ld, shared_ld and shared_st, under the names of a release."""
    names = RELEASES[release]
    return {name: value for kind, pair in counts.items() for name, value in zip(names[kind], pair, strict=True)}
