"""Tables with very many columns cost in proportion to these."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from ncu_roofline.base.errors import RooflineError
from ncu_roofline.formats.inputs import open_ceilings, open_input
from tests.inputs.ncu_tables import SUMS, long, text_of, wide


def more(name: str, heading: str, row: str, column: str, cell: str) -> Callable[[int], str]:
    """A file of the folder with further columns: ``{}`` of ``column`` is the number of one."""
    text = (Path(__file__).parent / "files" / name).read_text()
    return lambda count: text.replace(heading, heading + "".join(map(column.format, range(count)))).replace(
        row, row + cell * count
    )


def ncu(count: int) -> dict[str, tuple[str, str]]:
    return {**SUMS, **{f"sm__x{number}.sum": ("inst", "1") for number in range(count)}}


WIDE: dict[str, Callable[[int], str]] = {
    "plain table": more("plain.csv", "bandwidth_dram_gbs", "341.84", ",x{}", ",1"),
    "ncu raw": lambda count: text_of(wide(ncu(count))),
    "ncu live": lambda count: text_of(long(ncu(count))),
    "nvprof": more("nvprof-trace.csv", '"Stream","Name"', '"k"', ',"metric_{}"', ",1"),
    "advisor": more("advisor.csv", '"Source Location"', '"Float64; UInt64",""', ',"Self X{} GB"', ',"1"'),
    "likwid": more("likwid.csv", "HWThread 1", ",1.5", ",HWThread {}", ",1"),
    "roofline data": lambda count: f"comproofs{' 8' * count}\ncomp_roof_names{' M' * count}\nAI 1\nFLOPS 1\n",
}


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", WIDE)
def test_ten_times_the_columns_take_ten_times_as_long(tmp_path: Path, name: str) -> None:
    taken = []
    for count in (4_000, 40_000):
        (tmp_path / "table.csv").write_text(WIDE[name](count), encoding="utf-8")
        start = time.process_time()
        for use in (open_input, open_ceilings):
            with suppress(RooflineError):
                use(tmp_path / "table.csv")
        taken.append(time.process_time() - start)
    # What is quadratic takes a hundred times as long; a tenth of a second is for what every file costs.
    assert taken[1] < 30 * (taken[0] + 0.1)
