"""The columns of the frames of the source view, declared once.

Bytes are those requested of L1 by global memory accesses (32-byte sectors x 32), work is operations executed.  A number that
nobody counted is NaN.
"""

from __future__ import annotations

from ncu_roofline.rendering.frames import Column

WORKS = ("fp64", "fp32", "fp16", "bf16", "tensor")
"""Kinds of work that have a column ``work_KIND`` of their own and add to ``work``; tensor is the sum over tensor types."""

INT32 = "int32"
"""The kind whose column is ``work_int32``: a precision of the model, and no part of ``work``."""

FLOPS = "work"
INTEGERS = f"work_{INT32}"
INTENSITIES = {FLOPS: "intensity", INTEGERS: "intensity_int32"}
"""What performance may count, by column, and the column of its intensity."""

WITHIN = " < "
"""Between a line and the one that it is inlined at, in the column ``inlined``."""

WHERE = (
    Column("report", "str", "", "report the row comes from: its path, or of commands its base name"),
    Column("launch", "int", "", "position of the result in its report, from 0"),
    Column("kernel", "str", "", "short readable name, unique among different kernels of the result"),
    Column("device", "str", "", "name of the GPU"),
)

COUNTS = (
    Column("executed", "float", "inst", "warp instructions executed"),
    Column("active", "float", "thread_inst", "threads that took part in them, predicated off or not"),
    Column("threads", "float", "thread_inst", "threads whose predicate was true"),
    *(
        Column(f"work_{kind}", "float", "flop", f"operations of {kind}; integer tensor operations count as well")
        for kind in WORKS
    ),
    Column("work", "float", "flop", "floating-point and tensor operations over all kinds"),
    Column(
        INTEGERS,
        "float",
        "op",
        "operations of INT32: integer arithmetic and logic on CUDA cores, a thread's instruction is one; no part of work",
    ),
    Column("requested", "float", "byte", "bytes that global memory accesses asked of L1: sectors x 32"),
    Column("ideal", "float", "byte", "the bytes that the same accesses would need, were their addresses contiguous"),
    Column("local", "float", "byte", "bytes of local memory (spills, arrays in registers' stead) asked of L1"),
    Column("shared", "float", "", "wavefronts of shared memory accesses"),
    Column("shared_ideal", "float", "", "wavefronts the same accesses would need without bank conflicts"),
    Column("samples", "float", "", "samples of warps at these instructions"),
    Column("not_issued", "float", "", "those samples in which the warp's scheduler issued nothing"),
)

SHARES = (
    Column("share_samples", "float", "ratio", "share of the kernel's samples: of the time of its warps"),
    Column("share_work", "float", "ratio", "share of the kernel's operations"),
    Column("share_int32", "float", "ratio", "share of the kernel's INT32 operations"),
    Column("share_requested", "float", "ratio", "share of the bytes that the kernel's accesses to global memory asked of L1"),
    Column("share_excess", "float", "ratio", "share of the kernel's `requested` bytes that contiguous addresses would save"),
    Column("intensity", "float", "flop/byte", "work / (requested + local): at L1"),
    Column("intensity_int32", "float", "op/byte", "work_int32 / (requested + local): at L1"),
    Column(
        "lanes",
        "float",
        "",
        "threads active per warp instruction, of 32: active / executed; threads / executed where nobody counted these",
    ),
    Column(
        "share_integer",
        "float",
        "ratio",
        "share of the instructions here (of warps; of threads where only these were counted) that are integer arithmetic",
    ),
    Column("stall", "str", "", "the reason for which warps were stalled here most often, '' where nobody sampled"),
    Column("share_stall", "float", "ratio", "its share of the samples here"),
)

INSTRUCTIONS = (
    *WHERE,
    Column("function", "str", "", "function whose code it is, mangled; '' for addresses outside of all code of the report"),
    Column("owner", "str", "", "function that it belongs to, mangled: `function`, or one whose code lies inside of it"),
    Column("address", "int", "", "address of the instruction on the GPU"),
    Column("offset", "int", "", "bytes from the start of the function; -1 outside"),
    Column("opcode", "str", "", "opcode as far as it is known; 'op 0x1a3' for one that is not, '' outside"),
    Column("sass", "str", "", "the whole instruction, where nvdisasm was at hand; else ''"),
    Column(
        "kind",
        "str",
        "",
        "what it does: fp64, fp32, fp16, bf16, tensor, integer, conversion, memory, shared, control, move, other",
    ),
    Column("file", "str", "", "source file of the innermost line; '' without line table"),
    Column("line", "int", "", "that line, from 1; -1 without"),
    Column("inlined", "str", "", "where that line is inlined, innermost first: 'file:line' separated by ' < '"),
    Column("block", "int", "", "basic block of the function, from 0; -1 outside"),
    Column("loop", "int", "", "id of the innermost loop; -1 in none"),
    *COUNTS,
    *SHARES,
)

LINES = (
    *WHERE,
    Column("file", "str", "", "source file; '' for code without line"),
    Column("line", "int", "", "line, from 1; -1 for code without line, by function, -2 outside of the report's code"),
    Column("text", "str", "", "the line's text, where its source is known; of code without line its function, mangled"),
    Column("instructions", "int", "", "instructions of this line"),
    *COUNTS,
    *SHARES,
)

LOOPS = (
    *WHERE,
    Column(
        "loop", "int", "", "id of the loop in its launch, from 0, outer before inner; -1 for code that none holds, -2 outside"
    ),
    Column("function", "str", "", "function whose loop it is, mangled"),
    Column("parent", "int", "", "id of the loop around it, or around all calls of its function; -1 for none"),
    Column("depth", "int", "", "1 for an outermost loop"),
    Column("header", "int", "", "offset of its first block in the function"),
    Column("end", "int", "", "offset behind its last instruction"),
    Column("file", "str", "", "file that its function begins in, or that most of its lines are in; '' without line table"),
    Column("first_line", "int", "", "first line in that file; -1 without"),
    Column("last_line", "int", "", "last line in that file; -1 without"),
    Column("instructions", "int", "", "instructions of the loop, with those of inner loops and called functions"),
    Column("entries", "float", "", "how often warps entered it; NaN where counts don't tell"),
    Column("trips", "float", "", "iterations per entry and warp"),
    *COUNTS,
    *SHARES,
    Column(
        "performance",
        "float",
        "flop/s",
        "operations / (share_samples x run time), for loops that hold most of the kernel's time; per second in `unit`",
    ),
    Column("performance_least", "float", "flop/s", "operations / run time of the kernel: what it did at least"),
    Column("attainable", "float", "flop/s", "min(compute roof, intensity x L1 roof); NaN where performance is"),
    Column(
        "performance_of",
        "str",
        "",
        "which operations these three count: work, or work_int32 in launches that INT32 limits or that do no other work",
    ),
    Column("unit", "str", "", "their unit: flop, or op for work_int32 and where all work is of integer tensor instructions"),
    Column("notes", "str", "", "why there is no performance, and which functions that it calls are counted with it"),
)

FUNCTIONS = (
    *WHERE,
    Column("function", "str", "", "mangled name; '' for addresses outside of all code of the report"),
    Column("name", "str", "", "readable name"),
    Column("role", "str", "", "kernel, called (code in another function), inlined or outside"),
    Column("file", "str", "", "source file of its first line; '' without"),
    Column("line", "int", "", "that line; -1 without"),
    Column("instructions", "int", "", "instructions of its code"),
    *COUNTS,
    *SHARES,
)

STALLS = (
    *WHERE,
    Column("function", "str", "", "function, mangled; '' outside"),
    Column("offset", "int", "", "bytes from the start of the function; -1 outside"),
    Column("reason", "str", "", "stall reason as ncu names it, without prefix: long_scoreboard, wait, selected ..."),
    Column("samples", "float", "", "samples of warps for this reason"),
    Column("not_issued", "float", "", "those in which the scheduler issued nothing"),
)

TOTALS = (
    *WHERE,
    Column(
        "quantity",
        "str",
        "",
        "a column of the frame of instructions, or opcodes: instructions of the names that the counter has",
    ),
    Column("unit", "str", "", "its unit"),
    Column("sum", "float", "", "sum over all instructions, those outside of the code too"),
    Column("outside", "float", "", "of it, at addresses outside of the report's code"),
    Column("unlined", "float", "", "of it, at instructions without source line"),
    Column("counter", "float", "", "what the kernel's own counters say; NaN without"),
    Column("ratio", "float", "ratio", "sum / counter"),
    Column("metrics", "str", "", "the counters"),
    Column("notes", "str", "", "what to know where the two differ"),
)

FINDINGS = (
    *WHERE,
    Column(
        "finding",
        "str",
        "",
        "excess, gaps, bank-conflict, divergence, unfused, fp64-by-accident, conversion, address, integer, tensor-feed, spill, "
        "called-library or stall",
    ),
    Column("file", "str", "", "source file; '' without line table"),
    Column("line", "int", "", "line; -1 without"),
    Column("function", "str", "", "function, mangled"),
    Column("offset", "int", "", "offset of the instruction that has the most of it"),
    Column("loop", "int", "", "innermost loop; -1 for none"),
    Column("share", "float", "ratio", "share of the kernel that it touches, of what `of` names"),
    Column(
        "of",
        "str",
        "",
        "what the share is of: samples, traffic of global memory at L1, bytes asked of L1 (of local memory, too), "
        "shared wavefronts, work, instructions",
    ),
    Column("cause", "str", "", "what it is in a few words, where `finding` does not say that"),
    Column("message", "str", "", "the finding in a sentence"),
    Column("advice", "str", "", "what to do, in a sentence"),
)

TABLES = {
    "lines": LINES,
    "outer_lines": LINES,
    "loops": LOOPS,
    "functions": FUNCTIONS,
    "instructions": INSTRUCTIONS,
    "stalls": STALLS,
    "totals": TOTALS,
    "findings": FINDINGS,
}
