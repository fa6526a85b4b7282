"""Tables with very many columns, or platforms, cost in proportion to these."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from ncu_roofline.base.errors import RooflineError
from ncu_roofline.cli import main
from ncu_roofline.formats.inputs import open_ceilings, open_input
from tests.inputs.ncu_tables import SUMS, long, text_of, wide

pytestmark = pytest.mark.exhaustive
FEW, MANY = 4_000, 40_000


def columns(names: list[str], cells: str = "1") -> str:
    return f"{','.join(names)}\n{','.join(cells for _ in names)}\n"


def more(name: str, heading: str, row: str, column: str, cell: str) -> Callable[[int], str]:
    """A file of the folder with further columns: ``{}`` of ``column`` is the number of one."""

    def made(count: int, folder: Path = Path(__file__).parent / "files") -> str:
        text = (folder / name).read_text()
        text = text.replace(heading, heading + "".join(column.format(number) for number in range(count)))
        return text.replace(row, row + cell * count)

    return made


def ncu(count: int) -> dict[str, tuple[str, str]]:
    return {**SUMS, **{f"sm__x{number}.sum": ("inst", "1") for number in range(count)}}


WIDE: dict[str, Callable[[int], str]] = {
    "plain table": lambda count: columns(["flops", "seconds", "bytes_dram", *(f"x{number}" for number in range(count))]),
    "plain table, one column again and again": lambda count: columns(["flops", "seconds", "bytes_dram"] * (count // 3)),
    "ncu raw": lambda count: text_of(wide(ncu(count))),
    "ncu live": lambda count: text_of(long(ncu(count))),
    "nvprof": more("nvprof-trace.csv", '"Stream","Name"', '"k"', ',"metric_{}"', ",1"),
    "advisor": more("advisor.csv", '"Source Location"', '"Float64; UInt64",""', ',"Self X{} GB"', ',"1"'),
    "advisor roofs": more("advisor-roofs.csv", "Type,Device", "memory,CPU", ",x", ",1"),
    "likwid": lambda count: (
        f"TABLE,Group 1 Raw,G,1,,\nTABLE,Group 1 Metric,G,2,,\nMetric{',HWThread 0' * count}\n"
        f"Runtime (RDTSC) [s]{',1.0' * count}\nDP [MFLOP/s]{',1.0' * count}\n"
    ),
    "roofline data": lambda count: (
        f"memroofs 800\nmem_roof_names 'HBM'\ncomproofs {'8 ' * count}\n"
        f"comp_roof_names {' '.join(f'M{number}' for number in range(count))}\nAI 1\nFLOPS 1\n"
    ),
}


@pytest.mark.parametrize("name", WIDE)
def test_ten_times_the_columns_take_ten_times_as_long(tmp_path: Path, name: str) -> None:
    taken = []
    for count in (FEW, MANY):
        (tmp_path / "table.csv").write_text(WIDE[name](count), encoding="utf-8")
        start = time.process_time()
        for use in (open_input, open_ceilings):
            with suppress(RooflineError):
                use(tmp_path / "table.csv")
        taken.append(time.process_time() - start)
    # What is quadratic takes a hundred times as long; a tenth of a second is for what every file costs.
    assert taken[1] < 30 * (taken[0] + 0.1)


WAYS = [
    ("show",),
    ("show", "--view", "time"),
    ("portability",),
    *(("render", "-o", "-", "--format", f) for f in ("csv", "svg")),
]


@pytest.mark.parametrize("words", WAYS)
def test_eight_times_the_platforms_take_eight_times_as_long(
    tmp_path: Path, words: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    table, taken = tmp_path / "table.csv", []
    for count in (50, 500, 4_000):  # the first imports
        rows = (f"p{number},a,1,2,3,4" for number in range(count))
        table.write_text("\n".join(["platform,application,gflop/s,ai_dram,peak_gflops,bandwidth_dram_gbs", *rows, ""]))
        start = time.process_time()
        assert main([words[0], str(table), *words[1:]]) == 0
        taken.append(time.process_time() - start)
    assert capsys.readouterr().out
    # What is quadratic takes sixty-four times as long.
    assert taken[2] < 20 * (taken[1] + 0.05)
