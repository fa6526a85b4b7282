"""Published figures that tests and the demo report are made of.

GPP on a V100, nw = 1 ... 6: data_hierarchical of the public nersc-roofline repository, figure 2 of Yang, Kurth, Williams,
"Hierarchical Roofline Analysis for GPUs" (2019), and tables I and III of Yang et al., "An Empirical Roofline Methodology for
Quantitatively Assessing Performance Portability" (2018).
"""

from __future__ import annotations

from dataclasses import dataclass

GPU = "Tesla V100-SXM2-16GB"
CAPABILITY = (7, 0)
SM_COUNT = 80
LAUNCH_LATENCY = 4.2e-6  # s, Wang et al. (2020), section II-B
SM_CLOCK = 1.53e9
MEMORY_CLOCK = 877e6
BUS_WIDTH = 4096

# Measured ceilings in FLOP/s and B/s.  The L1 figure is theoretical in the source (their toolkit could not see L1).
FP64_FMA = 7068.86e9
FP64_NO_FMA = 3535.79e9
DRAM = 828.758e9
L2 = 2996.77e9

INTENSITY_DRAM = (2.584785579, 4.738878073, 6.892970567, 9.047063062, 11.08619259, 13.21154434)
INTENSITY_L2 = (2.250285265, 3.34359685, 3.245471837, 3.766406852, 4.356477696, 5.182021625)
INTENSITY_L1 = (0.865326481, 1.556526957, 2.222121895, 2.863508257, 3.446245893, 4.034947498)
GFLOPS = (2085.756683, 3593.593112, 4381.739349, 4625.535516, 4599.764097, 4692.209405)
# Architectural efficiency against the measured FMA ceiling, per cent (table III); nw = 1 is the one bound by DRAM.
EFFICIENCY = (97.36, 91.50, 76.70, 65.44, 65.07, 66.38)
# Executed GFLOP (table I) for nw = 1, 3, 6; the others are interpolated here, which changes neither intensity nor GFLOP/s.
GFLOP = (1151.6, 2124.2, 3096.8, 4026.7, 4956.6, 5886.5)
# Share of FMA among the FP64 instructions: 60 % is published for nw = 6 and used for all.
FMA_SHARE = 0.6


@dataclass(frozen=True)
class Gpp:
    """One published run as counters: FP64 thread instructions, bytes per level, seconds."""

    nw: int
    dfma: int
    dadd: int
    dmul: int
    bytes_dram: int
    bytes_l2: int
    bytes_l1: int
    seconds: float


def gpp_runs() -> list[Gpp]:
    """The six runs; counters are whole numbers, so figures come back with a relative rounding of about 1e-12."""
    runs = []
    for i, gflop in enumerate(GFLOP):
        instructions = gflop * 1e9 / (2 * FMA_SHARE + (1 - FMA_SHARE))
        dfma = round(FMA_SHARE * instructions)
        dadd = round((1 - FMA_SHARE) * instructions / 2)
        flop = 2 * dfma + 2 * dadd
        runs.append(
            Gpp(
                nw=i + 1,
                dfma=dfma,
                dadd=dadd,
                dmul=dadd,
                bytes_dram=round(flop / INTENSITY_DRAM[i]),
                bytes_l2=round(flop / INTENSITY_L2[i]),
                bytes_l1=round(flop / INTENSITY_L1[i]),
                seconds=flop / (GFLOPS[i] * 1e9),
            )
        )
    return runs
