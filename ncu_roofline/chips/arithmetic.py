"""Arithmetic that could be cheaper: the opcodes to look for, and what is said of them where they are found.

The source view and the rule on arithmetic look for the same and say the same.
"""

from __future__ import annotations

# Label, additions, multiplications and fused ones of one type, and operations of one that is not fused.
ARITHMETIC = (
    ("FP64", ("DADD",), ("DMUL",), ("DFMA",), 1),
    ("FP32", ("FADD", "FADD32I"), ("FMUL", "FMUL32I"), ("FFMA", "FFMA32I"), 1),
    ("packed FP32", ("FADD2",), ("FMUL2",), ("FFMA2",), 2),
    ("FP16", ("HADD2", "HADD2_32I"), ("HMUL2", "HMUL2_32I"), ("HFMA2", "HFMA2_32I"), 2),
)
SLOW = ("F2F", "F2I", "I2F", "I2I", "FRND")
"""Conversions of a quarter of the rate or less; I2FP, F2FP, I2IP and HADD2.F32 are faster."""
BETWEEN = ("F2F",)
"""Conversions between types of floating point."""
DIVIDING = ("I2F", "F2I", "MUFU")
"""Equally many of these in a block look like a division of integers: to float and back, and a reciprocal."""
INDEXING = (
    "IADD", "IADD3", "IADD32I", "IMAD", "IMUL", "ISCADD", "ISETP", "LEA", "SHF", "SHL", "VIADD",
    "UIADD3", "UIMAD", "UISETP", "ULEA", "USHF",
)  # fmt: skip
"""What indices and addresses are made of, but for the moves among them; logic is left out, which works on data as well."""

# What is said behind the place.
UNFUSED = (
    "multiplications and additions in {} and no fused ones. {} of the kernel's operations could be half as many instructions, "
    "if one adds what the other multiplied."
)
FP64_AMONG_FP32 = (
    "FP64 arithmetic between conversions in a kernel whose work is FP32 ({}): {} of its warp instructions, at the lower rate "
    "of FP64."
)
CONVERSIONS = "conversions ({}){} are {} of the kernel's warp instructions; they run at a quarter of the rate of FP32 or less."
INDEXED = (
    "{} of the loop's own warp instructions (loops inside left out) are integer arithmetic, as indices and addresses need it "
    "({}): {} of the kernel's."
)
OF_DIVISIONS = ", as divisions of integers make them,"

UNFUSED_ADVICE = (
    "Compile without -fmad=false, write fma(), and avoid __fmul_rn and __fadd_rn, where a rounding less does no harm."
)
FP64_ADVICE = (
    "If it is not meant so: write constants with an f (0.5f), call float functions (sqrtf, powf), and look for a double in "
    "between."
)
CONVERSION_ADVICE = "Convert once and keep the result, count in the type that is needed, and keep constants in it."
DIVISION_ADVICE = (
    "Divide by constants or powers of two, keep quotients instead of dividing again (loops collapsed into one divide for "
    "each index), and use 32-bit indices."
)
INDEXING_ADVICE = (
    "Move what does not change out of the loop, step pointers instead of computing indices, unroll, divide by constants or "
    "powers of two only, and use 32-bit indices."
)
