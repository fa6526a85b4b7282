"""Published figures of performance portability, as data.

Tables I to IV of Yang et al., "An Empirical Roofline Methodology for Quantitatively Assessing Performance Portability" (P3HPC
2018), and the rates and intensities behind them from the plot scripts of the public nersc-roofline repository (cpu.1 to cpu.3
and gpu.1 to gpu.3, with .fma where there is one).  GFLOP/s, GB/s, FLOP/byte, per cent.
"""

from __future__ import annotations

from dataclasses import dataclass

TOLERANCE = 0.02  # per cent; what printing two digits of e and of PP can make

# Ceilings: text of sections II-C and the plot scripts.
KNL_FMA, KNL_NO_FMA, KNL_DIVIDE_NO_FMA, KNL_THEORETICAL_NO_FMA = 2390.12, 959.49, 221.18, 1228.8
V100_FMA, V100_NO_FMA, V100_DIVIDE_NO_FMA = 7068.86, 3535.79, 496.56
V100_THEORETICAL_NO_FMA = 3900.0  # the figure that table II is made with; 80 * 32 * 1.53 = 3916.8 stands in the script
KNL_HBM, V100_HBM = 341.84, 828.758
KNL_HBM_STRIDES = 341.14  # the script of table IV


@dataclass(frozen=True)
class Bar:
    """One bar of table II (GPP, nw = 6): rates, intensities and ceilings of KNL and V100, and what is printed."""

    name: str
    gflops: tuple[float, float]
    intensity: tuple[float, float]
    ceiling: tuple[float, float]
    efficiency: tuple[float, float]
    portability: float


CANONICAL = (5.49393113, 9.675093464)
EXECUTED = (6.711316698, 13.08969355)
TABLE_2 = (
    Bar("1", (758.9850042, 4587.398269), CANONICAL, (KNL_FMA, V100_FMA), (40.41, 64.89), 49.81),
    Bar(
        "2",
        (639.4911982, 3174.788941),
        CANONICAL,
        (KNL_THEORETICAL_NO_FMA, V100_THEORETICAL_NO_FMA),
        (52.04, 81.40),
        63.49,
    ),
    Bar("3", (639.4911982, 3174.788941), CANONICAL, (KNL_NO_FMA, V100_NO_FMA), (66.65, 89.79), 76.51),
    Bar("4", (639.4911982, 3174.788941), CANONICAL, (KNL_DIVIDE_NO_FMA, V100_DIVIDE_NO_FMA), (289.13, 639.36), 398.19),
    Bar("5", (781.1943498, 3534.341827), EXECUTED, (KNL_NO_FMA, V100_NO_FMA), (81.42, 99.96), 89.74),
)


@dataclass(frozen=True)
class Sweep:
    """A table of one parameter: for each value the rates and intensities of KNL and V100, and what is printed."""

    parameter: str
    values: tuple[int, ...]
    gflops: tuple[tuple[float, ...], tuple[float, ...]]
    intensity: tuple[tuple[float, ...], tuple[float, ...]]
    compute: tuple[float, float]
    bandwidth: tuple[float, float]
    efficiency: tuple[tuple[float, ...], tuple[float, ...]]
    portability: tuple[float, ...]
    ceiling: str


NW = (1, 2, 3, 4, 5, 6)
NW_INTENSITY = (
    (1.331193249, 2.452625101, 3.574057584, 4.695488806, 5.816921289, 6.938352511),
    (2.584785579, 4.738878073, 6.892970567, 9.047063062, 11.08619259, 13.21154434),
)
TABLE_3_FMA = Sweep(
    "nw",
    NW,
    (
        (386.6986548, 649.7240974, 815.686037, 887.2244698, 925.719226, 940.4274427),
        (2085.756683, 3593.593112, 4381.739349, 4625.535516, 4599.764097, 4692.209405),
    ),
    NW_INTENSITY,
    (KNL_FMA, V100_FMA),
    (KNL_HBM, V100_HBM),
    ((84.98, 77.50, 66.77, 55.28, 46.56, 39.65), (97.36, 91.50, 76.70, 65.44, 65.07, 66.38)),
    (90.76, 83.92, 71.39, 59.93, 54.28, 49.65),
    "fma",
)
# V100 at nw = 5 is printed as 1.00: the script's figures give 100.64 %, with which the printed PP agrees and 100 % does not.
TABLE_3_NO_FMA = Sweep(
    "nw",
    NW,
    (
        (373.3900009, 611.5804248, 707.5161847, 755.2772123, 779.9056862, 794.5910455),
        (1989.805396, 3283.979842, 3444.997829, 3497.277426, 3558.521905, 3526.106508),
    ),
    NW_INTENSITY,
    (KNL_NO_FMA, V100_NO_FMA),
    (KNL_HBM, V100_HBM),
    ((82.06, 72.95, 73.74, 78.72, 81.28, 82.81), (92.88, 92.88, 97.43, 98.91, 100.0, 99.73)),
    (87.14, 81.72, 83.95, 87.67, 89.93, 90.49),
    "nofma",
)
MISPRINTED = (TABLE_3_NO_FMA, 4)  # nw = 5
TABLE_4 = Sweep(
    "stride",
    (1, 2, 4, 8),
    (
        (917.9114175, 705.3553334, 417.9572346, 274.1829048),
        (4640.167902, 4295.849753, 2105.071611, 1940.40743),
    ),
    ((7.72739077, 2.748276887, 1.245330102, 0.810285428), (13.41460619, 6.067542119, 2.570526951, 2.343713221)),
    (KNL_FMA, V100_FMA),
    (KNL_HBM_STRIDES, V100_HBM),
    ((38.40, 75.24, 98.39, 99.20), (65.64, 85.43, 98.81, 99.89)),
    (48.46, 80.01, 98.60, 99.55),
    "fma",
)
STRIDE_16_KNL = (191.4400273, 0.5727008, 98.00)  # GFLOP/s, FLOP/byte, per cent; the V100 was not run
SWEEPS = {"table III, FMA": TABLE_3_FMA, "table III, no FMA": TABLE_3_NO_FMA, "table IV": TABLE_4}

# Table I, GPP on V100: nw -> executed and canonical GFLOP; and the intensities of both in the script gpu.2.
TABLE_1 = {1: (1151.6, 895.8), 3: (3096.8, 2329.1), 6: (5886.5, 4350.9)}
TABLE_1_INTENSITY = {1: (2.56093839, 1.991922505), 3: (6.886339694, 5.179047434), 6: (13.08969355, 9.675093464)}
