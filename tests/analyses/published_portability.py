"""Published figures of performance portability: published_portability.toml, as objects."""

from __future__ import annotations

from dataclasses import dataclass

from tests.analyses.data import read

TOLERANCE = 0.02  # per cent; what printing two digits of e and of PP can make
Pair = tuple[float, float]


@dataclass(frozen=True)
class Bar:
    """One bar of table II (GPP, nw = 6): rates, intensities and ceilings of KNL and V100, and what is printed."""

    name: str
    gflops: Pair
    intensity: Pair
    ceiling: Pair
    efficiency: Pair
    portability: float


@dataclass(frozen=True)
class Sweep:
    """A table of one parameter: for each value the rates and intensities of KNL and V100, and what is printed."""

    parameter: str
    values: list[int]
    gflops: tuple[list[float], list[float]]
    intensity: tuple[list[float], list[float]]
    compute: Pair
    bandwidth: Pair
    efficiency: tuple[list[float], list[float]]
    portability: list[float]
    ceiling: str


DATA = read("published_portability")
KNL_HBM, V100_HBM = DATA["HBM"]
TABLE_2 = [Bar(**bar) for bar in DATA["TABLE_2"]]
SWEEPS = {name: Sweep(**sweep) for name, sweep in DATA["SWEEPS"].items()}
TABLE_3_FMA, TABLE_3_NO_FMA, TABLE_4 = SWEEPS.values()
MISPRINTED = (TABLE_3_NO_FMA, 4)  # nw = 5
TABLE_1, TABLE_1_INTENSITY = ({int(nw): pair for nw, pair in DATA[name].items()} for name in ("TABLE_1", "TABLE_1_INTENSITY"))
