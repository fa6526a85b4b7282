"""Files of Intel SDE and VTune with the numbers of NERSC's example, two processes of STREAM, and with made-up ones.

The layout of the mix is that of a public one of SDE 9.24; those of VTune's reports are what public scripts read.
"""

from __future__ import annotations

from collections.abc import Mapping

# Printed by NERSC's parse-sde.sh and parse-vtune2018.sh in "Measuring Arithmetic Intensity".
STREAM = {
    "elements_fp_double_1": 2960,
    "elements_fp_double_4": 999999360,
    "mem-read-1": 8618384,
    "mem-read-2": 1232,
    "mem-read-4": 137276433,
    "mem-read-8": 149329207,
    "mem-read-16": 1999998720,
    "mem-write-1": 264992,
    "mem-write-2": 560,
    "mem-write-4": 285974,
    "mem-write-8": 14508338,
    "mem-write-32": 499999680,
}
STREAM_FLOP, STREAM_L1_BYTES, STREAM_DRAM_BYTES = 4_000_000_400, 49_869_806_228, 48_511_113_024
STREAM_READS = (0, 0, 127252047, 126829175, 0, 0, 126861782, 127247700)
STREAM_WRITES = (0, 0, 62611982, 62274525, 0, 0, 62389886, 62519044)
# Of the public mix itself: compares are among the elements, and saved registers are accesses of 576 bytes.
GRAPH = {
    "mem-read-1": 161388,
    "mem-read-2": 17951,
    "mem-read-4": 26274841,
    "mem-read-8": 936665,
    "mem-read-16": 8563,
    "mem-read-32": 455,
    "mem-read-576": 117,
    "mem-write-1": 4325,
    "mem-write-2": 530,
    "mem-write-4": 59435,
    "mem-write-8": 591755,
    "mem-write-16": 10175,
    "mem-write-32": 582,
    "mem-write-576": 117,
    "mem-read": 27399980,
    "mem-write": 666919,
    "elements_fp_single_1": 15392,
    "elements_fp_double_1": 73,
    "elements_i32_4": 8166,
}
GRAPH_CODES = {"ADDSS": 5120, "MULSS": 2592, "COMISS": 7680, "ADDSD": 16, "DIVSD": 19, "UCOMISD": 38}


def _block(kind: str, label: str, title: str, counts: Mapping[str, int], codes: Mapping[str, int]) -> list[str]:
    rows = [f"{name:<60}{count:>16}" for name, count in {**{f"*{k}": v for k, v in counts.items()}, **codes}.items()]
    heading = f"#       {'iform' if any('_' in name for name in codes) else 'opcode':<20}count"
    total = f"{'*total':<60}{sum(codes.values()):>16}"
    return [f"# EMIT_{kind}STATS {label}", "#", f"# ${title}", "#", heading, "#", *rows, total, "", f"# END_{kind}STATS"]


def mix(
    counts: Mapping[str, int], codes: Mapping[str, int] | None = None, image: str = "/home/user/stream.exe", threads: int = 0
) -> str:
    """A mix of one process; with ``threads``, of each of them the counts, and none of all."""
    lines = ["# Mix output version 10", "# Intel(R) SDE version: 9.24.0 external", "# Starting tid 0,  OS-TID 353205"]
    if image:
        lines += ["# EMIT_IMAGE_ADDRESSES ", "#    IMAGE NAME            LOW ADDRESS   HIGH ADDRESS  "]
        lines += [f"{image:<40} 563c1ac36000  563c1ac4b823", "/lib64/ld-linux-x86-64.so.2   7f6c1c403000  7f6c1c42eccb"]
        lines += ["# END_IMAGE_ADDRESSES", ""]
    lines += [
        "BLOCK:     0   PC: 00007f6bd78993c8   ICOUNT:   3477952   EXECUTIONS:    869488",
        "XDIS 00007f6bd78993c8: PAUSE F390  pause",
    ]
    some = codes or {"ADD": 1}
    for thread in range(threads):
        lines += _block("DYNAMIC_", f"FOR TID {thread}  OS-TID {353205 + thread} EMIT # 1", "dynamic-counts", counts, some)
        lines += ["# $dynamic-counts-for-function: f  IMG: /home/user/stream.exe", "*mem-read-8      77", "*total      77"]
    if not threads:
        lines += _block("GLOBAL_DYNAMIC_", "  EMIT# 8", "global-dynamic-counts", counts, some)
    return "\n".join(lines) + "\n"


def events(reads: tuple[int, ...] = STREAM_READS, writes: tuple[int, ...] = STREAM_WRITES, delimiter: str = ",") -> str:
    """`vtune -report hw-events -group-by=package`: a column per memory controller, the counts on two packages."""
    names = [
        f"UNC_M_CAS_COUNT.{way}[UNIT{unit}]" for way, units in (("RD", reads), ("WR", writes)) for unit in range(len(units))
    ]
    heading = ["Package", *(f"Uncore Event Count:{name}" for name in names)]
    counts = [*reads, *writes]
    rows = [
        ["package_0", *(str(count // 2) for count in counts)],
        ["package_1", *(str(count - count // 2) for count in counts)],
    ]
    return "\n".join(delimiter.join(row) for row in [heading, *rows]) + "\n"


def summary(seconds: str = "0.75", levels: bool = True) -> str:
    """`vtune -report summary -format=csv`, with the column of levels since 2021."""
    rows = [("0", "Elapsed Time", seconds), ("1", "CPI Rate", "0.665470"), ("1", "Bandwidth Utilization", "")]
    table = [("Hierarchy Level", "Metric Name", "Metric Value"), *rows]
    lines = [",".join(row if levels else row[1:]) for row in table]
    return "\n".join([*lines, '1,"DRAM, GB/sec",118.000000,47.900000,8.352945,0.0'] if levels else lines) + "\n"
