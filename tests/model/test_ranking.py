"""One ranking of kernels, whoever shows them."""

from __future__ import annotations

import itertools
import json
import math
import re
from pathlib import Path

import pytest

from ncu_roofline.analyses import render
from ncu_roofline.analyses.hierarchical.kernels import answers_of, kernels_of, ranked
from ncu_roofline.analyses.hierarchical.text import kernels_table
from ncu_roofline.model import measurements_of, roofline
from ncu_roofline.model.selection import order
from ncu_roofline.plugin.nvrules.findings import findings
from tests.factory import Metrics, complete, kernel, report

BUSY = {"sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_active": 60.0}


def slow(seconds: float, share: float, **more: float) -> Metrics:
    """A kernel of so many seconds that uses a share of the bandwidth of DRAM."""
    return {**complete(seconds=seconds), "dram__bytes.sum": int(share * 1.555e12 * seconds), **more}


@pytest.mark.parametrize("full", [0.97, 1.0])
def test_tables_pages_and_advice_rank_alike(tmp_path: Path, full: float) -> None:
    """A kernel of 11 us of unknown gain is behind one of 10 s that has next to nothing to gain."""
    metrics = {"little": slow(11e-6, 0.3, **BUSY), "long": slow(10.0, full), "half": slow(0.5, 0.2), "less": slow(5e-6, 0.1)}
    path = report(tmp_path / "r.ncu-rep", *(kernel(one, f"void {name}(int)") for name, one in metrics.items()))
    expected, rows = ["half", "long", "little", "less"], roofline(path, by="kernel")
    assert [one.kernel for one in ranked(kernels_of(rows).values())] == expected
    assert [row["kernel"] for row in kernels_table(rows).rows] == expected
    assert [one.name for one in findings((), measurements_of([path])).kernels] == expected
    (text,) = re.findall('<script[^>]*type="application/json"[^>]*>(.*?)</script>', render(rows, "html").decode(), re.DOTALL)
    assert [rows.kernels["kernel"][place] for place in json.loads(text)["order"]] == expected
    (answer,) = answers_of(rows)
    assert [said.partition(":")[0] for said in answer.sentences[1:]] == expected[: len(answer.sentences) - 1]


def test_order_does_not_depend_on_what_was_given_first() -> None:
    nan = math.nan
    kernels = [("A", 10.0, 0.01), ("A", 11e-6, nan), ("A", 0.4, nan), ("A", nan, nan), ("B", 1e-3, 0.5e-3)]
    for given in itertools.permutations(kernels):
        found = [given[place] for place in order(given)]
        assert [seconds for _, seconds, _ in found[:4]] == [0.4, 10.0, 1e-3, 11e-6]
        assert math.isnan(found[4][1])
