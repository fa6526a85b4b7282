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
from tests.inputs import likwid_output, ncu_tables, nvprof_logs, test_advisor, test_likwid

FORMATS = ("csv", "html", "svg")
FEW, MANY = 4_000, 40_000
ROOFS = "memroofs 800\nmem_roof_names 'HBM'\n"


def _plain(names: list[str]) -> str:
    return f"{','.join(names)}\n{','.join('1' for _ in names)}\n"


def _ncu(count: int) -> dict[str, tuple[str, str]]:
    return {**ncu_tables.SUMS, **{f"sm__x{number}.sum": ("inst", "1") for number in range(count)}}


WIDE: dict[str, Callable[[int], str]] = {
    "plain table": lambda count: _plain(["flops", "seconds", "bytes_dram", *(f"x{number}" for number in range(count))]),
    "plain table, one column again and again": lambda count: _plain(["flops", "seconds", "bytes_dram"] * (count // 3)),
    "ncu raw": lambda count: ncu_tables.text_of(ncu_tables.wide(_ncu(count))),
    "ncu live": lambda count: ncu_tables.text_of(ncu_tables.long(_ncu(count))),
    "nvprof": lambda count: nvprof_logs.trace([("k", 1e-6)], {f"metric_{number}": (1,) for number in range(count)}),
    "advisor": lambda count: test_advisor.survey(
        test_advisor.TRIAD, columns=[*test_advisor.COLUMNS, *(f"Self X{number} GB" for number in range(count))]
    ),
    "advisor roofs": lambda count: (
        test_advisor.ROOFS.split("\n")[0] + ",x" * count + "\nDRAM Bandwidth,1e9,memory" + ",1" * count
    ),
    "likwid": lambda count: likwid_output.output([("G", dict.fromkeys(test_likwid.MEM_DP, (1.0,) * count))]),
    "roofline data": lambda count: (
        f"{ROOFS}comproofs {'8 ' * count}\ncomp_roof_names {' '.join(f'M{number}' for number in range(count))}\nAI 1\nFLOPS 1\n"
    ),
}


def seconds(path: Path, text: str) -> float:
    """The processor's time that reading takes."""
    path.write_text(text, encoding="utf-8")
    start = time.process_time()
    for use in (open_input, open_ceilings):
        with suppress(RooflineError):
            use(path)
    return time.process_time() - start


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", WIDE)
def test_ten_times_the_columns_take_ten_times_as_long(tmp_path: Path, name: str) -> None:
    few, many = (seconds(tmp_path / "table.csv", WIDE[name](count)) for count in (FEW, MANY))
    # What is quadratic takes a hundred times as long; a tenth of a second is for what every file costs.
    assert many < 30 * (few + 0.1)


def _platforms(count: int) -> str:
    rows = (f"p{number},a,1,2,3,4" for number in range(count))
    return "\n".join(["platform,application,gflop/s,ai_dram,peak_gflops,bandwidth_dram_gbs", *rows, ""])


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    "words",
    [("show",), ("show", "--view", "time"), ("portability",), *(("render", "-o", "-", "--format", name) for name in FORMATS)],
)
def test_eight_times_the_platforms_take_eight_times_as_long(
    tmp_path: Path, words: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    table = tmp_path / "table.csv"
    taken = []
    for count in (50, 500, 4_000):  # the first imports
        table.write_text(_platforms(count), encoding="utf-8")
        start = time.process_time()
        assert main([words[0], str(table), *words[1:]]) == 0
        taken.append(time.process_time() - start)
    assert capsys.readouterr().out
    # What is quadratic takes sixty-four times as long.
    assert taken[2] < 20 * (taken[1] + 0.05)
