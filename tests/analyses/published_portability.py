"""Published figures of performance portability: published_portability.toml, as objects."""

from __future__ import annotations

from types import SimpleNamespace

from tests.analyses.data import read

TOLERANCE = 0.02  # per cent; what printing two digits of e and of PP can make
DATA = read("published_portability")
KNL_HBM, V100_HBM = DATA["HBM"]
TABLE_2 = [
    SimpleNamespace(**bar) for bar in DATA["TABLE_2"]
]  # bars: rates, intensities and ceilings of both, and what is printed
SWEEPS = {name: SimpleNamespace(**sweep) for name, sweep in DATA["SWEEPS"].items()}  # by value of a parameter
TABLE_3_FMA, TABLE_3_NO_FMA, TABLE_4 = SWEEPS.values()
MISPRINTED = (TABLE_3_NO_FMA, 4)  # nw = 5
TABLE_1, TABLE_1_INTENSITY = ({int(nw): pair for nw, pair in DATA[name].items()} for name in ("TABLE_1", "TABLE_1_INTENSITY"))
