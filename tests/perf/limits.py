"""Benchmarks with limits: what must not take a time that grows faster than its input, or that users would notice.

``python tests/perf/limits.py`` prints one row per benchmark, processor seconds (the best of some runs) beside the limit, and
ends with 1 where one is over it.  Limits are some five times what one core takes; what they guard against is slower by far.
"""

from __future__ import annotations

import functools
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import pandas as pd

from ncu_roofline.analyses import text_table
from ncu_roofline.base.errors import RooflineError
from ncu_roofline.base.files import pack_folder
from ncu_roofline.chips import load_spec
from ncu_roofline.chips.opcodes import LONGEST, load_opcodes
from ncu_roofline.formats.report import ReportData, read_report, write_report
from ncu_roofline.formats.report.framing import file_start, message, pack_block
from ncu_roofline.formats.report.session import read_command_line
from ncu_roofline.formats.sectionfile.charts import evaluate_charts
from ncu_roofline.formats.sectionfile.section import parse_section
from ncu_roofline.plugin.nvrules.runner import advise, load_rules
from tests.factory import by_address, kernel
from tests.perf.bench import launches
from tests.rendering.frames import FakeRoofline, make_roofline
from tests.sectionfile.section_factory import chart, one, per_second, point, roof, section

_RUNS = 3
_LAUNCHES = 500


def data_files() -> None:
    """All of the data files: the aim is 30 ms."""
    load_spec.__wrapped__()


def long_opcodes() -> None:
    """Opcodes of megabytes and of many patterns."""
    table = load_opcodes()
    for text in ("HMMA" * 10**6, "HMMA" + ".F32" * 10**6, "A" * LONGEST, "*MMA" * 40, "FADD" + "." * (LONGEST - 4)):
        table.work(text, (8, 0))
        table.unknown(text, (8, 0))


def long_command_lines() -> None:
    """Command lines of ncu of 400 kB, of all kinds."""
    for words in (
        *("x" * 400_000, "x " * 200_000, "'a \"b " * 60_000, "'" * 400_000, "-c5 " * 100_000, "--new " * 60_000 + "./a"),
    ):
        read_command_line.__wrapped__(f"ncu -c 5 {words}")


def embedded_charts() -> None:
    """The charts of 3,000 kernels with the same section: without the caches 60 times as long."""
    peak, bandwidth = per_second("flops.sum.peak_sustained"), per_second("dram__bytes.sum.peak_sustained", clock="clock")
    dot = point(per_second("add", "mul"), one("dram__bytes.sum.per_second"))
    data = section(*(chart(roofs=(roof(peak, bandwidth),) * 3, points=(dot,) * 3),) * 2)
    names = ("flops.sum.peak_sustained", "dram__bytes.sum.peak_sustained", "add", "mul", "dram__bytes.sum.per_second", "clock")
    metrics: dict[str, float | int | str] = dict.fromkeys(names, 3.0)
    for _ in range(3000):
        evaluate_charts(parse_section(bytes(bytearray(data))), metrics, (8, 0))


def tables() -> None:
    """The table of 3,000 kernels in the terminal."""
    few = make_roofline(300)
    roofline = FakeRoofline(*(pd.concat([getattr(few, n)] * 10, ignore_index=True) for n in ("points", "roofs", "kernels")))
    for name, rows in (("points", 3), ("kernels", 1)):
        frame = getattr(roofline, name)
        frame["kernel"] = [f"{kernel} {index // rows // 300}" for index, kernel in enumerate(frame["kernel"])]
    text_table(roofline)


FOLDER = tempfile.TemporaryDirectory()  # gone at the end


@functools.cache
def made(name: str) -> Path:
    """A report, written once and before the time is taken."""
    path = Path(FOLDER.name, name)
    if name == "empty":
        path.write_bytes(file_start() + pack_block(message("BlockHeader")(kernels=10**6), [b""] * 10**6))
    else:
        addresses = [kernel({}, instances=by_address(1 << 40, inst_executed=range(100_000)))]
        write_report(path, ReportData(launches(_LAUNCHES) if name == "launches" else addresses))
    return path


RULES = functools.cache(lambda: load_rules([pack_folder("rules")]))


def empty_records() -> None:
    """One million records of kernels that say nothing are refused; the promise is 20 s."""
    with suppress(RooflineError):
        read_report(made("empty"))


def values_by_address() -> None:
    """A metric of a kernel of 100,000 instructions."""
    with read_report(made("addresses")) as opened:
        assert len(opened.kernels[0].metrics.by_address("inst_executed")[0]) == 100_000


def rules_on_launches() -> None:
    """Our rules on 500 launches with the metrics of full sets; the promise is 20,000 in 60 s."""
    with read_report(made("launches")) as opened:
        advise(opened, RULES())


LIMITS: dict[Callable[[], None], float] = {
    data_files: 0.1,
    long_opcodes: 1.0,
    long_command_lines: 5.0,
    embedded_charts: 5.0,
    tables: 8.0,
    empty_records: 5.0,
    values_by_address: 0.3,
    rules_on_launches: 1.5,
}


def best(function: Callable[[], None]) -> float:
    """Processor seconds of the fastest of some runs."""
    seconds = []
    for _ in range(_RUNS):
        start = time.process_time()
        function()
        seconds.append(time.process_time() - start)
    return min(seconds)


def main() -> int:
    """Run them all; 1 if one took too long."""
    code = 0
    print(f"{'benchmark':24}{'seconds':>9}{'limit':>7}")
    for function, limit in LIMITS.items():
        seconds = best(function)
        code |= seconds > limit
        print(f"{function.__name__:24}{seconds:9.3f}{limit:7.1f}{'  too long' if seconds > limit else ''}")
    return code


if __name__ == "__main__":
    sys.exit(main())
